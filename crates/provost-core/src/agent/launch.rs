//! Says how the program of an adapter is started in a box.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Adapted, Adapter, provider};
use crate::contract::ResultRule;
use crate::net::credential::DUMMY;
use crate::{plan, review};

/// Where the schema of the answer is in the box.
pub const SCHEMA: &str = "/run/provost/answer.schema.json";

/// Tools of Claude Code that act inside the box and nowhere else; it gets no others.
const CLAUDE_TOOLS: &str = "Bash,Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// Those that a reviewer or a planner gets: it reads, and runs what reads.
const CLAUDE_READS: &str = "Bash,Glob,Grep,Read,TodoWrite";

/// What the last words of an agent are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// To nothing.
    Free,
    /// To the schema of a result.
    Bound,
    /// To the schema of a review.
    Review,
    /// To the schema of a plan.
    Plan,
    /// To the schema of a division.
    Split,
}

impl Answer {
    /// What a contract with this rule wants.
    pub fn of(rule: ResultRule) -> Self {
        match rule {
            ResultRule::Optional => Self::Free,
            ResultRule::Required => Self::Bound,
        }
    }

    /// The schema, if there is one.
    pub fn schema(self) -> Option<Value> {
        match self {
            Self::Free => None,
            Self::Bound => Some(result_schema()),
            Self::Review => Some(review::schema()),
            Self::Plan => Some(plan::contract::schema()),
            Self::Split => Some(plan::split::schema()),
        }
    }
}

/// The arguments that follow the program; the instruction comes on its standard input.
pub fn arguments(agent: &Adapted, answer: Answer) -> Vec<String> {
    let mut words = match agent.adapter {
        Adapter::Exec => Vec::new(),
        Adapter::Codex => codex(agent),
        Adapter::Claude => claude(agent, answer),
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
        (Adapter::Exec, _) | (_, None) => {}
    }
    if agent.adapter == Adapter::Codex {
        words.push("-".to_owned());
    }
    words
}

/// The words that start a program, changed so that it goes on with the conversation `thread`; the
/// words as they are if that cannot be the name of one.
pub fn continued(words: &[String], adapter: Adapter, thread: &str) -> Vec<String> {
    let mut words = words.to_vec();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let named = (1..=128).contains(&thread.len()) && thread.bytes().all(plain);
    // It is the program's own word, and becomes an argument.
    if !named || thread.starts_with('-') {
        return words;
    }
    match adapter {
        Adapter::Exec => {}
        Adapter::Claude => words.extend(["--resume".to_owned(), thread.to_owned()]),
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

fn codex(agent: &Adapted) -> Vec<String> {
    let url = agent.provider.base_url.inside(agent.provider.login);
    let key = provider::key_variable(Adapter::Codex).unwrap_or_default();
    // The address holds no character that a string of TOML would have to escape.
    let model_provider = format!(
        "model_providers.provost={{name=\"provost\",base_url=\"{url}\",env_key=\"{key}\",\
         wire_api=\"responses\"}}"
    );
    let settings = [
        "model_provider=provost",
        &model_provider,
        // What acts at the provider, or in agents that nobody gave a contract.
        "web_search=disabled",
        "features.multi_agent=false",
        // The contract instructs the agent; documents of the tree are documents.
        "project_doc_max_bytes=0",
        "check_for_update_on_startup=false",
        "analytics.enabled=false",
    ];
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
    for setting in settings {
        words.extend(["-c".to_owned(), setting.to_owned()]);
    }
    words
}

fn claude(agent: &Adapted, answer: Answer) -> Vec<String> {
    let tools = match answer {
        Answer::Free | Answer::Bound => CLAUDE_TOOLS,
        Answer::Review | Answer::Plan | Answer::Split => CLAUDE_READS,
    };
    let mut words: Vec<String> = [
        "--print",
        "--verbose",
        "--output-format",
        "stream-json",
        "--dangerously-skip-permissions",
        // Settings and documents of the tree do not steer it, and it brings no servers of its own.
        "--setting-sources",
        "user",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--tools",
        tools,
    ]
    .map(str::to_owned)
    .into();
    if let Some(micro) = agent.budget.micro_usd {
        let amount = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
        words.extend(["--max-budget-usd".to_owned(), amount]);
    }
    words
}

/// The variables that the program finds; where it keeps its things follows from its home.
pub fn environment(agent: &Adapted) -> BTreeMap<String, String> {
    let url = agent.provider.base_url.inside(agent.provider.login);
    let mut variables: Vec<(&str, String)> = match agent.adapter {
        Adapter::Exec | Adapter::Codex => Vec::new(),
        Adapter::Claude => vec![
            ("ANTHROPIC_BASE_URL", url),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ],
    };
    if let Some(key) = provider::key_variable(agent.adapter) {
        // The program does not start without one.
        variables.push((key, DUMMY.to_owned()));
    }
    variables
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The schema of a result: what of it only the agent can say.
///
/// Every property is required and nothing else is allowed, because providers ask for that.
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

/// The result that stands for an answer which was bound to its schema; the answer is not judged
/// here, and what has no form becomes a result that has none either.
pub fn result(task_id: &str, answer: &Value) -> Value {
    let Value::Object(fields) = answer else {
        return answer.clone();
    };
    let mut result = fields.clone();
    result.insert("task_id".to_owned(), json!(task_id));
    result.insert("evidence_refs".to_owned(), json!({}));
    Value::Object(result)
}
