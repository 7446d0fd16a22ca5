mod phase;

use std::collections::BTreeMap;

use proptest::prelude::*;
use provost_core::bundle::key::SigningKey;

use super::seal::{AFTER, BEFORE, LOG, Sealed, Stage};
use super::*;
use provost_core::document::yaml;
use serde_json::{Value, json};

const DIRECTORY: &str = "artifacts/subagent_control/p1";

/// The files of a valid packet, by name.
#[derive(Clone)]
struct Files(BTreeMap<&'static str, Value>);

impl Files {
    fn good() -> Self {
        let place = |name: &str| format!("{DIRECTORY}/{name}");
        let snapshot = |time: &str, digest: &str| {
            json!({
                "schema_version": "subagent_workspace_snapshot_v1",
                "captured_at": time,
                "files": { "src/a": digest.repeat(64), "docs/b": "0".repeat(64) },
            })
        };
        let check = |name: &&str| json!({ "name": name, "pass": true });
        let card = json!({
            "schema_version": "subagent_task_card_v1",
            "phase_id": "p1",
            "goal_ids": ["G1"],
            "executor_required": "codex_cli_subagent",
            "evidence_policy": "hardened",
            "evidence_files": {
                "workspace_before": place(BEFORE),
                "workspace_after": place(AFTER),
                "acceptance_log": place(LOG),
            },
            "external_noise_paths": ["feed/**"],
            "allowed_paths": ["src/**"],
            "acceptance_commands": ["make test"],
            "published_at": "2026-01-31T12:00:10Z",
        });
        let report = json!({
            "schema_version": "subagent_executor_report_v1",
            "phase_id": "p1",
            "executor": { "role": "codex_cli_subagent", "runtime": "codex_cli" },
            "status": "completed",
            "changed_files": ["src/a"],
            "commands_run": ["make test"],
            "reported_at": "2026-01-31T12:00:40Z",
        });
        let conclusion = json!({
            "schema_version": "subagent_validator_report_v1",
            "phase_id": "p1",
            "validator": { "role": "orchestrator_codex" },
            "status": "pass",
            "checks": validator::CHECKS.iter().map(check).collect::<Vec<_>>(),
            "reported_at": "2026-01-31T12:00:50Z",
        });
        let row = json!({
            "command": "make test",
            "exit_code": 0,
            "started_at": "2026-01-31T12:00:20Z",
            "ended_at": "2026-01-31T12:00:30Z",
        });
        Self(BTreeMap::from([
            (TASK_CARD, card),
            (EXECUTOR_REPORT, report),
            (VALIDATOR_REPORT, conclusion),
            (BEFORE, snapshot("2026-01-31T12:00:11Z", "a")),
            (AFTER, snapshot("2026-01-31T12:00:35Z", "b")),
            (LOG, row),
        ]))
    }

    fn source(&self, name: &str) -> Source {
        let text = |value: &Value| match name {
            BEFORE | AFTER | LOG => value.to_string(),
            _ => yaml::render(value),
        };
        let found = self.0.get(name).map(text);
        found.map_or(Source::Missing, |text| Source::Bytes(text.into_bytes()))
    }

    fn packet(&self) -> Packet<'static> {
        let task_card = self.source(TASK_CARD);
        let wanted = wanted(&task_card).into_iter();
        Packet {
            phase_id: "p1",
            directory: RepoPath::try_from(DIRECTORY).ok(),
            evidence: wanted
                .map(|(evidence, path)| Found {
                    evidence,
                    in_repository: self.source(path.name()),
                    in_packet: Source::Missing,
                    path,
                })
                .collect(),
            task_card,
            executor_report: self.source(EXECUTOR_REPORT),
            validator_report: self.source(VALIDATOR_REPORT),
            seal: None,
        }
    }

    fn judge(&self, profile: Strictness) -> Verdict {
        judge(&self.packet(), profile, None)
    }

    fn set(&mut self, name: &'static str, pointer: &str, value: Value) {
        let document = self.0.get_mut(name).unwrap();
        *document.pointer_mut(pointer).unwrap() = value;
    }
}

