//! Records of contracts that were refused before there was a run.

use std::fs;

use serde_json::{Value, json};

use provost_engine::query::short_id;
use provost_testkit::stage::Outcome;

use crate::stage::Users;

const BASE: &[(&str, &str)] = &[("src/a.txt", "base\n")];

fn victim(stage: &Users, words: &[&str]) -> Outcome {
    stage.ask("victim", "victim/repo", words)
}

/// Lets `user` have a contract refused, and says what the record is called.
fn refused(stage: &Users, user: &str, text: &str) -> (String, Outcome) {
    let repo = format!("{user}/repo");
    if !stage.path(&repo).exists() {
        stage.repository(&repo, BASE);
    }
    stage.write(&format!("{user}/bad.json"), text);
    let words = ["run", "-f", "../bad.json", "--agent-cmd", "true"];
    let outcome = stage.ask(user, &repo, &words);
    let records = fs::read_dir(stage.path(&repo).join(".provost/refused")).unwrap();
    let names = records.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (names.max().unwrap(), outcome)
}

/// Replaces the reason in the record at `path`.
fn alter(stage: &Users, path: &str, reason: &str) {
    let path = stage.path(path).join("request.json");
    let mut request: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    request["verdict"]["reason"] = json!(reason);
    fs::write(&path, serde_json::to_vec_pretty(&request).unwrap()).unwrap();
}

#[test]
fn a_record_of_another_user_is_foreign_and_takes_one_short_line() {
    let stage = Users::new();
    let unknown = format!("{{\"task_id\": 1, \"a\\nRUN  {}\": 2}}", "x".repeat(900));
    let (theirs, _) = refused(&stage, "author", &unknown);
    let (ours, _) = refused(&stage, "victim", "{}");
    let record = format!("victim/repo/.provost/refused/{theirs}");
    stage.copy(&format!("author/repo/.provost/refused/{theirs}"), &record);
    let rows = victim(&stage, &["runs", "--json"]).json;
    for row in rows.as_array().unwrap() {
        assert_eq!(row["own"], json!(row["run_id"] == json!(ours)), "{row}");
    }
    let listed = victim(&stage, &["runs"]);
    assert!(
        listed.says("FOREIGN") && listed.says("REFUSED"),
        "{listed:?}"
    );
    let shown = victim(&stage, &["show", &theirs]);
    assert!(
        shown.says("FOREIGN") && shown.says("RUN_FOREIGN"),
        "{shown:?}"
    );
    assert!(
        shown.out().lines().all(|line| line.chars().count() < 300),
        "{shown:?}"
    );
    assert!(
        !shown.out().lines().any(|line| line.starts_with("RUN")),
        "{shown:?}"
    );
    assert_eq!(
        victim(&stage, &["show", &theirs, "--json"]).json["own"],
        false
    );
    assert_eq!(victim(&stage, &["show", &ours, "--json"]).json["own"], true);
    assert_eq!(
        victim(&stage, &["verify", &theirs, "--json"]).code(),
        "KEY_UNKNOWN"
    );
    // A root that holds nothing but such records is foreign as well.
    fs::rename(
        stage.path("victim/repo/.provost"),
        stage.path("victim/away"),
    )
    .unwrap();
    stage.copy("author/repo/.provost", "victim/repo/.provost");
    let rows = victim(&stage, &["runs", "--json"]).json;
    assert_eq!(rows[0]["own"], false, "{rows}");
    let run = ["run", "-f", "../bad.json", "--agent-cmd", "true"];
    assert!(victim(&stage, &run).says("ROOT_UNSAFE"));
}

#[test]
fn an_altered_record_says_so_for_every_signer() {
    let stage = Users::new();
    let (theirs, _) = refused(&stage, "author", "{}");
    let (ours, _) = refused(&stage, "victim", "{}");
    let record = format!("victim/repo/.provost/refused/{theirs}");
    stage.copy(&format!("author/repo/.provost/refused/{theirs}"), &record);
    for id in [&ours, &theirs] {
        alter(
            &stage,
            &format!("victim/repo/.provost/refused/{id}"),
            "forged words",
        );
        let verified = victim(&stage, &["verify", id, "--json"]);
        assert_eq!(verified.code(), "EVIDENCE_ALTERED", "{verified:?}");
        assert_eq!(verified.exit, 5, "{verified:?}");
        let shown = victim(&stage, &["show", id]);
        assert!(
            shown.says("EVIDENCE_ALTERED") && shown.exit != 0,
            "{shown:?}"
        );
        assert!(!shown.says("forged words"), "{shown:?}");
    }
    let listed = victim(&stage, &["runs"]);
    assert!(!listed.says("forged words"), "{listed:?}");
    let rows = victim(&stage, &["runs", "--json"]).json;
    for row in rows.as_array().unwrap() {
        assert_eq!(row["code"], "EVIDENCE_ALTERED", "{row}");
    }
}

