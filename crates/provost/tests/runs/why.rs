//! What `provost why` says of real runs: the rule, the path, the line, and what would open it.

use serde_json::{Value, json};

use crate::scene::{Ask, Outcome, Scene};

/// What would open each row of the first refusal.
fn openings(why: &Outcome) -> Vec<Value> {
    let rows = why
        .json
        .pointer("/refusals/0/rows")
        .and_then(Value::as_array);
    let rows = rows.unwrap_or_else(|| panic!("{why:?}"));
    rows.iter().map(|row| row["widening"].clone()).collect()
}

#[test]
fn a_change_outside_the_scope_passes_once_it_is_widened_as_told() {
    let scene = Scene::new();
    let script = "echo good > src/a.txt; echo more >> docs/readme.md; echo x > src/tox.ini
        printf 'a\\000b' > src/blob; ln -s b.txt src/link";
    let refused = scene.run(script, &Ask::default());
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let why = scene.ask(&["why", "--json"]);
    assert_eq!(why.exit, 0, "{why:?}");
    let add = |pointer: &str, entry: &str| json!([{ "pointer": pointer, "add": entry }]);
    assert_eq!(
        openings(&why),
        [
            add("/allowed_paths", "docs/readme.md"),
            add("/x_provost/permit/binary", "src/blob"),
            add("/x_provost/permit/symlink", "src/link"),
            add("/x_provost/permit/oracle", "src/tox.ini"),
        ]
    );
    let told = scene.ask(&["why", "last"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let flags = told.lines().find_map(|line| line.strip_prefix("  flags: "));
    let flags: Vec<&str> = flags
        .unwrap_or_else(|| panic!("{told}"))
        .split(' ')
        .collect();
    let ask = Ask {
        more: &flags,
        ..Ask::default()
    };
    let accepted = scene.run(script, &ask);
    assert_eq!(accepted.code(), "OK", "{flags:?} {accepted:?}");
    let why = scene.ask(&["why", accepted.text("run_id"), "--json"]);
    assert_eq!(why.json["refusals"], json!([]));
    let told = scene.ask(&["why", accepted.text("run_id")]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("nothing was refused"), "{told}");
}

#[test]
fn the_line_of_the_contract_that_a_person_wrote_is_named() {
    let scene = Scene::new();
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract.yaml"
    ));
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("allowed_paths"))
        .unwrap();
    // What decides has to be there before an agent may begin.
    scene.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    scene.write(
        "home/contract.yaml",
        &text.replace("pytest -q", "sh check.sh"),
    );
    let file = scene.path("home/contract.yaml").display().to_string();
    let agent = scene.agent("echo x > outside.txt");
    let run = scene.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(run.code(), "DIFF_REFUSED", "{run:?}");
    let why = scene.ask(&["why", "--json"]);
    let clause = why.json.pointer("/refusals/0/rows/0/contract").unwrap();
    assert_eq!(clause["pointer"], "/allowed_paths");
    assert_eq!(clause["line"], line);
    assert_eq!(clause["file"], "contract.source.yaml");
    // Flags cannot be added to a contract from a file.
    let told = String::from_utf8(scene.ask(&["why"]).stdout).unwrap();
    assert!(told.contains("would have opened it"), "{told}");
    assert!(
        !told.contains("flags:") && !told.contains("--allow"),
        "{told}"
    );
}

#[test]
fn a_failed_command_a_limit_and_a_missing_run_are_told_apart() {
    let scene = Scene::new();
    let failed = scene.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.code(), "ACCEPTANCE_FAILED", "{failed:?}");
    let why = scene.ask(&["why", failed.text("run_id"), "--json"]);
    let row = why.json.pointer("/refusals/0/rows/0").unwrap();
    assert_eq!(row["about"], "sh check.sh");
    assert_eq!(row["problem"], "failed with status 1");
    assert_eq!(row["widening"], json!([]));
    assert_eq!(why.json["widening"], Value::Null);

    let ask = Ask {
        more: &["--timeout", "1s"],
        ..Ask::default()
    };
    let late = scene.run("sleep 60", &ask);
    assert_eq!(late.code(), "AGENT_TIMEOUT", "{late:?}");
    let why = scene.ask(&["why", late.text("run_id"), "--json"]);
    let set = json!([{ "pointer": "/timeout_retry/timeout_sec", "set": 2 }]);
    assert_eq!(openings(&why), [set]);

    let missing = scene.ask(&["why", "nothing-like-it", "--json"]);
    assert_eq!((missing.code(), missing.exit), ("NOT_FOUND", 2));
}
