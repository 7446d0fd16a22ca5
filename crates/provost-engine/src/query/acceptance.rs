//! The outcome of the acceptance commands.

use provost_core::code::Code;
use provost_core::contract::Test;
use provost_core::gate::command;
use provost_core::gate::proof::{self, Proof};
use provost_core::run::cross_tests::CrossTests;
use provost_core::run::fact::{CacheUse, CommandRun, Ending, Side, TestRun};
use provost_core::run::judge::{compare, optional_red};
use provost_core::run::{Gate, State};
use provost_core::tally::Tally;
use provost_core::wording::counted;
use serde::Serialize;

/// The commands as they ran on the candidate, compared with the base.
#[derive(Debug, Serialize)]
pub struct TestsView {
    pub compared_with_base: &'static str,
    /// How many commands failed that need not pass.
    pub optional_red: usize,
    pub two_sided: Option<CrossTests>,
    pub commands: Vec<CommandView>,
    /// Whether they started on build caches, and why; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
    /// The outcome of the required commands in words, and how many others failed.
    #[serde(skip)]
    pub headline: String,
}

#[derive(Debug, Serialize)]
pub struct CommandView {
    pub command: String,
    pub ending: Ending,
    pub must_pass: bool,
    pub began: Option<String>,
    pub wall_ms: u64,
    pub tests: Option<Tally>,
    /// The tests of the same command on the base.
    #[serde(skip)]
    pub tests_on_base: Option<Tally>,
    /// Whether it cannot fail, whatever the code does.
    #[serde(skip)]
    pub tests_nothing: bool,
}

impl TestsView {
    pub(super) fn of(state: &State) -> Option<Self> {
        let base = state.tests.get(&Side::Base)?;
        let candidate = state.tests.get(&Side::Candidate)?;
        let tests: &[Test] = state.contract.as_ref().map_or(&[], |it| &it.tests);
        let command = |(at, ran): (usize, &CommandRun)| CommandView {
            command: command::line(&ran.argv),
            ending: ran.ending,
            must_pass: tests.get(at).is_none_or(|test| test.must_pass),
            began: ran.began.clone(),
            wall_ms: ran.wall_ms,
            tests: ran.tally.clone(),
            tests_on_base: base.commands.get(at).and_then(|ran| ran.tally.clone()),
            tests_nothing: tests_nothing(&ran.argv),
        };
        let acceptance = state.gates.get(&Gate::Acceptance);
        let headline = match acceptance.map(|verdict| verdict.code) {
            Some(Code::TestsFewer) => "tests are missing".to_owned(),
            Some(Code::Ok) if !super::run::excused(state).is_empty() => {
                "no test fails that passes on the base".to_owned()
            }
            _ => headline(base, candidate, tests),
        };
        Some(Self {
            compared_with_base: compare(base, candidate, tests),
            optional_red: optional_red(candidate, tests).len(),
            two_sided: state.cross_tests(),
            commands: candidate.commands.iter().enumerate().map(command).collect(),
            cache: candidate.cache.as_deref().cloned(),
            headline,
        })
    }
}

fn tests_nothing(argv: &[String]) -> bool {
    matches!(proof::of(argv), Proof::Nothing(_))
}

fn headline(base: &TestRun, candidate: &TestRun, tests: &[Test]) -> String {
    let mut must = tests.iter().filter(|test| test.must_pass).peekable();
    let compared = if must.peek().is_some() && must.all(|test| tests_nothing(&test.argv)) {
        "nothing was tested"
    } else {
        compare(base, candidate, tests)
    };
    match optional_red(candidate, tests).len() {
        0 => compared.to_owned(),
        red => format!("{compared}; {} red", counted(red, "optional command")),
    }
}
