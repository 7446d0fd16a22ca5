//! Makes a small sealed bundle, with real git objects and a real signature.

use std::collections::BTreeMap;

use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::key::SigningKey;
use provost_core::bundle::report::Sha256;
use provost_core::change::Node;
use provost_core::json;
use provost_core::object::{Kind, Mode, ObjectFormat, Oid};
use provost_core::pack::Writer;
use provost_core::path::RawPath;
use provost_core::record::{Event, Head, Level, Record};
use provost_core::tree;
use provost_engine::bundle::after::{Landing, STATEMENT};
use provost_engine::bundle::statement::{
    Acceptance, LandingPredicate, LedgerHead, RunPredicate, SandboxFacts, SealedVerdict, Vouched,
};
use serde_json::{Map, Value, json};

use crate::course;

pub(crate) type Bundle = BTreeMap<RawPath, Vec<u8>>;

pub(crate) const WHEN: &str = "2026-01-01T00:00:00Z";

/// A key derived from one byte.
pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32], "test").unwrap()
}

/// All parts of a run before it is sealed, so that a test can falsify them.
pub(crate) struct Draft {
    pub(crate) run_id: String,
    pub(crate) contract: Value,
    pub(crate) reports: BTreeMap<&'static str, Value>,
    pub(crate) texts: BTreeMap<&'static str, Vec<u8>>,
    pub(crate) predicate: RunPredicate,
    /// Whether the change was reviewed.
    pub(crate) reviewed: bool,
    /// The commit that was published and the branch it is meant for, if it can land.
    pub(crate) lands: Option<(Oid, &'static str)>,
    /// Event types of a ledger that is not a valid run.
    pub(crate) events: Option<Vec<&'static str>>,
    /// The record that is of another run.
    pub(crate) foreign_run_at: Option<usize>,
    /// The record that is of another task.
    pub(crate) foreign_task_at: Option<usize>,
    /// The bundle format in the first event, if it is another than the newest.
    pub(crate) format: Option<u32>,
    /// The bytes after the last line.
    pub(crate) torn_line: &'static str,
    /// Fields of the manifest to change before it is sealed.
    pub(crate) patches: Vec<(String, Value)>,
}

/// The files of a tree, by path.
pub(crate) type Tree = [(&'static str, &'static [u8])];

/// Puts `new` at `pointer`; its parent must exist.
pub(crate) fn put(value: &mut Value, pointer: &str, new: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    match field.parse::<usize>() {
        Ok(index) => parent[index] = new,
        Err(_) => parent[field] = new,
    }
}

/// Packs two trees and a commit of the first; returns commit, both tree ids and the pack.
pub(crate) fn pack(before: &Tree, after: &Tree) -> (Oid, Oid, Oid, Vec<u8>) {
    let format = ObjectFormat::Sha1;
    let mut writer = Writer::new(format);
    let mut put = |files: &Tree| {
        let mut sides = BTreeMap::new();
        for (path, bytes) in files {
            let side = Node {
                mode: Mode::File,
                oid: writer.add(Kind::Blob, bytes).unwrap(),
            };
            sides.insert(RawPath::new(*path), side);
        }
        let (root, trees) = tree::build(&sides, format).unwrap();
        for bytes in trees.values() {
            writer.add(Kind::Tree, bytes).unwrap();
        }
        root
    };
    let (base, candidate) = (put(before), put(after));
    let commit = format!("tree {base}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nbase\n");
    let commit = writer.add(Kind::Commit, commit.as_bytes()).unwrap();
    (commit, base, candidate, writer.finish())
}

pub(crate) fn artifact(path: &str, bytes: &[u8]) -> Value {
    json!({
        "name": path, "path": path, "sha256": Sha256::of(bytes), "size_bytes": bytes.len(),
    })
}

pub(crate) const BEFORE: &Tree = &[("README.md", b"hello\n"), ("src/lib.rs", b"old\n")];
pub(crate) const AFTER: &Tree = &[
    ("README.md", b"hello\n"),
    ("src/lib.rs", b"new\n"),
    ("src/sub/more.rs", b"more\n"),
];

impl Draft {
    /// A run that changed what it may and passed its one command.
    pub(crate) fn new(run_id: &str) -> Self {
        Self::of(run_id, BEFORE, AFTER, "src/lib.rs\nsrc/sub/more.rs\n")
    }

