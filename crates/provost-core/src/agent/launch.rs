//! Builds the command line, files and environment that start an adapter's program in a sandbox.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::mcp::Call;
use super::{Adapted, Adapter, provider};
use crate::contract::ResultRule;
use crate::contract::document::Document;
use crate::contract::output::Output;
use crate::net::credential::DUMMY;

/// Path of the answer's schema inside the sandbox.
const SCHEMA: &str = "/run/provost/answer.schema.json";

/// Path of Gemini CLI's settings inside the sandbox; they override all other settings files.
const SETTINGS: &str = "/run/provost/gemini.settings.json";

/// A script that Gemini CLI loads first, so that files of the tree cannot configure it.
const BLINKERS: (&str, &str) = ("/run/provost/gemini.cjs", include_str!("launch/gemini.cjs"));

/// Tools of Gemini CLI that act only inside the sandbox; it gets no others.
const GEMINI_READS: [&str; 6] = [
    "glob",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "run_shell_command",
];

/// The tools that change files.
const GEMINI_WRITES: [&str; 3] = ["replace", "write_file", "write_todos"];

/// A name that no file and no server has.
const NOTHING: &str = "provost-none";

/// Tools of Claude Code that act only inside the sandbox; it gets no others.
const CLAUDE_TOOLS: &str = "Bash,Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The tools of a reviewer or a planner: read-only, and a shell in a read-only sandbox.
const CLAUDE_READS: &str = "Bash,Glob,Grep,Read,TodoWrite";

/// The schema that an agent's final answer must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No schema.
    Free,
    /// The schema of a task result.
    Bound,
    /// The schema for an agent that reads and writes no file: a reviewer or a planner.
    ReadOnly(&'static Value),
}

impl Answer {
    /// The schema for `contract`. A report of another format is left as a file, because providers
    /// accept no schema with optional fields.
    pub fn of(contract: &Document) -> Self {
        let output = Output::of(contract.assigned_agent.role);
        match (ResultRule::of(contract), output) {
            (ResultRule::Required, Output::TaskResult) => Self::Bound,
            (ResultRule::Required, Output::ReviewReport | Output::TestReport)
            | (ResultRule::Optional, _) => Self::Free,
        }
    }

    pub fn schema(self) -> Option<Value> {
        match self {
            Self::Free => None,
            Self::Bound => Some(result_schema()),
            Self::ReadOnly(schema) => Some(schema.clone()),
        }
    }
}

/// The command line: the program of the adapter, or the command of a server.
pub fn argv(agent: &Adapted, answer: Answer) -> Vec<String> {
    if let Some(command) = agent.own_command() {
        return command.to_vec();
    }
    let program = agent.program().map(str::to_owned);
    program
        .into_iter()
        .chain(arguments(agent, answer))
        .collect()
}

/// The arguments after the program; the instruction comes on standard input.
pub fn arguments(agent: &Adapted, answer: Answer) -> Vec<String> {
    let mut words = match agent.adapter {
        Adapter::Exec | Adapter::Mcp => return Vec::new(),
        Adapter::Codex => codex(agent),
        Adapter::Claude => claude(agent, answer),
        Adapter::Gemini => gemini(agent),
    };
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    if let Some(model) = &agent.model {
        words.extend(owned(&["--model", model]));
    }
    match (agent.adapter, answer.schema()) {
        (Adapter::Codex, Some(_)) => words.extend(owned(&["--output-schema", SCHEMA])),
        (Adapter::Claude, Some(schema)) => {
            words.extend(["--json-schema".to_owned(), schema.to_string()]);
        }
        // Only the instruction binds these; see `binding`.
        (Adapter::Exec | Adapter::Gemini | Adapter::Mcp, _) | (_, None) => {}
    }
    if agent.adapter == Adapter::Codex {
        words.push("-".to_owned());
    }
    words
}

