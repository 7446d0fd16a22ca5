//! What the formats have in common, as data: which place of one means which place of another, the
//! default values, and the places that a user can give.

use std::sync::OnceLock;

use provost_core::agent_registry;
use provost_core::contract::{RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use provost_core::object::sha256;
use serde_json::{Value, json};

use super::Dialect;
use crate::operator::limit::LONGEST_TITLE;
use crate::packet::card::CardVersion;
use crate::packet::text::ExecutorRole;

/// One fact that several formats can express, and its place in each of them.
#[derive(Debug)]
pub struct Same {
    pub what: &'static str,
    card: Option<&'static str>,
    assignment: Option<&'static str>,
    contract: Option<&'static str>,
}

impl Same {
    /// The place in `dialect`; `None` if that format has no field for it.
    pub fn place(&self, dialect: Dialect) -> Option<&'static str> {
        match dialect {
            Dialect::Card => self.card,
            Dialect::Assignment => self.assignment,
            Dialect::Contract => self.contract,
        }
    }
}

/// Places of an assignment.
const OBJECTIVE: &str = "/global_objective";
pub(super) const FORBIDDEN: &str = "/task/forbidden_scope";
const TIMEOUT: &str = "/task/timeout_seconds";
pub(super) const CRITERIA: &str = "/task/acceptance_criteria";

/// What is carried both ways.
pub const SAME: &[Same] = &[
    Same {
        what: "the name of the task",
        card: Some("/phase_id"),
        assignment: Some("/task/task_id"),
        contract: Some("/task_id"),
    },
    Same {
        what: "the run",
        card: None,
        assignment: Some("/run_id"),
        contract: Some("/log_refs/run_id"),
    },
    Same {
        what: "the objective",
        card: None,
        assignment: Some(OBJECTIVE),
        contract: Some("/inputs/spec"),
    },
    Same {
        what: "what may be written",
        card: Some("/allowed_paths"),
        assignment: Some("/task/lock_scope"),
        contract: Some("/allowed_paths"),
    },
    Same {
        what: "what may not be written",
        card: None,
        assignment: Some(FORBIDDEN),
        contract: Some("/x_provost/forbid"),
    },
    Same {
        what: "the commands that decide",
        card: Some("/acceptance_commands"),
        assignment: None,
        contract: Some("/acceptance_tests/*/cmd"),
    },
    Same {
        what: "the time limit",
        card: None,
        assignment: Some(TIMEOUT),
        contract: Some("/timeout_retry/timeout_sec"),
    },
    Same {
        what: "when it was made",
        card: Some("/published_at"),
        assignment: Some("/generated_at"),
        contract: None,
    },
];

/// What is carried one way only: a command is useful text for a worker, but text of an assignment
/// is data and never becomes a command.
const ONE_WAY: &[(Dialect, &str, Dialect, &str)] = &[
    (
        Dialect::Card,
        "/acceptance_commands",
        Dialect::Assignment,
        CRITERIA,
    ),
    (
        Dialect::Contract,
        "/acceptance_tests/*/cmd",
        Dialect::Assignment,
        CRITERIA,
    ),
    (
        Dialect::Assignment,
        CRITERIA,
        Dialect::Contract,
        "/required_outputs/*/acceptance",
    ),
];

/// The places of `from` that are carried, each with its place in `to`.
pub(super) fn pairs(from: Dialect, to: Dialect) -> Vec<(&'static str, &'static str)> {
    let same = SAME
        .iter()
        .filter_map(|same| Some((same.place(from)?, same.place(to)?)));
    let one_way = ONE_WAY
        .iter()
        .filter(|(source, _, target, _)| (*source, *target) == (from, to))
        .map(|(_, place, _, target)| (*place, *target));
    same.chain(one_way).collect()
}

/// The constants that every document of a format has; they carry no information.
pub(super) fn constants(dialect: Dialect) -> Vec<(&'static str, Value)> {
    match dialect {
        Dialect::Card => vec![
            ("/schema_version", json!(CardVersion::V1)),
            ("/executor_required", json!(ExecutorRole::CodexCliSubagent)),
        ],
        Dialect::Assignment => vec![
            ("/schema_version", json!("1.0.0")),
            ("/packet_type", json!("assignment")),
            ("/required_output_schema", json!("subagent_result_v1")),
            ("/active_locks", json!([])),
            ("/context_package", json!([])),
            ("/task/dependencies", json!([])),
            (FORBIDDEN, json!([])),
        ],
        Dialect::Contract => vec![
            ("/required_outputs", json!([])),
            ("/forbidden_actions", json!([])),
            ("/tool_permissions/mcp_tools", json!([])),
            ("/evidence_links", json!([])),
            ("/log_refs/paths", json!({})),
        ],
    }
}

/// Values of a source that every reader of the target assumes anyway.
pub(super) fn is_tacit(from: Dialect, pointer: &str, value: &Value) -> bool {
    let tacit: &[(&str, Value)] = match from {
        Dialect::Card => &[("/evidence_policy", json!("legacy"))],
        Dialect::Assignment => &[("/task/priority", json!("normal"))],
        Dialect::Contract => &[
            ("/acceptance_tests/*/must_pass", json!(true)),
            ("/audit_only", json!(false)),
        ],
    };
    let stands =
        |(place, said): &(&str, Value)| super::place::is_at(pointer, place) && said == value;
    constants(from).iter().chain(tacit).any(stands)
}

