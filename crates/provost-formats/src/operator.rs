//! Checks the payloads of the operator contracts: a planner hands locked tasks to workers.
//!
//! # Invariants
//!
//! - Any bytes give a verdict; only a payload in which every rule was checked and held is allowed.
//! - Every finding names its field as a JSON pointer, and one of the fourteen codes of the format.
//! - The rules are those of `crate::board`; this module only knows how payloads spell them.

use provost_core::code::Code;
use provost_core::json::{self, Node};
pub use provost_core::schema::Strictness;
use provost_core::verdict::Verdict;
use serde_json::Value;

use provost_core::document::front_matter;

pub mod assignment;
pub mod board;
pub mod bundle;
pub mod entry;
pub mod envelope;
mod finding;
mod gates;
pub mod handoff;
pub mod header;
mod ledger;
pub(crate) mod limit;
mod locks;
mod reconcile;
pub mod result;
mod transition;
mod watchdog;
mod worklog;

pub use finding::{Finding, Findings};
pub use worklog::lines;

/// The kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A task for a worker.
    Assignment,
    /// The report of a worker.
    Result,
    /// The decisions of the planner in one round.
    OrchestratorOutput,
    /// The log of a task.
    Worklog,
    /// The log of a task before and after an append.
    WorklogAppend,
    /// What a planner needs to continue after losing its memory.
    Handoff,
    /// Changes of a board, as one batch.
    LedgerDelta,
    /// Changes of a board, by several writers.
    LedgerDeltaStreams,
    /// Locks that are held at the same time.
    Locks,
    /// Locks taken and released in order.
    LockLifecycle,
    /// A whole board.
    Reconcile,
    /// One step of one task.
    Transition,
    /// The heartbeats of tasks.
    Watchdog,
    /// A result, compared with the scope of its task.
    PostExecution,
    /// The checks of a task, compared with the required criteria.
    PreComplete,
}

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Assignment,
        Self::Result,
        Self::OrchestratorOutput,
        Self::Worklog,
        Self::WorklogAppend,
        Self::Handoff,
        Self::LedgerDelta,
        Self::LedgerDeltaStreams,
        Self::Locks,
        Self::LockLifecycle,
        Self::Reconcile,
        Self::Transition,
        Self::Watchdog,
        Self::PostExecution,
        Self::PreComplete,
    ];
}

/// What a check needs to know beyond the payload.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Whether the file that a payload names exists.
    pub file_exists: &'a dyn Fn(&str) -> bool,
}

pub fn check(
    kind: Kind,
    bytes: &[u8],
    strictness: Strictness,
    surroundings: Surroundings<'_>,
) -> Verdict {
    let mut findings = Findings::new(strictness);
    let found = &mut findings;
    let payload = match kind {
        Kind::Result => read_result(bytes, found),
        _ => read(bytes),
    };
    let node = match payload {
        Ok(node) => node,
        Err(why) => return unreadable(&why),
    };
    let node = &node;
    let answer = match kind {
        Kind::Assignment => assignment::check(node, found),
        Kind::Result => result::check(node, found),
        Kind::OrchestratorOutput => envelope::check(node, found),
        Kind::Worklog => worklog::check(node, found),
        Kind::WorklogAppend => worklog::check_append(node, found),
        Kind::Handoff => handoff::check(node, found),
        Kind::LedgerDelta => ledger::check(node, found),
        Kind::LedgerDeltaStreams => ledger::check_streams(node, found),
        Kind::Locks => locks::check(node, found),
        Kind::LockLifecycle => locks::check_lifecycle(node, found),
        Kind::Reconcile => reconcile::check(node, found),
        Kind::Transition => transition::check(node, found),
        Kind::Watchdog => watchdog::check(node, found),
        Kind::PostExecution => gates::check_result(node, found, surroundings),
        Kind::PreComplete => gates::check_completion(node, found),
    };
    findings.verdict(answer)
}

/// The verdict on a payload that cannot be read.
pub fn unreadable(why: &str) -> Verdict {
    Verdict::deny(Code::SchemaInvalid, why)
}

/// What a check says beside its findings.
#[derive(Debug, Default)]
struct Answer {
    /// The reason of the verdict if there is no finding.
    reason: &'static str,
    /// Facts for `details`.
    details: Vec<(&'static str, Value)>,
    /// The primary code, when it is not that of the first finding.
    code: Option<Code>,
}

impl Answer {
    fn new(reason: &'static str) -> Self {
        Self {
            reason,
            ..Self::default()
        }
    }

    fn with(mut self, name: &'static str, value: Value) -> Self {
        self.details.push((name, value));
        self
    }
}

/// The field `key` of an object.
fn field<'n>(node: &'n Node<'n>, key: &str) -> Option<&'n Node<'n>> {
    node.as_object()?.get(key)
}

fn read(bytes: &[u8]) -> Result<Node<'_>, String> {
    if bytes.trim_ascii().is_empty() {
        return Err("the payload is empty".to_owned());
    }
    json::read(bytes).map_err(|error| error.to_string())
}

/// A result is JSON, or Markdown with its fields in front matter.
fn read_result<'a>(bytes: &'a [u8], found: &mut Findings) -> Result<Node<'a>, String> {
    let begins = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if !begins.starts_with(b"---") {
        return read(bytes);
    }
    let page = front_matter::parse(bytes).map_err(|error| error.to_string())?;
    let mut front = page.front;
    if let Value::Object(fields) = &mut front
        && !fields.contains_key("changes")
        && let Some(files) = fields.remove("files_touched")
    {
        fields.insert("changes".to_owned(), files);
    }
    if found.is_strict() {
        found.look_for_secrets("/body", page.body);
    }
    Ok(front.into())
}

#[cfg(test)]
mod tests;
