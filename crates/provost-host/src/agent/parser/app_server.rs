//! The conversation with `codex app-server`: one thread, one turn, and its questions.
//!
//! # Invariants
//!
//! - Nothing is guessed: a message that violates the protocol ends the conversation.
//! - A question is answered once, for this once. What cannot be shown to a person is declined, and
//!   what is not a question about a command or a file is refused.
//! - An item of another thread, or a turn of one, is none of the agent.

mod message;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use provost_core::agent::Adapted;
use provost_core::agent::event::{Event, Usage, brief};
use provost_core::gate::command;
use serde::Serialize;
use serde_json::Value;

use super::mcp::NOT_OFFERED;
use super::{AgentTask, Breach, Conversation, Line, StreamParser, codex, number, text};
use message::{
    ApprovalDecision, ApprovalReply, ApprovalRule, ApprovalsReviewer, ClientCall,
    ClientCapabilities, ClientInfo, ClientMessage, ClientReply, Introduction, NotOffered, Nothing,
    ReplyOutcome, ThreadRules, TurnRemark, TurnStart, UserText,
};

/// The most requests that are not questions, and the most questions that are open at once.
const MOST_REQUESTS: usize = 256;

/// Notifications that repeat what a completed item says, piece by piece.
const NOT_WANTED: [&str; 12] = [
    "account/rateLimits/updated",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "rawResponse/completed",
    "rawResponseItem/completed",
    "thread/started",
    "turn/diff/updated",
];

/// The shells of the host that Codex starts with `-lc` and one script; no agent can replace them.
const SHELLS: [&str; 6] = [
    "/bin/bash",
    "/bin/sh",
    "/bin/zsh",
    "/usr/bin/bash",
    "/usr/bin/sh",
    "/usr/bin/zsh",
];

/// A request of ours that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedAnswer {
    Greeting,
    Thread {
        resumed: bool,
    },
    Turn,
    /// A remark may come too late for its turn.
    Remark,
}

/// A question about a command.
#[derive(Debug)]
struct OpenApproval {
    /// As the program wrote its id.
    id: Value,
    item: String,
    turn: String,
    command: String,
}

/// A conversation with the app server.
#[derive(Debug)]
pub(super) struct AppServerDialogue {
    prompt: String,
    /// The thread to resume, and then the one that is open.
    thread: Option<String>,
    schema: Option<Value>,
    rule: ApprovalRule,
    /// The id of the last request.
    asked: u64,
    awaited: BTreeMap<u64, AwaitedAnswer>,
    open: BTreeMap<String, OpenApproval>,
    /// Why a person refused the command of an item.
    reasons: BTreeMap<String, String>,
    refused: usize,
    last_message: String,
    over: bool,
    out: Vec<u8>,
}

fn breach<T>(words: &str) -> Result<T, Breach> {
    Err(Breach(words.to_owned()))
}

impl AppServerDialogue {
    /// Starts a conversation; the first request is ready to be sent.
    pub(super) fn begin(agent: &Adapted, task: &AgentTask<'_>) -> Self {
        let mut dialogue = Self {
            prompt: task.prompt.to_owned(),
            thread: task.thread.map(str::to_owned),
            schema: task.answer.schema(),
            rule: ApprovalRule::of(agent.shell),
            asked: 0,
            awaited: BTreeMap::new(),
            open: BTreeMap::new(),
            reasons: BTreeMap::new(),
            refused: 0,
            last_message: String::new(),
            over: false,
            out: Vec::new(),
        };
        let introduction = Introduction {
            client_info: ClientInfo {
                name: "provost",
                version: env!("CARGO_PKG_VERSION"),
            },
            capabilities: ClientCapabilities {
                experimental_api: false,
                request_attestation: false,
                opt_out_notification_methods: &NOT_WANTED,
            },
        };
        let greeting = ClientCall::Initialize(introduction);
        dialogue.ask(AwaitedAnswer::Greeting, greeting);
        dialogue
    }

    fn ask(&mut self, awaited: AwaitedAnswer, call: ClientCall<'_>) {
        self.asked += 1;
        self.awaited.insert(self.asked, awaited);
        self.send(&ClientMessage {
            id: Some(self.asked),
            call,
        });
    }

    fn send(&mut self, message: &impl Serialize) {
        // The types have no maps with keys that are not text, so this does not fail.
        if let Ok(bytes) = serde_json::to_vec(message) {
            self.out.extend(bytes);
            self.out.push(b'\n');
        }
    }

    /// Resumes the thread, if there is one, or opens a new one.
    fn open_thread(&mut self, resumed: Option<&str>) {
        let rules = ThreadRules {
            thread_id: resumed,
            exclude_turns: resumed.map(|_| true),
            approval_policy: self.rule,
            approvals_reviewer: ApprovalsReviewer::User,
        };
        let awaited = AwaitedAnswer::Thread {
            resumed: resumed.is_some(),
        };
        let call = match resumed {
            Some(_) => ClientCall::ResumeThread(rules),
            None => ClientCall::StartThread(rules),
        };
        self.ask(awaited, call);
    }