/// The pointers of everything below `value`.
fn pointers(value: &Value, here: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            let number = |(at, item): (usize, _)| (at.to_string(), item);
            items.iter().enumerate().map(number).collect()
        }
        _ => Vec::new(),
    };
    for (key, value) in below {
        let pointer = format!("{here}/{key}");
        pointers(value, &pointer, found);
        found.push(pointer);
    }
}

fn kinds() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1.5),
        json!(1e300),
        json!(""),
        json!("  "),
        json!("x"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "x": [1] }),
    ]
}

#[test]
fn a_good_packet_holds_in_both_profiles() {
    for profile in [Strictness::Literal, Strictness::Strict] {
        let verdict = Files::good().judge(profile);
        assert!(verdict.allow, "{verdict:?}");
        let details = verdict.details.unwrap();
        assert_eq!(details["docs"], "not_checked");
        assert_eq!(details["changed_files"], json!(["src/a"]));
        assert_eq!(details.get("warnings"), None);
    }
}

/// Whether `value` at `pointer` is harmless beside the value that is there already.
fn is_harmless(name: &str, pointer: &str, value: &Value) -> bool {
    let number = value.is_number();
    let text = value.as_str().is_some_and(|text| !text.trim().is_empty());
    let nothing = value.is_null();
    let empty = *value == json!([]);
    match (name, pointer) {
        // The literal profile takes any time that is not blank.
        (_, "/published_at" | "/reported_at" | "/captured_at" | "/started_at" | "/ended_at") => {
            number || text
        }
        (TASK_CARD, "/external_noise_paths") => nothing || empty,
        (TASK_CARD, "/external_noise_paths/0" | "/goal_ids/0") => text,
        // Without a policy it is a valid legacy packet.
        (TASK_CARD, "/evidence_policy") => nothing || value.as_str().is_some_and(|it| it != "x"),
        (LOG, "/exit_code") => *value == json!(0),
        _ => false,
    }
}

#[test]
fn no_type_in_any_place_makes_a_packet_hold() {
    let good = Files::good();
    for (name, document) in &good.0 {
        let mut places = vec![String::new()];
        pointers(document, "", &mut places);
        for pointer in &places {
            let mut candidates = kinds();
            candidates.push(json!("y".repeat(100_000)));
            for value in candidates {
                let mut files = good.clone();
                files.set(name, pointer, value.clone());
                let verdict = files.judge(Strictness::Literal);
                let same = document.pointer(pointer) == Some(&value);
                let long = value.as_str().is_some_and(|text| text.len() > 1000);
                if same || long || is_harmless(name, pointer, &value) {
                    continue;
                }
                assert!(!verdict.allow, "{name}{pointer} = {value}");
                let details = verdict.details.unwrap();
                let rows = details["findings"].as_array().unwrap();
                assert!(!rows.is_empty(), "{name}{pointer} = {value}");
            }
        }
    }
}

#[test]
fn a_missing_file_or_field_is_never_forgiven() {
    let good = Files::good();
    for name in good.0.keys() {
        let mut files = good.clone();
        files.0.remove(name);
        assert!(!files.judge(Strictness::Literal).allow, "{name}");
    }
    for (name, document) in &good.0 {
        for key in document.as_object().unwrap().keys() {
            if matches!(key.as_str(), "evidence_policy" | "external_noise_paths") {
                continue;
            }
            let mut files = good.clone();
            let entries = files.0.get_mut(name).unwrap().as_object_mut().unwrap();
            entries.remove(key);
            let verdict = files.judge(Strictness::Literal);
            assert!(!verdict.allow, "{name}: {key}");
            let text = verdict.details.unwrap().to_string();
            assert!(text.contains(key), "{name}: {key}: {text}");
        }
    }
}

