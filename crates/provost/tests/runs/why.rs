//! What `provost why` says of real runs: the rule, the path, the line, and what would permit it.

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage};

/// What would permit each row of the first refusal.
fn widenings(why: &Outcome) -> Vec<Value> {
    let rows = why
        .json
        .pointer("/refusals/0/rows")
        .and_then(Value::as_array);
    let rows = rows.unwrap_or_else(|| panic!("{why:?}"));
    rows.iter().map(|row| row["widening"].clone()).collect()
}

#[test]
fn a_change_outside_the_scope_passes_once_it_is_widened_as_proposed() {
    let stage = Stage::new();
    let script = "echo good > src/a.txt; echo more >> docs/readme.md; echo x > src/tox.ini
        printf 'a\\000b' > src/blob; ln -s b.txt src/link";
    let refused = stage.run(script, &Ask::default());
    assert_eq!(refused.code(), "DIFF_REFUSED", "{refused:?}");
    let why = stage.ask(&["why", "--json"]);
    assert_eq!(why.exit, 0, "{why:?}");
    let add = |pointer: &str, entry: &str| json!([{ "pointer": pointer, "add": entry }]);
    assert_eq!(
        widenings(&why),
        [
            add("/allowed_paths", "docs/readme.md"),
            add("/x_provost/permit/binary", "src/blob"),
            add("/x_provost/permit/symlink", "src/link"),
            add("/x_provost/permit/oracle", "src/tox.ini"),
        ]
    );
    let shown = stage.ask(&["why", "last"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let command = shown
        .lines()
        .find_map(|line| line.strip_prefix("permit with: provost "));
    let command = command
        .unwrap_or_else(|| panic!("{shown}"))
        .replace('\'', "");
    let words: Vec<&str> = command.split(' ').collect();
    let kept = stage.ask(&[&words[..], &["--json"]].concat());
    assert_eq!(kept.code(), "OK", "{words:?} {kept:?}");
    let flags = words.iter().filter(|word| word.contains('='));
    let flags: Vec<&str> = flags.copied().collect();
    let ask = Ask {
        more: &flags,
        ..Ask::default()
    };
    let accepted = stage.run(script, &ask);
    assert_eq!(accepted.code(), "OK", "{flags:?} {accepted:?}");
    let why = stage.ask(&["why", accepted.text("run_id"), "--json"]);
    assert_eq!(why.json["refusals"], json!([]));
    let shown = stage.ask(&["why", accepted.text("run_id")]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("nothing was refused"), "{shown}");
}

#[test]
fn the_line_of_the_contract_that_a_person_wrote_is_named() {
    let stage = Stage::new();
    let text = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract.yaml"
    ));
    let line = 1 + text
        .lines()
        .position(|line| line.starts_with("allowed_paths"))
        .unwrap();
    // What decides has to be there before an agent may begin.
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    stage.write(
        "home/contract.yaml",
        &text.replace("pytest -q", "sh check.sh"),
    );
    let file = stage.path("home/contract.yaml").display().to_string();
    let agent = stage.agent("echo x > outside.txt");
    let run = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(run.code(), "DIFF_REFUSED", "{run:?}");
    let why = stage.ask(&["why", "--json"]);
    let clause = why.json.pointer("/refusals/0/rows/0/contract").unwrap();
    assert_eq!(clause["pointer"], "/allowed_paths");
    assert_eq!(clause["line"], line);
    assert_eq!(clause["file"], "contract.source.yaml");
    // Flags cannot be added to a contract from a file, but its work can be judged again.
    let shown = String::from_utf8(stage.ask(&["why"]).stdout).unwrap();
    assert!(shown.contains("would have permitted it"), "{shown}");
    assert!(
        shown.contains("--keep-work --allow='outside.txt'"),
        "{shown}"
    );
    assert!(!shown.contains("(--allow"), "{shown}");
}

#[test]
fn a_failed_command_a_limit_and_a_missing_run_have_different_answers() {
    let stage = Stage::new();
    let failed = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(failed.code(), "ACCEPTANCE_FAILED", "{failed:?}");
    let why = stage.ask(&["why", failed.text("run_id"), "--json"]);
    let row = why.json.pointer("/refusals/0/rows/0").unwrap();
    assert_eq!(row["about"], "sh check.sh");
    assert_eq!(row["problem"], "failed with status 1");
    assert_eq!(row["widening"], json!([]));
    assert_eq!(why.json["widening"], Value::Null);

    let ask = Ask {
        more: &["--timeout", "1s"],
        ..Ask::default()
    };
    let late = stage.run("sleep 60", &ask);
    assert_eq!(late.code(), "AGENT_TIMEOUT", "{late:?}");
    let why = stage.ask(&["why", late.text("run_id"), "--json"]);
    let set = json!([{ "pointer": "/timeout_retry/timeout_sec", "set": 2 }]);
    assert_eq!(widenings(&why), [set]);

    let missing = stage.ask(&["why", "nothing-like-it", "--json"]);
    assert_eq!((missing.code(), missing.exit), ("NOT_FOUND", 2));
}

/// The text of an answer for people.
fn text(outcome: &Outcome) -> String {
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

#[test]
fn a_refusal_that_no_wider_contract_changes_ends_with_a_command() {
    let stage = Stage::new();
    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_eq!(refused.code(), "ACCEPTANCE_FAILED", "{refused:?}");
    let why = text(&stage.ask(&["why", "last"]));
    let last = why.lines().last().unwrap_or_default();
    assert!(last.starts_with("next: provost retry "), "{why}");
    assert!(last.ends_with(" 'what is still to be done'"), "{why}");
    let why = stage.ask(&["why", "last", "--json"]);
    assert_eq!(why.json["permit_with"], Value::Null, "{why:?}");
    let id = refused.text("run_id");
    let command = format!("provost retry {id} 'what is still to be done'");
    assert_eq!(why.json["continue_with"], command, "{why:?}");
}

#[test]
fn an_agent_that_cannot_start_said_nothing() {
    let stage = Stage::new();
    let words = [
        "run",
        "Fix it",
        "--allow",
        "src/a.txt",
        "--accept",
        "sh check.sh",
        "--agent-cmd",
        "no-such-program",
    ];
    let shown = text(&stage.ask(&words));
    assert!(shown.contains("cannot be started"), "{shown}");
    assert!(!shown.contains("the agent said"), "{shown}");
    let refused = stage.ask(&["show", "last", "--json"]);
    assert_eq!(refused.json["agent_said"], Value::Null, "{refused:?}");
    assert_eq!(refused.json["agent_ms"], Value::Null, "{refused:?}");
    let why = text(&stage.ask(&["why", "last"]));
    assert!(why.contains("next: provost log --agent "), "{why}");
}

#[test]
fn a_policy_that_is_corrected_but_not_committed_is_named() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", "[run\n")]);
    let hint = |stage: &Stage| {
        let refused = stage.run("echo good > src/a.txt", &Ask::default());
        assert_eq!(refused.code(), "INPUT_INVALID", "{refused:?}");
        let hint = refused.json["details"]["hint"].as_str();
        hint.unwrap_or_default().to_owned()
    };
    let broken = hint(&stage);
    assert!(broken.starts_with("correct provost.toml"), "{broken}");
    stage.write("repo/provost.toml", "[run]\n");
    let corrected = hint(&stage);
    assert!(corrected.contains("git add provost.toml"), "{corrected}");
    stage.commit(&[("provost.toml", "[run]\n")]);
    let accepted = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(accepted.code(), "OK", "{accepted:?}");
}
