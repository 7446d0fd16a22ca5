//! Contracts that are written from flags, looked over, and learned from runs.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Ask, Scene};

#[test]
fn a_contract_is_written_in_every_format_and_keeps_every_rule() {
    let scene = Scene::new();
    for ending in ["json", "yaml", "toml"] {
        let file = scene
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
        let made = scene.ask(&words);
        assert_eq!(made.exit, 0, "{made:?}");
        let checked = scene.ask(&["check", "contract", &file, "--json"]);
        assert_eq!(
            (checked.code(), checked.exit),
            ("OK", 0),
            "{ending}: {checked:?}"
        );
        let linted = scene.ask(&["contract", "lint", &file, "--json"]);
        assert_eq!(
            (linted.exit, &linted.json["advice"]),
            (0, &json!([])),
            "{linted:?}"
        );
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.contains("# What decides"), ending != "json", "{text}");
        let again = scene.ask(&words);
        assert_eq!(
            again.exit, 4,
            "a file that is there is left alone: {again:?}"
        );
    }
}

#[test]
fn advice_is_no_refusal_and_a_broken_rule_is() {
    let scene = Scene::new();
    let file = scene.path("home/wide.yaml").display().to_string();
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
    assert_eq!(scene.ask(&words).exit, 0);
    let linted = scene.ask(&["contract", "lint", &file, "--json"]);
    assert_eq!(linted.exit, 0, "{linted:?}");
    let advice = linted.json["advice"].as_array().unwrap();
    let places: Vec<&str> = advice
        .iter()
        .filter_map(|row| row["path"].as_str())
        .collect();
    assert_eq!(places, ["/allowed_paths/0", "/x_provost/limits"]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"src\"", "\"../src\"")).unwrap();
    let linted = scene.ask(&["contract", "lint", &file, "--json"]);
    assert_eq!(
        (linted.code(), linted.exit),
        ("CONTRACT_INVALID", 1),
        "{linted:?}"
    );
}

/// The same work passes under what was learned from it, also if it was refused before.
#[test]
fn what_is_learned_from_a_run_lets_it_pass() {
    let scene = Scene::new();
    scene.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    let script = "echo good > src/a.txt; echo x > src/tox.ini; echo more >> docs/readme.md";
    let refused = scene.run(script, &Ask::default());
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let file = scene.path("home/learned.yaml").display().to_string();
    let learned = scene.ask(&["contract", "learn", "last", "--out", &file, "--json"]);
    assert_eq!(learned.exit, 0, "{learned:?}");
    let printed = scene.ask(&["contract", "learn", "last"]);
    let paths = printed.json["allowed_paths"].as_array().unwrap().clone();
    let want: Vec<Value> = ["docs/readme.md", "src/a.txt", "src/tox.ini"]
        .map(Value::from)
        .into();
    assert_eq!(paths, want);
    let agent = scene.agent(script);
    let asks = scene.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(asks.code(), "APPROVAL_NEEDED", "{asks:?}");
    let again = scene.ask(&["approve", asks.text("run_id"), "--go", "--json"]);
    assert_eq!(again.code(), "OK", "{again:?}");

    let failed = scene.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.code(), "ACCEPTANCE_FAILED", "{failed:?}");
    let none = scene.ask(&["contract", "learn", failed.text("run_id"), "--json"]);
    assert_eq!(
        (none.code(), none.exit),
        ("ACCEPTANCE_FAILED", 1),
        "{none:?}"
    );
}
