//! What may fail because it fails twice on the base, and what may not.

use super::*;
use crate::contract::document::AcceptMode;
use crate::run::judge::judge_regression;
use crate::tally::{Runner, Tally};

/// A round of one command that ended with `status`, ran `ran` tests, and failed in `failed`.
fn round(status: i32, ran: u64, failed: Option<&[&str]>) -> TestRun {
    let Fact::TestsRan(mut run) = tests("tree", &[("one", Ending::Exited(status))], &[])[1].clone()
    else {
        unreachable!()
    };
    let count = failed.map_or(u64::from(status != 0), |names| names.len() as u64);
    run.commands[0].tally = Some(Tally {
        runners: vec![Runner::Pytest],
        passed: ran - count,
        failed: count,
        skipped: 0,
        failed_names: failed
            .filter(|names| !names.is_empty())
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
    });
    run
}

fn contract() -> contract::Contract {
    let mut contract = state(&[]).contract.unwrap();
    contract.tests.truncate(1);
    contract.accept_mode = AcceptMode::NoRegression;
    contract
}

/// A round by the names of its failed tests: `-` for none that ran, `?` for failures without names,
/// `!` for a missing test, `2` for another status.
fn of(words: &str) -> Option<TestRun> {
    match words {
        "-" => None,
        "" => Some(round(0, 5, Some(&[]))),
        "!" => Some(round(0, 4, Some(&[]))),
        "?" => Some(round(1, 5, None)),
        "! a" => Some(round(1, 4, Some(&["a"]))),
        "2 a" => Some(round(2, 5, Some(&["a"]))),
        names => {
            let names: Vec<&str> = names.split(' ').collect();
            Some(round(1, 5, Some(&names)))
        }
    }
}

#[test]
fn only_what_fails_twice_on_the_base_may_fail() {
    let contract = contract();
    let cases = [
        ("all green", ["", "", "-"], Code::Ok),
        ("the same failure", ["a", "a", "a"], Code::Ok),
        ("one was repaired", ["a", "a b", "a b"], Code::Ok),
        ("all were repaired", ["", "a", "a"], Code::Ok),
        ("a new failure", ["a b", "a", "a"], Code::AcceptanceFailed),
        ("another failure", ["b", "a", "a"], Code::AcceptanceFailed),
        (
            "failed once on the base",
            ["a", "a", "b"],
            Code::AcceptanceFailed,
        ),
        (
            "then it passed there",
            ["a", "a", ""],
            Code::AcceptanceFailed,
        ),
        ("the base is green", ["a", "", "-"], Code::AcceptanceFailed),
        (
            "one round on the base",
            ["a", "a", "-"],
            Code::AcceptanceFailed,
        ),
        (
            "no round on the base",
            ["a", "-", "-"],
            Code::AcceptanceFailed,
        ),
        ("no names", ["?", "a", "a"], Code::TestsUnnamed),
        ("no names on the base", ["a", "?", "a"], Code::TestsUnnamed),
        ("a test is missing", ["! a", "a", "a"], Code::TestsFewer),
        ("missing and green", ["!", "a", "a"], Code::TestsFewer),
        ("another status", ["2 a", "a", "a"], Code::AcceptanceFailed),
        ("nothing ran", ["-", "a", "a"], Code::AcceptanceFailed),
    ];
    for (name, rounds, want) in cases {
        let [now, first, second] = rounds.map(of);
        let base = [first.as_ref(), second.as_ref()];
        let verdict = judge_regression(now.as_ref(), first.as_ref(), base, &contract);
        assert_eq!(verdict.code, want, "{name}: {verdict:?}");
    }
    let endings = [
        (Ending::TimedOut, Code::AcceptanceTimeout),
        (Ending::Signalled(11), Code::AcceptanceFailed),
        (Ending::LeaseLost, Code::LeaseLost),
    ];
    let red = round(1, 5, Some(&["a"]));
    for (ending, want) in endings {
        let mut now = red.clone();
        now.commands[0].ending = ending;
        let base = [Some(&red), Some(&red)];
        let verdict = judge_regression(Some(&now), Some(&red), base, &contract);
        assert_eq!(verdict.code, want, "{ending:?}");
    }
}

#[test]
fn excused_names_come_first() {
    let red = round(1, 5, Some(&["a", "b"]));
    let base = [Some(&red), Some(&red)];
    let verdict = judge_regression(Some(&red), Some(&red), base, &contract());
    insta::assert_snapshot!(
        verdict.reason,
        @"2 tests that fail twice on the base may fail: a, b; 0 acceptance commands passed, 5 tests"
    );
    assert_eq!(verdict.details.unwrap()["excused"], json!(["a", "b"]));
}

#[test]
fn the_base_runs_twice_only_where_that_can_excuse_something() {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!()
    };
    opened
        .contract
        .x_provost
        .get_or_insert_default()
        .accept_mode = Some(AcceptMode::NoRegression);
    let next = |mode: &Opened, status| {
        let mut state = State::fold(&ledger(&[Fact::Opened(Box::new(mode.clone()))])).unwrap();
        for gate in [
            Gate::Policy,
            Gate::Sandbox,
            Gate::Agent,
            Gate::Output,
            Gate::Diff,
        ] {
            state.gates.insert(gate, Verdict::allow("passed"));
        }
        state.fence = Some(1);
        state.site = crate::run::Site::Workspace;
        for fact in [
            agent(Ending::Exited(0), ResultFile::Absent),
            captured(&["app/a"]),
        ]
        .concat()
        {
            state.apply(fact).unwrap();
        }
        let mut base = round(status, 5, Some(&["a"]));
        base.side = Side::Base;
        state.tests.insert(Side::Base, base);
        state.tested = Some(SandboxTest {
            tier: String::new(),
            processes: Processes::Own,
            landlock: None,
            sealed_gaps: Vec::new(),
            holes: Vec::new(),
            held: true,
            kernel: String::new(),
            boot: String::new(),
            launcher: String::new(),
            profile: String::new(),
            limits: BTreeMap::new(),
            agent: Probed::default(),
            acceptance: Probed::default(),
            program: None,
        });
        state.next()
    };
    assert_eq!(next(&opened, 1), Next::Do(Step::BaseAgain));
    assert_eq!(next(&opened, 0), Next::Do(Step::Acceptance));
    opened.contract.x_provost = None;
    assert_eq!(next(&opened, 1), Next::Do(Step::Acceptance));
}
