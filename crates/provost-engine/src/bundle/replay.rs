//! Compares a sealed run with the results of rebuilding its files, or repeating its commands.
//!
//! *Hard* differences concern what follows from the sealed trees and the rules: trees, changed
//! files, gate verdicts, exit statuses, test counts. *Soft* differences may occur on another
//! machine or at another time: durations, output, sandbox and kernel.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::statement::SealedVerdict;
use provost_core::bundle::report::{Difference, ReexecReport, ReexecStatus, Time};
use provost_core::change::Change;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::run::State;
use provost_core::run::fact::{CommandRun, Side, TestRun};
use provost_core::verdict::Verdict;

/// The most differences of one document that are listed.
const MOST: usize = 20;

/// A command that takes this many times as long, or as short, is reported.
const NOTABLY: u64 = 2;

/// In milliseconds. Below this, a slow command cannot be distinguished from a busy machine.
const AT_LEAST: u64 = 1000;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Differences {
    /// What must be equal and is not.
    pub hard: Vec<Difference>,
    /// What should be equal and is not.
    pub soft: Vec<Difference>,
    /// What could not be compared.
    pub errors: Vec<String>,
}

impl Differences {
    /// Whether nothing that must be equal differs, and everything could be compared.
    pub fn is_equal(&self) -> bool {
        self.hard.is_empty() && self.errors.is_empty()
    }

    pub fn report(self, run_id: &str, at: Time) -> ReexecReport {
        let equal = self.is_equal();
        ReexecReport {
            run_id: run_id.to_owned(),
            status: if equal {
                ReexecStatus::Pass
            } else {
                ReexecStatus::Fail
            },
            reexec_ts: at,
            hard_equal_pass: equal,
            soft_equal_pass: self.soft.is_empty(),
            hard_diffs: self.hard,
            soft_diffs: self.soft,
            errors: self.errors,
        }
    }

    /// Records a hard difference unless the values are equal.
    pub fn hard<T: PartialEq + Serialize>(
        &mut self,
        key: impl Into<String>,
        sealed: &T,
        again: &T,
    ) {
        note(&mut self.hard, key.into(), sealed, again);
    }

    /// Records a soft difference unless the values are equal.
    pub fn soft<T: PartialEq + Serialize>(
        &mut self,
        key: impl Into<String>,
        sealed: &T,
        again: &T,
    ) {
        note(&mut self.soft, key.into(), sealed, again);
    }

    /// Compares the rebuilt file `name` with the sealed one, if that exists.
    pub fn file(&mut self, name: &str, sealed: Option<&[u8]>, again: &[u8]) {
        let Some(sealed) = sealed else {
            return self.hard.push(Difference {
                key: name.to_owned(),
                expected: None,
                actual: Some(sha256(again).into()),
            });
        };
        if sealed == again {
            return;
        }
        let before = self.hard.len();
        if let (Ok(sealed), Ok(again)) = (json::parse(sealed), json::parse(again)) {
            walk(name, "", &sealed, &again, &mut self.hard);
            self.hard.truncate(before + MOST);
        }
        if self.hard.len() == before {
            self.hard(name, &sha256(sealed), &sha256(again));
        }
    }

    /// Compares the changed files with the recorded ones.
    pub fn changes(&mut self, sealed: &[Change], again: &[Change]) {
        let before = self.hard.len();
        let mut reported: BTreeSet<&RawPath> = BTreeSet::new();
        for path in sealed.iter().chain(again).map(|change| &change.path) {
            if self.hard.len() < before + MOST && reported.insert(path) {
                let key = format!("changed_files {path}");
                self.hard(key, &change_of(sealed, path), &change_of(again, path));
            }
        }
    }

    /// Compares the gate verdicts on the facts of `again` with those of `sealed`.
    pub fn gates(&mut self, sealed: &State, again: &State) {
        for (gate, verdict) in &sealed.gates {
            let decided = |verdict: &Verdict| SealedVerdict {
                allow: verdict.allow,
                code: verdict.code,
            };
            let answer = decided(&again.judge(*gate));
            self.hard(format!("gate {}", gate.name()), &decided(verdict), &answer);
        }
    }

    /// Compares one round of the acceptance commands with another on the same side.
    pub fn tests(&mut self, side: Side, sealed: &TestRun, again: &TestRun) {
        let side = side.name();
        self.hard(format!("{side} tree"), &sealed.tree, &again.tree);
        let names = |run: &TestRun| -> Vec<(String, Vec<String>)> {
            let rows = run.commands.iter();
            rows.map(|ran| (ran.name.clone(), ran.argv.clone()))
                .collect()
        };
        self.hard(format!("{side} commands"), &names(sealed), &names(again));
        for (sealed, again) in sealed.commands.iter().zip(&again.commands) {
            self.command(&format!("{side} {}", sealed.name), sealed, again);
        }
        self.hard(format!("{side} altered"), &sealed.altered, &again.altered);
        let profile = format!("{side} sandbox profile");
        self.soft(profile, &sealed.profile, &again.profile);
        let layers = |run: &TestRun| -> Vec<(String, String)> {
            let rows = run.layers.iter();
            rows.map(|layer| (layer.name.clone(), layer.sha256.clone()))
                .collect()
        };
        self.soft(format!("{side} layers"), &layers(sealed), &layers(again));
    }

