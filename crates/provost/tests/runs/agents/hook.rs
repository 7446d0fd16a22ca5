//! The real programs in a checkout, with our hook in their settings.

use std::fs;

use serde_json::json;

use super::stage::{AgentStage, Program};
use crate::stage::Outcome;

fn change(stage: &AgentStage, words: &[&str]) -> Outcome {
    let all = [&["change", "--json", "--agent", "ada"], words].concat();
    stage.ask(&all)
}

#[test]
fn an_edit_inside_the_change_goes_through_and_one_outside_never_happens() {
    for program in [Program::Claude, Program::Codex] {
        let turns = match program {
            Program::Claude => json!([
                { "tool": "Write", "input": { "file_path": "<repo>/notes/in.md", "content": "in\n" } },
                { "tool": "Write", "input": { "file_path": "<repo>/out.md", "content": "out\n" } },
                { "shell": "echo shell > shell.md" },
                { "text": "I tried." },
            ]),
            Program::Codex | Program::Gemini => json!([
                { "shell": "echo in > notes/in.md" },
                { "shell": "echo out > out.md" },
                { "shell": "echo shell > shell.md" },
                { "text": "I tried." },
            ]),
        };
        let Some(stage) = AgentStage::prepared(program, &json!([])) else {
            return;
        };
        let repo = stage.inner.path("repo").display().to_string();
        let text = turns.to_string().replace("<repo>", &repo);
        stage.inner.write("turns.json", &text);
        stage.inner.write("repo/notes/old.md", "old\n");
        stage.inner.git(&["add", "notes/old.md"]);
        stage.inner.git(&["commit", "-q", "-m", "notes"]);
        stage
            .inner
            .git(&["config", "core.excludesFile", "/dev/null"]);

        let installed = stage.ask(&["hook", "install", program.name()]);
        assert_eq!(installed.exit, 0, "{installed:?}");
        let proven = stage.ask(&["hook", "selftest", program.name()]);
        assert_eq!(proven.exit, 0, "{proven:?}");
        assert_eq!(change(&stage, &["analyze"]).exit, 0);
        let started = change(&stage, &["start", "say more", "--file", "notes/in.md"]);
        assert_eq!(started.exit, 0, "{started:?}");
        let id = started.text("intent_id").to_owned();

        let driven = stage.drive();
        assert_eq!(driven.exit, 0, "{driven:?}");
        let inside = fs::read_to_string(stage.inner.path("repo/notes/in.md"));
        assert_eq!(inside.unwrap(), "in\n", "{driven:?}");
        for name in ["repo/out.md", "repo/shell.md"] {
            assert!(!stage.inner.path(name).exists(), "{program:?} {name}");
        }
        let asked = json!(stage.requests()).to_string();
        assert!(
            asked.contains("HOOK_DENIED") && asked.contains("out.md"),
            "the model does not get the reason: {asked}"
        );

        let after = change(&stage, &["analyze"]);
        assert_eq!(after.exit, 0, "{after:?}");
        let finished = change(&stage, &["finish", &id, "--file", "notes/in.md"]);
        assert_eq!(finished.exit, 0, "{finished:?}");
        let digest = finished.json["receipt"]["receipt_digest"]["value"].clone();
        let receipt = change(&stage, &["receipt", digest.as_str().unwrap()]);
        let changed = &receipt.json["structured_receipt"]["scope"]["changed_files"];
        assert_eq!(*changed, json!(["notes/in.md"]), "{receipt:?}");
    }
}

/// What the `PATH` of a member of the team has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Equipped,
    Without,
    /// Another program of that name, which agrees with everything.
    Misled,
}

#[test]
fn a_committed_hook_finds_provost_in_path_and_refuses_without_it() {
    for member in [Member::Equipped, Member::Without, Member::Misled] {
        let Some(stage) = AgentStage::prepared(Program::Claude, &json!([])) else {
            return;
        };
        let file = stage.inner.path("repo/notes/in.md");
        let write = json!({ "file_path": file, "content": "in\n" });
        let turns = json!([{ "tool": "Write", "input": write }, { "text": "I tried." }]);
        stage.inner.write("turns.json", &turns.to_string());
        stage.inner.write("repo/notes/old.md", "old\n");
        let installed = stage.ask(&["hook", "install", "claude", "--team"]);
        assert_eq!(installed.exit, 0, "{installed:?}");
        stage.inner.git(&["add", "notes", ".claude/settings.json"]);
        stage.inner.git(&["commit", "-q", "-m", "settings"]);
        let settings = fs::read_to_string(stage.inner.path("repo/.claude/settings.json"));
        let here = stage.inner.path("").display().to_string();
        assert!(
            !settings.unwrap().contains(&here),
            "it has a place of this machine"
        );
        let bin = stage.inner.path("bin");
        fs::create_dir_all(&bin).unwrap();
        match member {
            Member::Equipped => {
                std::os::unix::fs::symlink(provost_testkit::stage::program(), bin.join("provost"))
                    .unwrap();
                assert_eq!(change(&stage, &["analyze"]).exit, 0);
                let started = change(&stage, &["start", "say more", "--file", "notes/in.md"]);
                assert_eq!(started.exit, 0, "{started:?}");
            }
            Member::Without => {}
            Member::Misled => {
                stage.inner.write("bin/provost", "#!/bin/sh\nexit 0\n");
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                fs::set_permissions(bin.join("provost"), mode).unwrap();
            }
        }
        let driven = stage.drive_with(&bin);
        assert_eq!(driven.exit, 0, "{driven:?}");
        let permitted = member == Member::Equipped;
        assert_eq!(file.exists(), permitted, "{member:?}: {driven:?}");
        let asked = json!(stage.requests()).to_string();
        let refused = asked.contains("no usable provost is in PATH") && asked.contains("install");
        assert_eq!(refused, !permitted, "{member:?}: {asked}");
    }
}
