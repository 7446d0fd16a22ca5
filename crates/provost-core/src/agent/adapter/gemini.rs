//! Gemini CLI.

use serde_json::{Value, json};

use super::{AgentAdapter, Start, StreamForm, Vendor, servers, words};
use crate::agent::Adapted;
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

    fn prints(&self, _: &Adapted) -> StreamForm {
        StreamForm::Gemini
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