/// `words` changed so that the program resumes the conversation `thread`. Unchanged if `thread` is
/// not a valid name of one.
pub fn continued(words: &[String], adapter: Adapter, thread: &str) -> Vec<String> {
    let mut words = words.to_vec();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let named = (1..=128).contains(&thread.len()) && thread.bytes().all(plain);
    // The agent chose the name, and it becomes an argument.
    if !named || thread.starts_with('-') {
        return words;
    }
    match adapter {
        // A server gets the thread with the call.
        Adapter::Exec | Adapter::Mcp => {}
        Adapter::Claude | Adapter::Gemini => {
            words.extend(["--resume".to_owned(), thread.to_owned()]);
        }
        Adapter::Codex => {
            let prompt = words.pop();
            let at = words.iter().position(|word| word == "exec");
            words.insert(at.map_or(words.len(), |at| at + 1), "resume".to_owned());
            words.push(thread.to_owned());
            words.extend(prompt);
        }
    }
    words
}

fn codex_config(agent: &Adapted) -> Vec<(String, Value)> {
    let key = provider::key_variable(agent.adapter).unwrap_or_default();
    let model_provider = json!({
        "name": "provost",
        "base_url": inside(agent),
        "env_key": key,
        "wire_api": "responses",
    });
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
    let server = |(name, server)| (format!("mcp_servers.{name}"), server);
    settings
        .into_iter()
        .chain(servers(agent).into_iter().map(server))
        .collect()
}

/// The MCP servers that the program gets, in the common configuration form.
fn servers(agent: &Adapted) -> Map<String, Value> {
    let server = |(name, argv): (&String, &Vec<String>)| {
        let (program, arguments) = argv.split_first()?;
        let server = json!({ "command": program, "args": arguments });
        Some((name.clone(), server))
    };
    agent.tools.iter().filter_map(server).collect()
}

/// The settings as command-line arguments.
fn codex_settings(agent: &Adapted) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in codex_config(agent) {
        words.extend(["-c".to_owned(), format!("{name}={}", inline(&value))]);
    }
    words
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

/// The address of the model, as configured in the program.
fn inside(agent: &Adapted) -> String {
    let provider = agent.provider.as_ref();
    let inside = provider.map(|it| it.base_url.inside(it.login));
    inside.unwrap_or_default()
}

/// The call for a server: `prompt`, continuing the conversation `thread` if given.
pub fn call(agent: &Adapted, prompt: &str, thread: Option<&str>) -> Option<Call> {
    let server = agent.server.as_deref()?.clone();
    let mut arguments = Map::new();
    if let Some(model) = &agent.model {
        arguments.insert("model".to_owned(), json!(model));
    }
    Some(Call {
        server,
        prompt: prompt.to_owned(),
        arguments,
        thread: thread.map(str::to_owned),
    })
}

fn codex(agent: &Adapted) -> Vec<String> {
    let mut words: Vec<String> = [
        "exec",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
        "--ignore-user-config",
        "--ignore-rules",
    ]
    .map(str::to_owned)
    .into();
    words.extend(codex_settings(agent));
    words
}

fn claude(agent: &Adapted, answer: Answer) -> Vec<String> {
    let tools = match answer {
        Answer::Free | Answer::Bound => CLAUDE_TOOLS,
        Answer::ReadOnly(_) => CLAUDE_READS,
    };
    let mut words: Vec<String> = [
        "--print",
        "--verbose",
        "--output-format",
        "stream-json",
        "--dangerously-skip-permissions",
        // Settings and documents of the tree must not configure it, and it starts no other servers.
        "--setting-sources",
        "user",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--tools",
        tools,
    ]
    .map(str::to_owned)
    .into();
    if !agent.tools.is_empty() {
        let config = json!({ "mcpServers": servers(agent) });
        words.extend(["--mcp-config".to_owned(), config.to_string()]);
    }
    if let Some(micro) = agent.budget.micro_usd {
        let amount = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
        words.extend(["--max-budget-usd".to_owned(), amount]);
    }
    words
}

fn gemini(agent: &Adapted) -> Vec<String> {
    // Without a terminal it reads its prompt from standard input and asks no questions.
    let words = ["--output-format", "stream-json", "--approval-mode", "yolo"];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    let names = gemini_servers(agent).join(",");
    words.extend(["--allowed-mcp-server-names".to_owned(), names]);
    words
}

/// The servers that may be started; the list must not be empty.
fn gemini_servers(agent: &Adapted) -> Vec<&str> {
    let names: Vec<&str> = agent.tools.keys().map(String::as_str).collect();
    if names.is_empty() {
        vec![NOTHING]
    } else {
        names
    }
}

