//! `provost run 'Fix …'` with nothing else: what `[run]` of the base commit gives, and what it does
//! not.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage, lacks};

/// An agent of the system's own programs that corrects `add`.
const FIXER: &str = "\n[agents.default]\ncommand = \"sed -i 's/a - b/a + b/'";

/// A repository with these files, where a sandbox can be made.
fn stage(files: &[(&str, &str)]) -> Option<Stage> {
    Some(Stage::with(files)).filter(Stage::has_sandbox)
}

/// Calls the binary with these variables.
fn ask_with(stage: &Stage, words: &[&str], variables: &[(&str, String)]) -> Outcome {
    let mut command = stage.provost(words);
    for (name, value) in variables {
        command.env(name, value);
    }
    stage.spawn(command).wait()
}

/// What the sealed contract of a run says.
fn contract(stage: &Stage, outcome: &Outcome) -> Value {
    let file = stage.evidence(outcome.text("run_id"), "contract.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn accept(contract: &Value) -> Vec<&str> {
    let tests = contract["acceptance_tests"].as_array().unwrap().iter();
    tests.map(|test| test["cmd"].as_str().unwrap()).collect()
}

/// A small project with a wrong `add`, its tests, and what `provost init` makes of it.
pub(crate) struct Sample {
    pub(crate) files: &'static [(&'static str, &'static str)],
    programs: &'static [&'static str],
    pub(crate) allow: Value,
    pub(crate) accept: &'static [&'static str],
    /// What the agent corrects.
    pub(crate) wrong: &'static str,
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Sample {
    /// Whether this machine has no programs for it.
    pub(crate) fn is_skipped(&self) -> bool {
        self.programs.iter().any(|program| lacks(program))
    }
}

/// After `provost init` the objective alone leads to the right verdict.
fn needs_no_flag(sample: &Sample) {
    if sample.is_skipped() {
        return;
    }
    let Some(stage) = stage(sample.files) else {
        return;
    };
    let init = ask_with(&stage, &["init", "--json"], &sample.variables);
    assert_eq!(init.exit, 0, "{init:?}");
    assert_eq!(init.json["tried"]["state"], "failed", "{init:?}");
    let policy = stage.path("repo/provost.toml");
    let text = fs::read_to_string(&policy).unwrap();
    fs::write(&policy, format!("{text}{FIXER} {}\"\n", sample.wrong)).unwrap();
    stage.git(&["add", "provost.toml"]);
    stage.git(&["commit", "-q", "-m", "policy"]);
    let done = ask_with(&stage, &["run", "Fix add", "--json"], &sample.variables);
    assert_eq!((done.code(), done.exit), ("OK", 0), "{done:?}");
    let contract = contract(&stage, &done);
    assert_eq!(contract["allowed_paths"], sample.allow);
    assert_eq!(accept(&contract), sample.accept);
    assert_eq!(stage.verify(done.text("run_id")).exit, 0);
}

pub(crate) fn python() -> Sample {
    Sample {
        files: &[
            ("add.py", "def add(a, b):\n    return a - b\n"),
            (
                "test_add.py",
                "import unittest\nfrom add import add\nclass Add(unittest.TestCase):\n    \
                 def test_add(self): self.assertEqual(add(2, 2), 4)\n",
            ),
        ],
        programs: &["python3"],
        allow: json!(["add.py"]),
        accept: &["python3 -m unittest"],
        wrong: "add.py",
        variables: Vec::new(),
    }
}

#[test]
fn a_small_python_project_needs_no_flag() {
    needs_no_flag(&python());
}

pub(crate) fn npm() -> Sample {
    Sample {
        files: &[
            (
                "package.json",
                r#"{"name": "add", "version": "1.0.0", "scripts": {"test": "node --test"}}"#,
            ),
            ("lib/add.js", "exports.add = (a, b) => a - b;\n"),
            (
                "test/add.test.js",
                "const { add } = require('../lib/add.js');\n\
                 require('node:test')('add', () => require('assert').equal(add(2, 2), 4));\n",
            ),
        ],
        programs: &["npm", "node"],
        allow: json!(["lib"]),
        accept: &["npm test"],
        wrong: "lib/add.js",
        variables: Vec::new(),
    }
}

