//! Runs of this user, and foreign ones among them.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use provost_testkit::stage::Outcome;

use crate::stage::{SECRET, Users};
use crate::traps::{self, Traps};

const BASE: &[(&str, &str)] = &[
    ("src/a.txt", "base\n"),
    ("check.sh", "grep -q good src/a.txt\n"),
];

/// A run of the victim whose agent asks the server with a secret.
fn run(stage: &Users) -> String {
    let agent = format!("sh -c 'curl -s -m 5 http://{} > src/a.txt'", stage.place);
    let credential = format!("http://{} X-Key: $CANARY_TOKEN", stage.place);
    let words = [
        "run",
        "x",
        "--allow",
        "src",
        "--accept",
        "sh check.sh",
        "--agent-cmd",
        &agent,
        "--credential",
        &credential,
        "--json",
    ];
    let outcome = stage.ask("victim", "victim/repo", &words);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    outcome.json["run_id"].as_str().unwrap().to_owned()
}

/// What is left of a run whose driver died early: its first `count` records.
fn interrupt(stage: &Users, run: &str, count: usize) {
    let directory = stage.path("victim/repo/.provost/runs").join(run);
    let ledger = directory.join("events.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    let kept: Vec<&str> = text.lines().take(count).collect();
    fs::write(&ledger, kept.join("\n") + "\n").unwrap();
    fs::remove_file(directory.join("attestation.dsse.json")).unwrap();
    // It was never sealed, so nothing knows its end.
    for name in ["registry.db", "registry.db-wal", "registry.db-shm"] {
        let _ = fs::remove_file(stage.path("victim/repo/.provost").join(name));
    }
}

fn victim(stage: &Users, words: &[&str]) -> Outcome {
    stage.ask("victim", "victim/repo", words)
}

/// Every command that would continue a foreign run refuses it, and the server gets no request.
fn nothing_is_continued(stage: &Users, traps: &Traps) {
    let (sealed, open, approved) = (&traps.sealed, &traps.interrupted, &traps.approved);
    let calls: &[&[&str]] = &[
        &["resume", open, "--json"],
        &["resume", approved, "--json"],
        &["resume", sealed, "--json"],
        &["retry", sealed, "--json"],
        &["approve", approved, "--go", "--json"],
        &["approve", approved, "--json"],
        &["reject", approved, "--json"],
        &["cancel", open, "--json"],
        &["land", sealed, "--json"],
        &["replay", sealed, "--reexec", "--json"],
        &["shell", sealed, "--", "true"],
        &["salvage", "restore", sealed, "--json"],
        &["export", sealed, "--as", "packet", "--json"],
    ];
    for words in calls {
        let outcome = victim(stage, words);
        assert!(outcome.says("RUN_FOREIGN"), "{words:?}: {outcome:?}");
        assert_eq!(stage.requests(), [""; 0], "{words:?}: {outcome:?}");
    }
}

#[test]
fn a_foreign_run_among_ones_own_is_not_continued() {
    let stage = Users::new();
    let traps = traps::set(&stage);
    traps::unpack(&stage, "victim/repo");
    fs::remove_dir_all(stage.path("victim/repo/.provost")).unwrap();
    let own = victim(
        &stage,
        &[
            "run",
            "x",
            "--allow",
            "src",
            "--accept",
            "sh check.sh",
            "--agent-cmd",
            "sh -c 'echo good > src/a.txt'",
            "--json",
        ],
    );
    assert_eq!(own.code(), "OK", "{own:?}");
    let own = own.json["run_id"].as_str().unwrap().to_owned();
    for run in [&traps.sealed, &traps.interrupted, &traps.approved] {
        stage.copy(
            &format!("author/repo/.provost/runs/{run}"),
            &format!("victim/repo/.provost/runs/{run}"),
        );
    }
    let sealed = &traps.sealed;
    nothing_is_continued(&stage, &traps);
    let all = victim(&stage, &["resume"]);
    assert!(
        all.says("nothing to resume") && all.says("not begun by you"),
        "{all:?}"
    );
    let status = victim(&stage, &["status"]);
    assert!(
        status.says("FOREIGN") && !status.says("provost resume"),
        "{status:?}"
    );
    let rows = victim(&stage, &["runs", "--json"]).json;
    for row in rows.as_array().unwrap() {
        assert_eq!(row["own"], json!(row["run_id"] == json!(own)), "{row}");
    }
    let shown = victim(&stage, &["show", sealed]);
    assert!(
        shown.says("RUN_FOREIGN") && !shown.says("provost land"),
        "{shown:?}"
    );
    assert_eq!(victim(&stage, &["show", &own, "--json"]).json["own"], true);
    let listed = victim(&stage, &["gc", "--bundles", "--older-than", "1s", "--json"]);
    assert_eq!(listed.exit, 0, "{listed:?}");
    assert!(
        stage
            .path("victim/repo/.provost/runs")
            .join(sealed)
            .exists()
    );
}

#[test]
fn a_foreign_chain_is_not_continued() {
    let stage = Users::new();
    traps::set(&stage);
    traps::unpack(&stage, "victim/repo");
    fs::rename(
        stage.path("victim/repo/.provost"),
        stage.path("victim/theirs"),
    )
    .unwrap();
    assert_eq!(victim(&stage, &["init"]).exit, 0);
    stage.copy("victim/theirs/chains", "victim/repo/.provost/chains");
    stage.copy("victim/theirs/runs", "victim/repo/.provost/");
    let words = ["chain", "-f", "chain.json", "--agent-cmd", "true", "--json"];
    let outcome = victim(&stage, &words);
    assert_eq!(outcome.code(), "RUN_FOREIGN", "{outcome:?}");
    assert_eq!(stage.requests(), [""; 0]);
}

#[test]
fn ones_own_run_is_continued_with_secrets_only_if_they_are_named_again() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    let id = run(&stage);
    assert_eq!(stage.requests().len(), 1);
    assert!(stage.requests()[0].contains(SECRET));
    stage.hush();
    let send = format!("CANARY_TOKEN@{}", stage.place);
    let again = victim(&stage, &["retry", &id, "--json"]);
    assert_eq!(again.code(), "CONSENT_NEEDED", "{again:?}");
    assert!(
        again.says(&format!("provost retry {id} --send {send}")),
        "{again:?}"
    );
    for wrong in ["CANARY_TOKEN@127.0.0.1:1", &format!("HOME@{}", stage.place)] {
        let again = victim(&stage, &["retry", &id, "--send", wrong, "--json"]);
        assert_eq!(again.code(), "CONSENT_NEEDED", "{again:?}");
    }
    assert_eq!(stage.requests(), [""; 0]);
    let again = victim(&stage, &["retry", &id, "--send", &send, "--json"]);
    assert_eq!(again.code(), "OK", "{again:?}");
    assert_eq!(stage.requests().len(), 1);
    stage.hush();

    interrupt(&stage, &id, 1);
    let resumed = victim(&stage, &["resume", &id, "--json"]);
    assert_eq!(resumed.code(), "CONSENT_NEEDED", "{resumed:?}");
    assert_eq!(stage.requests(), [""; 0]);
    let resumed = victim(&stage, &["resume", &id, "--send", &send, "--json"]);
    assert_eq!(resumed.json[0]["verdict"]["code"], "OK", "{resumed:?}");
    assert_eq!(stage.requests().len(), 1);
}