#[test]
fn all_violations_are_listed_at_once() {
    let mut files = Files::good();
    files.set(TASK_CARD, "/executor_required", json!("me"));
    files.set(EXECUTOR_REPORT, "/commands_run/0", json!("echo make test"));
    files.set(VALIDATOR_REPORT, "/checks/4/pass", json!("true"));
    files.set(
        AFTER,
        "/files",
        json!({ "./": "x", "a/../b": "y", "c": "0" }),
    );
    files.set(LOG, "/exit_code", json!(false));
    let details = files.judge(Strictness::Literal).details.unwrap();
    let rows = details["findings"].as_array().unwrap();
    let named = |file: &str| {
        rows.iter()
            .any(|row| row["path"].as_str().unwrap().contains(file))
    };
    for file in [TASK_CARD, EXECUTOR_REPORT, VALIDATOR_REPORT, AFTER, LOG] {
        assert!(named(file), "{file}: {details:#}");
    }
}

#[test]
fn a_log_of_a_million_bad_rows_gives_a_short_answer() {
    let mut packet = Files::good().packet();
    let log = packet.evidence.iter_mut();
    for found in log.filter(|found| found.evidence == Evidence::Log) {
        found.in_repository = Source::Bytes(b"1\n".repeat(1_000_000));
    }
    let verdict = judge(&packet, Strictness::Literal, None);
    assert!(!verdict.allow);
    let rows = verdict.details.unwrap()["findings"]
        .as_array()
        .unwrap()
        .len();
    assert!(rows <= 200, "{rows}");
}

#[test]
fn the_gate_wants_docs_and_black_box_checks_too() {
    let document = |path: &str, text: &str| Document {
        path: path.to_owned(),
        source: Source::Bytes(text.as_bytes().to_vec()),
    };
    let good = || Gate {
        docs: vec![document("docs/b", "what was done\n")],
        blackbox: document(
            "bb.json",
            r#"{"phase_id":"p1","checks":[{"goal_id":"G1","pass":true}]}"#,
        ),
    };
    let ask = |files: &Files, gate: &Gate| judge(&files.packet(), Strictness::Literal, Some(gate));
    let files = Files::good();
    let verdict = ask(&files, &good());
    assert!(verdict.allow, "{verdict:?}");
    let unchanged = json!({ "src/a": "b".repeat(64), "docs/b": sha("what was done\n") });
    let mut stale = files.clone();
    stale.set(BEFORE, "/files/docs~1b", unchanged["docs/b"].clone());
    stale.set(AFTER, "/files/docs~1b", unchanged["docs/b"].clone());
    assert_eq!(ask(&stale, &good()).details.unwrap()["docs"], "refused");
    let blackboxes = [
        "",
        "{}",
        "[1]",
        r#"{"phase_id":"p2","checks":[{"goal_id":"G1","pass":true}]}"#,
        r#"{"phase_id":"p1","checks":[]}"#,
        r#"{"phase_id":"p1","checks":[{"goal_id":"G2","pass":true}]}"#,
        r#"{"phase_id":"p1","checks":[{"goal_id":"G1","pass":"true"}]}"#,
        r#"{"phase_id":"p1","checks":[{"goal_id":"G1","pass":true},{"goal_id":"G1","pass":false}]}"#,
    ];
    for text in blackboxes {
        let mut gate = good();
        gate.blackbox = document("bb.json", text);
        let verdict = ask(&files, &gate);
        assert!(!verdict.allow, "{text}");
        assert_eq!(verdict.details.unwrap()["blackbox"], "refused", "{text}");
    }
    let mut missing = good();
    missing.docs[0].source = Source::Missing;
    assert!(!ask(&files, &missing).allow);
    missing.docs.clear();
    assert!(!ask(&files, &missing).allow);
    let mut failed = files.clone();
    failed.set(EXECUTOR_REPORT, "/status", json!("failed"));
    assert!(failed.judge(Strictness::Literal).allow);
    assert!(!ask(&failed, &good()).allow);
    let mut refused = files;
    refused.set(VALIDATOR_REPORT, "/status", json!("fail"));
    assert!(!ask(&refused, &good()).allow);
}