#[test]
fn a_small_npm_project_needs_no_flag() {
    needs_no_flag(&npm());
}

pub(crate) fn make() -> Sample {
    Sample {
        files: &[
            (
                "Makefile",
                "test: add\n\tsh test.sh\nadd: add.sh\n\tcp add.sh add\n\tchmod +x add\n",
            ),
            ("add.sh", "#!/bin/sh\na=$1 b=$2\necho $((a - b))\n"),
            (
                "test.sh",
                "#!/bin/sh\n[ \"$(./add 2 2)\" = 4 ] && echo 'ok 1 - add'\n",
            ),
            (".gitignore", "/add\n"),
        ],
        programs: &["make"],
        allow: json!(["add.sh"]),
        accept: &["make test"],
        wrong: "add.sh",
        variables: Vec::new(),
    }
}

#[test]
fn a_small_make_project_needs_no_flag() {
    needs_no_flag(&make());
}

/// Nothing where there is no cargo.
pub(crate) fn cargo() -> Option<Sample> {
    let place = |variable: &str, usual: &str| {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(usual);
        let place = std::env::var_os(variable).map_or_else(home, PathBuf::from);
        place.display().to_string()
    };
    let (cargo, rustup) = (
        place("CARGO_HOME", ".cargo"),
        place("RUSTUP_HOME", ".rustup"),
    );
    if !PathBuf::from(&cargo).join("bin/cargo").is_file() && lacks("cargo") {
        return None;
    }
    let path = format!("{cargo}/bin:/usr/local/bin:/usr/bin:/bin");
    Some(Sample {
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"add\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "src/lib.rs",
                "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n",
            ),
            (
                "tests/add.rs",
                "#[test]\nfn adds() {\n    assert_eq!(add::add(2, 2), 4);\n}\n",
            ),
            (".gitignore", "/target\n/Cargo.lock\n"),
        ],
        programs: &[],
        allow: json!(["src"]),
        accept: &["cargo test"],
        wrong: "src/lib.rs",
        variables: vec![
            ("PATH", path),
            ("CARGO_HOME", cargo),
            ("RUSTUP_HOME", rustup),
        ],
    })
}

#[test]
fn a_small_cargo_project_needs_no_flag() {
    if let Some(sample) = cargo() {
        needs_no_flag(&sample);
    }
}

const RUN: &str = "[run]\nallow = [\"src\"]\naccept = [\"sh check.sh\"]\nagent = \"good\"\n\
    timeout = \"90s\"\nretries = 2\nreview = \"kind\"\n\
    [agents.good]\ncommand = \"sh -c 'echo good > src/a.txt'\"\n\
    [agents.kind]\ncommand = \"true\"\n";

#[test]
fn a_flag_replaces_its_default_and_never_adds_to_it() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", &RUN.replace("review = \"kind\"\n", ""))]);
    let plain = stage.ask(&["run", "Make it good", "--json"]);
    assert_eq!(plain.code(), "OK", "{plain:?}");
    let sealed = contract(&stage, &plain);
    assert_eq!(sealed["allowed_paths"], json!(["src"]));
    assert_eq!(sealed["timeout_retry"]["timeout_sec"], 90);
    assert_eq!(sealed["timeout_retry"]["max_retries"], 2);
    let flags = [
        &["run", "Make it good", "--json", "--allow", "src/a.txt"][..],
        &[
            "--accept",
            "grep -q good src/a.txt",
            "--timeout",
            "2m",
            "--retries",
            "0",
        ],
        &["--agent-cmd", "sh -c 'echo very good > src/a.txt'"],
    ];
    let typed = stage.ask(&flags.concat());
    assert_eq!(typed.code(), "OK", "{typed:?}");
    let sealed = contract(&stage, &typed);
    assert_eq!(sealed["allowed_paths"], json!(["src/a.txt"]));
    assert_eq!(accept(&sealed), ["grep -q good src/a.txt"]);
    assert_eq!(sealed["timeout_retry"]["timeout_sec"], 120);
    assert_eq!(sealed["timeout_retry"]["max_retries"], 0);
}

