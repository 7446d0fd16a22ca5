//! Judges what the acceptance commands did.

use serde_json::json;

use crate::code::Code;
use crate::contract::{self, Contract, Test};
use crate::gate::command;
use crate::gate::proof::{self, Proof};
use crate::run::fact::{CommandRun, Ending, TestRun};
use crate::tally::Tally;
use crate::verdict::Verdict;
use crate::wording::counted;

/// Whether exactly the contract's commands ran, those that must pass did, and no test got lost since
/// they ran `before`.
pub fn judge_tests(
    run: Option<&TestRun>,
    before: Option<&TestRun>,
    contract: &Contract,
) -> Verdict {
    judge_excusing(run, before, contract, &[])
}

/// The same, if the failures of the commands that are `excused`, by number, do not count.
pub(super) fn judge_excusing(
    run: Option<&TestRun>,
    before: Option<&TestRun>,
    contract: &Contract,
    excused: &[bool],
) -> Verdict {
    let Some(run) = run else {
        return Verdict::deny(
            Code::AcceptanceFailed,
            "the acceptance commands did not run",
        );
    };
    if let Some(refusal) = judge_stopped(run) {
        return refusal;
    }
    let wanted = contract.tests.iter().map(|test| (&test.name, &test.argv));
    let ran = run
        .commands
        .iter()
        .map(|command| (&command.name, &command.argv));
    if contract.tests.is_empty() || !wanted.eq(ran) {
        return Verdict::deny(
            Code::AcceptanceFailed,
            "not exactly the contract's commands ran",
        );
    }
    let pairs = contract.tests.iter().zip(&run.commands).enumerate();
    let counts = |at: usize| !excused.get(at).copied().unwrap_or(false);
    let failed = pairs.filter(|(at, (test, command))| {
        test.must_pass && command.ending != Ending::Exited(0) && counts(*at)
    });
    let failed: Vec<&CommandRun> = failed.map(|(_, (_, command))| command).collect();
    let Some(first) = failed.first() else {
        let Some(before) = before else {
            let reason = "nothing says how many tests ran before";
            return Verdict::deny(Code::AcceptanceFailed, reason);
        };
        return judge_counts(run, before, contract);
    };
    let code = match first.ending {
        Ending::TimedOut => Code::AcceptanceTimeout,
        Ending::MemoryLimit => Code::MemoryLimit,
        Ending::ProcessLimit => Code::ProcessLimit,
        Ending::DiskLimit | Ending::InodeLimit => Code::DiskLimit,
        Ending::NoProgress => Code::NoProgress,
        _ => Code::AcceptanceFailed,
    };
    let row = |command: &&CommandRun| {
        json!({ "path": command::line(&command.argv), "name": command.name,
                "problem": render_ending(command.ending), "log": command.stdout.file })
    };
    let reason = said(first);
    Verdict::deny(code, reason)
        .with(json!({ "findings": failed.iter().map(row).collect::<Vec<_>>() }))
}

/// The refusal of commands that a user cancelled or the loss of the lease ended.
pub(in crate::run) fn judge_stopped(run: &TestRun) -> Option<Verdict> {
    let code = |ending| match ending {
        Ending::Cancelled => Some(Code::Cancelled),
        Ending::LeaseLost => Some(Code::LeaseLost),
        _ => None,
    };
    let mut commands = run.commands.iter();
    commands.find_map(|command| Some(Verdict::deny(code(command.ending)?, said(command))))
}

/// Whether the commands that passed still ran the tests that they ran before.
fn judge_counts(run: &TestRun, before: &TestRun, contract: &Contract) -> Verdict {
    let mut lost = Vec::new();
    for (at, (test, command)) in contract.tests.iter().zip(&run.commands).enumerate() {
        let before = before.commands.get(at);
        let before = before.and_then(|command| command.tally.as_ref());
        if let Some(problem) = loss(command.tally.as_ref(), before).filter(|_| test.must_pass) {
            lost.push((command, problem));
        }
    }
    if let Some((first, problem)) = lost.first()
        && !contract.may_lose_tests
    {
        let row = |(command, problem): &(&CommandRun, String)| {
            json!({ "path": command::line(&command.argv), "name": command.name,
                    "problem": problem, "log": command.stdout.file })
        };
        let reason = format!("`{}` {problem}", command::line(&first.argv));
        return Verdict::deny(Code::TestsFewer, reason)
            .with(json!({ "findings": lost.iter().map(row).collect::<Vec<_>>() }));
    }
    if contract::is_strict(&contract.document)
        && let Some(refusal) = unproven(run, contract)
    {
        return refusal;
    }
    let verdict = Verdict::allow(passed_words(run));
    let rounds = run.commands.iter().chain(&before.commands);
    let mut notes: Vec<String> = rounds.filter_map(uncounted).collect();
    notes.dedup();
    if notes.is_empty() {
        return verdict;
    }
    verdict.with(json!({ "notes": notes }))
}

/// How many commands passed, and how many tests they ran.
fn passed_words(run: &TestRun) -> String {
    let passed = run.commands.iter();
    let passed = passed.filter(|ran| ran.ending == Ending::Exited(0));
    let mut words = format!("{} passed", counted(passed.count(), "acceptance command"));
    for unit in ["test", "package"] {
        let tallies = run.commands.iter().filter_map(|ran| ran.tally.as_ref());
        let tallies = tallies.filter(|tally| tally.unit() == unit);
        if let Some(ran) = tallies.map(Tally::ran).reduce(u64::saturating_add) {
            words += &format!(", {}", counted(saturated(ran), unit));
        }
    }
    words
}

