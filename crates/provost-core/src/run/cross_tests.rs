//! Cross-tests: whether the base's tests pass with the change, and the changed tests without it.
//!
//! # Invariants
//!
//! - No gate depends on them. A round that could not be run is reported as missing and does not
//!   stop the run.
//! - They run after all gates, so that a refused run does not wait for them.

use serde::Serialize;

use super::fact::{CommandRun, CrossTrees, Ending, Side, TestRun};
use super::judge::{judge_stopped, render_ending};
use super::{Misplaced, State, Step};
use crate::change::Change;
use crate::code::Code;
use crate::contract::Test;
use crate::gate::command::line;
use crate::object::Oid;
use crate::path::RawPath;
use crate::tally::Tally;
use crate::testfile::is_test_file;
use crate::verdict::Verdict;

/// The two rounds, in order.
const ROUNDS: [(Step, Side); 2] = [
    (Step::OldTests, Side::OldTests),
    (Step::NewTests, Side::NewTests),
];

/// The result of one of the two rounds.
#[derive(Debug, Clone, PartialEq)]
pub enum Round {
    /// It ran.
    Ran(TestRun),
    /// Why it could not run.
    Missing(Verdict),
}

impl Round {
    pub fn ran(&self) -> Option<&TestRun> {
        match self {
            Self::Ran(run) => Some(run),
            Self::Missing(_) => None,
        }
    }
}

/// The changed test files, and the results of the base's tests on the change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedTests {
    pub files: Vec<ChangedTestFile>,
    pub only_tests: bool,
    pub base_tests_pass_with_the_change: Option<bool>,
    pub changed_tests_pass_without_it: Option<bool>,
    /// The same as text, one item per line; the results of the base's tests come first.
    pub words: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedTestFile {
    pub path: RawPath,
    pub what: &'static str,
}