    /// A run that turned `before` into `after` and lists `changed`.
    pub(crate) fn of(run_id: &str, before: &Tree, after: &Tree, changed: &str) -> Self {
        let (commit, base, candidate, pack) = pack(before, after);
        let text = |text: &str| text.as_bytes().to_vec();
        let patch = text("--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1 +1 @@\n-old\n+new\n");
        let texts = BTreeMap::from([
            ("patch.diff", patch.clone()),
            ("git/patch.diff", patch),
            ("diff_name_only.txt", text(changed)),
            ("git/diff_name_only.txt", text(changed)),
            ("git/baseline_commit.txt", text(&format!("{commit}\n"))),
            ("git/objects.pack", pack),
            ("meta.json", text("{}\n")),
            ("worktree_ref.txt", text("elsewhere\n")),
            ("tests/command.txt", text("cargo test\n")),
            ("tests/stdout.log", text("1 passed\n")),
            ("tests/stderr.log", Vec::new()),
            ("sandbox/selftest.json", text("{}\n")),
            ("trace/trace_id.txt", text("trace_01\n")),
            ("agent/task_001/transcript.md", text("I did it.\n")),
        ]);
        let contract = course::contract(&commit);
        let predicate = predicate(run_id, commit, base, candidate);
        Self {
            run_id: run_id.to_owned(),
            contract,
            reports: reports(run_id, &predicate, &texts),
            texts,
            predicate,
            reviewed: false,
            lands: None,
            events: None,
            foreign_run_at: None,
            foreign_task_at: None,
            torn_line: "",
            format: None,
            patches: Vec::new(),
        }
    }

    /// The same run with a reviewer that passed it.
    pub(crate) fn reviewed(mut self) -> Self {
        self.reviewed = true;
        let review = self.reports.get_mut("reports/review_report.json").unwrap();
        review["verdict"] = json!("PASS");
        review["summary"] = json!("fine");
        review["reviewer"]["agent_id"] = json!("strict");
        review["x_provost"] = json!({ "tree": self.predicate.candidate_tree });
        let result = self.reports.get_mut("reports/task_result.json").unwrap();
        result["gates"]["review_gate"] = json!({ "passed": true });
        self
    }

    /// The records of the ledger.
    pub(crate) fn ledger(&self) -> (Vec<Record>, Head) {
        let mut head = Head::genesis();
        let events: Vec<Event> = match &self.events {
            None => course::events(self),
            Some(kinds) => kinds
                .iter()
                .map(|kind| event(&self.run_id, kind, Map::new()))
                .collect(),
        };
        let one = |(at, mut event): (usize, Event)| {
            if let (0, Some(format)) = (at, self.format) {
                event.payload.insert("format".into(), format.into());
            }
            if self.foreign_run_at == Some(at) {
                event.run_id = "run_00000009".into();
            }
            if self.foreign_task_at == Some(at) {
                event.task_id = Some("task_009".into());
            }
            head.append(event)
        };
        (events.into_iter().enumerate().map(one).collect(), head)
    }

    /// The bundle, sealed by `key`.
    pub(crate) fn seal(mut self, key: &SigningKey) -> Bundle {
        let (records, head) = self.ledger();
        let mut lines: String = records.iter().map(|record| record.line() + "\n").collect();
        lines += self.torn_line;
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (name, bytes) in &self.texts {
            files.insert((*name).into(), bytes.clone());
        }
        for (name, value) in &self.reports {
            files.insert((*name).into(), value.to_string().into_bytes());
        }
        let contract = json::canonical(&self.contract).into_bytes();
        files.insert("contract.json".into(), contract.clone());
        files.insert("events.jsonl".into(), lines.into_bytes());
        let mut manifest = self.manifest_of(&files);
        for (pointer, value) in &self.patches {
            put(&mut manifest, pointer, value.clone());
        }
        let manifest = manifest.to_string().into_bytes();
        self.predicate.contract_sha256 = Sha256::of(&contract);
        self.predicate.manifest_sha256 = Sha256::of(&manifest);
        if let Some(head) = LedgerHead::of(&head) {
            self.predicate.ledger_head = head;
        }
        let seal = self.predicate.state().seal(key).render();
        files.insert("manifest.json".into(), manifest);
        files.insert("attestation.dsse.json".into(), seal.into_bytes());
        let named = |(name, bytes): (String, Vec<u8>)| (RawPath::new(name.into_bytes()), bytes);
        files.into_iter().map(named).collect()
    }

