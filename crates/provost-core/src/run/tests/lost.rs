use super::{Ending, Fact, Side, state, tests};
use crate::code::Code;
use crate::contract::Contract;
use crate::run::judge::judge_tests;
use crate::tally::{Runner, Tally};

#[test]
fn a_command_that_lost_tests_is_refused() {
    let ran = |passed: u64| Tally {
        passed,
        ..Tally::default()
    };
    let other = Tally {
        runners: vec![Runner::Pytest],
        ..ran(9)
    };
    let unittest = Tally {
        runners: vec![Runner::Unittest],
        ..ran(2)
    };
    let cases = [
        ("nobody counts", None, None, Code::Ok),
        ("counted now", None, Some(ran(1)), Code::Ok),
        ("as many", Some(ran(3)), Some(ran(3)), Code::Ok),
        ("more", Some(ran(3)), Some(ran(4)), Code::Ok),
        ("fewer", Some(ran(3)), Some(ran(2)), Code::TestsFewer),
        (
            "none any more",
            Some(ran(3)),
            Some(ran(0)),
            Code::TestsFewer,
        ),
        (
            "none as before",
            Some(ran(0)),
            Some(ran(0)),
            Code::TestsFewer,
        ),
        ("not told any more", Some(ran(1)), None, Code::TestsFewer),
        ("not told of none", Some(ran(0)), None, Code::Ok),
        (
            "another runner",
            Some(unittest),
            Some(other),
            Code::TestsFewer,
        ),
    ];
    let with = |side: Side, tally: &Option<Tally>| {
        let facts = tests(
            "a",
            &[("one", Ending::Exited(0)), ("two", Ending::Exited(1))],
            &[],
        );
        let Some(Fact::TestsRan(mut run)) = facts.into_iter().next_back() else {
            panic!("no run")
        };
        run.side = side;
        run.commands[0].tally.clone_from(tally);
        run
    };
    for (name, before, now, code) in cases {
        let (base, candidate) = (with(Side::Base, &before), with(Side::Candidate, &now));
        let state = state(&[]);
        let contract = state.contract.as_ref().unwrap();
        let verdict = judge_tests(Some(&candidate), Some(&base), contract);
        assert_eq!(verdict.code, code, "{name}: {}", verdict.reason);
        let lenient = Contract {
            may_lose_tests: true,
            ..contract.clone()
        };
        assert!(
            judge_tests(Some(&candidate), Some(&base), &lenient).allow,
            "{name}"
        );
    }
}

#[test]
fn tests_that_nobody_could_count_are_told() {
    let facts = tests("a", &[("one", Ending::Exited(0))], &[]);
    let Some(Fact::TestsRan(mut candidate)) = facts.into_iter().next_back() else {
        panic!("no run")
    };
    let state = state(&[]);
    let contract = state.contract.as_ref().unwrap();
    let contract = Contract {
        tests: contract.tests[..1].to_vec(),
        ..contract.clone()
    };
    let whole = judge_tests(Some(&candidate), Some(&candidate), &contract);
    assert_eq!(whole.details, None);
    let base = candidate.clone();
    candidate.commands[0].stdout.cut = true;
    let verdict = judge_tests(Some(&candidate), Some(&base), &contract);
    let notes = verdict.details.unwrap()["notes"].to_string();
    assert!(notes.contains("its tests are not counted"), "{notes}");
}
