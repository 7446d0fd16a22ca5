//! Gemini CLI, and its output with `--output-format stream-json`.

use serde_json::{Value, json};

use super::{
    AgentAdapter, Breach, Line, Start, StreamParser, Vendor, number, servers, spoken, text, words,
};
use crate::agent::Adapted;
use crate::agent::event::{Event, Usage, brief};
use crate::agent::launch::Answer;
use crate::children::SERVER;
use crate::net::model_api::ModelApi;

/// Path of Gemini CLI's settings inside the sandbox; they override all other settings files.
const SETTINGS: &str = "/run/provost/gemini.settings.json";

/// A script that Gemini CLI loads first, so that files of the tree cannot configure it.
const BLINKERS: (&str, &str) = (
    "/run/provost/gemini.cjs",
    include_str!("gemini/blinkers.cjs"),
);

/// Tools of Gemini CLI that act only inside the sandbox; it gets no others.
const READING_TOOLS: [&str; 6] = [
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "run_shell_command",
];

/// The tools that change files.
const WRITING_TOOLS: [&str; 3] = ["replace", "write_file", "write_todos"];

/// A name that no file and no server has.
const NOTHING: &str = "provost-none";

/// The most bytes of one message that are kept; no valid answer is longer.
const LONGEST: usize = 512 << 10;

pub(super) struct Gemini;

impl AgentAdapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn start(&self) -> Start {
        Start::Program {
            name: "gemini",
            package: "@google/gemini-cli",
        }
    }

    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor {
            name: "google",
            url: "https://generativelanguage.googleapis.com",
            key_field: "X-Goog-Api-Key: ",
            key_variable: "GEMINI_API_KEY",
            api: Some(ModelApi::Content),
            subscription: None,
        })
    }

    /// Seen with Gemini CLI 0.61.
    fn background_domains(&self) -> &'static [&'static str] {
        &[
            "accounts.google.com",
            "api.github.com",
            "cloudcode-pa.googleapis.com",
            "cloudresourcemanager.googleapis.com",
            "logging.googleapis.com",
            "oauth2.googleapis.com",
            "play.googleapis.com",
            "www.googleapis.com",
        ]
    }

    fn binds_answer(&self) -> bool {
        false
    }

    fn arguments(&self, agent: &Adapted, _: Answer) -> Vec<String> {
        // Without a terminal it reads its prompt from standard input and asks no questions.
        let mut arguments = words(&["--output-format", "stream-json", "--approval-mode", "yolo"]);
        let names = allowed_servers(agent).join(",");
        arguments.extend(["--allowed-mcp-server-names".to_owned(), names]);
        arguments.extend(agent.model_words());
        arguments
    }

    fn resume(&self, mut words: Vec<String>, thread: &str) -> Vec<String> {
        words.extend(["--resume".to_owned(), thread.to_owned()]);
        words
    }

    fn environment(&self, agent: &Adapted) -> Vec<(&'static str, String)> {
        vec![
            ("GOOGLE_GEMINI_BASE_URL", agent.model_url()),
            ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", SETTINGS.to_owned()),
            ("NODE_OPTIONS", format!("--require={}", BLINKERS.0)),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ("GEMINI_SANDBOX", "false".to_owned()),
            ("GEMINI_TELEMETRY_ENABLED", "false".to_owned()),
            ("GOOGLE_GENAI_USE_VERTEXAI", "false".to_owned()),
            ("GOOGLE_GENAI_USE_GCA", "false".to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ("NO_BROWSER", "true".to_owned()),
        ]
    }

    fn files(&self, agent: &Adapted, answer: Answer) -> Vec<(&'static str, String)> {
        vec![
            (BLINKERS.0, BLINKERS.1.to_owned()),
            (SETTINGS, settings(agent, answer).to_string()),
        ]
    }

    fn parser(&self, _: &Adapted, _: &str, _: Option<&str>) -> Box<dyn StreamParser> {
        Box::new(GeminiStream::default())
    }
}

/// The servers that may be started; the list must not be empty.
fn allowed_servers(agent: &Adapted) -> Vec<&str> {
    let own = (!agent.broker.is_empty()).then_some(SERVER);
    let names = agent.tools.keys().map(String::as_str);
    let names: Vec<&str> = names.chain(own).collect();
    if names.is_empty() {
        vec![NOTHING]
    } else {
        names
    }
}

