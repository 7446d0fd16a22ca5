//! The life of tasks on a board, and everything that is refused on the way.

use std::fs;

use serde_json::json;

use crate::desk::{Desk, RUN, assignment, result};

#[test]
fn a_task_goes_from_its_assignment_to_its_result() {
    let desk = Desk::new();
    assert_eq!(desk.granted(&["show"])["rows"], json!([]));
    let assigned = desk.granted(&["assign", &desk.assignment(1, "src/a"), "--owner", "ada"]);
    assert_eq!(assigned["details"]["version"], 1);
    assert_eq!(assigned["details"]["row"]["status"], "in_progress");
    desk.granted(&["heartbeat", "T-1", "--owner", "ada"]);
    desk.granted(&["lock", "T-1", "tests/a"]);
    desk.granted(&["release", "T-1", "./tests//a/"]);
    desk.granted(&["worklog", "T-1", "--append", &desk.log(1, 1, None)]);
    let report = concat!(
        "---\nschema_version: 1.0.0\nrun_id: 3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4\n",
        "task_id: T-1\nstatus: done\n",
        "files_touched:\n- resource: src/a/x.rs\n  action: edit\n",
        "acceptance_check:\n- criterion: tests pass\n  status: pass\n  evidence: log\n",
        "worklog_path: worklogs/T-1.jsonl\nnotes_for_orchestrator: []\n---\n# Report\n",
    );
    desk.granted(&["result", &desk.write("report.md", report)]);
    let shown = desk.granted(&["show"]);
    assert_eq!(shown["version"], 6);
    // The same result again changes nothing; another one is refused, and so is more of its log.
    desk.granted(&["result", &desk.write("report.md", report)]);
    let other = desk.write("other.md", report.replace("src/a/x.rs", "src/a/y.rs"));
    let more = desk.log(1, 2, None);
    for late in [
        vec!["result", &other],
        vec!["worklog", "T-1", "--append", &more],
    ] {
        assert_eq!(desk.refused(&late), "CONCURRENCY_CONFLICT");
    }
    assert_eq!(desk.granted(&["show"]), shown);
    assert_eq!(shown["rows"][0]["status"], "done");
    assert_eq!(shown["locks"], json!([]));
    assert_eq!(shown["next_actions"], json!([]));
    assert_eq!(desk.granted(&["show", "T-1"])["worklog_lines"], 1);
    assert_eq!(
        desk.granted(&["worklog", "T-1"])["lines"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(desk.granted(&["reconcile"])["allow"], true);
    // Whoever comes next needs the done task to be there.
    let mut next = assignment(2, "src/a");
    next["task"]["dependencies"] = json!(["T-1"]);
    desk.granted(&[
        "assign",
        &desk.write("next.json", next.to_string()),
        "--owner",
        "bob",
    ]);
}

#[test]
fn what_is_refused_leaves_the_file_as_it_was() {
    let desk = Desk::new();
    desk.granted(&["assign", &desk.assignment(1, "src/a"), "--owner", "ada"]);
    desk.granted(&["worklog", "T-1", "--append", &desk.log(1, 9, None)]);
    let mut waiting = assignment(2, "src/b");
    waiting["task"]["dependencies"] = json!(["T-1"]);
    let waiting = desk.write("waiting.json", waiting.to_string());
    let mut unknown = assignment(2, "src/b");
    unknown["surprise"] = json!(1);
    let unknown = desk.write("unknown.json", unknown.to_string());
    let mut failing = result(1, "src/a", "done");
    failing["acceptance_check"][0]["status"] = json!("fail");
    let failing = desk.write("failing.json", failing.to_string());
    let mut other = result(1, "src/a", "done");
    other["acceptance_check"][0]["criterion"] = json!("it compiles");
    let other = desk.write("other.json", other.to_string());
    let stream = |name: &str, base: u64, status: &str| {
        let delta = json!({ "task_id": "T-1", "status": status, "owner": "ada",
            "reason": "r", "delta_id": name });
        let stream = json!({ "base_version": base, "deltas": [delta] });
        desk.write(name, stream.to_string())
    };
    let secret = json!("api_key = 'sk-proj-AbCdEf0123456789AbCdEf0123456789'");
    let mut leaking = result(1, "src/a", "done");
    leaking["notes_for_orchestrator"] = json!([secret]);
    let leaking = desk.write("leaking.json", leaking.to_string());
    let overlapping = desk.assignment(3, "src");
    let outside = desk.result(1, "src/b", "done");
    let blocked = desk.write("blocked.json", result(1, "src/a", "blocked").to_string());
    let early = desk.log(1, 1, None);
    let foreign = desk.log(2, 10, None);
    let big = desk.write("big.json", vec![b' '; 2 * 1024 * 1024]);
    let empty = desk.write("empty.json", "");
    let before = fs::read(desk.records()).unwrap();
    let cases: [(&[&str], &str); 20] = [
        (&["assign", &overlapping, "--owner", "bob"], "LOCK_CONFLICT"),
        (
            &["assign", &waiting, "--owner", "bob"],
            "DEPENDENCY_NOT_MET",
        ),
        (&["assign", &unknown, "--owner", "bob"], "SCHEMA_INVALID"),
        (&["assign", &big, "--owner", "bob"], "SCHEMA_INVALID"),
        (&["assign", &empty, "--owner", "bob"], "SCHEMA_INVALID"),
        (&["heartbeat", "T-1", "--owner", "bob"], "NON_COMPLIANT"),
        (&["heartbeat", "T-7"], "LEDGER_INCONSISTENT"),
        (&["heartbeat", "T-x"], "SCHEMA_INVALID"),
        (&["result", &outside], "SCOPE_VIOLATION"),
        (&["result", &failing], "ACCEPTANCE_FAILED"),
        (&["result", &other], "ACCEPTANCE_FAILED"),
        (&["result", &blocked], "MISSING_REQUIRED_INPUT"),
        (&["result", &leaking], "UNTRUSTED_CONTEXT_BLOCK"),
        (
            &["apply", &stream("a", 1, "failed")],
            "CONCURRENCY_CONFLICT",
        ),
        (&["apply", &stream("b", 2, "todo")], "INVALID_TRANSITION"),
        (
            &["apply", &stream("c", 2, "done")],
            "MISSING_REQUIRED_INPUT",
        ),
        (&["lock", "T-1", "vendor/x"], "LOCK_CONFLICT"),
        (&["release", "T-1"], "LEDGER_INCONSISTENT"),
        (&["worklog", "T-1", "--append", &early], "NON_COMPLIANT"),
        (&["worklog", "T-1", "--append", &foreign], "NON_COMPLIANT"),
    ];
    for (words, want) in cases {
        assert_eq!(desk.refused(words), want, "{words:?}");
        assert_eq!(fs::read(desk.records()).unwrap(), before, "{words:?}");
    }
}

#[test]
fn a_silent_owner_loses_the_task_and_its_locks_at_once() {
    let desk = Desk::new();
    let file = desk.assignment(1, "src");
    let assign = [
        "assign",
        &file,
        "--owner",
        "ada",
        "--now",
        "2026-01-01T00:00:00Z",
    ];
    desk.granted(&assign);
    let early = desk.granted(&["tick", "--now", "2026-01-01T00:01:00Z"]);
    assert_eq!(early["details"]["changed"], false);
    let late = desk.granted(&["tick", "--now", "2026-01-01T00:01:00.001Z"]);
    assert_eq!(late["details"]["timed_out"][0]["silent_ms"], 60_001);
    let shown = desk.granted(&["show"]);
    assert_eq!(shown["version"], 2);
    assert_eq!(shown["rows"][0]["status"], "blocked");
    assert_eq!(shown["rows"][0]["blocker"]["code"], "TASK_TIMEOUT");
    assert_eq!(shown["locks"], json!([]));
    assert_eq!(desk.refused(&["heartbeat", "T-1"]), "INVALID_TRANSITION");
    // Somebody else may go on, with locks of their own.
    desk.granted(&["lock", "T-1", "src"]);
    let delta = json!({ "task_id": "T-1", "status": "in_progress", "owner": "bob",
        "reason": "taken over", "delta_id": "takeover" });
    let stream = json!({ "run_id": RUN, "base_version": 3, "deltas": [delta] });
    let stream = desk.write("stream.json", stream.to_string());
    desk.granted(&["apply", &stream, "--now", "2026-01-01T01:00:00Z"]);
    assert_eq!(
        desk.granted(&["apply", &stream])["details"]["changed"],
        false
    );
    let tick = desk.granted(&["tick", "--now", "2026-01-01T01:00:59Z"]);
    assert_eq!(tick["details"]["changed"], false);
}

#[test]
fn a_log_in_a_file_counts_when_the_board_has_none() {
    let desk = Desk::new();
    desk.granted(&["assign", &desk.assignment(1, "src"), "--owner", "ada"]);
    let blocked = desk.result(1, "src", "blocked");
    assert_eq!(
        desk.refused(&["result", &blocked]),
        "MISSING_REQUIRED_INPUT"
    );
    fs::create_dir(desk.at("worklogs")).unwrap();
    let log = desk.log(1, 1, None);
    fs::copy(desk.at(&log), desk.at("worklogs/T-1.jsonl")).unwrap();
    assert_eq!(
        desk.refused(&["result", &blocked]),
        "MISSING_REQUIRED_INPUT"
    );
    let log = desk.log(1, 2, Some("DEPENDENCY_NOT_MET"));
    fs::copy(desk.at(&log), desk.at("worklogs/T-1.jsonl")).unwrap();
    desk.granted(&["result", &blocked]);
    let shown = desk.granted(&["show"]);
    assert_eq!(shown["rows"][0]["blocker"]["code"], "DEPENDENCY_NOT_MET");
    let again = desk.granted(&["result", &blocked]);
    assert_eq!(again["details"]["changed"], false);
}

#[test]
fn each_run_has_a_board_of_its_own() {
    let desk = Desk::new();
    let other = "0f9e8d7c-6b5a-4c3d-9e2f-1a0b9c8d7e6f";
    desk.granted(&["assign", &desk.assignment(1, "src"), "--owner", "ada"]);
    let mut second = assignment(1, "src");
    second["run_id"] = json!(other);
    desk.granted(&[
        "assign",
        &desk.write("b.json", second.to_string()),
        "--owner",
        "bob",
    ]);
    let said = desk.board(&["show"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
    assert_eq!(
        desk.granted(&["show", "--run", RUN])["rows"][0]["owner"],
        "ada"
    );
    assert_eq!(
        desk.granted(&["show", "--run", other])["rows"][0]["owner"],
        "bob"
    );
    assert_eq!(
        desk.refused(&["show", "--run", "../../x"]),
        "SCHEMA_INVALID"
    );
}

#[test]
fn nobody_lives_ahead_of_time() {
    let desk = Desk::new();
    let file = desk.assignment(1, "src");
    let ahead = ["--now", "2999-01-01T00:00:00Z"];
    let assign = ["assign", &file, "--owner", "ada"];
    assert_eq!(desk.board(&[&assign[..], &ahead].concat()).exit, 2);
    desk.granted(&assign);
    assert_eq!(
        desk.board(&[&["heartbeat", "T-1"][..], &ahead].concat())
            .exit,
        2
    );
    let said = desk.board(&["tick", "--now", "yesterday"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
}

#[test]
fn a_result_begins_no_board() {
    let desk = Desk::new();
    let refused = desk.refused(&["result", &desk.result(1, "src", "done")]);
    assert_eq!(refused, "LEDGER_INCONSISTENT");
    assert!(!desk.at(".provost").exists());
}

#[test]
fn a_hand_off_is_the_same_however_often_it_is_made() {
    let desk = Desk::new();
    assert_eq!(desk.board(&["handoff"]).exit, 2);
    desk.granted(&["assign", &desk.assignment(1, "src"), "--owner", "ada"]);
    desk.granted(&["worklog", "T-1", "--append", &desk.log(1, 1, None)]);
    let first = desk.granted(&["handoff"]);
    assert_eq!(desk.granted(&["handoff"]), first);
    let directory = first["directory"].as_str().unwrap();
    let files = ["handoff.json", "assignments/T-1.json", "worklogs/T-1.jsonl"];
    assert_eq!(first["files"], json!(files));
    let elsewhere = desk.granted(&["handoff", "--out", "out/handoff"]);
    assert_eq!(elsewhere["name"], first["name"]);
    desk.granted(&["handoff", "--out", "out/handoff"]);
    for file in files {
        let bytes = fs::read(format!("{directory}/{file}")).unwrap();
        assert_eq!(bytes, fs::read(desk.at("out/handoff").join(file)).unwrap());
    }
    let at = |name: &str| format!("{directory}/{name}");
    for (kind, name) in [("handoff", files[0]), ("assignment", files[1])] {
        let said = desk.call(&["check", kind, "--strict", &at(name)]);
        assert_eq!(said.exit, 0, "{name}: {said:?}");
    }
    // A board that moved on has another hand-off, and nothing is written over.
    desk.granted(&["heartbeat", "T-1"]);
    let said = desk.board(&["handoff", "--out", "out/handoff"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
    assert_ne!(desk.granted(&["handoff"])["name"], first["name"]);
}
