//! Acceptance by cargo on the build cache of its base: faster, and with the same verdict.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::stage::{Ask, Outcome, Stage, lacks, run_arguments};

/// How many packages the workspace has, and how many functions of ten lines each of them.
const PACKAGES: usize = 10;
const FUNCTIONS: usize = 100;
/// How many of them the test of a package calls, which decides how long it takes to compile.
const CALLED: usize = 30;

/// The most that a warm round may take, in hundredths of a cold one.
const MOST: u64 = 30;

/// The variables of a user with cargo; `None` if this machine lacks it.
fn variables() -> Option<[(&'static str, String); 3]> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let place = |name: &str, usual: &str| {
        let given = std::env::var_os(name).map(PathBuf::from);
        given
            .unwrap_or_else(|| home.join(usual))
            .display()
            .to_string()
    };
    let (cargo, rustup) = (
        place("CARGO_HOME", ".cargo"),
        place("RUSTUP_HOME", ".rustup"),
    );
    if !PathBuf::from(&cargo).join("bin/cargo").is_file() && lacks("cargo") {
        return None;
    }
    let path = format!("{cargo}/bin:/usr/local/bin:/usr/bin:/bin");
    Some([
        ("PATH", path),
        ("CARGO_HOME", cargo),
        ("RUSTUP_HOME", rustup),
    ])
}

/// A function that takes a while to compile.
fn function(number: usize) -> String {
    format!(
        "/// Turns a value into text, many times.
pub fn text_{number}<T: std::fmt::Debug>(value: &T, count: u64) -> String {{
    let mut all: Vec<String> = Vec::new();
    for at in 0..count {{
        let text = format!(\"{{value:?}} {{at}} {number}\");
        all.push(text.chars().rev().collect());
    }}
    all.sort();
    all.join(\",\")
}}\n"
    )
}

fn workspace() -> Vec<(String, String)> {
    let manifest = "[workspace]\nresolver = \"2\"\nmembers = [\"part*\"]\n";
    let mut files = vec![
        ("Cargo.toml".to_owned(), manifest.to_owned()),
        (".gitignore".to_owned(), "/target/\n".to_owned()),
        ("part0/src/twice/mod.rs".to_owned(), String::new()),
    ];
    let mut lock = "version = 3\n".to_owned();
    for part in 0..PACKAGES {
        let package = format!("name = \"part{part}\"\nversion = \"0.1.0\"\n");
        let _ = write!(lock, "\n[[package]]\n{package}");
        let manifest = format!("[package]\n{package}edition = \"2021\"\n");
        files.push((format!("part{part}/Cargo.toml"), manifest));
        let mut source: String = (0..FUNCTIONS).map(function).collect();
        let line = |at| format!("    assert_eq!(text_{at}(&{at}_u16, 0), \"\");\n");
        let calls: String = (0..CALLED).map(line).collect();
        let _ = write!(source, "#[test]\nfn texts() {{\n{calls}}}\n");
        if part == 0 {
            source += "mod twice;\n";
        }
        files.push((format!("part{part}/src/lib.rs"), source));
    }
    files.push(("Cargo.lock".to_owned(), lock));
    files
}

fn run(stage: &Stage, script: &str, variables: &[(&str, String)]) -> Outcome {
    let parts: Vec<String> = (0..PACKAGES)
        .map(|part| format!("part{part}/src"))
        .collect();
    let allow: Vec<&str> = parts.iter().map(String::as_str).collect();
    let ask = Ask {
        allow: &allow,
        accept: "cargo test -q --locked --offline",
        more: &[],
    };
    let agent = stage.agent(script);
    ask_with(stage, &run_arguments(&agent, &ask), variables)
}

fn ask_with(stage: &Stage, words: &[&str], variables: &[(&str, String)]) -> Outcome {
    let mut command = stage.provost(words);
    command.envs(variables.iter().cloned());
    stage.spawn(command).wait()
}

/// How long the commands took on the base and on the candidate, in milliseconds.
fn times(stage: &Stage, outcome: &Outcome) -> (u64, u64) {
    let events = stage.evidence(outcome.text("run_id"), "events.jsonl");
    let events = std::fs::read_to_string(events).unwrap();
    let took = |side: &str| {
        let rows = events
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut rows = rows.filter(|row: &serde_json::Value| row["event_type"] == "TEST_RESULT");
        let row = rows.find(|row| row["payload"]["side"] == side).unwrap();
        row["payload"]["commands"][0]["wall_ms"].as_u64().unwrap()
    };
    (took("base"), took("candidate"))
}

#[test]
fn a_warm_round_of_cargo_takes_a_third_of_a_cold_one_and_decides_the_same() {
    let Some(variables) = variables() else {
        return;
    };
    let stage = Stage::new();
    let files = workspace();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    stage.commit(&files);

    let mut found = Vec::new();
    for part in 1..=3 {
        let edit = format!("sed -i 's/many times/often/' part{part}/src/lib.rs");
        let outcome = run(&stage, &edit, &variables);
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
        assert_eq!(
            outcome.json["tests"]["cache"]["start"], "warm",
            "{outcome:?}"
        );
        let (cold, warm) = times(&stage, &outcome);
        found.push((warm * 100 / cold.max(1), outcome));
        if found[part - 1].0 <= MOST {
            break;
        }
    }
    let (ratio, outcome) = found.pop().unwrap();
    assert!(ratio <= MOST, "{ratio} hundredths of a cold round");

    // An edit that breaks the build is seen, although no dependency of cargo names it.
    let broken = run(&stage, "echo > part0/src/twice.rs", &variables);
    assert_eq!(broken.code(), "ACCEPTANCE_FAILED", "{broken:?}");
    let cache = &broken.json["tests"]["cache"];
    assert_eq!(cache["start"], "cold");
    let ending = &cache["refused"]["commands"][0]["ending"]["exited"];
    assert_eq!(*ending, 101, "the warm round has failed too");

    // The cold round before the landing comes to the same verdict.
    let landed = ask_with(
        &stage,
        &["land", outcome.text("run_id"), "--json"],
        &variables,
    );
    assert_eq!(landed.exit, 0, "{landed:?}");
}