#[test]
fn a_refused_contract_is_found_by_every_command() {
    let stage = Users::new();
    let (id, answer) = refused(&stage, "victim", "{\"task_id\": 7}");
    assert!(
        answer.says(&format!("next: provost show {}", short_id(&id))),
        "{answer:?}"
    );
    let words = ["run", "-f", "../bad.json", "--agent-cmd", "true", "--json"];
    let json = victim(&stage, &words).json;
    let second = json["details"]["record"].as_str().unwrap().to_owned();
    assert!(victim(&stage, &["show", &second]).says("refused before there was a run"));
    let commands = [
        "log", "diff", "land", "retry", "approve", "reject", "resume", "cancel",
    ];
    for command in commands {
        let answer = victim(&stage, &[command, &id]);
        assert!(
            answer.says("refused before there was a run"),
            "{command}: {answer:?}"
        );
        assert!(
            answer.says(&format!("provost show {}", short_id(&id))),
            "{command}: {answer:?}"
        );
        assert!(
            !answer.says("NOT_FOUND") && answer.exit != 0,
            "{command}: {answer:?}"
        );
    }
    let why = victim(&stage, &["why", &id]);
    assert!(
        why.says("refused before there was a run") && why.says("task_id"),
        "{why:?}"
    );
    let last = victim(&stage, &["show"]);
    assert!(
        last.says(&format!("provost show {}", short_id(&second))),
        "{last:?}"
    );
}

#[test]
fn a_contract_that_is_too_large_is_recorded_and_one_that_is_missing_is_not() {
    let stage = Users::new();
    let large = format!("\"{}\"", "x".repeat(9 << 20));
    let (id, answer) = refused(&stage, "victim", &large);
    assert!(
        answer.says("INPUT_TOO_LARGE") && answer.says(short_id(&id)),
        "{answer:?}"
    );
    fs::remove_file(stage.path("victim/bad.json")).unwrap();
    let words = ["run", "-f", "../bad.json", "--agent-cmd", "true"];
    let missing = victim(&stage, &words);
    assert!(
        missing.says("INPUT_UNREADABLE") && !missing.says("provost show"),
        "{missing:?}"
    );
    let rows = victim(&stage, &["runs", "--json"]).json;
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
}

#[test]
fn a_contract_is_refused_alike_by_a_check_and_by_a_run() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    let full = include_str!("../../../../docs/examples/contract-full.json");
    let full: Value = serde_json::from_str(full).unwrap();
    let with = |pointer: &str, field: &str, value: Value| {
        let mut changed = full.clone();
        changed.pointer_mut(pointer).unwrap()[field] = value;
        changed
    };
    let cases = [
        json!([]),
        json!(null),
        json!({}),
        with("", "unknown_field", json!(1)),
        with("", "task_type", json!("NO_SUCH_TYPE")),
        with("", "allowed_paths", json!("src")),
        with(
            "/tool_permissions",
            "filesystem",
            json!("danger-full-access"),
        ),
    ];
    for case in cases {
        stage.write("victim/bad.json", &case.to_string());
        let run = ["run", "-f", "../bad.json", "--agent-cmd", "true", "--json"];
        let run = victim(&stage, &run);
        let check = victim(&stage, &["check", "contract", "../bad.json", "--json"]);
        let lint = victim(&stage, &["contract", "lint", "../bad.json", "--json"]);
        let said = |outcome: &Outcome| {
            let json = &outcome.json;
            let findings = json["details"]["findings"].clone();
            (
                outcome.exit,
                outcome.code().to_owned(),
                json["reason"].clone(),
                findings,
            )
        };
        assert_eq!(said(&run), said(&check), "{case}");
        assert_eq!(said(&run), said(&lint), "{case}");
        assert_eq!(check.exit, 1, "{check:?}");
        let answer = victim(&stage, &["check", "contract", "../bad.json"]);
        assert!(!answer.says("a run waits for approval"), "{answer:?}");
    }
    stage.write("victim/bad.json", "{");
    let run = ["run", "-f", "../bad.json", "--agent-cmd", "true", "--json"];
    let run = victim(&stage, &run);
    assert_eq!((run.exit, run.code()), (2, "INPUT_INVALID"), "{run:?}");
    let check = victim(&stage, &["check", "contract", "../bad.json", "--json"]);
    assert_eq!((check.exit, check.code()), (1, "INPUT_INVALID"));
}
