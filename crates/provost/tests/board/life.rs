//! The life of tasks on a board, and everything that is refused on the way.

use std::fs;

use serde_json::{Value, json};

use provost_testkit::stage::Stage;

use crate::stage::{Board as _, RUN, assignment, result};

#[test]
fn a_task_goes_from_its_assignment_to_its_result() {
    let stage = Stage::with(&[]);
    assert_eq!(stage.granted(&["show"])["rows"], json!([]));
    let assigned = stage.granted(&["assign", &stage.assignment(1, "src/a"), "--owner", "ada"]);
    assert_eq!(assigned["details"]["version"], 1);
    assert_eq!(assigned["details"]["row"]["status"], "in_progress");
    stage.granted(&["heartbeat", "T-1", "--owner", "ada"]);
    stage.granted(&["lock", "T-1", "tests/a"]);
    stage.granted(&["release", "T-1", "./tests//a/"]);
    stage.granted(&["worklog", "T-1", "--append", &stage.log(1, 1, None)]);
    let report = concat!(
        "---\nschema_version: 1.0.0\nrun_id: 3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4\n",
        "task_id: T-1\nstatus: done\n",
        "files_touched:\n- resource: src/a/x.rs\n  action: edit\n",
        "acceptance_check:\n- criterion: tests pass\n  status: pass\n  evidence: log\n",
        "worklog_path: worklogs/T-1.jsonl\nnotes_for_orchestrator: []\n---\n# Report\n",
    );
    stage.granted(&["result", &stage.file("report.md", report)]);
    let shown = stage.granted(&["show"]);
    assert_eq!(shown["version"], 6);
    // The same result again changes nothing; another one is refused, and so is more of its log.
    stage.granted(&["result", &stage.file("report.md", report)]);
    let other = stage.file("other.md", report.replace("src/a/x.rs", "src/a/y.rs"));
    let more = stage.log(1, 2, None);
    for late in [
        vec!["result", &other],
        vec!["worklog", "T-1", "--append", &more],
    ] {
        assert_eq!(stage.refused(&late), "CONCURRENCY_CONFLICT");
    }
    assert_eq!(stage.granted(&["show"]), shown);
    assert_eq!(shown["rows"][0]["status"], "done");
    assert_eq!(shown["locks"], json!([]));
    assert_eq!(shown["next_actions"], json!([]));
    assert_eq!(stage.granted(&["show", "T-1"])["worklog_lines"], 1);
    assert_eq!(
        stage.granted(&["worklog", "T-1"])["lines"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(stage.granted(&["reconcile"])["allow"], true);
    // The next task depends on the one that is done.
    let mut next = assignment(2, "src/a");
    next["task"]["dependencies"] = json!(["T-1"]);
    stage.granted(&[
        "assign",
        &stage.file("next.json", next.to_string()),
        "--owner",
        "bob",
    ]);
}

#[test]
fn what_is_refused_leaves_the_file_as_it_was() {
    let stage = Stage::with(&[]);
    stage.granted(&["assign", &stage.assignment(1, "src/a"), "--owner", "ada"]);
    stage.granted(&["worklog", "T-1", "--append", &stage.log(1, 9, None)]);
    let mut waiting = assignment(2, "src/b");
    waiting["task"]["dependencies"] = json!(["T-1"]);
    let waiting = stage.file("waiting.json", waiting.to_string());
    let mut unknown = assignment(2, "src/b");
    unknown["surprise"] = json!(1);
    let unknown = stage.file("unknown.json", unknown.to_string());
    let mut failing = result(1, "src/a", "done");
    failing["acceptance_check"][0]["status"] = json!("fail");
    let failing = stage.file("failing.json", failing.to_string());
    let mut other = result(1, "src/a", "done");
    other["acceptance_check"][0]["criterion"] = json!("it compiles");
    let other = stage.file("other.json", other.to_string());
    let stream = |name: &str, base: u64, status: &str| {
        let delta = json!({ "task_id": "T-1", "status": status, "owner": "ada",
            "reason": "r", "delta_id": name });
        let stream = json!({ "base_version": base, "deltas": [delta] });
        stage.file(name, stream.to_string())
    };
    let secret = json!("api_key = 'sk-proj-AbCdEf0123456789AbCdEf0123456789'");
    let mut leaking = result(1, "src/a", "done");
    leaking["notes_for_orchestrator"] = json!([secret]);
    let leaking = stage.file("leaking.json", leaking.to_string());
    let overlapping = stage.assignment(3, "src");
    let outside = stage.result(1, "src/b", "done");
    let blocked = stage.file("blocked.json", result(1, "src/a", "blocked").to_string());
    let early = stage.log(1, 1, None);
    let foreign = stage.log(2, 10, None);
    let big = stage.file("big.json", vec![b' '; 2 * 1024 * 1024]);
    let empty = stage.file("empty.json", "");
    let before = fs::read(stage.records()).unwrap();
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
        assert_eq!(stage.refused(words), want, "{words:?}");
        assert_eq!(fs::read(stage.records()).unwrap(), before, "{words:?}");
    }
}

#[test]
fn a_silent_owner_loses_the_task_and_its_locks_at_once() {
    let stage = Stage::with(&[]);
    let file = stage.assignment(1, "src");
    let assign = [
        "assign",
        &file,
        "--owner",
        "ada",
        "--now",
        "2026-01-01T00:00:00Z",
    ];
    stage.granted(&assign);
    let early = stage.granted(&["tick", "--now", "2026-01-01T00:01:00Z"]);
    assert_eq!(early["details"]["changed"], false);
    let late = stage.granted(&["tick", "--now", "2026-01-01T00:01:00.001Z"]);
    assert_eq!(late["details"]["timed_out"][0]["silent_ms"], 60_001);
    let shown = stage.granted(&["show"]);
    assert_eq!(shown["version"], 2);
    assert_eq!(shown["rows"][0]["status"], "blocked");
    assert_eq!(shown["rows"][0]["blocker"]["code"], "TASK_TIMEOUT");
    assert_eq!(shown["locks"], json!([]));
    assert_eq!(stage.refused(&["heartbeat", "T-1"]), "INVALID_TRANSITION");
    // Another owner may continue the task, with locks of its own.
    stage.granted(&["lock", "T-1", "src"]);
    let delta = json!({ "task_id": "T-1", "status": "in_progress", "owner": "bob",
        "reason": "taken over", "delta_id": "takeover" });
    let stream = json!({ "run_id": RUN, "base_version": 3, "deltas": [delta] });
    let stream = stage.file("stream.json", stream.to_string());
    stage.granted(&["apply", &stream, "--now", "2026-01-01T01:00:00Z"]);
    assert_eq!(
        stage.granted(&["apply", &stream])["details"]["changed"],
        false
    );
    let tick = stage.granted(&["tick", "--now", "2026-01-01T01:00:59Z"]);
    assert_eq!(tick["details"]["changed"], false);
}

#[test]
fn a_log_in_a_file_counts_when_the_board_has_none() {
    let stage = Stage::with(&[]);
    stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
    let blocked = stage.result(1, "src", "blocked");
    assert_eq!(
        stage.refused(&["result", &blocked]),
        "MISSING_REQUIRED_INPUT"
    );
    fs::create_dir(stage.path("repo/worklogs")).unwrap();
    let log = stage.log(1, 1, None);
    fs::copy(
        stage.path("repo").join(&log),
        stage.path("repo/worklogs/T-1.jsonl"),
    )
    .unwrap();
    assert_eq!(
        stage.refused(&["result", &blocked]),
        "MISSING_REQUIRED_INPUT"
    );
    let log = stage.log(1, 2, Some("DEPENDENCY_NOT_MET"));
    fs::copy(
        stage.path("repo").join(&log),
        stage.path("repo/worklogs/T-1.jsonl"),
    )
    .unwrap();
    stage.granted(&["result", &blocked]);
    let shown = stage.granted(&["show"]);
    assert_eq!(shown["rows"][0]["blocker"]["code"], "DEPENDENCY_NOT_MET");
    let again = stage.granted(&["result", &blocked]);
    assert_eq!(again["details"]["changed"], false);
}

#[test]
fn no_link_is_followed_to_a_log() {
    let stage = Stage::with(&[]);
    stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
    let log = stage.path("repo").join(stage.log(1, 1, None));
    let there = stage.path("repo/worklogs/T-1.jsonl");
    fs::create_dir(stage.path("repo/worklogs")).unwrap();
    fs::copy(&log, stage.path("outside.jsonl")).unwrap();
    let done = stage.result(1, "src", "done");
    let payload = json!({
        "task_id": "T-1", "result": result(1, "src", "done"), "assignment": assignment(1, "src"),
    });
    let payload = stage.file("post.json", payload.to_string());
    let check = || {
        let call = stage.call(&["check", "post-execution", &payload]);
        stage.spawn(call).wait().json["code"].clone()
    };
    for target in ["../../outside.jsonl", "../log-1-1.jsonl"] {
        std::os::unix::fs::symlink(target, &there).unwrap();
        let said = stage.board(&["result", &done]);
        assert_eq!(said.json["code"], "INPUT_UNREADABLE", "{target}");
        assert_eq!(check(), "MISSING_REQUIRED_INPUT", "{target}");
        fs::remove_file(&there).unwrap();
    }
    fs::copy(&log, &there).unwrap();
    assert_eq!(check(), "OK");
    stage.granted(&["result", &done]);
}

#[test]
fn the_output_of_a_planner_round_is_applied_as_a_whole() {
    let stage = Stage::with(&[]);
    let delta = |number: u32, status: &str, owner: &str| {
        json!({
            "task_id": format!("T-{number}"), "status": status, "owner": owner, "reason": "round",
            "delta_id": format!("d-{number}"), "x_create": true,
        })
    };
    let round = |deltas: &Value, assignments: &Value| {
        let round = json!({
            "schema_version": "1.0.0", "run_id": RUN, "ledger_delta": deltas,
            "assignments": assignments, "active_locks": [], "blockers": [], "next_actions": [],
        });
        stage.file("round.json", round.to_string())
    };
    let deltas = json!([delta(1, "in_progress", "ada"), delta(2, "todo", "")]);
    let unbegun = round(
        &deltas,
        &json!([assignment(1, "src"), assignment(2, "doc")]),
    );
    assert_eq!(
        stage.refused(&["apply", &unbegun]),
        "MISSING_REQUIRED_INPUT"
    );
    let file = round(&deltas, &json!([assignment(1, "src")]));
    stage.granted(&["apply", &file]);
    let again = stage.granted(&["apply", &file]);
    assert_eq!(again["details"]["changed"], false);
    let shown = stage.granted(&["show"]);
    assert_eq!(shown["version"], 1);
    assert_eq!(shown["rows"][0]["owner"], "ada");
    let second = json!([delta(3, "in_progress", "bob")]);
    let overlap = round(&second, &json!([assignment(3, "src/api")]));
    assert_eq!(stage.refused(&["apply", &overlap]), "LOCK_CONFLICT");
    stage.granted(&["reconcile"]);
}

#[test]
fn each_run_has_a_board_of_its_own() {
    let stage = Stage::with(&[]);
    let other = "0f9e8d7c-6b5a-4c3d-9e2f-1a0b9c8d7e6f";
    stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
    let mut second = assignment(1, "src");
    second["run_id"] = json!(other);
    stage.granted(&[
        "assign",
        &stage.file("b.json", second.to_string()),
        "--owner",
        "bob",
    ]);
    let said = stage.board(&["show"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
    assert_eq!(
        stage.granted(&["show", "--run", RUN])["rows"][0]["owner"],
        "ada"
    );
    assert_eq!(
        stage.granted(&["show", "--run", other])["rows"][0]["owner"],
        "bob"
    );
    assert_eq!(
        stage.refused(&["show", "--run", "../../x"]),
        "SCHEMA_INVALID"
    );
}

#[test]
fn a_time_in_the_future_is_refused() {
    let stage = Stage::with(&[]);
    let file = stage.assignment(1, "src");
    let ahead = ["--now", "2999-01-01T00:00:00Z"];
    let assign = ["assign", &file, "--owner", "ada"];
    assert_eq!(stage.board(&[&assign[..], &ahead].concat()).exit, 2);
    stage.granted(&assign);
    assert_eq!(
        stage
            .board(&[&["heartbeat", "T-1"][..], &ahead].concat())
            .exit,
        2
    );
    let said = stage.board(&["tick", "--now", "yesterday"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
}

#[test]
fn a_result_begins_no_board() {
    let stage = Stage::with(&[]);
    let refused = stage.refused(&["result", &stage.result(1, "src", "done")]);
    assert_eq!(refused, "LEDGER_INCONSISTENT");
    assert!(!stage.path("repo/.provost").exists());
}

#[test]
fn a_hand_off_is_the_same_however_often_it_is_made() {
    let stage = Stage::with(&[]);
    assert_eq!(stage.board(&["handoff"]).exit, 2);
    stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
    stage.granted(&["worklog", "T-1", "--append", &stage.log(1, 1, None)]);
    let first = stage.granted(&["handoff"]);
    assert_eq!(stage.granted(&["handoff"]), first);
    let directory = first["directory"].as_str().unwrap();
    let files = ["handoff.json", "assignments/T-1.json", "worklogs/T-1.jsonl"];
    assert_eq!(first["files"], json!(files));
    let elsewhere = stage.granted(&["handoff", "--out", "out/handoff"]);
    assert_eq!(elsewhere["name"], first["name"]);
    stage.granted(&["handoff", "--out", "out/handoff"]);
    for file in files {
        let bytes = fs::read(format!("{directory}/{file}")).unwrap();
        assert_eq!(
            bytes,
            fs::read(stage.path("repo/out/handoff").join(file)).unwrap()
        );
    }
    let at = |name: &str| format!("{directory}/{name}");
    for (kind, name) in [("handoff", files[0]), ("assignment", files[1])] {
        let said = stage
            .spawn(stage.call(&["check", kind, "--strict", &at(name)]))
            .wait();
        assert_eq!(said.exit, 0, "{name}: {said:?}");
    }
    // A board that moved on has another hand-off, and nothing is written over.
    stage.granted(&["heartbeat", "T-1"]);
    let said = stage.board(&["handoff", "--out", "out/handoff"]);
    assert_eq!((said.exit, &said.json["code"]), (2, &json!("USAGE_ERROR")));
    assert_ne!(stage.granted(&["handoff"])["name"], first["name"]);
}
