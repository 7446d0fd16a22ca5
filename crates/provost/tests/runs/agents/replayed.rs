//! The programs, run again without a network on what their models answered before.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::stage::{AgentStage, Program, Way};
use crate::stage::Outcome;

const RECORD: &str = "[record]\nbodies = true";

/// What every run prints otherwise, in ways that the mask knows.
const DIFFERS: &str = "date; date +%s; mktemp; mktemp -d; sleep 0.02; echo pid=$$; \
    cat /proc/sys/kernel/random/uuid; python3 -c 'import time; print(time.time())'; \
    echo half > src/a.txt";

/// How often each run is made again; `cargo xtask soak replay` asks for more.
fn rounds() -> usize {
    let asked = std::env::var("PROVOST_TEST_REPLAYS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn work() -> Value {
    json!([
        { "shell": DIFFERS },
        { "shell": "cat src/a.txt; wc -c check.sh; echo good > src/a.txt" },
        { "text": "It is good now." },
    ])
}

/// Replays `run` as a user without a key.
fn replay(stage: &AgentStage, run: &str) -> Outcome {
    let command = stage.command(&["replay", run, "--model", "--json"]);
    stage.inner.spawn(command).wait()
}

/// The recorded bodies of `run`.
fn bodies(stage: &AgentStage, run: &str) -> Vec<PathBuf> {
    let directory = stage.inner.path(&format!("repo/.provost/bodies/{run}"));
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).collect()
}

#[test]
fn codex_is_run_again_without_its_model() {
    is_run_again(Program::Codex);
}

#[test]
fn claude_is_run_again_without_its_model() {
    is_run_again(Program::Claude);
}

#[test]
fn gemini_is_run_again_without_its_model() {
    is_run_again(Program::Gemini);
}

