use super::{Ending, Fact, Side, state, tests};
use crate::code::Code;
use crate::contract::Contract;
use crate::run::judge::{compare, judge_tests, optional_red};
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
        ("never counted", None, None, Code::Ok),
        ("counted now", None, Some(ran(1)), Code::Ok),
        ("as many", Some(ran(3)), Some(ran(3)), Code::Ok),
        ("more", Some(ran(3)), Some(ran(4)), Code::Ok),
        ("fewer", Some(ran(3)), Some(ran(2)), Code::TestsFewer),
        ("none now", Some(ran(3)), Some(ran(0)), Code::TestsFewer),
        (
            "none as before",
            Some(ran(0)),
            Some(ran(0)),
            Code::TestsFewer,
        ),
        ("not counted", Some(ran(1)), None, Code::TestsFewer),
        ("no count after zero", Some(ran(0)), None, Code::Ok),
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
fn tests_that_could_not_be_counted_are_reported() {
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

#[test]
fn a_strict_contract_takes_only_tests_that_were_counted_for_proof() {
    let facts = tests("a", &[("one", Ending::Exited(0))], &[]);
    let Some(Fact::TestsRan(mut run)) = facts.into_iter().next_back() else {
        panic!("no run")
    };
    let state = state(&[]);
    let contract = state.contract.as_ref().unwrap();
    let mut contract = Contract {
        tests: contract.tests[..1].to_vec(),
        ..contract.clone()
    };
    let options = serde_json::json!({ "strict_acceptance": true });
    let mut judged = |command: &str, strict: bool, ran: Option<u64>| {
        let argv = crate::gate::command::split(command).unwrap();
        contract.tests[0].argv.clone_from(&argv);
        run.commands[0].argv = argv;
        run.commands[0].tally = ran.map(|passed| Tally {
            passed,
            ..Tally::default()
        });
        let options = strict.then(|| serde_json::from_value(options.clone()).unwrap());
        contract.document.runtime_options = options;
        judge_tests(Some(&run), Some(&run), &contract).code
    };
    for (command, strict, ran, want) in [
        ("pytest", true, Some(3), Code::Ok),
        ("pytest", true, None, Code::TestsFewer),
        ("pytest", true, Some(0), Code::TestsFewer),
        ("pytest", false, None, Code::Ok),
        ("sh check.sh", true, Some(1), Code::Ok),
        ("sh check.sh", true, None, Code::TestsFewer),
        ("sh check.sh", false, None, Code::Ok),
        ("mypy src", true, None, Code::TestsFewer),
    ] {
        assert_eq!(
            judged(command, strict, ran),
            want,
            "{command} {strict} {ran:?}"
        );
    }
}

#[test]
fn what_need_not_pass_does_not_make_a_run_red() {
    let facts = tests(
        "a",
        &[("one", Ending::Exited(0)), ("two", Ending::Exited(1))],
        &[],
    );
    let Some(Fact::TestsRan(run)) = facts.into_iter().next_back() else {
        panic!("no run")
    };
    let state = state(&[]);
    let tests = &state.contract.as_ref().unwrap().tests;
    assert!(tests[0].must_pass && !tests[1].must_pass);
    assert_eq!(compare(&run, &run, tests), "green→green");
    let red: Vec<&str> = optional_red(&run, tests)
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(red, ["two"]);
}