/// Settings that no file of the tree or of its home overrides.
fn settings(agent: &Adapted, answer: Answer) -> Value {
    let mut tools = words(&READING_TOOLS);
    if !answer.is_read_only() {
        tools.extend(words(&WRITING_TOOLS));
    }
    // Anything not on this list is denied, including the tools of servers.
    tools.extend(agent.tools.keys().map(|name| format!("mcp_{name}_*")));
    tools.extend(
        agent
            .broker
            .iter()
            .map(|tool| format!("mcp_{SERVER}_{tool}")),
    );
    json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" },
            "folderTrust": { "enabled": false },
        },
        "tools": { "sandbox": false, "core": tools, "discoveryCommand": "", "callCommand": "" },
        "mcp": { "serverCommand": "", "allowed": allowed_servers(agent) },
        "mcpServers": servers(agent),
        "hooksConfig": { "enabled": false },
        "skills": { "enabled": false },
        "experimental": { "enableAgents": false, "extensionManagement": false },
        "agents": { "overrides": {} },
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "checkpointing": { "enabled": false },
        },
        "ide": { "enabled": false },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
    })
}

/// The model's message. It comes in pieces; the event follows when the message is complete.
#[derive(Debug, Default)]
struct GeminiStream {
    now: String,
    last: String,
}

impl StreamParser for GeminiStream {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        let kind = text(line, "/type");
        Ok(Line {
            events: events(line, self),
            is_progress: kind == "tool_result" || text(line, "/role") == "assistant",
            complaint: None,
            answer: (kind == "result").then(|| spoken(&self.last)),
        })
    }
}

fn events(line: &Value, stream: &mut GeminiStream) -> Vec<Event> {
    match text(line, "/type") {
        "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "message" if text(line, "/role") == "assistant" => {
            stream.add(text(line, "/content"));
            Vec::new()
        }
        "tool_use" => stream.followed_by(tool(text(line, "/tool_name"), &line["parameters"])),
        "tool_result" => vec![Event::ToolResult {
            ok: text(line, "/status") == "success",
            text: brief(text(line, "/output")),
        }],
        "error" => stream.followed_by(Event::Error {
            text: brief(text(line, "/message")),
        }),
        "result" => {
            let mut events: Vec<Event> = stream.pause().into_iter().collect();
            events.push(Event::Usage(usage(&line["stats"])));
            let ok = text(line, "/status") == "success";
            let words = if ok {
                stream.last.as_str()
            } else {
                text(line, "/error/message")
            };
            let text = brief(words);
            events.push(Event::Final { ok, text });
            events
        }
        _ => Vec::new(),
    }
}

fn tool(name: &str, input: &Value) -> Event {
    match name {
        "write_file" | "replace" => Event::FileChange {
            path: brief(text(input, "/file_path")),
        },
        "run_shell_command" => Event::Tool {
            name: "shell".to_owned(),
            detail: brief(text(input, "/command")),
        },
        _ => Event::Tool {
            name: brief(name),
            detail: brief(&input.to_string()),
        },
    }
}

impl GeminiStream {
    fn add(&mut self, piece: &str) {
        if self.now.len() + piece.len() <= LONGEST {
            self.now.push_str(piece);
        }
    }

    /// Ends the current message; `None` if there was none.
    fn pause(&mut self) -> Option<Event> {
        if self.now.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.now);
        Some(Event::Message {
            text: brief(&self.last),
        })
    }

    fn followed_by(&mut self, event: Event) -> Vec<Event> {
        self.pause().into_iter().chain([event]).collect()
    }
}

/// Gemini counts cached tokens as input tokens, thoughts only in the total, and reports no price.
fn usage(stats: &Value) -> Usage {
    let read = number(stats, "/input_tokens");
    let thought = number(stats, "/total_tokens").saturating_sub(read);
    Usage {
        input_tokens: read,
        cached_tokens: number(stats, "/cached"),
        output_tokens: number(stats, "/output_tokens").max(thought),
        micro_usd: 0,
    }
}
