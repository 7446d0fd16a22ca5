//! The files of bundles: every one that a run has to leave, each JSON file as its schema has it.

use std::fs;
use std::path::Path;

use provost_core::schema::validate::validate;
use provost_engine::bundle::file_kinds::{self, FileKind, SealedKind};
use provost_engine::bundle::formats;
use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, until};

/// The schema of a file of a bundle; `None` for one of another kind.
fn schema_of(name: &str) -> Option<&'static str> {
    match file_kinds::kind(SealedKind::Run, name) {
        Some(FileKind::Document(schema) | FileKind::Lines(schema)) => Some(schema),
        Some(FileKind::Other(_)) => None,
        None => panic!("`{name}` has neither a schema nor a kind"),
    }
}

fn walk(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The names of all files of a bundle; every JSON file of it fits its schema.
fn files(stage: &Stage, run: &str) -> Vec<String> {
    let root = stage.evidence(run, "");
    let mut found = Vec::new();
    walk(&root, &mut found);
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    for path in &found {
        let name = name(path);
        let Some(schema) = schema_of(&name) else {
            continue;
        };
        let documents: Vec<Value> = match path.extension().and_then(|it| it.to_str()) {
            Some("json") => vec![serde_json::from_slice(&fs::read(path).unwrap()).unwrap()],
            Some("jsonl") => {
                let text = fs::read_to_string(path).unwrap();
                let parse = |line| serde_json::from_str(line).unwrap();
                text.lines().map(parse).collect()
            }
            other => panic!("{name}: {other:?} has a schema"),
        };
        let schema = formats::find(schema).unwrap().schema();
        for document in documents {
            let misfits = validate(&schema, &document);
            assert!(misfits.is_empty(), "{name}: {misfits:?}");
        }
    }
    let mut names: Vec<String> = found.iter().map(|path| name(path)).collect();
    names.sort();
    names
}

fn document(stage: &Stage, run: &str, name: &str) -> Value {
    serde_json::from_slice(&fs::read(stage.evidence(run, name)).unwrap()).unwrap()
}

/// What every sealed run leaves, whatever became of it.
const ALWAYS: [&str; 14] = [
    "attestation.dsse.json",
    "contract.json",
    "diff_name_only.txt",
    "events.jsonl",
    "git/baseline_commit.txt",
    "git/patch.diff",
    "manifest.json",
    "meta.json",
    "patch.diff",
    "reports/evidence_report.json",
    "reports/review_report.json",
    "reports/task_result.json",
    "reports/test_report.json",
    "trace/trace_id.txt",
];

fn run_id(outcome: &Outcome, code: &str) -> String {
    assert_eq!(outcome.code(), code, "{outcome:?}");
    outcome.text("run_id").to_owned()
}

#[test]
fn every_file_is_there_and_fits_its_schema() {
    let stage = Stage::new();
    let accepted = stage.run(
        "echo good > src/a.txt; echo 'I \u{1b}[2Jam done'",
        &Ask::default(),
    );
    let refused = stage.run("echo good > docs/readme.md", &Ask::default());
    let empty = stage.run("true", &Ask::default());
    let runs = [
        run_id(&accepted, "OK"),
        run_id(&refused, "DIFF_REFUSED"),
        run_id(&empty, empty.code()),
    ];
    for run in &runs {
        let names = files(&stage, run);
        for name in ALWAYS {
            assert!(names.iter().any(|one| one == name), "{name}: {names:?}");
        }
        assert_eq!(stage.verify(run).exit, 0);
        let replayed = stage.ask(&["replay", run, "--json"]);
        assert_eq!(replayed.exit, 0, "{replayed:?}");
    }
    let run = &runs[0];
    let meta = document(&stage, run, "meta.json");
    assert_eq!(meta["tool_calls"], "not observable", "{meta}");
    assert_eq!(meta["adapter"], "exec");
    assert_eq!(meta["environment_sha256"].as_str().unwrap().len(), 64);
    let other = document(&stage, &runs[1], "meta.json");
    assert_eq!(meta["environment_sha256"], other["environment_sha256"]);
    let task = document(&stage, run, "contract.json")["task_id"].clone();
    let task = task.as_str().unwrap();
    let transcript = stage.evidence(run, &format!("agent/{task}/transcript.md"));
    let text = fs::read_to_string(transcript).unwrap();
    assert!(text.contains("Tool calls: not observable"), "{text}");
    assert!(text.contains("    I \\u{1b}[2Jam done\n"), "{text}");
    assert_eq!(document(&stage, run, "manifest.json")["status"], "SUCCESS");
}

#[test]
fn a_fix_has_a_result_of_its_own() {
    let stage = Stage::new();
    let script = "if test -z \"$PROVOST_EVIDENCE\"; then echo bad > src/a.txt; else
        echo more >> src/b.txt; test $(wc -l < src/b.txt) -gt 2 && echo good > src/a.txt; fi; true";
    stage.commit(&[("src/b.txt", "more\n")]);
    let ask = Ask {
        more: &["--retries", "3"],
        ..Ask::default()
    };
    let run = run_id(&stage.run(script, &ask), "OK");
    files(&stage, &run);
    let manifest = document(&stage, &run, "manifest.json");
    let tasks = manifest["tasks"].as_array().unwrap();
    let states: Vec<&Value> = tasks.iter().map(|task| &task["status"]).collect();
    assert_eq!(states, ["SUCCESS", "FAILED", "SUCCESS"], "{manifest}");
    let text = |name: &str| fs::read_to_string(stage.evidence(&run, name)).unwrap();
    for (task, status, line) in [
        (&tasks[1], "FAILED", "+bad\n"),
        (&tasks[2], "SUCCESS", "+good\n"),
    ] {
        let id = task["task_id"].as_str().unwrap();
        let place = task["result"]["path"].as_str().unwrap();
        assert_eq!(place, format!("results/{id}/result.json"));
        let result = document(&stage, &run, place);
        assert_eq!(
            (&result["status"], &result["task_id"]),
            (&json!(status), &json!(id))
        );
        let patch = result["git"]["patch"]["path"].as_str().unwrap();
        assert!(text(patch).contains(line), "{}", text(patch));
        assert!(
            stage
                .evidence(&run, &format!("agent/{id}/transcript.md"))
                .exists()
        );
    }
    assert_eq!(stage.verify(&run).exit, 0);
    let replayed = stage.ask(&["replay", &run, "--json"]);
    assert_eq!(replayed.exit, 0, "{replayed:?}");
}

#[test]
fn a_manifest_is_there_while_the_run_lasts() {
    let stage = Stage::new();
    let ask = Ask::default();
    let running = stage.start("echo good > src/a.txt; sleep 5", &ask);
    let mut run = String::new();
    until("the agent works", || {
        run = stage.last_run().unwrap_or_default();
        let text = fs::read_to_string(stage.evidence(&run, "events.jsonl")).unwrap_or_default();
        text.contains(r#""step":"agent""#)
    });
    let manifest = document(&stage, &run, "manifest.json");
    assert_eq!(manifest["status"], "RUNNING", "{manifest}");
    assert!(manifest["finished_at"].is_null());
    for name in ["manifest", "reports/review_report", "reports/test_report"] {
        let schema = schema_of(&format!("{name}.json")).unwrap();
        let schema = formats::find(schema).unwrap().schema();
        let found = document(&stage, &run, &format!("{name}.json"));
        assert_eq!(validate(&schema, &found), [], "{name}");
    }
    assert_eq!(
        document(&stage, &run, "reports/review_report.json")["verdict"],
        "BLOCKED"
    );
    assert_eq!(
        document(&stage, &run, "reports/test_report.json")["status"],
        "SKIPPED"
    );
    assert_eq!(stage.verify(&run).exit, 3);
    assert_eq!(running.wait().code(), "OK");
    assert_eq!(document(&stage, &run, "manifest.json")["status"], "SUCCESS");
    assert_eq!(stage.verify(&run).exit, 0);
}

#[test]
fn the_trace_of_the_caller_is_taken_over() {
    let stage = Stage::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let valid = format!("00-{trace}-00f067aa0ba902b7-01");
    for (parent, taken) in [(valid.as_str(), true), ("00-broken-01", false)] {
        let agent = stage.agent("echo good > src/a.txt");
        let mut words = vec!["run", "--json", "--allow", "src", "--accept", "sh check.sh"];
        words.extend(["--agent-cmd", &agent, "do it"]);
        let mut command = stage.provost(&words);
        command.env("TRACEPARENT", parent);
        let outcome = stage.spawn(command).wait();
        let run = run_id(&outcome, "OK");
        let text = fs::read_to_string(stage.evidence(&run, "trace/trace_id.txt")).unwrap();
        assert_eq!(text.trim() == trace, taken, "{text}");
        let events = fs::read_to_string(stage.evidence(&run, "events.jsonl")).unwrap();
        assert!(events.lines().all(|line| line.contains(text.trim())));
        let noted = format!("{outcome:?}").contains("TRACEPARENT is no valid trace context");
        assert_eq!(noted, !taken, "{outcome:?}");
    }
}

#[test]
fn a_file_that_does_not_fit_its_schema_is_found_and_an_altered_one_is_left_to_verify() {
    let stage = Stage::new();
    let run = run_id(&stage.run("echo good > src/a.txt", &Ask::default()), "OK");
    let bundle = stage.evidence(&run, "").display().to_string();
    let check = || stage.ask(&["check", "bundle", &bundle, "--json"]);
    let fine = check();
    assert_eq!(fine.exit, 0, "{fine:?}");
    assert_eq!(fine.json["details"]["bundles"], 1, "{fine:?}");
    assert!(
        fine.json["details"]["documents"].as_u64() > Some(10),
        "{fine:?}"
    );
    // No digest covers the seal itself: a field more is seen, and its file is not altered.
    let seal = stage.evidence(&run, "attestation.dsse.json");
    let whole = fs::read_to_string(&seal).unwrap();
    let spare = whole.replacen('{', r#"{"unsigned":1,"#, 1);
    fs::write(&seal, spare).unwrap();
    assert_eq!(
        check().json["details"]["bundles"],
        0,
        "its seal cannot be read"
    );
    fs::write(&seal, whole).unwrap();
    let meta = stage.evidence(&run, "meta.json");
    fs::write(&meta, "{}").unwrap();
    assert_eq!(check().exit, 0, "the altered file is not judged");
    assert_ne!(stage.verify(&run).exit, 0);
}
