//! Reports the tests: which of them changed, and the outcome of the commands.

use provost_core::code::Code;
use provost_core::contract::Test;
use provost_core::gate::command;
use provost_core::gate::proof::{self, Proof};
use provost_core::run::fact::{CommandRun, Side, TestRun};
use provost_core::run::judge::{compare, optional_red, render_ending};
use provost_core::run::{Gate, State};
use provost_core::tally::Tally;
use provost_core::wording::counted;
use serde_json::{Value, json};

use crate::show::neutralise;
use crate::times;

/// The test files that an accepted change touches, and the outcome of the base's tests on it.
pub(super) fn changed(state: &State) -> Option<Value> {
    is_accepted(state).then(|| state.changed_tests_facts())?
}

/// The same for people, before everything else.
pub(crate) fn lead(state: &State) -> String {
    let words = state.changed_tests_words();
    let words = words.iter().filter(|_| is_accepted(state)).enumerate();
    let line = |(at, words): (usize, &String)| {
        let head = if at == 0 {
            "  tested   "
        } else {
            "           "
        };
        format!("{head}{}\n", neutralise(words))
    };
    words.map(line).collect()
}

fn is_accepted(state: &State) -> bool {
    state.finished.as_ref().is_some_and(|verdict| verdict.allow)
}

/// The acceptance commands of the contract.
fn asked(state: &State) -> &[Test] {
    state.contract.as_ref().map_or(&[], |it| &it.tests)
}

/// The outcome of the commands, for programs.
pub(super) fn facts(state: &State) -> Value {
    let (Some(base), Some(candidate)) = (
        state.tests.get(&Side::Base),
        state.tests.get(&Side::Candidate),
    ) else {
        return Value::Null;
    };
    let tests = asked(state);
    let command = |(at, ran): (usize, &CommandRun)| {
        json!({ "command": command::line(&ran.argv), "ending": ran.ending,
                "must_pass": tests.get(at).is_none_or(|test| test.must_pass),
                "began": ran.began, "wall_ms": ran.wall_ms, "tests": ran.tally })
    };
    let commands = candidate.commands.iter().enumerate();
    json!({
        "compared_with_base": compare(base, candidate, tests),
        "optional_red": optional_red(candidate, tests).len(),
        "two_sided": state.crossed_facts(),
        "commands": commands.map(command).collect::<Vec<_>>(),
    })
}

/// The outcome of the commands, for people.
pub(super) fn text(state: &State) -> String {
    let Some(candidate) = state.tests.get(&Side::Candidate) else {
        return String::new();
    };
    let tests = asked(state);
    let before = state.tests.get(&Side::Base);
    let headline = match gate(state) {
        Some(Code::TestsFewer) => "tests are missing".to_owned(),
        _ => headline(before, candidate, tests),
    };
    let mut text = format!("  tests    {headline}\n");
    for (at, ran) in candidate.commands.iter().enumerate() {
        let before = before.and_then(|base| base.commands.get(at));
        let optional = tests.get(at).is_some_and(|test| !test.must_pass);
        text += &format!(
            "           {} {} in {}{}{}{}\n",
            neutralise(&command::line(&ran.argv)),
            render_ending(ran.ending),
            times::length(ran.wall_ms),
            tests_of(ran, before),
            if optional { ", and need not pass" } else { "" },
            if tests_nothing(&ran.argv) {
                ", and tests nothing"
            } else {
                ""
            }
        );
    }
    text
}

fn gate(state: &State) -> Option<Code> {
    let verdict = state.gates.get(&Gate::Acceptance)?;
    Some(verdict.code)
}

fn tests_nothing(argv: &[String]) -> bool {
    matches!(proof::of(argv), Proof::Nothing(_))
}

/// The outcome of the required commands, and how many others failed.
fn headline(before: Option<&TestRun>, candidate: &TestRun, tests: &[Test]) -> String {
    let mut must = tests.iter().filter(|test| test.must_pass).peekable();
    let compared = if must.peek().is_some() && must.all(|test| tests_nothing(&test.argv)) {
        "nothing was tested"
    } else {
        before.map_or("", |base| compare(base, candidate, tests))
    };
    match optional_red(candidate, tests).len() {
        0 => compared.to_owned(),
        red => format!("{compared}; {} red", counted(red, "optional command")),
    }
}

/// How many tests a command ran, and how many on the base if that differs.
fn tests_of(ran: &CommandRun, before: Option<&CommandRun>) -> String {
    let Some(now) = &ran.tally else {
        return String::new();
    };
    let skipped = match now.skipped {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    let before = before.and_then(|before| before.tally.as_ref());
    let before = match before.map(Tally::ran) {
        Some(count) if count != now.ran() => format!("; {count} on the base"),
        _ => String::new(),
    };
    let ran = usize::try_from(now.ran()).unwrap_or(usize::MAX);
    format!(" ({}{skipped}{before})", counted(ran, now.unit()))
}