    fn start_turn(&mut self, thread: &str) {
        let (prompt, schema) = (self.prompt.clone(), self.schema.clone());
        let turn = TurnStart {
            thread_id: thread,
            input: [UserText { text: &prompt }],
            approval_policy: self.rule,
            approvals_reviewer: ApprovalsReviewer::User,
            output_schema: schema.as_ref(),
        };
        self.ask(AwaitedAnswer::Turn, ClientCall::StartTurn(turn));
    }

    /// Processes the answer to a request of ours.
    fn answered(&mut self, id: &Value, message: &Value) -> Result<Vec<Event>, Breach> {
        let awaited = id.as_u64().and_then(|id| self.awaited.remove(&id));
        let Some(awaited) = awaited else {
            return breach("answered a request that was not sent");
        };
        let result = match (message.get("result"), message.get("error")) {
            (Some(result), None) => result,
            (None, Some(error)) => return Ok(self.failed(awaited, text(error, "/message"))),
            _ => return breach("sent an answer that has not one of `result` and `error`"),
        };
        match awaited {
            AwaitedAnswer::Greeting => {
                self.send(&ClientMessage {
                    id: None,
                    call: ClientCall::Initialized(Nothing {}),
                });
                let resumed = self.thread.take();
                self.open_thread(resumed.as_deref());
                Ok(Vec::new())
            }
            AwaitedAnswer::Thread { .. } => {
                let thread = text(result, "/thread/id").to_owned();
                if thread.is_empty() {
                    return breach("opened a thread without an id");
                }
                self.start_turn(&thread);
                self.thread = Some(thread.clone());
                let thread = brief(&thread);
                Ok(vec![Event::Session { thread }])
            }
            AwaitedAnswer::Turn | AwaitedAnswer::Remark => Ok(Vec::new()),
        }
    }

    /// Handles an error reply. If the thread is lost, the whole prompt goes into a new one.
    fn failed(&mut self, awaited: AwaitedAnswer, words: &str) -> Vec<Event> {
        let text = brief(words);
        let error = Event::Error { text: text.clone() };
        match awaited {
            AwaitedAnswer::Thread { resumed: true } => {
                self.open_thread(None);
                vec![error]
            }
            AwaitedAnswer::Remark => Vec::new(),
            AwaitedAnswer::Greeting | AwaitedAnswer::Thread { .. } | AwaitedAnswer::Turn => {
                self.over = true;
                vec![error, Event::Final { ok: false, text }]
            }
        }
    }

    /// Processes a request of the program.
    fn requested(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
    ) -> Result<Vec<Event>, Breach> {
        if !id.is_string() && !id.is_i64() && !id.is_u64() {
            return breach("sent a request whose id is neither text nor a number");
        }
        match method {
            "item/commandExecution/requestApproval" => self.command_asked(id, params),
            "item/fileChange/requestApproval" => {
                // Sandbox and diff gate decide about files; a wider root is never given.
                let is_plain = params["grantRoot"].is_null() && !self.is_foreign(params);
                let decision = if is_plain {
                    ApprovalDecision::Accept
                } else {
                    ApprovalDecision::Decline
                };
                self.decide(id, decision);
                Ok(Vec::new())
            }
            _ => {
                let error = NotOffered {
                    code: NOT_OFFERED,
                    message: "not offered to this program",
                };
                self.send(&ClientReply {
                    id,
                    outcome: ReplyOutcome::Error(error),
                });
                self.note_refusal(&format!("Codex asks for {method}, which it is not given"))
            }
        }
    }

    fn note_refusal(&mut self, words: &str) -> Result<Vec<Event>, Breach> {
        self.refused += 1;
        if self.refused > MOST_REQUESTS {
            return breach("asked for more than 256 things that it is not given");
        }
        let text = brief(words);
        Ok(vec![Event::Error { text }])
    }

    /// Keeps a question about a command, if a person can be asked.
    fn command_asked(&mut self, id: &Value, params: &Value) -> Result<Vec<Event>, Breach> {
        let kind = text(params, "/kind");
        let command = text(params, "/command");
        let item = text(params, "/itemId");
        let why = if self.rule == ApprovalRule::Never {
            Some("its contract asks for nothing")
        } else if self.is_foreign(params) {
            Some("the command is of another thread")
        } else if !matches!(kind, "" | "command") || !params["networkApprovalContext"].is_null() {
            Some("it is not about a command")
        } else if command.trim().is_empty() || item.is_empty() {
            Some("it does not say which command")
        } else {
            None
        };
        if let Some(why) = why {
            self.decide(id, ApprovalDecision::Decline);
            return self.note_refusal(&format!("a question of Codex is declined: {why}"));
        }
        let question = OpenApproval {
            id: id.clone(),
            item: item.to_owned(),
            turn: text(params, "/turnId").to_owned(),
            command: script(command),
        };
        if self.open.len() >= MOST_REQUESTS {
            return breach("has more than 256 open questions");
        }
        match self.open.insert(id.to_string(), question) {
            Some(_) => breach("asked twice under one id"),
            None => Ok(Vec::new()),
        }
    }

