//! Agents that ask before they edit.

mod after_call;

use provost_change::intent::fact::{IntentFact, Renewal};
use provost_change::ports::{IntentRegistry as _, RegistryView};
use provost_store::registry::SqliteRegistry;
use provost_testkit::stage::{Stage, program};
use serde_json::{Value, json};

use super::{Changes as _, stage};

/// What the hook answers to an event: its status, and what it says.
fn hook(stage: &Stage, program: &str, input: &str) -> (i32, String) {
    let outcome = stage.feed(stage.provost(&["hook", program]), input);
    (outcome.exit, outcome.stderr)
}

fn event(stage: &Stage, tool: &str, input: &Value) -> String {
    json!({ "session_id": "s", "transcript_path": "/t", "cwd": stage.path("repo"),
        "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": input, "tool_use_id": "t" })
    .to_string()
}

fn write_event(stage: &Stage, path: &str) -> String {
    let path = stage.path("repo").join(path);
    event(
        stage,
        "Write",
        &json!({ "file_path": path, "content": "x" }),
    )
}

#[test]
fn an_agents_hook_lets_through_what_was_declared_and_nothing_else() {
    let stage = stage();
    let inside = write_event(&stage, "docs/guide.md");
    let (code, words) = hook(&stage, "claude", &inside);
    assert!(code == 2 && words.contains("provost change"), "{words}");
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let start = ["start", "x", "--file", "docs", "--forbid", "docs/key*"];
    let (code, answer) = stage.change("ada", &start);
    assert_eq!(code, 0, "{answer}");
    std::os::unix::fs::symlink("../.git", stage.path("repo/docs/link")).unwrap();
    std::os::unix::fs::symlink("/etc/nothing-here", stage.path("repo/docs/dangling")).unwrap();
    let bash = |line: &str| event(&stage, "Bash", &json!({ "command": line }));
    let cases = [
        (inside.clone(), 0),
        (write_event(&stage, "docs/new/deep.md"), 0),
        (bash("echo x >> docs/guide.md && ls"), 0),
        (bash("cargo test 2>/dev/null"), 0),
        (
            event(&stage, "Read", &json!({ "file_path": "/etc/passwd" })),
            0,
        ),
        (write_event(&stage, "other.md"), 2),
        (write_event(&stage, "docs/../other.md"), 2),
        (write_event(&stage, "docs/new/../../other.md"), 2),
        (write_event(&stage, "docs/key.pem"), 2),
        (write_event(&stage, "docs/link/config"), 2),
        (write_event(&stage, "docs/dangling"), 2),
        (write_event(&stage, ".provost/registry.db"), 2),
        (write_event(&stage, ".claude/settings.json"), 2),
        (write_event(&stage, "/etc/passwd"), 2),
        (bash("echo x > other.md"), 2),
        (bash("echo x > $PLACE"), 2),
        (
            event(&stage, "mcp__files__write", &json!({ "path": "a" })),
            2,
        ),
        ("nonsense".to_owned(), 2),
        (String::new(), 2),
        (
            json!({ "cwd": stage.path("repo"), "hook_event_name": "Surprise" }).to_string(),
            2,
        ),
        (
            json!({ "cwd": stage.path("repo"), "hook_event_name": "SessionStart" }).to_string(),
            0,
        ),
        (
            json!({ "cwd": stage.path("repo"), "hook_event_name": "Stop" }).to_string(),
            0,
        ),
    ];
    for (input, want) in &cases {
        for program in ["claude", "codex"] {
            let (code, words) = hook(&stage, program, input);
            assert_eq!(code, *want, "{input}: {words}");
            assert_eq!(words.contains("error[HOOK_DENIED]"), *want == 2, "{words}");
        }
    }
    the_refusal_helps_and_nothing_else_permits(&stage, &inside);
}