    fn command(&mut self, name: &str, sealed: &CommandRun, again: &CommandRun) {
        self.hard(format!("{name} ending"), &sealed.ending, &again.ending);
        self.hard(format!("{name} tests"), &sealed.tally, &again.tally);
        for (stream, sealed, again) in [
            ("stdout", &sealed.stdout, &again.stdout),
            ("stderr", &sealed.stderr, &again.stderr),
        ] {
            self.soft(format!("{name} {stream}"), &sealed.sha256, &again.sha256);
        }
        let (short, long) = (
            sealed.wall_ms.min(again.wall_ms),
            sealed.wall_ms.max(again.wall_ms),
        );
        if long - short >= AT_LEAST && long > short.saturating_mul(NOTABLY) {
            self.soft(format!("{name} wall_ms"), &sealed.wall_ms, &again.wall_ms);
        }
    }
}

fn change_of<'a>(changes: &'a [Change], path: &RawPath) -> Option<&'a Change> {
    changes.iter().find(|change| change.path == *path)
}

fn note<T: PartialEq + Serialize>(list: &mut Vec<Difference>, key: String, sealed: &T, again: &T) {
    if sealed != again {
        list.push(Difference {
            key,
            expected: serde_json::to_value(sealed).ok(),
            actual: serde_json::to_value(again).ok(),
        });
    }
}

/// Collects every place at which two documents differ.
fn walk(name: &str, at: &str, sealed: &Value, again: &Value, list: &mut Vec<Difference>) {
    match (sealed, again) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one
                .keys()
                .chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let at = format!("{at}/{key}");
                let side = |fields: &serde_json::Map<String, Value>| {
                    fields.get(key).cloned().unwrap_or_default()
                };
                walk(name, &at, &side(one), &side(other), list);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                walk(name, &format!("{at}/{index}"), one, other, list);
            }
        }
        (one, other) => note(list, format!("{name} {at}"), one, other),
    }
}

/// `state` with other facts about its trees: the changes, and the results of the commands.
pub fn with_facts(state: &State, changes: Option<Vec<Change>>, tests: Vec<TestRun>) -> State {
    let mut again = state.clone();
    if let (Some(captured), Some(changes)) = (&mut again.captured, changes) {
        captured.changes = changes;
    }
    for run in tests {
        again.tests.insert(run.side, run);
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_core::object::{Kind, ObjectFormat};
    use provost_core::run::fact::{Ending, Stream};

    fn ran(ending: Ending, output: &str, wall_ms: u64) -> TestRun {
        let stream = || Stream {
            file: "x".to_owned(),
            bytes: 0,
            kept: 0,
            sha256: sha256(output.as_bytes()),
            redacted: 0,
            cut: false,
        };
        TestRun {
            side: Side::Candidate,
            tree: ObjectFormat::Sha1.oid(Kind::Blob, b"tree").unwrap(),
            cached: false,
            profile: "p".to_owned(),
            layers: Vec::new(),
            cache: None,
            commands: vec![CommandRun {
                name: "unit".to_owned(),
                argv: vec!["true".to_owned()],
                ending,
                began: None,
                wall_ms,
                stdout: stream(),
                stderr: stream(),
                tally: None,
            }],
            altered: Vec::new(),
        }
    }

    fn keys(list: &[Difference]) -> Vec<&str> {
        list.iter().map(|one| one.key.as_str()).collect()
    }

    #[test]
    fn an_ending_is_hard_and_time_and_output_are_soft() {
        let sealed = ran(Ending::Exited(0), "a", 100);
        let cases: [(TestRun, &[&str], &[&str]); 5] = [
            (sealed.clone(), &[], &[]),
            (
                ran(Ending::Exited(1), "a", 100),
                &["candidate unit ending"],
                &[],
            ),
            (
                ran(Ending::Exited(0), "b", 100),
                &[],
                &["candidate unit stdout", "candidate unit stderr"],
            ),
            (ran(Ending::Exited(0), "a", 900), &[], &[]),
            (
                ran(Ending::Exited(0), "a", 1200),
                &[],
                &["candidate unit wall_ms"],
            ),
        ];
        for (again, hard, soft) in cases {
            let mut found = Differences::default();
            found.tests(Side::Candidate, &sealed, &again);
            assert_eq!(
                (keys(&found.hard), keys(&found.soft)),
                (hard.to_vec(), soft.to_vec())
            );
            assert_eq!(found.is_equal(), hard.is_empty());
        }
        let mut fewer = sealed.clone();
        fewer.commands.clear();
        let mut found = Differences::default();
        found.tests(Side::Candidate, &sealed, &fewer);
        assert_eq!(keys(&found.hard), ["candidate commands"]);
    }

    #[test]
    fn a_file_differs_where_it_does() {
        let mut found = Differences::default();
        found.file(
            "a.json",
            Some(br#"{"x":[1,2],"y":1}"#),
            br#"{"x":[1,3],"z":1}"#,
        );
        assert_eq!(keys(&found.hard), ["a.json /x/1", "a.json /y", "a.json /z"]);
        let mut found = Differences::default();
        found.file("a.json", Some(b"{}"), b"{ }");
        found.file("p", Some(b"x"), b"y");
        found.file("new", None, b"y");
        found.file("same", Some(b"y"), b"y");
        assert_eq!(keys(&found.hard), ["a.json", "p", "new"]);
        let at = "2026-01-01T00:00:00Z".try_into().unwrap();
        let report = found.report("run", at);
        assert_eq!(report.status, ReexecStatus::Fail);
        assert!(!report.hard_equal_pass && report.soft_equal_pass);
    }

    #[test]
    fn what_could_not_be_compared_is_not_equal() {
        let found = Differences {
            errors: vec!["the tree is gone".to_owned()],
            ..Differences::default()
        };
        assert!(!found.is_equal());
    }
}
