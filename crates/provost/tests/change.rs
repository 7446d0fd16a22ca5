//! Controlled changes with the real program: the server against bad input, the command line, and a
//! repository that wants to be executed.

#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests are tests as well"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use xtask::corpus;

#[test]
fn change_control_holds_our_own_scenarios() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let program = Path::new(env!("CARGO_BIN_EXE_provost"));
    let directory = root.join("corpus-own/change-control");
    let report = corpus::run("change-control", &directory, program).unwrap();
    assert!(report.holds(), "{report}");
}

struct Ground {
    _scratch: tempfile::TempDir,
    home: PathBuf,
    repo: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let (home, repo) = (scratch.path().join("home"), scratch.path().join("repo"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(repo.join("docs")).unwrap();
        std::fs::write(repo.join("docs/guide.md"), "# guide\n").unwrap();
        let ground = Self {
            _scratch: scratch,
            home,
            repo,
        };
        ground.git(&["init", "-q", "-b", "main"]);
        ground.git(&["add", "-A"]);
        ground.git(&["commit", "-qm", "base"]);
        ground
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .current_dir(&self.repo)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provost"));
        command
            .current_dir(&self.repo)
            .env("HOME", &self.home)
            .env("XDG_CONFIG_HOME", self.home.join("config"))
            .env("XDG_CACHE_HOME", self.home.join("cache"))
            .env_remove("PROVOST_ROOT")
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env_remove("PROVOST_AGENT");
        command
    }

    /// `provost change` as the agent `name`.
    fn change(&self, name: &str, arguments: &[&str]) -> (i32, Value) {
        let mut command = self.command();
        command
            .args(["change", "--json", "--agent", name])
            .args(arguments);
        let Output { status, stdout, .. } = command.output().unwrap();
        let value = serde_json::from_slice(&stdout).unwrap_or_default();
        (status.code().unwrap(), value)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.repo.join(path), text).unwrap();
    }
}