fn the_refusal_helps_and_nothing_else_permits(stage: &Stage, inside: &str) {
    let (_, words) = hook(stage, "claude", &write_event(stage, "other.md"));
    assert!(words.contains("--file 'docs' --file 'other.md'"), "{words}");
    // The change of one agent permits nothing to another agent with a name.
    let mut command = stage.provost(&["hook", "claude"]);
    command.env("PROVOST_AGENT", "bob");
    assert_eq!(stage.feed(command, inside).exit, 2);
    // A registry that cannot be read permits nothing.
    std::fs::write(stage.path("repo/.provost/registry.db"), "nonsense").unwrap();
    assert_eq!(hook(stage, "claude", inside).0, 2);
}

#[test]
fn commands_are_seen_through_and_say_what_to_do_instead() {
    let stage = stage();
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let start = ["start", "x", "--file", "docs", "--file", ".claude/skills"];
    assert_eq!(stage.change("ada", &start).0, 0);
    let named = "name every file that is written";
    let cases = [
        ("cd docs && timeout 5 touch new.md", ""),
        ("find docs -name '*.md' -exec sed -i s/a/b/ {} +", ""),
        ("cargo test 2>&1 | tail -5", ""),
        ("provost hook status", ""),
        ("timeout 5 rm other.md", "--file 'docs'"),
        ("echo \"$(rm other.md)\"", "--file 'other.md'"),
        ("cd docs; rm other.md", "--file 'other.md'"),
        ("git -C docs checkout -- ../other.md", "--file 'other.md'"),
        ("rm -rf .", "the whole checkout"),
        ("ls | xargs rm", named),
        ("git stash pop", named),
        ("$X other.md", "write out what is to be run"),
        ("rm -rf .claude", "leave it alone"),
        ("tee .claude/settings.local.json", "leave it alone"),
        ("cp docs/guide.md provost.baseline.json", "leave it alone"),
        ("provost hook uninstall claude", "leave it to a person"),
    ];
    for (line, want) in cases {
        let input = event(&stage, "Bash", &json!({ "command": line }));
        let (code, words) = hook(&stage, "claude", &input);
        let is_allowed = want.is_empty();
        assert_eq!(code == 0, is_allowed, "{line}: {words}");
        assert!(words.contains(want), "{line}: {words}");
    }
    for path in [
        ".codex/config.toml",
        ".git/config",
        "docs/.git/x",
        ".claude/settings.json",
    ] {
        assert_eq!(
            hook(&stage, "codex", &write_event(&stage, path)).0,
            2,
            "{path}"
        );
    }
}

#[test]
fn settings_get_our_hook_and_come_back_to_the_byte() {
    let stage = stage();
    let ask = |words: &[&str]| {
        let outcome = stage.ask(&[&["hook"], words].concat());
        (outcome.exit, outcome.stderr)
    };
    let own = "{ \"model\" : \"x\",\n  \"hooks\": { \"PreToolUse\": [ { \"matcher\": \"Bash\",\n \
               \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }] } ] } }";
    std::fs::create_dir(stage.path("repo/.claude")).unwrap();
    let claude = stage.path("repo/.claude/settings.json");
    let codex = stage.path("repo/.codex/hooks.json");
    std::fs::write(&claude, own).unwrap();
    assert_eq!(ask(&["selftest", "claude"]).0, 1, "nothing is installed");
    for (program, file) in [("claude", &claude), ("codex", &codex)] {
        for _ in 0..2 {
            let (code, words) = ask(&["install", program]);
            assert_eq!(code, 0, "{words}");
        }
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.matches("|| exit 2").count(), 3, "{text}");
        let (code, words) = ask(&["selftest", program]);
        assert_eq!(code, 0, "{words}");
    }
    let text = std::fs::read_to_string(&claude).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["model"], "x");
    // Claude Code then refuses what a hook that timed out did not answer.
    assert_eq!(
        value["hooks"]["PreToolUse"][1]["hooks"][0]["onFailure"],
        "block"
    );
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
    let user = stage.path("home/.claude/settings.json");
    let text = std::fs::read_to_string(&user).unwrap();
    let real = program().canonicalize().unwrap();
    let text = text.replace(real.to_str().unwrap(), "/bin/true");
    std::fs::write(&user, text).unwrap();
    assert_eq!(ask(&["selftest", "claude", "--user"]).0, 1);
}

