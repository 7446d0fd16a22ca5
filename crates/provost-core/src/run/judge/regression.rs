//! Judges acceptance commands by what got worse: tests that fail twice on the base may fail.
//!
//! # Invariants
//!
//! - Only a command that ends with the same status as on the base is excused, and only if every
//!   failed test has a name that failed in both rounds on the base.
//! - An excuse is about failures alone: missing tests are refused as in any other mode.

use std::collections::BTreeSet;

use serde_json::json;

use super::acceptance::judge_excusing;
use crate::code::Code;
use crate::contract::Contract;
use crate::gate::command;
use crate::run::fact::{CommandRun, Ending, TestRun};
use crate::verdict::Verdict;
use crate::wording::{clipped, counted};

/// How many names the text of a refusal quotes, and how long each is at most.
const QUOTED: usize = 5;
const LONGEST: usize = 120;

/// Why a failed command is not excused.
#[derive(Debug, PartialEq, Eq)]
enum Unexcused {
    /// It did not fail by its tests, or not as on the base.
    Otherwise,
    /// Its tests have no names, here or on the base.
    Unnamed(String),
    /// These tests fail, and do not fail twice on the base.
    New(Vec<String>),
}

/// Whether no test fails in `run` that does not fail in both rounds of `base`, and none is missing
/// that was there `before`.
pub fn judge_regression(
    run: Option<&TestRun>,
    before: Option<&TestRun>,
    base: [Option<&TestRun>; 2],
    contract: &Contract,
) -> Verdict {
    let commands = run.map_or(&[][..], |run| run.commands.as_slice());
    let mut excused: Vec<bool> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut first = None;
    for (at, (test, now)) in contract.tests.iter().zip(commands).enumerate() {
        let rounds = base.map(|round| round.and_then(|round| round.commands.get(at)));
        let found = match now.ending {
            Ending::Exited(0) => Ok(Vec::new()),
            _ => excuse(now, rounds),
        };
        excused.push(found.is_ok());
        match found {
            Ok(found) => names.extend(found),
            Err(why) if test.must_pass => first = first.or(Some((now, why))),
            Err(_) => {}
        }
    }
    let verdict = judge_excusing(run, before, contract, &excused);
    if verdict.allow {
        return allowed(verdict, &names);
    }
    match first.filter(|_| verdict.code == Code::AcceptanceFailed) {
        None | Some((_, Unexcused::Otherwise)) => verdict,
        Some((now, why)) => refused(now, &why),
    }
}

/// The tests that let `now` fail, or why nothing does.
fn excuse(now: &CommandRun, base: [Option<&CommandRun>; 2]) -> Result<Vec<String>, Unexcused> {
    let Ending::Exited(status) = now.ending else {
        return Err(Unexcused::Otherwise);
    };
    let failures = |ran: &CommandRun| ran.tally.as_ref().and_then(|it| it.failed_names.clone());
    let names = failures(now).ok_or_else(|| Unexcused::Unnamed("it".to_owned()))?;
    let mut known: Option<BTreeSet<String>> = None;
    for before in base {
        let failed = match before.map(|before| (before, before.ending)) {
            // There was no failure on the base, or not in both rounds.
            None | Some((_, Ending::Exited(0))) => BTreeSet::new(),
            Some((before, Ending::Exited(other))) if other == status => {
                let failed = failures(before);
                let failed =
                    failed.ok_or_else(|| Unexcused::Unnamed("it on the base".to_owned()))?;
                failed.into_iter().collect()
            }
            Some(_) => return Err(Unexcused::Otherwise),
        };
        known = Some(match known {
            None => failed,
            Some(known) => known.intersection(&failed).cloned().collect(),
        });
    }
    let known = known.unwrap_or_default();
    let (old, new): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| known.contains(name));
    if new.is_empty() {
        Ok(old)
    } else {
        Err(Unexcused::New(new))
    }
}

fn allowed(verdict: Verdict, names: &[String]) -> Verdict {
    if names.is_empty() {
        return verdict;
    }
    let reason = format!(
        "{} that fail twice on the base may fail: {}; {}",
        counted(names.len(), "test"),
        quoted(names),
        verdict.reason
    );
    let notes: Vec<&str> = verdict.notes().collect();
    Verdict::allow(reason).with(json!({ "excused": names, "notes": notes }))
}

fn refused(now: &CommandRun, why: &Unexcused) -> Verdict {
    let line = command::line(&now.argv);
    let (code, problem) = match why {
        Unexcused::New(names) => (
            Code::AcceptanceFailed,
            format!(
                "fails in {} that do not fail twice on the base: {}",
                counted(names.len(), "test"),
                quoted(names)
            ),
        ),
        Unexcused::Unnamed(who) => (
            Code::TestsUnnamed,
            format!("fails, and {who} does not name every test that failed"),
        ),
        Unexcused::Otherwise => (Code::AcceptanceFailed, "failed".to_owned()),
    };
    let row = json!({ "path": line, "name": now.name, "problem": problem,
                      "log": now.stdout.file });
    Verdict::deny(code, format!("`{line}` {problem}")).with(json!({ "findings": [row] }))
}

fn quoted(names: &[String]) -> String {
    let first = names.iter().take(QUOTED);
    let first: Vec<String> = first.map(|name| clipped(name.clone(), LONGEST)).collect();
    match names.len().saturating_sub(QUOTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
