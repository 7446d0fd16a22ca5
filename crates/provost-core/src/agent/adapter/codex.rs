//! Codex, by `codex exec`, and its output with `--json`.

use serde_json::{Value, json};

use super::{
    AgentAdapter, Breach, ClaimedAgain, Line, Start, StreamParser, Subscription, Vendor, number,
    servers, text, words,
};
use crate::agent::Adapted;
use crate::agent::event::{Event, Usage, brief};
use crate::agent::launch::{Answer, SCHEMA};
use crate::agent::provider::Login;
use crate::children::SERVER;
use crate::contract::role::RunnerKind;
use crate::net::credential::LoginFile;
use crate::net::model_api::ModelApi;

pub(super) const VENDOR: Vendor = Vendor {
    name: "openai",
    url: "https://api.openai.com/v1",
    key_field: "Authorization: Bearer ",
    key_variable: "OPENAI_API_KEY",
    api: Some(ModelApi::Responses),
    subscription: Some(Subscription {
        url: "https://chatgpt.com/backend-api/codex",
        field: "Authorization: Bearer ",
        token_variable: None,
        file: LoginFile::Codex,
    }),
};

/// How long Codex waits for the broker of children; the broker answers earlier.
const BROKER_PATIENCE_SEC: u32 = 900;

pub(super) struct Codex;

impl AgentAdapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn start(&self) -> Start {
        Start::Program {
            name: "codex",
            package: "@openai/codex",
        }
    }

    fn vendor(&self) -> Option<Vendor> {
        Some(VENDOR)
    }

    /// Seen with Codex 0.166.
    fn background_domains(&self) -> &'static [&'static str] {
        &[
            "chatgpt.com",
            "openai.com",
            "oaistatic.com",
            "oaiusercontent.com",
            // For plugins and newer versions of itself.
            "github.com",
            "githubusercontent.com",
            "sentry.io",
            "statsigapi.net",
        ]
    }

    fn runner(&self) -> Option<RunnerKind> {
        Some(RunnerKind::Codex)
    }

    fn claims_again(&self) -> ClaimedAgain {
        ClaimedAgain::Tokens
    }

    fn binds_answer(&self) -> bool {
        true
    }

    fn arguments(&self, agent: &Adapted, answer: Answer) -> Vec<String> {
        let mut arguments = words(&[
            "exec",
            "--json",
            "--dangerously-bypass-approvals-and-sandbox",
            "--skip-git-repo-check",
            "--ignore-user-config",
            "--ignore-rules",
        ]);
        for (name, value) in settings_of(agent) {
            arguments.extend(["-c".to_owned(), format!("{name}={}", inline(&value))]);
        }
        arguments.extend(agent.model_words());
        if answer.schema().is_some() {
            arguments.extend(words(&["--output-schema", SCHEMA]));
        }
        arguments.push("-".to_owned());
        arguments
    }

    fn resume(&self, mut words: Vec<String>, thread: &str) -> Vec<String> {
        let prompt = words.pop();
        let at = words.iter().position(|word| word == "exec");
        words.insert(at.map_or(words.len(), |at| at + 1), "resume".to_owned());
        words.push(thread.to_owned());
        words.extend(prompt);
        words
    }

    fn parser(&self, _: &Adapted, _: &str, _: Option<&str>) -> Box<dyn StreamParser> {
        Box::new(CodexStream::default())
    }
}