/// Settings that no file of the tree or of its home overrides.
fn gemini_settings(agent: &Adapted, answer: Answer) -> Value {
    let mut tools: Vec<String> = GEMINI_READS.map(str::to_owned).into();
    match answer {
        Answer::Free | Answer::Bound => tools.extend(GEMINI_WRITES.map(str::to_owned)),
        Answer::ReadOnly(_) => {}
    }
    // Anything not on this list is denied, including the tools of servers.
    tools.extend(agent.tools.keys().map(|name| format!("mcp_{name}_*")));
    json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" },
            "folderTrust": { "enabled": false },
        },
        "tools": { "sandbox": false, "core": tools, "discoveryCommand": "", "callCommand": "" },
        "mcp": { "serverCommand": "", "allowed": gemini_servers(agent) },
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

/// The files to mount for the program, by their path in the sandbox.
pub fn files(agent: &Adapted, answer: Answer) -> Vec<(&'static str, String)> {
    let schema = answer.schema().map(|schema| (SCHEMA, schema.to_string()));
    let settings = match agent.adapter {
        Adapter::Exec | Adapter::Codex | Adapter::Claude | Adapter::Mcp => Vec::new(),
        Adapter::Gemini => vec![
            (BLINKERS.0, BLINKERS.1.to_owned()),
            (SETTINGS, gemini_settings(agent, answer).to_string()),
        ],
    };
    schema.into_iter().chain(settings).collect()
}

/// Text that asks for the schema, for a program that cannot enforce one. The answer is validated
/// against the schema in any case.
pub fn binding(adapter: Adapter, answer: Answer) -> String {
    match (adapter, answer.schema()) {
        (Adapter::Exec | Adapter::Codex | Adapter::Claude, _) | (_, None) => String::new(),
        (Adapter::Gemini | Adapter::Mcp, Some(schema)) => format!(
            "\nThe structured answer is your last message: one JSON object that fits this schema, \
             and nothing before or after it.\n\n{schema}\n"
        ),
    }
}

/// The environment of the program; its own state directories follow from its home.
pub fn environment(agent: &Adapted) -> BTreeMap<String, String> {
    let url = inside(agent);
    let mut variables: Vec<(&str, String)> = match agent.adapter {
        Adapter::Exec | Adapter::Codex | Adapter::Mcp => Vec::new(),
        Adapter::Claude => vec![
            ("ANTHROPIC_BASE_URL", url),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ],
        Adapter::Gemini => vec![
            ("GOOGLE_GEMINI_BASE_URL", url),
            ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", SETTINGS.to_owned()),
            ("NODE_OPTIONS", format!("--require={}", BLINKERS.0)),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ("GEMINI_SANDBOX", "false".to_owned()),
            ("GEMINI_TELEMETRY_ENABLED", "false".to_owned()),
            ("GOOGLE_GENAI_USE_VERTEXAI", "false".to_owned()),
            ("GOOGLE_GENAI_USE_GCA", "false".to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
            ("NO_BROWSER", "true".to_owned()),
        ],
    };
    let key = provider::key_variable(agent.adapter);
    if let Some(key) = key.filter(|_| agent.provider.is_some()) {
        // The program does not start without a key.
        variables.push((key, DUMMY.to_owned()));
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The schema of a result: only the fields that the agent must fill in.
///
/// Every property is required and no other is allowed, because providers require that.
fn result_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["status", "summary", "failure"],
        "properties": {
            "status": { "type": "string", "enum": ["SUCCESS", "FAILED", "BLOCKED", "SKIPPED"] },
            "summary": { "type": "string" },
            "failure": { "anyOf": [
                { "type": "null" },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["message", "hint"],
                    "properties": {
                        "message": { "type": "string" },
                        "hint": { "type": "string" }
                    }
                }
            ] }
        }
    })
}

/// The result document for an answer that was bound to its schema. The answer is not judged here;
/// an answer without structure becomes an invalid result.
pub fn result(task_id: &str, answer: &Value) -> Value {
    let Value::Object(fields) = answer else {
        return answer.clone();
    };
    let mut result = fields.clone();
    result.insert("task_id".to_owned(), json!(task_id));
    result.insert("evidence_refs".to_owned(), json!({}));
    Value::Object(result)
}