fn sha(text: &str) -> String {
    provost_core::object::sha256(text.as_bytes())
}

#[test]
fn what_was_sealed_and_then_edited_does_not_hold() {
    let files = Files::good();
    let key = SigningKey::from_seed(&[7; 32], "").unwrap();
    let other = SigningKey::from_seed(&[8; 32], "").unwrap();
    let names = Stage::Sealed.files().iter();
    let sources: BTreeMap<_, _> = names.map(|name| (*name, files.source(name))).collect();
    let envelope = seal::seal("p1", Stage::Sealed, &sources, &key).unwrap();
    let sealed = Sealed {
        envelope: Source::Bytes(envelope.into_bytes()),
        keys: vec![key.public()],
        files: sources.clone(),
        others: Vec::new(),
    };
    let judged = |sealed: Sealed, profile: Strictness| {
        let mut packet = files.packet();
        packet.seal = Some(sealed);
        judge(&packet, profile, None)
    };
    let ask = |sealed: Sealed| judged(sealed, Strictness::Literal);
    assert!(ask(sealed.clone()).allow);
    let mut fuller = sealed.clone();
    fuller.others.push("note.txt".to_owned());
    assert!(ask(fuller.clone()).allow);
    let verdict = judged(fuller, Strictness::Strict);
    assert!(verdict.reason.contains("note.txt"), "{verdict:?}");
    for name in Stage::Sealed.files() {
        for edited in [Source::Missing, Source::Bytes(b"{}".to_vec())] {
            let mut touched = sealed.clone();
            touched.files.insert(name, edited);
            assert!(!ask(touched).allow, "{name}");
        }
    }
    let mut stranger = sealed.clone();
    stranger.keys = vec![other.public()];
    assert!(!ask(stranger).allow);
    let mut early = sealed.clone();
    let envelope = seal::seal("p1", Stage::Reported, &sources, &key).unwrap();
    early.envelope = Source::Bytes(envelope.into_bytes());
    assert!(!ask(early).allow);
    let mut elsewhere = sealed;
    let envelope = seal::seal("p2", Stage::Sealed, &sources, &key).unwrap();
    elsewhere.envelope = Source::Bytes(envelope.into_bytes());
    assert!(!ask(elsewhere).allow);
}

proptest! {
    /// Any bytes have an answer, and only the valid packet is allowed.
    #[test]
    fn any_bytes_have_an_answer(bytes: Vec<u8>, which in 0..6_usize) {
        let names = Stage::Sealed.files();
        let mut packet = Files::good().packet();
        let source = Source::Bytes(bytes);
        match names[which] {
            TASK_CARD => packet.task_card = source,
            EXECUTOR_REPORT => packet.executor_report = source,
            VALIDATOR_REPORT => packet.validator_report = source,
            name => {
                let of_name = |found: &&mut Found| found.path.name() == name;
                for found in packet.evidence.iter_mut().filter(of_name) {
                    found.in_repository = source.clone();
                }
            }
        }
        prop_assert!(!judge(&packet, Strictness::Literal, None).allow);
    }

    /// The changes decide, whatever was reported and allowed.
    #[test]
    fn a_change_outside_the_rules_or_the_report_never_passes(
        path in "(src/)?[a-z]{1,4}(/[a-z]{1,4}){0,2}",
        reported: bool,
    ) {
        prop_assume!(path != "src/a" && path != "docs/b");
        let mut files = Files::good();
        let after = files.0.get_mut(AFTER).unwrap();
        after["files"][&path] = json!("c".repeat(64));
        if reported {
            files.set(EXECUTOR_REPORT, "/changed_files", json!(["src/a", path]));
        }
        let inside = path.starts_with("src/");
        prop_assert_eq!(files.judge(Strictness::Literal).allow, inside && reported);
    }
}
