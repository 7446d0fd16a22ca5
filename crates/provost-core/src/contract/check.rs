//! Checks a contract as a document: its content, and whether a run could enforce it.
//!
//! # Invariants
//!
//! - `check contract` and a run call the same function, so they never disagree.
//! - Everything that can be decided is listed: a part that cannot be parsed hides only what depends
//!   on it. A finding has a place, a code and a text.

mod chain;
mod meaning;
mod repair;
mod view;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Value, json};

use super::additions::AdditionsFrom;
use super::document::Document;
use super::{Problem, unkept};
use crate::code::Code;
use crate::gate::command::{CommandPolicy, Trust};
use crate::json as text;
use crate::schema;
use crate::schema::validate::{Misfit, validate};
use crate::verdict::Verdict;

pub use view::{LARGEST_REFERENCE, ReadFile, Referred, lost, refer, references};

/// What a contract must never ask for.
const FULL_ACCESS: &str = "danger-full-access";

/// Where a contract could ask for it.
const FILESYSTEM: [&str; 2] = [
    "/tool_permissions/filesystem",
    "/role_contract/tool_permissions/filesystem",
];

/// The schema of contracts as it is shipped; building it takes longer than checking a contract.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let shipped = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schemas/task_contract.v1.json"
    ));
    serde_json::from_str::<Value>(shipped).unwrap_or_else(|_| schema::TASK_CONTRACT.schema())
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The rules of the format, for any runner.
    Format,
    /// The rules of a run by Provost: what cannot be enforced is refused as well.
    Run,
}

#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Which commands may decide.
    pub policy: &'a CommandPolicy,
    /// Where the commands come from.
    pub trust: Trust,
    pub purpose: Purpose,
    /// Where the repository has agents and schemas of its own.
    pub additions: AdditionsFrom<'a>,
}

/// Judges `value` as a contract, with the files that it refers to.
pub fn judge(value: &Value, rules: &Rules<'_>, read: ReadFile<'_>) -> Verdict {
    let mut findings = check(value, rules);
    let document = text::from_value::<Document>(value).ok();
    if let Some(document) = &document {
        findings.extend(references(document, read));
    }
    let verdict = super::judge(&findings);
    match document.map(|document| advice(&document)) {
        Some(advice) if verdict.allow && !advice.is_empty() => {
            verdict.with(json!({ "advice": advice }))
        }
        _ => verdict,
    }
}

/// Everything in `value` that breaks a rule of contracts.
///
/// What depends on a part that cannot be parsed is not checked; the part itself is a finding.
pub fn check(value: &Value, rules: &Rules<'_>) -> Vec<Problem> {
    let mut findings = shape(value).list;
    if let Some(repaired) = repair::repair(value, &findings) {
        let mut others = Findings::default();
        meaning(&repaired, rules, &mut others);
        let decided = |one: &Problem| !repaired.rests_on_unread(&one.path);
        findings.extend(others.list.into_iter().filter(decided));
    }
    findings
}

/// What a person should know about a contract although no rule is broken.
pub fn advice(document: &Document) -> Vec<Misfit> {
    let words = "is a broad directory; name what the task needs, so that the gate can check it";
    let broad = meaning::broad(document).into_iter();
    broad.map(|path| Misfit::new(path, words)).collect()
}

/// The mismatches with the schema.
fn shape(value: &Value) -> Findings {
    let mut findings = Findings::default();
    for path in FILESYSTEM {
        if value
            .pointer(path)
            .is_some_and(|asked| asked == FULL_ACCESS)
        {
            let problem = format!(
                "`{FULL_ACCESS}` is never granted by a contract; `x_provost.full_access`, or \
                 `provost run --danger-full-access WHY`, asks a person key for it"
            );
            findings.add(Code::PrivilegeExceeded, path, problem);
        }
    }
    findings.extend(Code::InputInvalid, validate(&SCHEMA, value));
    findings
}

fn meaning(repaired: &repair::Repaired, rules: &Rules<'_>, findings: &mut Findings) {
    let document = &repaired.document;
    let additions = rules.additions.of(document);
    for flaw in &additions.flaws {
        findings.add(flaw.code, flaw.path.clone(), flaw.problem.clone());
    }
    meaning::judge(document, rules, &additions, findings);
    let readable = |path: &str| !repaired.rests_on_unread(path);
    if readable("/allowed_paths") {
        meaning::shares(document, findings);
    }
    if readable("/x_provost") {
        // Before the limits of the role: an author who asks for the network needs the syntax first.
        meaning::hosts(document, findings);
    }
    if readable("/assigned_agent/role") {
        meaning::output_schema(document, &additions, findings);
        meaning::privilege(document, &additions, findings);
        if readable("/owner_agent/role") {
            chain::judge(document, findings);
        }
        view::drift(document, &readable, findings);
        view::terms(document, &additions, findings);
    }
    if rules.purpose == Purpose::Run {
        for Problem {
            path,
            code,
            problem,
        } in unkept(document)
        {
            findings.add(code, path, problem);
        }
    }
}

/// A value as its format writes it.
fn spelled(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// The largest number of findings of one contract that are listed.
const MOST: usize = 1000;

#[derive(Default)]
struct Findings {
    list: Vec<Problem>,
    reported: BTreeSet<String>,
}

impl Findings {
    /// Adds a finding, unless there is one about that place already.
    fn add(&mut self, code: Code, path: impl Into<String>, problem: impl Into<String>) {
        let path = path.into();
        if self.list.len() < MOST && self.reported.insert(path.clone()) {
            self.list.push(Problem::new(code, path, problem));
        }
    }

    /// Adds findings that have no code of their own.
    fn extend(&mut self, code: Code, misfits: Vec<Misfit>) {
        for Misfit { path, problem, .. } in misfits {
            self.add(code, path, problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_are_held_to_the_schema_of_their_type() {
        assert_eq!(*SCHEMA, schema::TASK_CONTRACT.schema());
    }
}
