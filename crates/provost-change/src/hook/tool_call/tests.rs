//! What tool calls write, from events as the two programs send them.

use serde_json::json;

use super::*;

fn before(tool: &str, input: &Value) -> Result<Vec<String>, EventError> {
    let event = json!({ "session_id": "s", "transcript_path": "/t", "cwd": "/repo",
        "permission_mode": "acceptEdits", "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": input, "tool_use_id": "toolu_1" });
    match parse(&event)?.what {
        What::Before(call) => Ok(call.paths),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tools_that_write_name_their_paths() {
    let file = json!({ "file_path": "/repo/a", "content": "x" });
    for tool in ["Write", "Edit", "MultiEdit"] {
        assert_eq!(before(tool, &file).unwrap(), ["/repo/a"], "{tool}");
    }
    let notebook = json!({ "notebook_path": "/repo/n.ipynb" });
    assert_eq!(
        before("NotebookEdit", &notebook).unwrap(),
        ["/repo/n.ipynb"]
    );
    let patch = "*** Begin Patch\n*** Update File: a b\n*** Move to: c\n@@\n-x\n+y\n*** End Patch";
    let patch = json!({ "command": patch });
    assert_eq!(before("apply_patch", &patch).unwrap(), ["a b", "c"]);
    assert!(
        before("Read", &json!({ "file_path": "/etc/x" }))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let wrong = [
        json!(null),
        json!([]),
        json!({ "hook_event_name": "PreToolUse", "cwd": "/" }),
        json!({ "hook_event_name": "PreToolUse", "cwd": "/", "tool_name": "Write", "tool_input": {} }),
        json!({ "hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {} }),
        json!({ "hook_event_name": "PreNothing", "cwd": "/" }),
        json!({ "hook_event_name": 5, "cwd": "/" }),
    ];
    for event in wrong {
        assert!(parse(&event).is_err(), "{event}");
    }
    assert!(before("mcp__files__write", &json!({})).is_err());
    assert!(before("apply_patch", &json!({ "command": "nonsense" })).is_err());
    assert!(before("Bash", &json!({})).is_err());
    // A tool that runs a command line is judged as one.
    let watched = json!({ "command": "touch a", "description": "x" });
    assert_eq!(before("Monitor", &watched).unwrap(), ["a"]);
    assert!(before("Monitor", &json!({})).is_err());
}

#[test]
fn a_command_line_names_what_it_writes() {
    let cases: [(&str, &[&str]); 22] = [
        ("ls -la; cat a | grep b 2>/dev/null", &[]),
        ("echo hi > b.txt", &["b.txt"]),
        ("echo hi >>'b c.txt' 2>&1", &["b c.txt"]),
        ("make &> log", &["log"]),
        ("make >& log", &["log"]),
        ("make 2> err", &["err"]),
        ("cat < a.txt", &[]),
        ("cat > x <<'EOF'\nrm -rf y > z\nEOF\ntouch w", &["x", "w"]),
        ("cat <<-END\n\tfoo > bar\n\tEND", &[]),
        ("A=1 sudo tee -a t", &["t"]),
        ("rm -rf build && mkdir -p out", &["build", "out"]),
        ("mv a b", &["a", "b"]),
        ("cp a b/c", &["b/c"]),
        ("sed -i s/a/b/ f g", &["f", "g"]),
        ("sed -n 1p f", &[]),
        ("dd if=a of=b", &["b"]),
        ("bash -c 'echo x > y'", &["y"]),
        ("echo 'a > b'", &[]),
        ("echo a \\> b", &[]),
        ("touch x # > y", &["x"]),
        ("git status; git diff > p", &["p"]),
        ("apply_patch <<'E'\n*** Add File: n\n+x\nE", &["n"]),
    ];
    for (line, want) in cases {
        let found = before("Bash", &json!({ "command": line }));
        assert_eq!(
            found.as_deref(),
            Ok(want.map_to_owned().as_slice()),
            "{line}"
        );
    }
    let words = json!({ "command": ["bash", "-lc", "echo > q"] });
    assert_eq!(before("shell", &words).unwrap(), ["q"]);
    let words = json!({ "command": ["touch", "a b"] });
    assert_eq!(before("shell", &words).unwrap(), ["a b"]);
}

#[test]
fn a_call_is_open_if_a_program_may_write_more_than_it_names() {
    let is_open = |line: &str| shell::writes(line).unwrap().is_open;
    for line in [
        "cargo test",
        "python3 x.py",
        "perl -e 1",
        "./x",
        "bash x.sh",
        ". ./x",
        "ls | xargs -n1 make",
        "A=$(node x.js)",
    ] {
        assert!(is_open(line), "{line}");
    }
    for line in [
        "ls | wc -l",
        "git log && git commit -m x",
        "provost change status",
        "if [ -f a ]; then cat a; fi > b",
        "sed -i s/a/b/ c; rm d",
        "for f in a b; do echo $f; done",
    ] {
        assert!(!is_open(line), "{line}");
    }
}

trait Owned {
    fn map_to_owned(&self) -> Vec<String>;
}

impl Owned for &[&str] {
    fn map_to_owned(&self) -> Vec<String> {
        self.iter().map(|it| (*it).to_owned()).collect()
    }
}

#[test]
fn a_target_that_only_a_shell_knows_is_an_error() {
    for line in [
        "echo x > $F",
        "echo x > \"$HOME/a\"",
        "rm *.txt",
        "touch ~/a",
        "echo x >",
        "git checkout main",
        "git stash",
        "bash -c \"$X\"",
    ] {
        let found = before("Bash", &json!({ "command": line }));
        assert!(found.is_err(), "{line}: {found:?}");
    }
}
