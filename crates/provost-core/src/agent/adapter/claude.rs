//! Claude Code, by `claude --print`, and its output with `--output-format stream-json`.

mod prompt;

use serde_json::{Value, json};

use super::{
    AgentAdapter, Breach, ClaimedAgain, Conversation, Line, Start, StreamParser, Subscription,
    Vendor, number, servers, text, words,
};
use crate::agent::Adapted;
use crate::agent::event::{Event, Usage, brief};
use crate::agent::launch::Answer;
use crate::contract::document::Shell;
use crate::contract::role::RunnerKind;
use crate::net::credential::LoginFile;
use crate::net::model_api::ModelApi;

use prompt::PromptDialogue;

/// Tools of Claude Code that act only inside the sandbox; it gets no others.
const TOOLS: &str = "Bash,Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The same without its shell.
const TOOLS_WITHOUT_SHELL: &str = "Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The tools of a reviewer or a planner: read-only, and a shell in a read-only sandbox.
const READING_TOOLS: &str = "Bash,Glob,Grep,Read,TodoWrite";

pub(super) struct Claude;

impl AgentAdapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn start(&self) -> Start {
        Start::Program {
            name: "claude",
            package: "@anthropic-ai/claude-code",
        }
    }

    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor {
            name: "anthropic",
            url: "https://api.anthropic.com",
            key_field: "X-Api-Key: ",
            key_variable: "ANTHROPIC_API_KEY",
            api: Some(ModelApi::Messages),
            subscription: Some(Subscription {
                url: "https://api.anthropic.com",
                field: "Authorization: Bearer ",
                token_variable: Some("CLAUDE_CODE_OAUTH_TOKEN"),
                file: LoginFile::Claude,
            }),
        })
    }

    /// Seen with Claude Code 2.1.
    fn background_domains(&self) -> &'static [&'static str] {
        &[
            "anthropic.com",
            "claude.ai",
            "claude.com",
            "datadoghq.com",
            "githubusercontent.com",
            "growthbook.io",
            "sentry.io",
            "statsig.com",
            "statsigapi.net",
            "storage.googleapis.com",
        ]
    }

    fn runner(&self) -> Option<RunnerKind> {
        Some(RunnerKind::Claude)
    }

    fn claims_again(&self) -> ClaimedAgain {
        ClaimedAgain::Price
    }

    fn binds_answer(&self) -> bool {
        true
    }

    fn keeps(&self, _: Shell) -> Result<(), &'static str> {
        Ok(())
    }

    fn arguments(&self, agent: &Adapted, answer: Answer) -> Vec<String> {
        let tools = match agent.shell {
            _ if answer.is_read_only() => READING_TOOLS,
            Shell::Deny => TOOLS_WITHOUT_SHELL,
            Shell::Untrusted | Shell::OnRequest | Shell::Never => TOOLS,
        };
        let mut arguments = words(&["--print", "--verbose", "--output-format", "stream-json"]);
        arguments.extend(prompt::arguments(agent.shell));
        arguments.extend(words(&[
            // Settings and documents of the tree must not configure it, and it starts no other servers.
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--tools",
            tools,
        ]));
        let servers = servers(agent);
        if !servers.is_empty() {
            let config = json!({ "mcpServers": servers });
            arguments.extend(["--mcp-config".to_owned(), config.to_string()]);
        }
        if let Some(micro) = agent.budget.micro_usd {
            let amount = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
            arguments.extend(["--max-budget-usd".to_owned(), amount]);
        }
        arguments.extend(agent.model_words());
        if let Some(schema) = answer.schema() {
            arguments.extend(["--json-schema".to_owned(), schema.to_string()]);
        }
        arguments
    }

    fn resume(&self, mut words: Vec<String>, thread: &str) -> Vec<String> {
        words.extend(["--resume".to_owned(), thread.to_owned()]);
        words
    }

    fn environment(&self, agent: &Adapted) -> Vec<(&'static str, String)> {
        vec![
            ("ANTHROPIC_BASE_URL", agent.model_url()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ]
    }

    fn parser(&self, agent: &Adapted, prompt: &str, _: Option<&str>) -> Box<dyn StreamParser> {
        Box::new(ClaudeStream {
            dialogue: PromptDialogue::begin(agent.shell, prompt),
            ..ClaudeStream::default()
        })
    }
}

/// Usage so far, message by message; the final line has the total.
#[derive(Debug, Default)]
struct ClaudeStream {
    before: Usage,
    message: String,
    current: Usage,
    /// The conversation about commands, if a person is asked.
    dialogue: Option<PromptDialogue>,
}

