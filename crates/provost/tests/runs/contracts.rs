//! Contracts that are written from flags, linted, and learned from runs.

use std::fs;

use serde_json::{Value, json};

use crate::stage::{Ask, Stage};

#[test]
fn a_contract_is_written_in_every_format_and_keeps_every_rule() {
    let stage = Stage::new();
    for ending in ["json", "yaml", "toml"] {
        let file = stage
            .path(&format!("home/new.{ending}"))
            .display()
            .to_string();
        let words = [
            "contract",
            "new",
            &file,
            "Fix the greeting",
            "--allow",
            "src/a.txt",
            "--accept",
            "pytest -q",
            "--memory",
            "1GiB",
            "--json",
        ];
        let made = stage.ask(&words);
        assert_eq!(made.exit, 0, "{made:?}");
        let checked = stage.ask(&["check", "contract", &file, "--json"]);
        assert_eq!(
            (checked.code(), checked.exit),
            ("OK", 0),
            "{ending}: {checked:?}"
        );
        let linted = stage.ask(&["contract", "lint", &file, "--json"]);
        assert_eq!(
            (linted.exit, &linted.json["advice"]),
            (0, &json!([])),
            "{linted:?}"
        );
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.contains("# What decides"), ending != "json", "{text}");
        let again = stage.ask(&words);
        assert_eq!(
            again.exit, 4,
            "a file that is there is left alone: {again:?}"
        );
    }
}

#[test]
fn advice_is_no_refusal_and_a_broken_rule_is() {
    let stage = Stage::new();
    let file = stage.path("home/wide.yaml").display().to_string();
    let words = [
        "contract",
        "new",
        &file,
        "Do it",
        "--allow",
        "src",
        "--accept",
        "pytest -q",
    ];
    assert_eq!(stage.ask(&words).exit, 0);
    let linted = stage.ask(&["contract", "lint", &file, "--json"]);
    assert_eq!(linted.exit, 0, "{linted:?}");
    let advice = linted.json["advice"].as_array().unwrap();
    let places: Vec<&str> = advice
        .iter()
        .filter_map(|row| row["path"].as_str())
        .collect();
    assert_eq!(places, ["/allowed_paths/0", "/x_provost/limits"]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"src\"", "\"../src\"")).unwrap();
    let linted = stage.ask(&["contract", "lint", &file, "--json"]);
    assert_eq!(
        (linted.code(), linted.exit),
        ("CONTRACT_INVALID", 1),
        "{linted:?}"
    );
}

/// The same work passes under what was learned from it, also if it was refused before.
#[test]
fn what_is_learned_from_a_run_lets_it_pass() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    let script = "echo good > src/a.txt; echo x > src/tox.ini; echo more >> docs/readme.md";
    let refused = stage.run(script, &Ask::default());
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let file = stage.path("home/learned.yaml").display().to_string();
    let learned = stage.ask(&["contract", "learn", "last", "--out", &file, "--json"]);
    assert_eq!(learned.exit, 0, "{learned:?}");
    let printed = stage.ask(&["contract", "learn", "last"]);
    let paths = printed.json["allowed_paths"].as_array().unwrap().clone();
    let want: Vec<Value> = ["docs/readme.md", "src/a.txt", "src/tox.ini"]
        .map(Value::from)
        .into();
    assert_eq!(paths, want);
    let agent = stage.agent(script);
    let asks = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(asks.code(), "APPROVAL_NEEDED", "{asks:?}");
    let again = stage.ask(&["approve", asks.text("run_id"), "--go", "--json"]);
    assert_eq!(again.code(), "OK", "{again:?}");

    let failed = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.code(), "ACCEPTANCE_FAILED", "{failed:?}");
    let none = stage.ask(&["contract", "learn", failed.text("run_id"), "--json"]);
    assert_eq!(
        (none.code(), none.exit),
        ("ACCEPTANCE_FAILED", 1),
        "{none:?}"
    );
}