    fn decide(&mut self, id: &Value, decision: ApprovalDecision) {
        self.send(&ClientReply {
            id,
            outcome: ReplyOutcome::Result(ApprovalReply { decision }),
        });
    }

    /// Whether `params` are about another thread than the one of this conversation.
    fn is_foreign(&self, params: &Value) -> bool {
        let thread = params["threadId"].as_str();
        thread.is_some_and(|thread| self.thread.as_deref() != Some(thread))
    }

    /// Processes a notification.
    fn notified(&mut self, method: &str, params: &Value) -> Line {
        if self.is_foreign(params) {
            return Line::default();
        }
        match method {
            "item/completed" => self.completed(&params["item"]),
            "thread/tokenUsage/updated" => Line {
                events: vec![Event::Usage(usage(&params["tokenUsage"]["total"]))],
                ..Line::default()
            },
            "error" => {
                let details = text(params, "/error/additionalDetails");
                let words = match (text(params, "/error/message"), details) {
                    (message, "") => message.to_owned(),
                    (message, details) => format!("{message} ({details})"),
                };
                let text = brief(&words);
                Line {
                    events: vec![Event::Error { text }],
                    complaint: codex::complaint(&words),
                    ..Line::default()
                }
            }
            "turn/completed" => self.ended(&params["turn"]),
            "serverRequest/resolved" => {
                // The turn was interrupted, or this is our own answer.
                self.open.remove(&params["requestId"].to_string());
                Line::default()
            }
            _ => Line {
                is_progress: method.starts_with("item/"),
                ..Line::default()
            },
        }
    }

    fn completed(&mut self, item: &Value) -> Line {
        let mut events = codex::item(item);
        let reason = self.reasons.remove(text(item, "/id"));
        for event in &mut events {
            match (event, &reason) {
                (Event::Message { text }, _) => text.clone_into(&mut self.last_message),
                (Event::ToolResult { text, .. }, Some(reason)) => reason.clone_into(text),
                _ => {}
            }
        }
        Line {
            events,
            is_progress: true,
            complaint: None,
            answer: codex::answer(item),
        }
    }

    fn ended(&mut self, turn: &Value) -> Line {
        self.over = true;
        let ok = text(turn, "/status") == "completed";
        let error = text(turn, "/error/message");
        let words = match (ok, error) {
            (true, _) => self.last_message.as_str(),
            (false, "") => "the turn was interrupted",
            (false, error) => error,
        };
        let text = brief(words);
        Line {
            events: vec![Event::Final { ok, text }],
            ..Line::default()
        }
    }
}

impl StreamParser for AppServerDialogue {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        if self.over {
            return Ok(Line::default());
        }
        let method = line.get("method").and_then(Value::as_str);
        let events = match (method, line.get("id")) {
            (Some(method), None) => return Ok(self.notified(method, &line["params"])),
            (Some(method), Some(id)) => self.requested(method, id, &line["params"])?,
            (None, Some(id)) => self.answered(id, line)?,
            (None, None) => return breach("sent a message without a method and without an id"),
        };
        Ok(Line {
            events,
            ..Line::default()
        })
    }

    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        Some(self)
    }
}

impl Conversation for AppServerDialogue {
    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn close(&mut self) {
        self.over = true;
        self.open.clear();
        self.out.clear();
    }

    fn asked_commands(&self) -> Vec<(String, String)> {
        let open = self.open.iter();
        open.map(|(id, question)| (id.clone(), question.command.clone()))
            .collect()
    }

    fn answer_command(&mut self, id: &str, permitted: Result<(), &str>) {
        let Some(question) = self.open.remove(id) else {
            return;
        };
        let Err(reason) = permitted else {
            return self.decide(&question.id, ApprovalDecision::Accept);
        };
        self.decide(&question.id, ApprovalDecision::Decline);
        let words = format!("the command was not permitted: {reason}");
        let thread = self.thread.clone().unwrap_or_default();
        // A decline has no room for the reason, and the model should have it.
        let remark = TurnRemark {
            thread_id: &thread,
            expected_turn_id: &question.turn,
            input: [UserText { text: &words }],
        };
        self.ask(AwaitedAnswer::Remark, ClientCall::SteerTurn(remark));
        self.reasons.insert(question.item, words);
    }
}

/// The script of a command that is one of the usual shells with a script, or the command itself.
fn script(command: &str) -> String {
    let words = command::split(command).unwrap_or_default();
    match words.as_slice() {
        [shell, flag, script]
            if SHELLS.contains(&shell.as_str()) && matches!(flag.as_str(), "-lc" | "-c") =>
        {
            script.clone()
        }
        _ => command.to_owned(),
    }
}

/// Codex counts cached tokens as input tokens, and reports no price.
fn usage(total: &Value) -> Usage {
    Usage {
        input_tokens: number(total, "/inputTokens"),
        cached_tokens: number(total, "/cachedInputTokens"),
        output_tokens: number(total, "/outputTokens"),
        micro_usd: 0,
    }
}