#[test]
fn the_command_line_tells_agents_apart_by_name() {
    let ground = Ground::new();
    let start = ["start", "say more", "--file", "docs/guide.md"];
    let (code, answer) = ground.change("ada", &start);
    assert_eq!(
        (code, &answer["status"]),
        (3, &json!("needs_analysis")),
        "{answer}"
    );
    for name in ["ada", "bob"] {
        assert_eq!(ground.change(name, &["analyze"]).0, 0);
    }
    let (code, answer) = ground.change("ada", &start);
    assert_eq!((code, &answer["status"]), (0, &json!("active")), "{answer}");
    let id = answer["intent_id"].as_str().unwrap().to_owned();
    let (code, answer) = ground.change("bob", &start);
    assert_eq!(
        (code, &answer["status"]),
        (1, &json!("blocked")),
        "{answer}"
    );
    let queue = ["queue", "say more", "--file", "docs"];
    let (code, answer) = ground.change("bob", &queue);
    assert_eq!(
        (code, &answer["queue_position"]),
        (3, &json!(1)),
        "{answer}"
    );
    ground.write("docs/guide.md", "# more\n");
    let finish = ["finish", id.as_str(), "--file", "docs/guide.md"];
    let (code, answer) = ground.change("bob", &finish);
    assert_eq!(
        (code, answer["allow"] == json!(false)),
        (2, true),
        "{answer}"
    );
    let (code, answer) = ground.change("ada", &finish);
    assert_eq!(
        (code, &answer["status"]),
        (0, &json!("accepted")),
        "{answer}"
    );
    let digest = answer["receipt"]["receipt_digest"]["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, receipt) = ground.change("bob", &["receipt", &digest]);
    assert_eq!(code, 0);
    let changed = &receipt["structured_receipt"]["scope"]["changed_files"];
    assert_eq!(*changed, json!(["docs/guide.md"]));
    let place = ground.repo.join(".provost/changes").join(&id);
    for name in [
        "intent.json",
        "events.jsonl",
        "before.json",
        "receipt.json",
        "trail.json",
    ] {
        assert!(place.join(name).is_file(), "{name}");
    }
    let envelope = std::fs::read(place.join("attestation.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    assert_eq!(envelope["signatures"].as_array().unwrap().len(), 1);
    // A receipt that was changed is not handed out.
    let altered = std::fs::read_to_string(place.join("receipt.json")).unwrap();
    let altered = altered.replace("docs/guide.md", "docs/other.md");
    std::fs::write(place.join("receipt.json"), altered).unwrap();
    assert_eq!(ground.change("bob", &["receipt", &digest]).0, 5);
}

#[test]
fn a_repository_gets_nothing_executed_and_hides_nothing() {
    let ground = Ground::new();
    let trap = ground.home.join("trap");
    let sprung = ground.home.join("sprung");
    let script = format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display());
    std::fs::write(&trap, script).unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    ground.write(".gitattributes", "*.md filter=trap\n");
    ground.git(&["add", "-A"]);
    ground.git(&["commit", "-qm", "attributes"]);
    let trap = trap.to_str().unwrap();
    for setting in [
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "core.fsmonitor",
    ] {
        ground.git(&["config", setting, trap]);
    }
    std::fs::create_dir_all(ground.repo.join(".git/hooks")).unwrap();
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman"] {
        std::fs::copy(trap, ground.repo.join(".git/hooks").join(hook)).unwrap();
    }
    assert_eq!(ground.change("ada", &["analyze"]).0, 0);
    ground.write("docs/guide.md", "# other\n");
    let start = ["start", "x", "--file", "docs/guide.md"];
    let (code, answer) = ground.change("ada", &start);
    assert_eq!(
        (code, &answer["workspace_hygiene"]["blocks_edit"]),
        (1, &json!(true)),
        "{answer}"
    );
    assert!(!sprung.exists(), "something of the repository was started");
}

#[test]
fn bad_messages_are_answered_and_the_next_one_is_served() {
    let ground = Ground::new();
    let mut command = ground.command();
    let mut child = command
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let call = |arguments: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{arguments}}}"#)
    };
    let long = format!("[{}]", "1,".repeat(5 << 20));
    let lines = [
        ("nonsense".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), -32600),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(),
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"nothing"}"#.to_owned(),
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#.to_owned(),
            -32602,
        ),
        (call(r#"{"name":"rm_rf"}"#), -32602),
        (
            call(r#"{"name":"get_blast_radius","arguments":[]}"#),
            -32602,
        ),
        (long, -32600),
    ];
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for (line, code) in lines {
        writeln!(input, "{line}").unwrap();
        let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            answer["error"]["code"],
            json!(code),
            "{}",
            &line[..line.len().min(80)]
        );
    }
    writeln!(
        input,
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled"}}"#
    )
    .unwrap();
    writeln!(
        input,
        "{}",
        call(r#"{"name":"start_controlled_change","arguments":{"root":5}}"#)
    )
    .unwrap();
    let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    writeln!(input, r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list"}}"#).unwrap();
    let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
    assert!(answer["result"]["tools"].as_array().unwrap().len() > 10);
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// What the hook answers to an event: its status, and what it says.
fn hook(ground: &Ground, program: &str, input: &str) -> (i32, String) {
    let mut child = ground
        .command()
        .args(["hook", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), words)
}

fn event(ground: &Ground, tool: &str, input: &Value) -> String {
    json!({ "session_id": "s", "transcript_path": "/t", "cwd": ground.repo,
        "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": input, "tool_use_id": "t" })
    .to_string()
}

fn write_event(ground: &Ground, path: &str) -> String {
    let path = ground.repo.join(path);
    event(
        ground,
        "Write",
        &json!({ "file_path": path, "content": "x" }),
    )
}

#[test]
fn an_agents_hook_lets_through_what_was_declared_and_nothing_else() {
    let ground = Ground::new();
    let inside = write_event(&ground, "docs/guide.md");
    let (code, words) = hook(&ground, "claude", &inside);
    assert!(code == 2 && words.contains("provost change"), "{words}");
    assert_eq!(ground.change("ada", &["analyze"]).0, 0);
    let start = ["start", "x", "--file", "docs", "--forbid", "docs/key*"];
    let (code, answer) = ground.change("ada", &start);
    assert_eq!(code, 0, "{answer}");
    std::os::unix::fs::symlink("../.git", ground.repo.join("docs/link")).unwrap();
    std::os::unix::fs::symlink("/etc/nothing-here", ground.repo.join("docs/dangling")).unwrap();
    let bash = |line: &str| event(&ground, "Bash", &json!({ "command": line }));
    let cases = [
        (inside.clone(), 0),
        (write_event(&ground, "docs/new/deep.md"), 0),
        (bash("echo x >> docs/guide.md && ls"), 0),
        (bash("cargo test 2>/dev/null"), 0),
        (
            event(&ground, "Read", &json!({ "file_path": "/etc/passwd" })),
            0,
        ),
        (write_event(&ground, "other.md"), 2),
        (write_event(&ground, "docs/../other.md"), 2),
        (write_event(&ground, "docs/new/../../other.md"), 2),
        (write_event(&ground, "docs/key.pem"), 2),
        (write_event(&ground, "docs/link/config"), 2),
        (write_event(&ground, "docs/dangling"), 2),
        (write_event(&ground, ".provost/registry.db"), 2),
        (write_event(&ground, ".claude/settings.json"), 2),
        (write_event(&ground, "/etc/passwd"), 2),
        (bash("echo x > other.md"), 2),
        (bash("echo x > $PLACE"), 2),
        (
            event(&ground, "mcp__files__write", &json!({ "path": "a" })),
            2,
        ),
        ("nonsense".to_owned(), 2),
        (String::new(), 2),
        (
            json!({ "cwd": ground.repo, "hook_event_name": "Surprise" }).to_string(),
            2,
        ),
        (
            json!({ "cwd": ground.repo, "hook_event_name": "SessionStart" }).to_string(),
            0,
        ),
        (
            json!({ "cwd": ground.repo, "hook_event_name": "Stop" }).to_string(),
            0,
        ),
    ];
    for (input, want) in &cases {
        for program in ["claude", "codex"] {
            let (code, words) = hook(&ground, program, input);
            assert_eq!(code, *want, "{input}: {words}");
            assert_eq!(words.contains("error[HOOK_DENIED]"), *want == 2, "{words}");
        }
    }
    the_refusal_helps_and_nothing_else_permits(&ground, &inside);
}

fn the_refusal_helps_and_nothing_else_permits(ground: &Ground, inside: &str) {
    let (_, words) = hook(ground, "claude", &write_event(ground, "other.md"));
    assert!(words.contains("--file 'docs' --file 'other.md'"), "{words}");
    // Somebody else's change is nobody's permission for an agent with a name.
    let mut command = ground.command();
    command.env("PROVOST_AGENT", "bob").args(["hook", "claude"]);
    let place = ground.home.join("event");
    std::fs::write(&place, inside).unwrap();
    let named = command.stdin(std::fs::File::open(&place).unwrap()).output();
    assert_eq!(named.unwrap().status.code(), Some(2));
    // A registry that cannot be read permits nothing.
    std::fs::write(ground.repo.join(".provost/registry.db"), "nonsense").unwrap();
    assert_eq!(hook(ground, "claude", inside).0, 2);
}

#[test]
fn settings_get_our_hook_and_come_back_to_the_byte() {
    let ground = Ground::new();
    let ask = |words: &[&str]| {
        let output = ground.command().arg("hook").args(words).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), words)
    };
    let own = "{ \"model\" : \"x\",\n  \"hooks\": { \"PreToolUse\": [ { \"matcher\": \"Bash\",\n \
               \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }] } ] } }";
    std::fs::create_dir(ground.repo.join(".claude")).unwrap();
    let claude = ground.repo.join(".claude/settings.json");
    let codex = ground.repo.join(".codex/hooks.json");
    std::fs::write(&claude, own).unwrap();
    assert_eq!(ask(&["selftest", "claude"]).0, 1, "nothing is installed");
    for (program, file) in [("claude", &claude), ("codex", &codex)] {
        for _ in 0..2 {
            let (code, words) = ask(&["install", program]);
            assert_eq!(code, 0, "{words}");
        }
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.matches("|| exit 2").count(), 2, "{text}");
        let (code, words) = ask(&["selftest", program]);
        assert_eq!(code, 0, "{words}");
    }
    let text = std::fs::read_to_string(&claude).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["model"], "x");
    assert_eq!(
        value["hooks"]["PreToolUse"][0]["hooks"][0]["command"],
        "true"
    );
    for program in ["claude", "codex"] {
        assert_eq!(ask(&["uninstall", program]).0, 0);
    }
    assert_eq!(std::fs::read_to_string(&claude).unwrap(), own);
    assert!(!codex.exists() && !codex.parent().unwrap().exists());
    // What was changed since keeps the change.
    assert_eq!(ask(&["install", "claude"]).0, 0);
    let text = std::fs::read_to_string(&claude).unwrap();
    std::fs::write(&claude, text.replace("\"x\"", "\"y\"")).unwrap();
    assert_eq!(ask(&["uninstall", "claude"]).0, 0);
    let text = std::fs::read_to_string(&claude).unwrap();
    assert!(text.contains("\"y\"") && !text.contains("exit 2"), "{text}");
    // A hook that lets everything through is found out.
    assert_eq!(ask(&["install", "claude", "--user"]).0, 0);
    let user = ground.home.join(".claude/settings.json");
    let text = std::fs::read_to_string(&user).unwrap();
    let program = env!("CARGO_BIN_EXE_provost");
    let real = Path::new(program).canonicalize().unwrap();
    let text = text.replace(real.to_str().unwrap(), "/bin/true");
    std::fs::write(&user, text).unwrap();
    assert_eq!(ask(&["selftest", "claude", "--user"]).0, 1);
}