    fn manifest_of(&self, files: &BTreeMap<String, Vec<u8>>) -> Value {
        let predicate = &self.predicate;
        let hash = |(name, bytes): (&String, &Vec<u8>)| (name.clone(), json!(Sha256::of(bytes)));
        let status = if predicate.verdict.allow {
            "SUCCESS"
        } else {
            "FAILURE"
        };
        let mut manifest = json!({
            "run_id": self.run_id, "created_at": WHEN, "finished_at": WHEN, "status": status,
            "task_id": "task_001", "user_request": "do it", "trace_id": "trace_01",
            "repo": { "root": "r", "baseline_ref": predicate.base_commit },
            "versions": { "contracts_schema": "v1", "orchestrator": "0.1.0" },
            "tasks": [{
                "task_id": "task_001", "role": "WORKER", "status": "SUCCESS",
                "contract": artifact("contract.json", &files["contract.json"]),
            }],
            "artifacts": [],
            "evidence_hashes": files.iter().map(hash).collect::<Map<_, _>>(),
            "x_provost": {
                "object_format": "sha1", "base_commit": predicate.base_commit,
                "base_tree": predicate.base_tree, "directories": { "codex": "agent" },
            },
        });
        if let Some(tree) = &predicate.candidate_tree {
            manifest["x_provost"]["tree"] = json!(tree);
        }
        manifest
    }
}

fn predicate(run_id: &str, commit: Oid, base: Oid, candidate: Oid) -> RunPredicate {
    RunPredicate {
        work: None,
        granted: Vec::new(),
        run_id: run_id.to_owned(),
        contract_sha256: Sha256::of(b""),
        object_format: ObjectFormat::Sha1,
        base_commit: commit,
        base_tree: base,
        candidate_tree: Some(candidate),
        verdict: SealedVerdict {
            allow: true,
            code: provost_core::code::Code::Ok,
        },
        ledger_head: LedgerHead {
            seq: 0,
            hash: String::new(),
        },
        manifest_sha256: Sha256::of(b""),
        sandbox: Some(SandboxFacts {
            tier: "namespaces".into(),
            holes: Vec::new(),
            kernel: "6.1".into(),
            launcher_sha256: Sha256::of(b"launcher"),
            profile_sha256: Sha256::of(b"profile"),
            selftest_held: true,
        }),
        acceptance: Acceptance {
            status: provost_core::bundle::report::TestStatus::Pass,
            commands: 1,
            passed: 1,
            start: None,
        },
        finished_at: WHEN.try_into().unwrap(),
    }
}

fn reports(
    run_id: &str,
    predicate: &RunPredicate,
    texts: &BTreeMap<&'static str, Vec<u8>>,
) -> BTreeMap<&'static str, Value> {
    let tree = &predicate.candidate_tree;
    let file = |name: &str| artifact(name, &texts[name]);
    let gate = json!({ "passed": true });
    BTreeMap::from([
        (
            "reports/task_result.json",
            json!({
                "run_id": run_id, "task_id": "task_001", "status": "SUCCESS",
                "producer": { "role": "ORCHESTRATOR", "agent_id": "provost" },
                "started_at": WHEN, "finished_at": WHEN, "summary": "done", "artifacts": [],
                "git": {
                    "baseline_ref": predicate.base_commit, "head_ref": tree,
                    "changed_files": file("diff_name_only.txt"), "patch": file("patch.diff"),
                },
                "gates": {
                    "diff_gate": gate, "policy_gate": gate, "review_gate": { "passed": false },
                    "tests_gate": gate,
                },
                "next_steps": { "suggested_action": "land", "notes": "" },
            }),
        ),
        (
            "reports/work_report.json",
            json!({
                "task_id": "task_001", "run_id": run_id, "status": "success",
                "patch_ref": "patch.diff", "diff_summary": "", "evidence_refs": {},
                "failure_reason": "", "baseline_ref": predicate.base_commit,
            }),
        ),
        (
            "reports/review_report.json",
            json!({
                "run_id": run_id, "reviewed_at": WHEN, "verdict": "BLOCKED",
                "reviewer": { "role": "REVIEWER", "agent_id": "nobody" },
                "summary": "not reviewed", "scope_check": { "passed": true, "violations": [] },
                "evidence": [], "produced_diff": false,
            }),
        ),
        (
            "reports/test_report.json",
            json!({
                "run_id": run_id, "task_id": "task_001", "status": "PASS",
                "runner": { "role": "ORCHESTRATOR", "agent_id": "provost" },
                "started_at": WHEN, "finished_at": WHEN, "artifacts": [],
                "commands": [{
                    "name": "unit", "cmd_argv": ["cargo", "test", "a b"], "must_pass": true,
                    "timeout_sec": 60, "exit_code": 0, "duration_sec": 1.5,
                    "stdout": file("tests/stdout.log"), "stderr": file("tests/stderr.log"),
                }],
                "x_provost": { "tree": tree },
            }),
        ),
        (
            "reports/evidence_report.json",
            json!({ "status": "ok", "missing": [] }),
        ),
    ])
}