/// Both rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossTests {
    pub test_files: Vec<RawPath>,
    pub only_tests: bool,
    pub base_tests_on_candidate: Option<CrossRound>,
    pub candidate_tests_on_base: Option<CrossRound>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CrossRound {
    Missing {
        missing: String,
        code: Code,
    },
    Ran {
        tree: Oid,
        cached: bool,
        passed: bool,
        commands: Vec<CrossCommand>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossCommand {
    pub name: String,
    pub ending: String,
    pub tests: Option<Tally>,
    pub stdout: String,
    pub stderr: String,
}

impl State {
    /// The next round to run.
    pub(super) fn uncrossed(&self) -> Option<Step> {
        self.crossed_trees()?;
        let missing = |(_, side): &&(Step, Side)| !self.crossed.contains_key(side);
        ROUNDS.iter().find(missing).map(|(step, _)| *step)
    }

    /// The trees of the two rounds, if the change touches both tests and the code they test.
    pub(super) fn crossed_trees(&self) -> Option<&CrossTrees> {
        self.captured.as_ref()?.crossed.as_ref()
    }

    /// Applies the result of a round.
    pub(super) fn round_ran(&mut self, step: Step, run: TestRun) -> Result<(), Misplaced> {
        if self.uncrossed() != Some(step) {
            return Err(Misplaced);
        }
        // A cancellation or a lost lease also ends the run.
        if let Some(refusal) = judge_stopped(&run) {
            self.refusal.get_or_insert(refusal);
        }
        self.crossed.insert(run.side, Round::Ran(run));
        self.end(step)
    }

    /// Records why a round could not run; false if that must end the run.
    pub(super) fn round_failed(&mut self, step: Step, verdict: &Verdict) -> bool {
        let side = ROUNDS.iter().find(|(one, _)| *one == step);
        let ends = matches!(verdict.code, Code::Cancelled | Code::LeaseLost);
        match side.filter(|_| !ends) {
            Some((_, side)) => {
                let missing = Round::Missing(verdict.clone());
                self.crossed.insert(*side, missing);
                true
            }
            None => false,
        }
    }

    /// The changes of test files, and whether nothing else changed.
    fn test_changes(&self) -> (Vec<&Change>, bool) {
        let changes = self.captured.iter().flat_map(|captured| &captured.changes);
        let (tests, rest): (Vec<&Change>, Vec<&Change>) =
            changes.partition(|change| is_test_file(&change.path));
        (tests, rest.is_empty())
    }

    /// The round of `side`. If only tests changed, the base and the candidate serve as the mixed
    /// trees.
    fn round(&self, side: Side) -> Option<Round> {
        if let Some(round) = self.crossed.get(&side) {
            return Some(round.clone());
        }
        let (tests, only_tests) = self.test_changes();
        let same = match side {
            Side::OldTests => self.tests.get(&Side::Base),
            Side::NewTests => self.tests.get(&Side::Candidate),
            Side::Base | Side::BaseAgain | Side::Candidate | Side::Merged => None,
        };
        let same = same.filter(|_| only_tests && !tests.is_empty());
        same.map(|run| Round::Ran(run.clone()))
    }

    /// Whether the round of `side` passed, if it ran.
    fn round_passed(&self, side: Side) -> Option<bool> {
        match self.round(side)? {
            Round::Ran(run) => Some(self.has_passed(&run)),
            Round::Missing(_) => None,
        }
    }

    /// What is known about changed test files and scripts; `None` if none changed.
    pub fn changed_tests(&self) -> Option<ChangedTests> {
        let (tests, only_tests) = self.test_changes();
        let row = |change: &&Change| ChangedTestFile {
            path: change.path.clone(),
            what: what(change),
        };
        let is_reported = !tests.is_empty() || !self.changed_scripts().is_empty();
        is_reported.then(|| ChangedTests {
            files: tests.iter().map(row).collect(),
            only_tests: only_tests && !tests.is_empty(),
            base_tests_pass_with_the_change: self.round_passed(Side::OldTests),
            changed_tests_pass_without_it: self.round_passed(Side::NewTests),
            words: self.changed_tests_words(),
        })
    }

    /// The same as text, one item per line; the results of the base's tests come first.
    pub fn changed_tests_words(&self) -> Vec<String> {
        let (tests, only_tests) = self.test_changes();
        let scripts = self.changed_scripts();
        if tests.is_empty() {
            return scripts;
        }
        let mut words = if only_tests {
            let old = self.round_passed(Side::OldTests);
            let said = match (old, self.round_passed(Side::NewTests)) {
                (Some(false), Some(true)) => {
                    ": the tests of the base fail on the same code, and only the changed ones pass"
                }
                (Some(true), _) => ": the tests of the base pass on the same code",
                (Some(false), _) => ": the tests of the base fail on the same code",
                (None, _) => "",
            };
            vec![format!("only tests changed{said}")]
        } else {
            self.crossed_words()
        };
        let row = |change: &&Change| format!("{} {}", what(change), change.path);
        let names: Vec<String> = tests.iter().take(MOST_NAMES).map(row).collect();
        let more = match tests.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        words.push(format!("test files: {}{more}", names.join(", ")));
        words.extend(scripts);
        words
    }

    /// Files that an acceptance command names and the change touches, as text.
    fn changed_scripts(&self) -> Vec<String> {
        let tests: &[Test] = self.contract.as_ref().map_or(&[], |it| &it.tests);
        let changes = self.captured.iter().flat_map(|captured| &captured.changes);
        let was_there = changes.filter(|change| change.before.is_some());
        let mut found = Vec::new();
        for change in was_there.filter(|change| !is_test_file(&change.path)) {
            let path = change.path.to_string();
            let named = |test: &&Test| {
                let mut words = test.argv.iter();
                words.any(|word| word.strip_prefix("./").unwrap_or(word) == path)
            };
            if let Some(test) = tests.iter().find(named) {
                let line = line(&test.argv);
                found.push(format!(
                    "{} {path}, which `{line}` runs or reads",
                    what(change)
                ));
            }
        }
        found
    }

    /// Both rounds, if there were any.
    pub fn cross_tests(&self) -> Option<CrossTests> {
        let (tests, only_tests) = self.test_changes();
        let known = self.tests.contains_key(&Side::Base) && only_tests && !tests.is_empty();
        if self.crossed_trees().is_none() && !known {
            return None;
        }
        let row = |side: Side| {
            Some(match self.round(side)? {
                Round::Missing(why) => CrossRound::Missing {
                    missing: why.reason,
                    code: why.code,
                },
                Round::Ran(run) => CrossRound::Ran {
                    passed: self.has_passed(&run),
                    commands: run.commands.iter().map(command).collect(),
                    tree: run.tree,
                    cached: run.cached,
                },
            })
        };
        Some(CrossTests {
            test_files: tests.iter().map(|change| change.path.clone()).collect(),
            only_tests,
            base_tests_on_candidate: row(Side::OldTests),
            candidate_tests_on_base: row(Side::NewTests),
        })
    }

    /// Both rounds as text, one per line.
    pub fn crossed_words(&self) -> Vec<String> {
        let words = |(side, round): (&Side, &Round)| {
            let what = match side {
                Side::NewTests => "the changed tests, without the change,",
                _ => "the tests of the base, with the change,",
            };
            match round {
                Round::Missing(why) => format!("{what} could not be run: {}", why.reason),
                Round::Ran(run) if self.has_passed(run) => format!("{what} pass"),
                Round::Ran(_) => format!("{what} fail"),
            }
        };
        self.crossed.iter().map(words).collect()
    }

    /// Whether every command with `must_pass` passed.
    fn has_passed(&self, run: &TestRun) -> bool {
        let tests: &[Test] = self.contract.as_ref().map_or(&[], |it| &it.tests);
        let mut pairs = tests.iter().zip(&run.commands);
        !tests.is_empty()
            && tests.len() == run.commands.len()
            && pairs.all(|(test, ran)| !test.must_pass || ran.ending == Ending::Exited(0))
    }
}

/// The most test files that are listed by name.
const MOST_NAMES: usize = 8;

/// The kind of change to a file, as a word.
fn what(change: &Change) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(_), Some(_)) => "changed",
    }
}

fn command(ran: &CommandRun) -> CrossCommand {
    CrossCommand {
        name: ran.name.clone(),
        ending: render_ending(ran.ending),
        tests: ran.tally.clone(),
        stdout: ran.stdout.file.clone(),
        stderr: ran.stderr.file.clone(),
    }
}
