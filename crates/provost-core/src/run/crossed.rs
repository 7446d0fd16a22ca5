//! Facts about the tests of a change: whether the old ones pass with it, and the new ones without.
//!
//! # Invariants
//!
//! - Nothing follows from them: no gate reads them, and a round that could not be made is said to
//!   be missing and holds nobody up.
//! - They are looked for once the gates are through, so that nobody waits for them in vain.

use serde_json::{Value, json};

use super::fact::{CommandRun, Crossed, Ending, Side, TestRun};
use super::judge::{judge_stopped, render_ending};
use super::{Misplaced, State, Step};
use crate::code::Code;
use crate::contract::Test;
use crate::verdict::Verdict;

/// The two rounds, in their order.
const ROUNDS: [(Step, Side); 2] = [
    (Step::OldTests, Side::OldTests),
    (Step::NewTests, Side::NewTests),
];

/// What is known of one of the two rounds.
#[derive(Debug, Clone, PartialEq)]
pub enum Round {
    /// How it went.
    Ran(TestRun),
    /// Why it could not be made.
    Missing(Verdict),
}

impl Round {
    /// How it went, if it was made.
    pub fn ran(&self) -> Option<&TestRun> {
        match self {
            Self::Ran(run) => Some(run),
            Self::Missing(_) => None,
        }
    }
}

impl State {
    /// The round that has still to be made.
    pub(super) fn uncrossed(&self) -> Option<Step> {
        self.crossed_trees()?;
        let open = |(_, side): &&(Step, Side)| !self.crossed.contains_key(side);
        ROUNDS.iter().find(open).map(|(step, _)| *step)
    }

    /// The trees of the two rounds, if the change touches tests and what they test.
    pub(super) fn crossed_trees(&self) -> Option<&Crossed> {
        self.captured.as_ref()?.crossed.as_ref()
    }

    /// Takes in how a round went.
    pub(super) fn round_ran(&mut self, step: Step, run: TestRun) -> Result<(), Misplaced> {
        if self.uncrossed() != Some(step) {
            return Err(Misplaced);
        }
        // Whoever ends the commands ends the run.
        if let Some(refusal) = judge_stopped(&run) {
            self.refusal.get_or_insert(refusal);
        }
        self.crossed.insert(run.side, Round::Ran(run));
        self.end(step)
    }

    /// Takes in why a round could not be made; false if that is a reason to end the run.
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

    /// Both rounds as data, if there were any.
    pub fn crossed_facts(&self) -> Option<Value> {
        let trees = self.crossed_trees()?;
        let row = |side: Side| match self.crossed.get(&side) {
            None => Value::Null,
            Some(Round::Missing(why)) => json!({ "missing": why.reason, "code": why.code }),
            Some(Round::Ran(run)) => json!({
                "tree": run.tree,
                "cached": run.cached,
                "passed": self.has_passed(run),
                "commands": run.commands.iter().map(command).collect::<Vec<_>>(),
            }),
        };
        Some(json!({
            "test_files": trees.test_files,
            "base_tests_on_candidate": row(Side::OldTests),
            "candidate_tests_on_base": row(Side::NewTests),
        }))
    }

    /// Both rounds in words, one a line.
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

    /// Whether every command that must pass did.
    fn has_passed(&self, run: &TestRun) -> bool {
        let tests: &[Test] = self.contract.as_ref().map_or(&[], |it| &it.tests);
        let mut pairs = tests.iter().zip(&run.commands);
        !tests.is_empty()
            && tests.len() == run.commands.len()
            && pairs.all(|(test, ran)| !test.must_pass || ran.ending == Ending::Exited(0))
    }
}

fn command(ran: &CommandRun) -> Value {
    json!({ "name": ran.name, "ending": render_ending(ran.ending), "tests": ran.tally,
            "stdout": ran.stdout.file, "stderr": ran.stderr.file })
}