fn is_run_again(program: Program) {
    let Some(mut stage) = AgentStage::new(program, Way::Plain, &work(), RECORD) else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
    let run = outcome.text("run_id").to_owned();
    let kept = bodies(&stage, &run);
    assert!(kept.len() > 3, "{kept:?}");
    for path in &kept {
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let asked = stage.requests().len();
    stage.stop_model();
    let around = stage.inner.surroundings();
    for round in 1..=rounds() {
        let again = replay(&stage, &run);
        assert_eq!(again.exit, 0, "{program:?} round {round}: {again:?}");
        assert_eq!(again.json["hard_diffs"], json!([]), "{again:?}");
        assert_eq!(again.json["soft_diffs"], json!([]), "{again:?}");
        assert_eq!(again.text("code"), "OK");
        assert_eq!(again.json["attempts"], 1);
        let report = format!("after/replay-{round}/reexec_report.json");
        assert_eq!(again.text("report"), report);
    }
    assert_eq!(stage.requests().len(), asked);
    stage.inner.assert_clean(&around, "a replay of the agent");
    let verified = stage.inner.verify(&run);
    assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
    let shown = stage.inner.ask(&["show", &run, "--json"]);
    assert_eq!(shown.json["bodies"]["recorded"], true, "{shown:?}");
    assert_eq!(shown.json["bodies"]["kept"]["files"], kept.len());
}

#[test]
fn a_run_with_a_fix_is_made_again_attempt_by_attempt() {
    for program in [Program::Codex, Program::Claude] {
        let turns = json!([
            { "shell": "echo worse > src/a.txt" },
            { "text": "done" },
            { "shell": "echo good > src/a.txt" },
            { "text": "fixed" },
        ]);
        let Some(mut stage) = AgentStage::new(program, Way::Plain, &turns, RECORD) else {
            return;
        };
        let credential = stage.credential();
        let words = ["make it good", "--allow", "src", "--accept", "sh check.sh"];
        let more = ["--retries", "1", "--credential", &credential];
        let outcome = stage.run_with(&[&words[..], &more].concat());
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        stage.stop_model();
        let again = replay(&stage, outcome.text("run_id"));
        assert_eq!(again.exit, 0, "{program:?} {again:?}");
        assert_eq!(again.json["attempts"], 2, "{again:?}");
    }
}

/// A program in front of the real one, which changes the task that it is given.
const CHANGES: &str = "#!/bin/sh\n\
    for word do shift; set -- \"$@\" \"$(printf %s \"$word\" | \
    sed 's/make it good/make it bad/')\"; done\n\
    sed -u 's/make it good/make it bad/' | REAL \"$@\"\n";

#[test]
fn a_changed_prompt_is_named_by_its_pointer() {
    for program in [Program::Codex, Program::Claude] {
        let Some(mut stage) = AgentStage::new(program, Way::Plain, &work(), RECORD) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        stage.stop_model();
        // The file itself, in a directory that the sandbox has because PATH names it.
        let real = stage.programs().join("..").join(match program {
            Program::Claude => "@anthropic-ai/claude-code/bin/claude.exe",
            Program::Codex | Program::Gemini => {
                "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
            }
        });
        let real = real.canonicalize().unwrap();
        let front = format!("front/{}", program.name());
        let script = CHANGES.replace("REAL", &real.display().to_string());
        stage.inner.write(&front, &script);
        let front = stage.inner.path(&front);
        fs::set_permissions(&front, fs::Permissions::from_mode(0o755)).unwrap();
        let words = ["replay", outcome.text("run_id"), "--model", "--json"];
        let mut command = stage.command(&words);
        let path = format!(
            "{}:{}:/usr/local/bin:/usr/bin:/bin",
            front.parent().unwrap().display(),
            real.parent().unwrap().display()
        );
        command.env("PATH", path);
        let again = stage.inner.spawn(command).wait();
        assert_eq!(
            (again.exit, again.text("code")),
            (1, "REPLAY_DIFFERS"),
            "{again:?}"
        );
        let difference = &again.json["hard_diffs"][0];
        let key = difference["key"].as_str().unwrap();
        let list = match program {
            Program::Claude => " /messages/",
            Program::Codex | Program::Gemini => " /input/",
        };
        assert!(key.starts_with("attempt 1 request 1 "), "{again:?}");
        assert!(key.contains(list), "{again:?}");
        let [was, is] = ["expected", "actual"].map(|side| difference[side].to_string());
        assert!(
            was.contains("make it good") && is.contains("make it bad"),
            "{again:?}"
        );
    }
}

#[test]
fn a_tool_with_another_result_is_named_and_ends_the_replay() {
    let turns = json!([
        { "shell": "head -c 6 /dev/urandom | base64; echo good > src/a.txt" },
        { "text": "done" },
    ]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, RECORD) else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let again = replay(&stage, outcome.text("run_id"));
    assert_eq!(
        (again.exit, again.text("code")),
        (1, "REPLAY_DIFFERS"),
        "{again:?}"
    );
    let key = again.json["hard_diffs"][0]["key"].as_str().unwrap();
    assert!(key.starts_with("attempt 1 request "), "{again:?}");
    assert!(
        key.contains(" /messages/") && key.ends_with("/content"),
        "{again:?}"
    );
    let verified = stage.inner.verify(outcome.text("run_id"));
    assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
}

#[test]
fn what_is_missing_of_a_record_is_named_and_no_agent_is_started() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let work = json!({ "shell": "echo good > src/a.txt" });
    let turns = json!([
        work, { "text": "done" },
        work, { "text": format!("the token is {secret}\n") },
    ]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    let incomplete = |run: &str, words: &str| {
        let again = replay(&stage, run);
        assert_eq!(again.exit, 1, "{again:?}");
        assert_eq!(again.text("code"), "REPLAY_INCOMPLETE", "{again:?}");
        assert!(
            again.json["errors"].to_string().contains(words),
            "{again:?}"
        );
        assert_eq!(again.json["attempts"], 0);
        let verified = stage.inner.verify(run);
        assert_eq!((verified.code(), verified.exit), ("OK", 0), "{verified:?}");
    };
    let plain = stage.run();
    assert_eq!(plain.code(), "OK", "{plain:?}");
    let run = plain.text("run_id").to_owned();
    assert_eq!(bodies(&stage, &run).len(), 0);
    let shown = stage.inner.ask(&["show", &run, "--json"]);
    assert_eq!(
        shown.json["bodies"],
        json!({"recorded": false}),
        "{shown:?}"
    );
    incomplete(&run, "were not recorded");

    // The user's own word counts for every repository.
    stage
        .inner
        .write("config/provost/config.toml", "[record]\nbodies = true\n");
    let recorded = stage.run();
    assert_eq!(recorded.code(), "OK", "{recorded:?}");
    let run = recorded.text("run_id").to_owned();
    let kept = bodies(&stage, &run);
    assert!(kept.len() > 2, "{kept:?}");
    let holds = |path: &PathBuf| {
        let output = std::process::Command::new("gzip")
            .args(["-dc"])
            .arg(path)
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).contains(&secret)
    };
    assert!(!kept.iter().any(holds), "a secret was kept");
    incomplete(&run, "held 1 secret, and is not kept whole");
    for path in &kept {
        fs::remove_file(path).unwrap();
    }
    incomplete(&run, "is missing");
}

#[test]
fn bodies_are_swept_with_their_run() {
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &work(), RECORD) else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    let stray = "repo/.provost/bodies/run_01jz3q8m5c7v9x2k4n6p8r0stw/x.gz";
    stage.inner.write(stray, "x");
    let swept = stage.inner.ask(&["gc", "--json"]);
    assert_eq!(swept.exit, 0, "{swept:?}");
    assert!(!stage.inner.path(stray).exists());
    assert!(bodies(&stage, &run).len() > 2, "the run has not landed");
    let landed = stage.inner.ask(&["land", &run, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    let swept = stage.inner.ask(&["gc", "--json"]);
    assert_eq!(swept.exit, 0, "{swept:?}");
    assert_eq!(bodies(&stage, &run), [""; 0].map(PathBuf::from));
    let shown = stage.inner.ask(&["show", &run, "--json"]);
    assert_eq!(shown.json["bodies"], json!({"recorded": true}), "{shown:?}");
}