#[test]
fn the_reviewer_of_the_defaults_reviews() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", RUN)]);
    // It leaves no report, and that is no pass.
    let run = stage.ask(&["run", "Make it good", "--retries", "0", "--json"]);
    assert_eq!(run.code(), "REVIEW_INVALID", "{run:?}");
}

#[test]
fn what_nothing_names_is_refused_with_the_line_to_add() {
    let stage = Stage::new();
    let mut words = vec!["run", "Make it good"];
    for (lacking, line, flag) in [
        ("--allow", "allow = [\"src\"]", ["--allow", "src"]),
        (
            "--accept",
            "accept = [\"cargo test\"]",
            ["--accept", "sh check.sh"],
        ),
        ("--agent", "agent = \"claude\"", ["--agent-cmd", "true"]),
    ] {
        let refused = stage.ask(&words);
        assert_eq!(refused.exit, 2, "{refused:?}");
        for want in [lacking, line, "[run]", "provost.toml"] {
            assert!(refused.stderr.contains(want), "{want}: {refused:?}");
        }
        words.extend(flag);
    }
    assert!(!stage.path("repo/.provost/runs").exists());
    // A policy that is not committed names it, and does not count.
    stage.write("repo/provost.toml", RUN);
    let refused = stage.ask(&["run", "Make it good"]);
    assert_eq!(refused.exit, 2, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("is not committed: git add provost.toml"),
        "{refused:?}"
    );
}

#[test]
fn the_base_decides_where_the_checkout_says_something_else() {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", &RUN.replace("review = \"kind\"\n", ""))]);
    stage.write("repo/provost.toml", "[run]\nallow = [\"docs\"]\n");
    let run = stage.ask(&["run", "Make it good"]);
    assert_eq!(run.exit, 0, "{run:?}");
    let note = "provost.toml is not committed in its current form; the policy and the defaults of \
                [run] are read from";
    assert!(run.stderr.contains(note), "{run:?}");
}

#[test]
fn what_init_wrote_counts_before_it_is_committed_and_nothing_else_does() {
    let Some(stage) = stage(&[
        ("add.py", "def add(a, b):\n    return a - b\n"),
        (
            "test_add.py",
            "import unittest\nfrom add import add\nclass Add(unittest.TestCase):\n    \
             def test_add(self): self.assertEqual(add(2, 2), 4)\n",
        ),
    ]) else {
        return;
    };
    if lacks("python3") {
        return;
    }
    assert_eq!(stage.ask(&["init"]).exit, 0);
    let words = ["run", "Fix add", "--agent-cmd", "sed -i s/-/+/ add.py"];
    let run = stage.ask(&words);
    assert_eq!(run.exit, 0, "{run:?}");
    assert!(
        run.stderr.contains("is used as `provost init` wrote it"),
        "{run:?}"
    );
    let failed = "`python3 -m unittest` failed with status 1 on";
    assert!(
        run.stderr.contains(failed),
        "said before the agent works: {run:?}"
    );
    assert!(
        run.stderr.find(failed) < run.stderr.find("agent is working"),
        "{run:?}"
    );
    // A file that another process changed is not the one that the user had written.
    let policy = stage.path("repo/provost.toml");
    let text = fs::read_to_string(&policy).unwrap();
    fs::write(
        &policy,
        text.replace("\"add.py\"", "\"add.py\", \"test_add.py\""),
    )
    .unwrap();
    let refused = stage.ask(&words);
    assert_eq!(refused.exit, 2, "{refused:?}");
    assert!(refused.stderr.contains("is not committed"), "{refused:?}");
}

