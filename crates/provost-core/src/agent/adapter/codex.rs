//! Codex, by `codex exec`, or by `codex app-server` where it may have to ask.
//!
//! Seen with Codex 0.166.0: a thread that is started with a sandbox mode marks its project as
//! trusted, which loads `.codex` of the tree. So the mode is a setting, and the project is marked
//! untrusted.

use serde_json::{Value, json};

use super::{AgentAdapter, ClaimedAgain, Start, StreamForm, Subscription, Vendor, servers, words};
use crate::agent::launch::{Answer, SCHEMA};
use crate::agent::provider::Login;
use crate::agent::{Adapted, Plane};
use crate::children::SERVER;
use crate::contract::document::Shell;
use crate::contract::role::RunnerKind;
use crate::net::credential::LoginFile;
use crate::net::model_api::ModelApi;
use crate::run::effect::TREE;

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

    fn keeps(&self, _: Shell) -> Result<(), &'static str> {
        Ok(())
    }

    fn arguments(&self, agent: &Adapted, answer: Answer) -> Vec<String> {
        if is_app_server(agent) {
            let mut arguments = words(&["app-server"]);
            arguments.extend(written(settings_of(agent)));
            return arguments;
        }
        let mut arguments = words(&[
            "exec",
            "--json",
            "--dangerously-bypass-approvals-and-sandbox",
            "--skip-git-repo-check",
            "--ignore-user-config",
            "--ignore-rules",
        ]);
        arguments.extend(written(settings_of(agent)));
        arguments.extend(agent.model_words());
        if answer.schema().is_some() {
            arguments.extend(words(&["--output-schema", SCHEMA]));
        }
        arguments.push("-".to_owned());
        arguments
    }

    fn resume(&self, mut words: Vec<String>, thread: &str) -> Vec<String> {
        // The app server is asked for the thread in the conversation.
        let Some(at) = words.iter().position(|word| word == "exec") else {
            return words;
        };
        let prompt = words.pop();
        words.insert(at + 1, "resume".to_owned());
        words.push(thread.to_owned());
        words.extend(prompt);
        words
    }

    fn prints(&self, agent: &Adapted) -> StreamForm {
        if is_app_server(agent) {
            StreamForm::CodexAppServer
        } else {
            StreamForm::CodexExec
        }
    }

    /// A rule there lets commands run unasked, and no setting turns rules off.
    fn settings_in_home(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (".codex", "config.toml"),
            (".codex", "hooks.json"),
            (".codex", "rules"),
        ]
    }
}

/// Whether Codex works in a conversation. Only there can it ask.
fn is_app_server(agent: &Adapted) -> bool {
    agent.shell.asks() || agent.plane == Plane::AppServer
}

/// Settings as arguments.
fn written(settings: Vec<(String, Value)>) -> impl Iterator<Item = String> {
    let argument = |(name, value)| ["-c".to_owned(), format!("{name}={}", inline(&value))];
    settings.into_iter().flat_map(argument)
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
        ("skills.include_instructions", json!(false)),
        ("check_for_update_on_startup", json!(false)),
        ("analytics.enabled", json!(false)),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    let asks = agent.shell.asks();
    let server = |(name, mut server): (String, Value)| {
        if name == SERVER {
            server["tool_timeout_sec"] = json!(BROKER_PATIENCE_SEC);
        }
        if asks {
            // The contract gives the server; only commands are asked about.
            server["default_tools_approval_mode"] = json!("approve");
        }
        (format!("mcp_servers.{name}"), server)
    };
    settings
        .into_iter()
        .chain(conversation_settings(agent))
        .chain(servers(agent).into_iter().map(server))
        .collect()
}

/// The settings that differ by how its commands are permitted, and by how it is driven.
fn conversation_settings(agent: &Adapted) -> Vec<(String, Value)> {
    let mut settings = Vec::new();
    let mut add = |name: &str, value| settings.push((name.to_owned(), value));
    match agent.shell {
        Shell::Deny => add("features.shell_tool", json!(false)),
        // What is typed into a program that runs would not be asked about.
        Shell::Untrusted | Shell::OnRequest => add("features.unified_exec_tty", json!(false)),
        Shell::Never => {}
    }
    if is_app_server(agent) {
        add("sandbox_mode", json!("danger-full-access"));
        add("projects", json!({ TREE: { "trust_level": "untrusted" } }));
        // The others are arguments of `codex exec`.
        if let Some(model) = &agent.model {
            add("model", json!(model));
        }
    }
    settings
}

/// A value as inline TOML. No setting for Codex holds a character that TOML escapes differently
/// from JSON.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let name = if name.contains('/') {
                    &json!(name).to_string()
                } else {
                    name
                };
                format!("{name}={}", inline(value))
            };
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
