//! Replaces the parts of a contract that cannot be parsed, so that the rest can be judged.
//!
//! A replacement is never judged itself: findings about it, above it and below it are dropped.

use serde_json::{Map, Value};

use crate::contract::Problem;
use crate::contract::document::Document;
use crate::json;

/// A contract that keeps every rule and has one element in every list.
const STAND_IN: &str = r#"{
    "task_id": "task-0000",
    "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
    "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
    "inputs": {
        "spec": "work",
        "artifacts": [{
            "name": "artifact",
            "uri": "artifact",
            "sha256": "0000000000000000000000000000000000000000000000000000000000000000"
        }]
    },
    "required_outputs": [{ "name": "patch", "type": "patch", "acceptance": "applies" }],
    "allowed_paths": ["path"],
    "forbidden_actions": ["action"],
    "acceptance_tests": [{ "name": "test", "cmd": "pytest -q", "must_pass": true }],
    "tool_permissions": {
        "filesystem": "workspace-write",
        "shell": "never",
        "network": "deny",
        "mcp_tools": ["none"]
    },
    "mcp_tool_set": ["none"],
    "timeout_retry": { "timeout_sec": 60, "max_retries": 0, "retry_backoff_sec": 0 },
    "rollback": { "strategy": "worktree_drop", "baseline_ref": "HEAD" },
    "evidence_links": ["link"],
    "log_refs": { "run_id": "run-0000", "paths": {} }
}"#;

/// A contract of which some places could not be parsed.
pub(super) struct Repaired {
    /// The contract, with replacements in those places.
    pub(super) document: Document,
    /// Those places, as JSON pointers.
    pub(super) unread: Vec<String>,
}

impl Repaired {
    /// Whether a finding about `path` depends on a place that could not be parsed.
    pub(super) fn rests_on_unread(&self, path: &str) -> bool {
        let below = |one: &str, other: &str| {
            let rest = one.strip_prefix(other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut unread = self.unread.iter();
        unread.any(|place| below(place, path) || below(path, place))
    }
}

/// The contract in `value` apart from its `problems`; `None` if too little of it can be parsed.
pub(super) fn repair(value: &Value, problems: &[Problem]) -> Option<Repaired> {
    let stand_in = serde_json::from_str::<Value>(STAND_IN).ok()?;
    let mut value = value.clone();
    let mut unread = Vec::new();
    for problem in problems {
        unread.push(replace(&mut value, &stand_in, &problem.path)?);
    }
    let document = json::from_value(value).ok()?;
    Some(Repaired { document, unread })
}

/// Replaces the value at `path`, or removes the optional field it is in; returns the place.
fn replace(value: &mut Value, stand_in: &Value, path: &str) -> Option<String> {
    let (mut here, mut good) = (value, stand_in);
    let mut place = String::new();
    for step in path.strip_prefix('/')?.split('/') {
        place = format!("{place}/{step}");
        let name = step.replace("~1", "/").replace("~0", "~");
        let next = match good {
            Value::Object(fields) => fields.get(&name),
            Value::Array(items) => items.first(),
            _ => None,
        };
        let Some(next) = next else {
            here.as_object_mut()?.remove(&name);
            return Some(place);
        };
        good = next;
        here = match here {
            Value::Object(fields) => fields.entry(name).or_insert(Value::Object(Map::new())),
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    *here = good.clone();
    Some(place)
}
