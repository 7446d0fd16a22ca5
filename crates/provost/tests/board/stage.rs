//! Payloads of boards, and what the tests ask of one, on a stage with nothing but a repository.

use std::path::PathBuf;
use std::process::Command;

use provost_testkit::stage::{Outcome, Stage, only_home};
use serde_json::{Value, json};

pub(crate) const RUN: &str = "3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4";

/// A stage whose repository can have a board.
pub(crate) trait Board {
    /// A call of `provost --json …`; a board needs no home but a place for state.
    fn call(&self, words: &[&str]) -> Command;

    /// What `provost board …` says.
    fn board(&self, words: &[&str]) -> Outcome;

    /// A command that must be granted.
    fn granted(&self, words: &[&str]) -> Value {
        let said = self.board(words);
        assert_eq!(said.exit, 0, "{words:?}: {said:?}");
        said.json
    }

    /// The code of a command that must be refused with exit 1.
    fn refused(&self, words: &[&str]) -> String {
        let said = self.board(words);
        assert_eq!(said.exit, 1, "{words:?}: {said:?}");
        assert_eq!(said.json["allow"], false, "{words:?}: {said:?}");
        said.json["code"].as_str().unwrap().to_owned()
    }

    /// What the board shows, without what depends on the moment.
    fn shown(&self) -> Value {
        let mut shown = self.granted(&["show"]);
        shown.as_object_mut().unwrap().remove("head");
        shown
    }

    /// The records of the board.
    fn records(&self) -> PathBuf;

    /// A file beside the board.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String;

    /// A file with an assignment of task `number` for the place `scope`.
    fn assignment(&self, number: u32, scope: &str) -> String {
        let name = format!("assignment-{number}.json");
        self.file(&name, assignment(number, scope).to_string())
    }

    /// A file with a result of task `number`, which changed `scope`.
    fn result(&self, number: u32, scope: &str, status: &str) -> String {
        let name = format!("result-{number}.json");
        self.file(&name, result(number, scope, status).to_string())
    }

    /// A file with one line for the log of task `number`, at this second.
    fn log(&self, number: u32, second: u32, code: Option<&str>) -> String {
        let mut entry = json!({
            "timestamp": format!("2026-03-01T10:00:{second:02}Z"), "run_id": RUN,
            "task_id": format!("T-{number}"), "actor": "ada", "action": "edit",
            "files_touched": [], "decision": "", "result": "", "next_step": "go on",
        });
        if let Some(code) = code {
            entry["code"] = json!(code);
        }
        self.file(
            &format!("log-{number}-{second}.jsonl"),
            format!("{entry}\n"),
        )
    }
}

impl Board for Stage {
    fn call(&self, words: &[&str]) -> Command {
        let mut command = self.provost(&["--json"]);
        only_home(&mut command, None);
        command.env("XDG_STATE_HOME", self.path("state"));
        command.args(words);
        command
    }

    fn board(&self, words: &[&str]) -> Outcome {
        self.spawn(self.call(&[&["board"], words].concat())).wait()
    }

    fn records(&self) -> PathBuf {
        let boards = self.path("repo/.provost/boards");
        boards.join(RUN).join("events.jsonl")
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        self.put(&format!("repo/{name}"), bytes.as_ref());
        name.to_owned()
    }
}

pub(crate) fn assignment(number: u32, scope: &str) -> Value {
    json!({
        "schema_version": "1.0.0", "run_id": RUN, "packet_type": "assignment",
        "global_objective": "Test everything",
        "task": {
            "task_id": format!("T-{number}"), "title": format!("Task {number}"),
            "type": "parallelizable", "dependencies": [], "lock_scope": [scope],
            "forbidden_scope": ["vendor"], "acceptance_criteria": ["tests pass"],
            "worklog_path": format!("worklogs/T-{number}.jsonl"), "timeout_seconds": 60,
            "heartbeat_interval_seconds": 10,
        },
        "active_locks": [],
        "context_package": [{ "kind": "constraint", "value": "no new dependency" }],
        "required_output_schema": "subagent_result_v1",
    })
}

pub(crate) fn result(number: u32, scope: &str, status: &str) -> Value {
    json!({
        "schema_version": "1.0.0", "run_id": RUN, "task_id": format!("T-{number}"),
        "status": status,
        "changes": [{ "resource": scope, "action": "edit" }],
        "acceptance_check": [{ "criterion": "tests pass", "status": "pass", "evidence": "log" }],
        "worklog_path": format!("worklogs/T-{number}.jsonl"),
        "notes_for_orchestrator": ["ready"],
    })
}
