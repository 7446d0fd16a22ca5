//! Cross-tests: the base's tests on the candidate's code, and the candidate's tests on the base's.

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

fn stage() -> Stage {
    let stage = Stage::new();
    stage.commit(&[
        (
            "check.sh",
            "for one in tests/*.sh; do sh $one || exit 1; done\n",
        ),
        ("src/count.sh", "echo 1\n"),
        ("tests/count.sh", "test \"$(sh src/count.sh)\" = 1\n"),
    ]);
    stage
}

fn run(stage: &Stage, script: &str) -> Outcome {
    let ask = Ask {
        allow: &["src", "tests"],
        ..Ask::default()
    };
    let outcome = stage.run(script, &ask);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
    outcome
}

/// Whether the old tests passed with the change, and the new ones without it.
fn passed(outcome: &Outcome) -> [Value; 2] {
    let facts = &outcome.json["tests"]["two_sided"];
    ["base_tests_on_candidate", "candidate_tests_on_base"].map(|side| facts[side]["passed"].clone())
}

#[test]
fn both_halves_of_a_change_are_tried_alone_and_nothing_follows() {
    let stage = stage();
    let honest = "echo 'echo more' > src/more.sh; \
                  echo 'test \"$(sh src/more.sh)\" = more' > tests/more.sh";
    let cases = [
        (
            "a feature with its test",
            honest,
            [json!(true), json!(false)],
        ),
        (
            "a test that was bent",
            "echo 'echo 2' > src/count.sh; sed -i s/1/2/ tests/count.sh",
            [json!(false), json!(false)],
        ),
        (
            "a test of nothing",
            "echo 'echo more' > src/more.sh; echo true > tests/more.sh",
            [json!(true), json!(true)],
        ),
        (
            "a test that was removed",
            "echo 'echo 2' > src/count.sh; rm tests/count.sh; echo true > tests/a.sh",
            [json!(false), json!(true)],
        ),
        (
            "no test",
            "echo 'echo more' > src/more.sh",
            [Value::Null, Value::Null],
        ),
        (
            "nothing but a test",
            "echo true > tests/more.sh",
            [json!(true), json!(true)],
        ),
    ];
    for (name, script, want) in cases {
        assert_eq!(passed(&run(&stage, script)), want, "{name}");
    }
    // Again, the commands need not run once more.
    let again = run(&stage, honest);
    let facts = &again.json["tests"]["two_sided"];
    assert_eq!(facts["base_tests_on_candidate"]["cached"], json!(true));
    assert_eq!(facts["test_files"], json!(["tests/more.sh"]));
    let id = again.text("run_id");
    let shown = stage.ask(&["show", id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in [
        "the tests of the base, with the change, pass",
        "the changed tests, without the change, fail",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    let report = stage.evidence(id, "reports/test_report.json");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["x_provost"]["facts"]["two_sided"], *facts);
    assert_eq!(stage.ask(&["replay", id, "--json"]).exit, 0);
}

/// The code stays wrong, and its test is bent until it passes: the first thing that is said.
#[test]
fn a_test_that_alone_was_weakened_is_said_before_everything_else() {
    let stage = Stage::new();
    stage.commit(&[
        ("check.sh", "sh tests/count.sh\n"),
        ("src/count.sh", "echo 2\n"),
        ("tests/count.sh", "test \"$(sh src/count.sh)\" = 1\n"),
    ]);
    let outcome = run(&stage, "echo true > tests/count.sh");
    assert_eq!(passed(&outcome), [json!(false), json!(true)]);
    assert_eq!(outcome.json["tests"]["compared_with_base"], "red→green");
    let changed = &outcome.json["tests_changed"];
    let file = json!([{ "path": "tests/count.sh", "what": "changed" }]);
    assert_eq!(changed["files"], file);
    assert_eq!(changed["only_tests"], json!(true));
    assert_eq!(changed["base_tests_pass_with_the_change"], json!(false));
    let id = outcome.text("run_id");
    let shown = stage.ask(&["show", id]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let said = "only tests changed: the tests of the base fail on the same code, and only the \
                changed ones pass";
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].ends_with(said), "{shown}");
    assert!(
        lines[2].ends_with("test files: changed tests/count.sh"),
        "{shown}"
    );
    let result = stage.evidence(id, "reports/task_result.json");
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    assert!(
        result["summary"].as_str().unwrap().starts_with(said),
        "{result}"
    );
    let report = stage.evidence(id, "reports/test_report.json");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["x_provost"]["facts"]["tests_changed"], *changed);
    let landed = stage.ask(&["land", id]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    let landed = String::from_utf8_lossy(&landed.stdout).into_owned();
    assert!(landed.contains(said), "{landed}");
}