#[test]
fn another_continuation_of_ones_own_run_is_not_ones_own() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    let id = run(&stage);
    let path = stage
        .path("victim/repo/.provost/runs")
        .join(&id)
        .join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    interrupt(&stage, &id, 2);
    // The last record is taken from another chain that says the same, without the code.
    let mut lines: Vec<String> = text.lines().take(3).map(str::to_owned).collect();
    let last: Value = serde_json::from_str(&lines[2]).unwrap();
    assert!(last["mac"].is_string(), "{last}");
    lines[2] = forged(&last);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    stage.hush();
    let send = format!("CANARY_TOKEN@{}", stage.place);
    let outcome = victim(&stage, &["resume", &id, "--send", &send, "--json"]);
    assert_eq!(outcome.code(), "RUN_FOREIGN", "{outcome:?}");
    assert_eq!(stage.requests(), [""; 0]);
}

/// The record as a user without the secret would write it: with a hash that fits.
fn forged(record: &Value) -> String {
    let mut record = record.clone();
    let fields = record.as_object_mut().unwrap();
    fields.insert("mac".to_owned(), json!("0".repeat(64)));
    fields.remove("hash");
    let text = provost_core::json::canonical(&record);
    let hash = provost_core::object::sha256(text.as_bytes());
    record["hash"] = json!(hash);
    provost_core::json::canonical(&record)
}