/// The default values of a document of `dialect`, where neither the source nor the user says
/// anything; `so_far` is what they said.
pub(super) fn defaults(dialect: Dialect, so_far: &Value) -> Vec<(&'static str, Value)> {
    match dialect {
        Dialect::Card => Vec::new(),
        Dialect::Assignment => of_assignment(so_far),
        Dialect::Contract => vec![
            ("/assigned_agent/role", json!("WORKER")),
            ("/assigned_agent/agent_id", json!(agent_registry::WORKER)),
            (
                "/inputs/artifacts",
                json!([{
                    "name": "output_schema",
                    "uri": RESULT_SCHEMA,
                    "sha256": sha256(RESULT_SCHEMA_TEXT.as_bytes()),
                }]),
            ),
            ("/tool_permissions/filesystem", json!("workspace-write")),
            ("/tool_permissions/shell", json!("never")),
            ("/tool_permissions/network", json!("deny")),
            ("/mcp_tool_set", json!(["none"])),
            ("/timeout_retry/max_retries", json!(0)),
            ("/timeout_retry/retry_backoff_sec", json!(0)),
            ("/rollback/strategy", json!("worktree_drop")),
        ],
    }
}

/// The default interval between heartbeats, in seconds.
const HEARTBEAT: u64 = 60;

fn of_assignment(so_far: &Value) -> Vec<(&'static str, Value)> {
    let mut defaults = vec![
        ("/task/type", json!("serial")),
        ("/task/priority", json!("normal")),
    ];
    let text = |place: &str| so_far.pointer(place).and_then(Value::as_str);
    let first = text(OBJECTIVE).and_then(|text| text.trim().lines().next());
    if let Some(line) = first {
        let title: String = line.chars().take(LONGEST_TITLE).collect();
        defaults.push(("/task/title", json!(title)));
    }
    if let Some(task) = text("/task/task_id") {
        let log = format!("worklogs/{task}.jsonl");
        defaults.push(("/task/worklog_path", json!(log)));
    }
    let timeout = so_far.pointer(TIMEOUT);
    if let Some(timeout) = timeout.and_then(Value::as_u64) {
        let beat = HEARTBEAT.min(timeout / 2);
        defaults.push(("/task/heartbeat_interval_seconds", json!(beat)));
    }
    defaults
}

/// The fields that rows of a list get beside the carried ones; `number` is that of the row.
pub(super) fn beside(place: &str, number: usize) -> Vec<(&'static str, Value)> {
    match place {
        "/acceptance_tests/*/cmd" => vec![
            ("/name", json!(format!("accept-{number}"))),
            ("/must_pass", json!(true)),
        ],
        "/required_outputs/*/acceptance" => vec![
            ("/name", json!(format!("criterion-{number}"))),
            ("/type", json!("patch")),
        ],
        _ => Vec::new(),
    }
}

/// The type of a value that a user gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    /// Each given value is one element.
    List,
}

/// The places of `dialect` that a user can give: every text, number and list of texts of its
/// schema, except the constants.
pub(super) fn settable(dialect: Dialect) -> &'static [(String, Kind)] {
    static PLACES: [OnceLock<Vec<(String, Kind)>>; Dialect::ALL.len()] =
        [const { OnceLock::new() }; Dialect::ALL.len()];
    PLACES[dialect as usize].get_or_init(|| places(dialect))
}

fn places(dialect: Dialect) -> Vec<(String, Kind)> {
    let schema = dialect.schema();
    let mut found = Vec::new();
    visit(&schema, &schema, "", &mut found);
    let constants = constants(dialect);
    let is_fixed = |place: &str| {
        let fixed = constants.iter().find(|(at, _)| *at == place);
        fixed.is_some_and(|(_, value)| value.is_string())
    };
    found.retain(|(place, _)| !is_fixed(place));
    found
}

/// Adds the places below `place`, which has the schema `part` of `whole`.
fn visit(whole: &Value, part: &Value, place: &str, found: &mut Vec<(String, Kind)>) {
    let part = resolve(whole, part);
    let is = |part: &Value, kind: &str| part["type"] == kind;
    if is(part, "string") {
        found.push((place.to_owned(), Kind::Text));
    } else if is(part, "integer") {
        found.push((place.to_owned(), Kind::Number));
    } else if is(part, "array") {
        let items = resolve(whole, &part["items"]);
        if is(items, "string") {
            found.push((place.to_owned(), Kind::List));
        }
        let names = items["properties"].as_object().into_iter().flatten();
        let rows = names.map(|(name, _)| format!("{place}/*/{name}"));
        // A row of a list needs the values beside the given one.
        let rows = rows.filter(|row| !beside(row, 1).is_empty());
        found.extend(rows.map(|row| (row, Kind::List)));
    } else {
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            visit(whole, field, &format!("{place}/{name}"), found);
        }
    }
}

/// Follows references, and takes the first of several choices: the others are ways to leave it out.
fn resolve<'s>(whole: &'s Value, part: &'s Value) -> &'s Value {
    let reference = part["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix('#'));
    let referred = reference.and_then(|name| whole.pointer(name));
    let mut choices = ["oneOf", "anyOf"].into_iter();
    let choice = choices.find_map(|word| part.get(word)?.get(0));
    match referred.or(choice) {
        Some(next) => resolve(whole, next),
        None => part,
    }
}

/// The name of a place for users: `/task/task_id` is `task.task_id`.
pub fn name(place: &str) -> String {
    place
        .trim_start_matches('/')
        .replace("/*", "")
        .replace('/', ".")
}