/// One event of the run.
pub(crate) fn event(run_id: &str, kind: &str, payload: Map<String, Value>) -> Event {
    Event {
        ts: WHEN.into(),
        level: Level::Info,
        event_type: kind.into(),
        run_id: run_id.into(),
        task_id: Some("task_001".into()),
        attempt: Some(1),
        payload,
        trace_id: "trace_01".into(),
    }
}

/// One event after the seal.
pub(crate) fn later(kind: &str, payload: Map<String, Value>) -> Event {
    Event {
        attempt: None,
        ..event("run_00000001", kind, payload)
    }
}

/// The facts of a landing in the record that `head` puts next; a test can falsify each of them.
pub(crate) struct Land {
    pub(crate) predicate: LandingPredicate,
    pub(crate) commit: Oid,
}

impl Land {
    /// A landing of the sealed candidate, whose process wrote everything from record `from` on.
    pub(crate) fn new(run: &RunPredicate, from: u64, head: &Head) -> Self {
        Self {
            predicate: LandingPredicate {
                run_id: run.run_id.clone(),
                sealed_head: run.ledger_head.clone(),
                vouches: vouches(from, head),
                tree: run.candidate_tree.clone().unwrap(),
                parent: run.base_commit.clone(),
                target: "refs/heads/main".into(),
                landed_at: WHEN.try_into().unwrap(),
            },
            // The run of a sample publishes this one.
            commit: run.base_commit.clone(),
        }
    }

    /// The payload of the record, signed by `key`.
    pub(crate) fn sign(&self, key: &SigningKey) -> Map<String, Value> {
        let predicate = self.predicate.clone();
        let said = Landing {
            commit: self.commit.clone(),
            tree: predicate.tree.clone(),
            parent: predicate.parent.clone(),
            target: predicate.target.clone(),
        };
        carrying(&said, &predicate.state(self.commit.clone()).seal(key))
    }
}

/// The records that the statement in the next record after `head` vouches for.
pub(crate) fn vouches(from: u64, head: &Head) -> Vouched {
    Vouched {
        from,
        seq: head.next,
        prev: head.hash.clone(),
    }
}

/// A payload with `said` and `statement`.
pub(crate) fn carrying(said: &impl serde::Serialize, statement: &Envelope) -> Map<String, Value> {
    let Value::Object(mut payload) = serde_json::to_value(said).unwrap() else {
        panic!("no object");
    };
    payload.insert(STATEMENT.into(), serde_json::to_value(statement).unwrap());
    payload
}