/// Why a strict contract does not take what ran for proof: some test must have been counted, and at
/// least one by each command that is a test runner.
fn unproven(run: &TestRun, contract: &Contract) -> Option<Verdict> {
    let pairs = contract.tests.iter().zip(&run.commands);
    let must = || pairs.clone().filter(|(test, _)| test.must_pass);
    let counted = |ran: &CommandRun| ran.tally.as_ref().is_some_and(|tally| tally.ran() > 0);
    let silent = must().find(|(test, ran)| proof::of(&test.argv) == Proof::Tests && !counted(ran));
    let any = must().any(|(_, ran)| counted(ran));
    let (_, first) = silent.or_else(|| must().next().filter(|_| !any))?;
    let line = command::line(&first.argv);
    let problem = "does not say that it ran a test, and `strict_acceptance` asks for proof";
    let row = json!({ "path": line, "name": first.name, "problem": problem,
                      "log": first.stdout.file });
    let verdict = Verdict::deny(Code::TestsFewer, format!("`{line}` {problem}"));
    Some(verdict.with(json!({ "findings": [row] })))
}

/// The note on a command whose output does not show how many tests ran.
fn uncounted(command: &CommandRun) -> Option<String> {
    let cut = command.stdout.cut || command.stderr.cut;
    let line = command::line(&command.argv);
    if cut {
        return Some(format!(
            "`{line}` printed more than is kept, so its tests are not counted"
        ));
    }
    let packages = command.tally.as_ref()?.unit() == "package";
    packages.then(|| format!("`{line}` names packages and no tests; with `-v` tests are counted"))
}

/// Which tests a command lost since `before`, in words that follow its name.
fn loss(now: Option<&Tally>, before: Option<&Tally>) -> Option<String> {
    let unit = now.or(before).map_or("test", Tally::unit);
    let tests = |count: u64| counted(saturated(count), unit);
    if let (Some(now), Some(before)) = (now, before)
        && before
            .runners
            .iter()
            .any(|runner| !now.runners.contains(runner))
    {
        let ran = tests(before.ran());
        return Some(format!("is counted by another runner; {ran} ran before"));
    }
    let before = before.map_or(0, Tally::ran);
    match now.map(Tally::ran) {
        // A command without test counts is judged by its exit status alone.
        None if before == 0 => None,
        None => Some(format!(
            "says of no {unit} that it ran; {} ran before",
            tests(before)
        )),
        Some(0) => Some(format!("ran no {unit}")),
        Some(now) if now < before => Some(format!("ran {}; {before} ran before", tests(now))),
        Some(_) => None,
    }
}

fn saturated(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// What became of a command, by what was executed: the name of a test tells less.
fn said(ran: &CommandRun) -> String {
    format!(
        "`{}` {}",
        command::line(&ran.argv),
        render_ending(ran.ending)
    )
}

/// How a sandboxed process ended, in words that follow its name.
pub fn render_ending(ending: Ending) -> String {
    match ending {
        Ending::Exited(0) => "passed".to_owned(),
        Ending::Exited(status) => format!("failed with status {status}"),
        Ending::Signalled(signal) => format!("was ended by signal {signal}"),
        Ending::TimedOut => "did not end in time".to_owned(),
        Ending::OutputLimit => "wrote more than its output limit".to_owned(),
        Ending::MemoryLimit => "used more memory than its limit".to_owned(),
        Ending::ProcessLimit => "used up its processes".to_owned(),
        Ending::DiskLimit => "filled its workspace beyond its limit".to_owned(),
        Ending::InodeLimit => "made more files than its limit".to_owned(),
        Ending::NoProgress => "neither printed nor changed anything for too long".to_owned(),
        Ending::Overspent => "spent more than it may".to_owned(),
        Ending::NoModel => "had no model to work with".to_owned(),
        Ending::Dismissed => "was through and was ended".to_owned(),
        Ending::Cancelled => "was cancelled".to_owned(),
        Ending::LeaseLost => "was ended because the lease was lost".to_owned(),
        Ending::NotStarted => "could not be started in the sandbox".to_owned(),
    }
}

/// What the commands that must pass say about the change, from both sides.
pub fn compare(base: &TestRun, candidate: &TestRun, tests: &[Test]) -> &'static str {
    let green = |run: &TestRun| {
        let mut pairs = tests.iter().zip(&run.commands);
        !run.commands.is_empty()
            && tests.len() == run.commands.len()
            && pairs.all(|(test, ran)| !test.must_pass || ran.ending == Ending::Exited(0))
    };
    match (green(base), green(candidate)) {
        (false, true) => "red→green",
        (true, true) => "green→green",
        (true, false) => "green→red",
        (false, false) => "still red",
    }
}

/// The commands that did not pass and need not.
pub fn optional_red<'a>(run: &'a TestRun, tests: &[Test]) -> Vec<&'a CommandRun> {
    let pairs = tests.iter().zip(&run.commands);
    let red = pairs.filter(|(test, ran)| !test.must_pass && ran.ending != Ending::Exited(0));
    red.map(|(_, ran)| ran).collect()
}