#[test]
fn a_contract_from_a_file_gains_nothing_but_the_agent() {
    let stage = Stage::new();
    let policy = RUN
        .replace("review = \"kind\"\n", "")
        .replace("sh check.sh", "grep -q good src/a.txt");
    stage.commit(&[("provost.toml", &policy)]);
    let file = stage.path("home/contract.json").display().to_string();
    let made = [
        &["contract", "new", &file, "Make it good", "--allow", "src"][..],
        &["--accept", "grep -q good src/a.txt", "--json"],
    ];
    let made = stage.ask(&made.concat());
    assert_eq!(made.exit, 0, "{made:?}");
    let run = stage.ask(&["run", "-f", &file, "--json"]);
    assert_ne!(
        run.exit, 0,
        "the broad path and the command are judged: {run:?}"
    );
    assert!(
        ["COMMAND_REFUSED", "APPROVAL_NEEDED", "CONTRACT_INVALID"].contains(&run.code()),
        "{run:?}"
    );
}

#[test]
fn a_repository_cannot_choose_who_gets_the_login_of_its_user() {
    let stage = Stage::new();
    let policy = "[run]\nallow = [\"src\"]\naccept = [\"sh check.sh\"]\nagent = \"codex\"\n";
    stage.commit(&[("provost.toml", policy)]);
    let key = [("OPENAI_API_KEY", "quince".to_owned())];
    let asked = ask_with(&stage, &["run", "Make it good", "--json"], &key);
    assert_eq!(asked.code(), "CONSENT_NEEDED", "{asked:?}");
    let typed = ["run", "Make it good", "--agent", "codex", "--json"];
    let typed = ask_with(&stage, &typed, &key);
    assert_ne!(
        typed.code(),
        "CONSENT_NEEDED",
        "who types it agrees: {typed:?}"
    );
    // The file of the user is the user's own word.
    stage.commit(&[("provost.toml", &policy.replace("agent = \"codex\"\n", ""))]);
    stage.write("config/provost/config.toml", "agent = \"codex\"\n");
    let own = ask_with(&stage, &["run", "Make it good", "--json"], &key);
    assert_eq!(own.code(), typed.code(), "{own:?}");
    stage.write("config/provost/config.toml", "allow = [\"src\"]\n");
    let broken = ask_with(&stage, &["run", "Make it good", "--json"], &key);
    assert_eq!(
        broken.code(),
        "INPUT_INVALID",
        "nothing about scope: {broken:?}"
    );
    assert!(broken.text("reason").contains("config.toml"), "{broken:?}");
}

/// The binary on a terminal where a person types `answers`.
fn on_terminal(stage: &Stage, words: &str, answers: &str) -> Outcome {
    let binary = env!("CARGO_BIN_EXE_provost");
    let mut command = stage.command("script");
    command.args([
        "-q",
        "-e",
        "-c",
        &format!("'{binary}' {words}"),
        "/dev/null",
    ]);
    stage.feed(command, answers)
}

#[test]
fn a_terminal_shows_the_contract_and_asks_for_what_is_missing() {
    if lacks("script") {
        return;
    }
    let stage = Stage::new();
    stage.commit(&[("provost.toml", &RUN.replace("review = \"kind\"\n", ""))]);
    let run = on_terminal(&stage, "run 'Make it good' --timeout 2m", "");
    assert_eq!(run.exit, 0, "{run:?}");
    let seen = run.out().replace('\r', "");
    for row in [
        "contract: Make it good",
        "  allow    src  (provost.toml)",
        "  accept   sh check.sh  (provost.toml)",
        "  agent    good  (provost.toml)",
        "  review   none  (default)",
        "  timeout  2m\n",
        "  retries  2  (provost.toml)",
    ] {
        assert!(seen.contains(row), "{row}: {seen}");
    }
    assert!(
        seen.find("contract: ") < seen.find("agent is working"),
        "{seen}"
    );
    let asking = Stage::new();
    let words = "run 'Make it good' --agent-cmd \"sh -c 'echo good > src/a.txt'\"";
    let run = on_terminal(&asking, words, "src/a.txt\nsh check.sh\n");
    assert_eq!(run.exit, 0, "{run:?}");
    assert!(run.out().contains("Which command must pass"), "{run:?}");
    let none = on_terminal(&Stage::new(), words, "\n");
    assert_eq!(none.exit, 2, "{none:?}");
}