impl StreamParser for ClaudeStream {
    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        let dialogue = self.dialogue.as_mut()?;
        Some(dialogue)
    }

    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        if let Some(dialogue) = &mut self.dialogue {
            dialogue.hear(line);
        }
        Ok(Line {
            events: events(line, self),
            // System lines include retries.
            is_progress: matches!(text(line, "/type"), "assistant" | "user" | "stream_event"),
            complaint: complaint(line),
            answer: line.get("structured_output").cloned(),
        })
    }
}

fn events(line: &Value, stream: &mut ClaudeStream) -> Vec<Event> {
    match text(line, "/type") {
        "system" if text(line, "/subtype") == "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "system" => {
            let error = complaint(line).map(|(_, text)| Event::Error { text });
            error.into_iter().collect()
        }
        "assistant" => {
            let message = &line["message"];
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            let mut events: Vec<Event> = blocks.iter().filter_map(block).collect();
            events.extend(stream.add(message));
            events
        }
        "user" => {
            let blocks = line["message"]["content"].as_array();
            let blocks = blocks.map_or(&[][..], Vec::as_slice);
            blocks.iter().filter_map(tool_result).collect()
        }
        "result" => {
            let ok = line["is_error"] == Value::Bool(false) && text(line, "/subtype") == "success";
            let words = match text(line, "/result") {
                "" => text(line, "/subtype"),
                words => words,
            };
            let spent = Usage {
                micro_usd: micro(&line["total_cost_usd"]),
                ..usage(&line["usage"])
            };
            let text = brief(words);
            vec![Event::Usage(spent), Event::Final { ok, text }]
        }
        _ => Vec::new(),
    }
}

/// The error of a line about a model that does not answer: the status, if any, and the message.
fn complaint(line: &Value) -> Option<(Option<u16>, String)> {
    if text(line, "/subtype") != "api_retry" {
        return None;
    }
    let status = line["error_status"].as_u64();
    let status = status.and_then(|status| u16::try_from(status).ok());
    let answer = match status {
        Some(status) => format!("the model answered {status}"),
        None => "the model does not answer".to_owned(),
    };
    let (now, most) = (number(line, "/attempt"), number(line, "/max_retries"));
    Some((
        status,
        format!("{answer}; it is asked again, {now} of {most} times"),
    ))
}

fn block(block: &Value) -> Option<Event> {
    match text(block, "/type") {
        "text" => Some(Event::Message {
            text: brief(text(block, "/text")),
        }),
        "tool_use" => Some(tool(text(block, "/name"), &block["input"])),
        _ => None,
    }
}

/// The result of a tool: text, or a list of parts of which the first text counts.
fn tool_result(block: &Value) -> Option<Event> {
    if text(block, "/type") != "tool_result" {
        return None;
    }
    let content = block["content"].as_str();
    Some(Event::ToolResult {
        ok: block["is_error"] != Value::Bool(true),
        text: brief(content.unwrap_or_else(|| text(block, "/content/0/text"))),
    })
}

fn tool(name: &str, input: &Value) -> Event {
    match name {
        "Edit" | "Write" => Event::FileChange {
            path: brief(text(input, "/file_path")),
        },
        "NotebookEdit" => Event::FileChange {
            path: brief(text(input, "/notebook_path")),
        },
        "Bash" => Event::Tool {
            name: "shell".to_owned(),
            detail: brief(text(input, "/command")),
        },
        _ => Event::Tool {
            name: brief(name),
            detail: brief(&input.to_string()),
        },
    }
}

impl ClaudeStream {
    /// A message is printed in parts, each with the usage of the whole message so far.
    fn add(&mut self, message: &Value) -> Option<Event> {
        let spent = usage(message.get("usage")?);
        let name = text(message, "/id");
        if name != self.message {
            self.before = self.before.plus(self.current);
            name.clone_into(&mut self.message);
        }
        self.current = spent;
        Some(Event::Usage(self.before.plus(self.current)))
    }
}

/// Claude counts tokens read from or written to a cache separately from input tokens.
fn usage(usage: &Value) -> Usage {
    let cached = number(usage, "/cache_read_input_tokens");
    let parts = [
        number(usage, "/input_tokens"),
        number(usage, "/cache_creation_input_tokens"),
        cached,
    ];
    Usage {
        input_tokens: parts.into_iter().fold(0, u64::saturating_add),
        cached_tokens: cached,
        output_tokens: number(usage, "/output_tokens"),
        micro_usd: 0,
    }
}

/// Dollars as millionths, rounded up.
fn micro(dollars: &Value) -> u64 {
    let amount = (dollars.as_f64().unwrap_or(0.0) * 1e6).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of what is beyond the ends gives the ends"
    )]
    let micro = amount as u64;
    micro
}