/// The settings, which go on the command line because its own files are ignored.
fn settings_of(agent: &Adapted) -> Vec<(String, Value)> {
    let mut model_provider = json!({
        "name": "provost",
        "base_url": agent.model_url(),
        "wire_api": "responses",
    });
    // A provider of another name than OpenAI's: then Codex asks the vendor for nothing before it.
    if agent.login() == Login::File {
        model_provider["requires_openai_auth"] = json!(true);
    } else {
        model_provider["env_key"] = json!(VENDOR.key_variable);
    }
    let settings = [
        ("model_provider", json!("provost")),
        ("model_providers.provost", model_provider),
        // These act at the provider, or start agents without a contract.
        ("web_search", json!("disabled")),
        ("agents.enabled", json!(false)),
        // Only the contract instructs the agent; documents of the tree are data.
        ("project_doc_max_bytes", json!(0)),
        ("check_for_update_on_startup", json!(false)),
        ("analytics.enabled", json!(false)),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    let server = |(name, mut server): (String, Value)| {
        if name == SERVER {
            server["tool_timeout_sec"] = json!(BROKER_PATIENCE_SEC);
        }
        (format!("mcp_servers.{name}"), server)
    };
    settings
        .into_iter()
        .chain(servers(agent).into_iter().map(server))
        .collect()
}

/// A value as inline TOML. No setting for Codex holds a character that TOML escapes differently
/// from JSON.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name}={}", inline(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(inline).collect();
            format!("[{}]", values.join(","))
        }
        other => other.to_string(),
    }
}

#[derive(Debug, Default)]
struct CodexStream {
    last_message: String,
}

impl StreamParser for CodexStream {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        let events = events(line, &self.last_message);
        for event in &events {
            if let Event::Message { text } = event {
                text.clone_into(&mut self.last_message);
            }
        }
        let kind = text(line, "/type");
        let item = text(line, "/item/type");
        let message = text(line, "/item/text");
        let answer = || serde_json::from_str::<Value>(message).unwrap_or(Value::from(message));
        Ok(Line {
            events,
            is_progress: kind.starts_with("item.") && item != "error",
            complaint: complaint(line),
            answer: (item == "agent_message").then(answer),
        })
    }
}

/// `last` is the last message so far.
fn events(line: &Value, last: &str) -> Vec<Event> {
    match text(line, "/type") {
        "thread.started" => vec![Event::Session {
            thread: brief(text(line, "/thread_id")),
        }],
        "item.completed" => item(&line["item"]),
        "turn.completed" => {
            let ok = Event::Final {
                ok: true,
                text: last.to_owned(),
            };
            vec![Event::Usage(usage(&line["usage"])), ok]
        }
        "turn.failed" => vec![Event::Final {
            ok: false,
            text: brief(text(line, "/error/message")),
        }],
        "error" => vec![Event::Error {
            text: brief(text(line, "/message")),
        }],
        _ => Vec::new(),
    }
}

/// The error of a line about a model that does not answer: the status, if any, and the message.
fn complaint(line: &Value) -> Option<(Option<u16>, String)> {
    let words = text(line, "/message");
    let about = words.starts_with("Reconnecting") || words.contains("unexpected status ");
    if text(line, "/type") != "error" || !about {
        return None;
    }
    let status = words.split("unexpected status ").nth(1);
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    Some((status, brief(words)))
}

fn item(item: &Value) -> Vec<Event> {
    let tool = |name: &str, detail: &str| {
        vec![Event::Tool {
            name: brief(name),
            detail: brief(detail),
        }]
    };
    match text(item, "/type") {
        "agent_message" => vec![Event::Message {
            text: brief(text(item, "/text")),
        }],
        "command_execution" => {
            let mut events = tool("shell", text(item, "/command"));
            events.push(Event::ToolResult {
                ok: item["exit_code"].as_i64().is_none_or(|status| status == 0),
                text: brief(text(item, "/aggregated_output")),
            });
            events
        }
        "mcp_tool_call" => tool(text(item, "/server"), text(item, "/tool")),
        "web_search" => tool("web_search", text(item, "/query")),
        "file_change" => {
            let changes = item["changes"].as_array().map_or(&[][..], Vec::as_slice);
            let path = |change: &Value| Event::FileChange {
                path: brief(text(change, "/path")),
            };
            changes.iter().map(path).collect()
        }
        "error" => vec![Event::Error {
            text: brief(text(item, "/message")),
        }],
        _ => Vec::new(),
    }
}

/// Codex counts cached tokens as input tokens, and reports no price.
fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: number(usage, "/input_tokens"),
        cached_tokens: number(usage, "/cached_input_tokens"),
        output_tokens: number(usage, "/output_tokens"),
        micro_usd: 0,
    }
}