#[test]
fn a_hook_for_a_team_judges_only_with_a_provost_of_the_path() {
    let stage = stage();
    let install = stage.ask(&["hook", "install", "claude", "--team"]);
    assert_eq!(install.exit, 0, "{install:?}");
    let text = std::fs::read_to_string(stage.path("repo/.claude/settings.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let line = value["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str();
    let read = event(
        &stage,
        "Read",
        &json!({ "file_path": stage.path("repo/docs/guide.md") }),
    );
    stage.script("other/provost", "exit 0");
    stage.script(
        "older/provost",
        "[ \"$1\" = --version ] && echo provost 0.0.1 && exit; exit 64",
    );
    std::fs::create_dir_all(stage.path("repo/bin")).unwrap();
    std::fs::create_dir_all(stage.path("real")).unwrap();
    for directory in ["repo/bin", "real"] {
        let place = stage.path(directory).join("provost");
        std::os::unix::fs::symlink(program(), place).unwrap();
    }
    let place = |name: &str| stage.path(name).display().to_string();
    let cases = [
        ("the real one", place("real"), 0),
        ("none", place("home"), 2),
        ("another program", place("other"), 2),
        ("an older one that knows no such hook", place("older"), 2),
        ("one in the checkout", place("repo/bin"), 2),
        ("a relative directory", "bin".to_owned(), 2),
    ];
    for (name, path, want) in cases {
        let mut command = stage.command("/bin/sh");
        command.args(["-c", line.unwrap()]);
        command.env("PATH", format!("{path}:/usr/bin:/bin"));
        let outcome = stage.feed(command, &read);
        assert_eq!(outcome.exit, want, "{name}: {outcome:?}");
        let words = outcome.stderr.contains("no usable provost is in PATH");
        assert_eq!(
            words,
            want == 2 && !name.contains("older"),
            "{name}: {outcome:?}"
        );
    }
    assert_eq!(stage.ask(&["hook", "uninstall", "claude"]).exit, 0);
    assert!(!stage.path("repo/.claude").exists());
}

#[test]
fn a_hook_says_that_a_declared_change_is_expired_and_how_it_is_renewed() {
    let stage = stage();
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let (code, answer) = stage.change("ada", &["start", "x", "--file", "docs"]);
    assert_eq!(code, 0, "{answer}");
    let id = answer["intent_id"].as_str().unwrap();
    let mut registry = SqliteRegistry::open(&stage.path("repo/.provost/registry.db")).unwrap();
    let age = |known: &RegistryView| {
        let intent = &known.intents[0];
        let over = IntentFact::Renewed(Renewal {
            state: intent.state,
            edit_allowed: intent.edit_allowed,
            lease_renewed_at: intent.lease_renewed_at,
            lease_seconds: intent.lease_seconds,
            ttl_seconds: intent.ttl_seconds,
            expires_at: 1000,
        });
        vec![intent.change(over).1]
    };
    registry.turn(None, &mut { age }).unwrap();
    drop(registry);
    let inside = write_event(&stage, "docs/guide.md");
    let (code, words) = hook(&stage, "claude", &inside);
    assert!(code == 2 && words.contains("is expired"), "{words}");
    assert!(words.contains(&format!("renew {id}")), "{words}");
    let (code, answer) = stage.change("ada", &["status", id]);
    assert_eq!(
        (code, &answer["status"]),
        (1, &json!("expired")),
        "{answer}"
    );
    let (code, answer) = stage.change("ada", &["renew", id]);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(hook(&stage, "claude", &inside).0, 0);
}