#[test]
fn a_bundle_that_was_altered_is_not_tried_again() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    let id = run(&stage);
    let directory = stage.path("victim/repo/.provost/runs").join(&id);
    let patch = fs::read_dir(&directory).unwrap().flatten();
    let patch = patch.map(|entry| entry.path());
    let is_patch = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "diff");
    let patch = patch
        .into_iter()
        .find(is_patch)
        .unwrap_or(directory.join("patch.diff"));
    fs::write(patch, "another\n").unwrap();
    let send = format!("CANARY_TOKEN@{}", stage.place);
    let again = victim(&stage, &["retry", &id, "--send", &send, "--json"]);
    assert_eq!(again.code(), "EVIDENCE_ALTERED", "{again:?}");
}

#[test]
fn without_a_place_for_the_secret_nothing_begins_and_bundles_still_verify() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    let id = run(&stage);
    let call = |words: &[&str]| {
        let mut command = stage.call("victim", "victim/repo", words);
        command.env_remove("HOME");
        command.env("XDG_CONFIG_HOME", stage.path("victim/.config"));
        command.env("XDG_CACHE_HOME", stage.path("victim/.cache"));
        stage.spawn(command).wait()
    };
    let bundle = stage.path("victim/repo/.provost/runs").join(&id);
    let bundle = bundle.display().to_string();
    assert_eq!(call(&["verify", &bundle]).exit, 0);
    assert_eq!(call(&["show", &id]).exit, 0);
    for words in [&["resume"][..], &["retry", &id], &["land", &id]] {
        let outcome = call(words);
        assert!(outcome.stderr.contains("XDG_STATE_HOME"), "{outcome:?}");
    }
}

#[test]
fn the_server_of_tools_answers_about_its_own_checkout_alone() {
    let stage = Users::new();
    stage.repository("victim/repo", BASE);
    stage.repository("victim/other", BASE);
    stage.repository("victim/repo/nested", BASE);
    let ask = |at: &str, root: &str| {
        let tools = [
            ("analyze_repository", json!({ "root": root })),
            (
                "analyze_changed_paths",
                json!({ "root": root, "changed_paths": ["src/a.txt"] }),
            ),
            (
                "start_controlled_change",
                json!({ "root": root, "intent": "x", "scope": { "allowed_files": ["src/a.txt"] } }),
            ),
            (
                "manage_change_intent",
                json!({ "root": root, "action": "list_workspace" }),
            ),
        ];
        let mut calls = String::new();
        for (id, (tool, arguments)) in tools.into_iter().enumerate() {
            let params = json!({ "name": tool, "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": params });
            writeln!(calls, "{call}").unwrap();
        }
        let answers = stage.feed(stage.call("victim", at, &["mcp"]), &calls);
        let lines = answers.out().lines();
        lines
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    let other = stage.path("victim/other").display().to_string();
    let nested = stage.path("victim/repo/nested").display().to_string();
    for root in [&*other, "../other", &nested, "nested", "/"] {
        let answers = ask("victim/repo", root);
        assert_eq!(answers.len(), 4);
        for answer in answers {
            assert_eq!(answer["result"]["isError"], true, "{root}: {answer}");
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("started in"), "{root}: {text}");
        }
    }
    for at in ["victim/other", "victim/repo/nested"] {
        assert!(!stage.path(at).join(".provost").exists(), "{at}");
        let exclude = stage.path(at).join(".git/info/exclude");
        let text = fs::read_to_string(exclude).unwrap_or_default();
        assert!(!text.contains(".provost"), "{at}: {text}");
    }
    let own = ask("victim/repo", ".");
    assert_eq!(own[0]["result"]["isError"], false, "{own:?}");
    for answer in ask("victim", "repo") {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
}
