//! A repository of its own for each test, payloads, and a way to call the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

pub(crate) const RUN: &str = "3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4";

/// The longest one command may take, in seconds.
const SLOWEST: &str = "120";

/// A repository, and nothing else.
pub(crate) struct Desk {
    scratch: tempfile::TempDir,
    state: tempfile::TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) exit: i32,
    pub(crate) json: Value,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let state = tempfile::tempdir().unwrap();
        let desk = Self { scratch, state };
        let made = Command::new("git")
            .args(["init", "--quiet", "--initial-branch=main"])
            .arg(desk.at(""))
            .status();
        assert!(made.unwrap().success());
        desk
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Where the secret of the user is, outside the repository.
    fn state(&self) -> &Path {
        self.state.path()
    }

    /// The records of the board.
    pub(crate) fn records(&self) -> PathBuf {
        self.at(".provost/boards").join(RUN).join("events.jsonl")
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.at(name), bytes).unwrap();
        name.to_owned()
    }

    /// A call of `provost --json board …`; a board needs no home but a place for state.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .args([
                "--signal=KILL",
                SLOWEST,
                env!("CARGO_BIN_EXE_provost"),
                "--json",
            ])
            .args(words)
            .current_dir(self.at(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null());
        command
    }

    /// The program itself, which can be killed.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_provost"))
            .args(["--json", "board"])
            .args(words)
            .current_dir(self.at(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn call(&self, words: &[&str]) -> Said {
        let output = self.command(words).output().unwrap();
        Said {
            exit: output.status.code().unwrap_or(-1),
            json: serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| json!(String::from_utf8_lossy(&output.stderr))),
        }
    }

    pub(crate) fn board(&self, words: &[&str]) -> Said {
        let mut all = vec!["board"];
        all.extend(words);
        self.call(&all)
    }

    /// A command that must be granted.
    pub(crate) fn granted(&self, words: &[&str]) -> Value {
        let said = self.board(words);
        assert_eq!(said.exit, 0, "{words:?}: {said:?}");
        said.json
    }

    /// The code of a command that must be refused with exit 1.
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let said = self.board(words);
        assert_eq!(said.exit, 1, "{words:?}: {said:?}");
        assert_eq!(said.json["allow"], false, "{words:?}: {said:?}");
        said.json["code"].as_str().unwrap().to_owned()
    }

    /// What the board shows, without what depends on the moment.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = self.granted(&["show"]);
        shown.as_object_mut().unwrap().remove("head");
        shown
    }

    /// A file with an assignment of task `number` for the place `scope`.
    pub(crate) fn assignment(&self, number: u32, scope: &str) -> String {
        let name = format!("assignment-{number}.json");
        self.write(&name, assignment(number, scope).to_string())
    }

    /// A file with a result of task `number`, which changed `scope`.
    pub(crate) fn result(&self, number: u32, scope: &str, status: &str) -> String {
        let name = format!("result-{number}.json");
        self.write(&name, result(number, scope, status).to_string())
    }

    /// A file with one line for the log of task `number`, at this second.
    pub(crate) fn log(&self, number: u32, second: u32, code: Option<&str>) -> String {
        let mut entry = json!({
            "timestamp": format!("2026-03-01T10:00:{second:02}Z"), "run_id": RUN,
            "task_id": format!("T-{number}"), "actor": "ada", "action": "edit",
            "files_touched": [], "decision": "", "result": "", "next_step": "go on",
        });
        if let Some(code) = code {
            entry["code"] = json!(code);
        }
        self.write(
            &format!("log-{number}-{second}.jsonl"),
            format!("{entry}\n"),
        )
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
