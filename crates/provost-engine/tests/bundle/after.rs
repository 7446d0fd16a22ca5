//! Forges records after the seal, as an attacker without the key can.

use provost_core::bundle::report::{Sha256, TestStatus};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::{Event, Head};
use provost_engine::bundle::after::Candidate;
use provost_engine::bundle::statement::{Acceptance, MergePredicate, RunPredicate};
use provost_engine::bundle::verify::{Pins, Report, verify};
use serde_json::{Map, Value, json};

use crate::attacks::{check, found, landed, predicate, sealed};
use crate::sample::{Bundle, Land, WHEN, carrying, event, key, later, vouches};

/// A second chain that grows record by record.
struct Chain {
    run: RunPredicate,
    head: Head,
    text: String,
    files: Bundle,
}

impl Chain {
    fn new() -> Self {
        let files = sealed();
        let run = predicate(&files);
        Self {
            head: Head::after(&run.ledger_head.hash),
            text: String::new(),
            run,
            files,
        }
    }

    fn push(mut self, event: Event) -> Self {
        self.text += &(self.head.append(event).line() + "\n");
        self
    }

    fn land(self, from: u64, change: impl Fn(&mut Land), seed: u8) -> Self {
        let mut land = Land::new(&self.run, from, &self.head);
        change(&mut land);
        let payload = land.sign(&key(seed));
        self.push(later("LANDED", payload))
    }

    fn merge(self, from: u64, change: impl Fn(&mut MergePredicate), seed: u8) -> Self {
        let mut merge = MergePredicate {
            run_id: self.run.run_id.clone(),
            sealed_head: self.run.ledger_head.clone(),
            vouches: vouches(from, &self.head),
            candidate: merged(),
            acceptance: Acceptance {
                status: TestStatus::Pass,
                commands: 1,
                passed: 1,
                start: None,
            },
            merged_at: WHEN.try_into().unwrap(),
        };
        change(&mut merge);
        let said = merge.candidate.clone();
        let payload = carrying(&said, &merge.state().seal(&key(seed)));
        self.push(later("CANDIDATE_MERGED", payload))
    }

    /// A test of a merge with the one log `log`.
    fn test(self, log: &[u8]) -> Self {
        let stream = |name: &str, bytes: &[u8]| {
            let file = format!("after/1/1.{name}.log");
            json!({ "file": file, "bytes": bytes.len(), "kept": bytes.len(),
                "sha256": Sha256::of(bytes) })
        };
        let run = json!({
            "side": "merged", "tree": merged().tree, "cached": false, "profile": "", "altered": [],
            "commands": [{ "name": "unit", "argv": ["cargo"], "ending": { "exited": 0 },
                "wall_ms": 1, "stdout": stream("stdout", log), "stderr": stream("stderr", b"") }],
        });
        self.start().push(later("TEST_RESULT", map(&run)))
    }

    fn start(self) -> Self {
        let start = json!({ "tree": merged().tree, "logs": "after/1" });
        self.push(later("TEST_STARTED", map(&start)))
    }

    fn file(mut self, name: &str, bytes: &[u8]) -> Self {
        self.files.insert(RawPath::new(name), bytes.to_vec());
        self
    }

    fn bundle(self) -> Bundle {
        self.clone_with(self.text.clone())
    }

    fn clone_with(&self, text: String) -> Bundle {
        let mut bundle = self.files.clone();
        bundle.insert(RawPath::new("after.jsonl"), text.into_bytes());
        bundle
    }

    fn check(self) -> Report {
        check(&self.bundle())
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn oid(digit: &str) -> Oid {
    digit.repeat(40).as_str().try_into().unwrap()
}

fn merged() -> Candidate {
    Candidate {
        commit: oid("1"),
        tree: oid("2"),
        parent: oid("3"),
    }
}

fn land_merged(land: &mut Land) {
    land.commit = merged().commit;
    land.predicate.tree = merged().tree;
    land.predicate.parent = merged().parent;
}

/// A merge with its logs, and its landing.
fn whole() -> Chain {
    Chain::new()
        .test(b"fine\n")
        .file("after/1/1.stdout.log", b"fine\n")
        .file("after/1/1.stderr.log", b"")
        .merge(0, |_| {}, 1)
        .land(0, land_merged, 1)
}

#[test]
fn what_is_signed_holds() {
    let report = whole().check();
    assert_eq!(report.proof.findings, []);
    assert_eq!(report.after.unvouched, [""; 0]);
    assert_eq!(report.after.candidates.last(), Some(&merged()));
    assert_eq!(report.after.landings[0].candidate(), merged());

    // After a reset of the branch the same commit may land again, and so may the sealed one.
    let again = whole().land(4, land_merged, 1).land(5, |_| {}, 1).check();
    assert_eq!(again.proof.findings, []);
    assert_eq!(again.after.landings.len(), 3);
}

#[test]
fn a_record_that_matters_is_nothing_without_its_statement() {
    let bare = |kind: &str, value: Value| Chain::new().push(later(kind, map(&value))).check();
    let landing = json!({ "commit": oid("1"), "tree": oid("2"), "parent": oid("3"),
        "target": "refs/heads/main" });
    let merge = json!(merged());
    let unsigned = |mut chain: Chain| {
        chain.text = chain.text.replace(r#""keyid""#, r#""keyed""#);
        chain
    };
    let cases = [
        ("no statement", bare("LANDED", landing)),
        ("no statement of a merge", bare("CANDIDATE_MERGED", merge)),
        ("nothing at all", bare("LANDED", json!({}))),
        (
            "no envelope",
            bare("LANDED", json!({ "attestation": { "payload": 1 } })),
        ),
        ("another key", Chain::new().land(0, |_| {}, 2).check()),
        (
            "a merge by another key",
            Chain::new().merge(0, |_| {}, 2).check(),
        ),
        (
            "changed by hand",
            unsigned(Chain::new().land(0, |_| {}, 1)).check(),
        ),
        (
            "a statement where none belongs",
            Chain::new()
                .push(later("APPROVED", map(&json!({ "attestation": {} }))))
                .check(),
        ),
        (
            "of another run",
            Chain::new()
                .push(event("run_00000002", "APPROVED", Map::new()))
                .check(),
        ),
    ];
    for (name, report) in cases {
        assert_eq!(
            report.verdict().code,
            Code::EvidenceAltered,
            "{name}: {report:?}"
        );
        found(&report, &RawPath::new("after.jsonl"), Exit::Untrusted, name);
        assert_eq!(report.after.landings, [], "{name}");
    }
}

#[test]
fn a_statement_says_what_its_record_says_and_stands_where_it_was_signed() {
    type Lie = fn(&mut Land);
    type MergeLie = fn(&mut MergePredicate);
    let lies: [(&str, Lie); 9] = [
        ("another tree", |land| land.predicate.tree = oid("2")),
        ("another parent", |land| land.predicate.parent = oid("2")),
        ("another commit", |land| land.commit = oid("2")),
        ("another run", |land| {
            land.predicate.run_id = "run_00000002".into();
        }),
        ("another seal", |land| land.predicate.sealed_head.seq += 1),
        ("another place", |land| land.predicate.vouches.seq += 1),
        ("another past", |land| {
            land.predicate.vouches.prev = "0".repeat(64);
        }),
        ("a backward range", |land| land.predicate.vouches.from = 7),
        ("another time", |land| {
            land.predicate.landed_at = "2027-01-01T00:00:00Z".try_into().unwrap();
        }),
    ];
    for (name, lie) in lies {
        let report = Chain::new().land(0, lie, 1).check();
        assert_eq!(
            report.verdict().code,
            Code::EvidenceAltered,
            "{name}: {report:?}"
        );
        assert_eq!(report.after.landings, [], "{name}");
    }
    let lies: [(&str, MergeLie); 4] = [
        ("failed", |merge| merge.acceptance.status = TestStatus::Fail),
        ("fewer commands", |merge| merge.acceptance.commands = 0),
        ("another run", |merge| merge.run_id = "run_00000002".into()),
        ("another past", |merge| merge.vouches.prev = "0".repeat(64)),
    ];
    for (name, lie) in lies {
        let report = Chain::new()
            .merge(0, lie, 1)
            .land(1, land_merged, 1)
            .check();
        assert_eq!(
            report.verdict().code,
            Code::EvidenceAltered,
            "{name}: {report:?}"
        );
        assert_eq!(report.after.landings, [], "{name}");
    }
    // A commit that is not a recorded merge cannot land.
    let report = Chain::new().land(0, land_merged, 1).check();
    assert_eq!(report.verdict().code, Code::EvidenceAltered, "{report:?}");
}

#[test]
fn the_payload_beside_a_statement_cannot_be_changed() {
    for (field, value) in [
        ("commit", json!(oid("9"))),
        ("target", json!("refs/heads/other")),
        ("more", json!(1)),
    ] {
        let chain = Chain::new();
        let mut payload = Land::new(&chain.run, 0, &chain.head).sign(&key(1));
        payload.insert(field.into(), value);
        let report = chain.push(later("LANDED", payload)).check();
        assert_eq!(
            report.verdict().code,
            Code::EvidenceAltered,
            "{field}: {report:?}"
        );
    }
}

/// An attacker with write access can move a signed record elsewhere, with new hashes.
#[test]
fn signed_records_cannot_be_dropped_moved_or_preceded() {
    let chain = whole();
    let read = provost_core::record::read(
        chain.text.as_bytes(),
        Head::after(&chain.run.ledger_head.hash),
    );
    let events: Vec<Event> = read
        .unwrap()
        .records
        .into_iter()
        .map(|one| one.event)
        .collect();
    let extra = later("APPROVED", Map::new());
    let rebuilt = |events: Vec<Event>| {
        let mut head = Head::after(&chain.run.ledger_head.hash);
        let line = |event| head.append(event).line() + "\n";
        check(&chain.clone_with(events.into_iter().map(line).collect()))
    };
    assert_eq!(rebuilt(events.clone()).proof.findings, []);
    for at in 0..events.len() {
        let mut preceded = events.clone();
        preceded.insert(at, extra.clone());
        assert_eq!(rebuilt(preceded).exit(), Exit::Untrusted, "before {at}");
        if at + 1 < events.len() {
            let mut dropped = events.clone();
            dropped.remove(at);
            assert_eq!(rebuilt(dropped).exit(), Exit::Untrusted, "without {at}");
            let mut moved = events.clone();
            moved.swap(at, at + 1);
            assert_eq!(rebuilt(moved).exit(), Exit::Untrusted, "swapped at {at}");
        }
    }
}

#[test]
fn an_unvouched_record_is_named_and_decides_nothing() {
    let forged = || later("gate_failed", Map::new());
    let report = whole()
        .push(forged())
        .push(later("LAND_STARTED", Map::new()))
        .check();
    assert_eq!(report.exit(), Exit::Yes, "{report:?}");
    assert_eq!(
        report.after.unvouched,
        [
            "after.jsonl record 4 (gate_failed)",
            "after.jsonl record 5 (LAND_STARTED): a landing that began and was refused or interrupted"
        ]
    );
    assert_eq!(report.after.landings.len(), 1);

    // A later landing fixes such a record in the chain and still does not vouch for it.
    let report = Chain::new().push(forged()).land(1, |_| {}, 1).check();
    assert_eq!(report.exit(), Exit::Yes, "{report:?}");
    assert_eq!(
        report.after.unvouched,
        ["after.jsonl record 0 (gate_failed)"]
    );
}

#[test]
fn files_after_the_seal_are_held_against_what_names_them() {
    let log = "after/1/1.stdout.log";
    let altered = whole().file(log, b"forged\n");
    found(
        &altered.check(),
        &RawPath::new(log),
        Exit::Untrusted,
        "altered",
    );
    // An unsigned record cannot vouch for other content.
    let altered = whole().file(log, b"forged\n").test(b"forged\n");
    found(
        &altered.check(),
        &RawPath::new(log),
        Exit::Untrusted,
        "spoken for",
    );
    let mut missing = whole();
    missing.files.remove(&RawPath::new(log));
    found(
        &missing.check(),
        &RawPath::new(log),
        Exit::Untrusted,
        "missing",
    );
    for name in ["after/note", "after/2/1.stdout.log", "after/1/deep/er"] {
        let added = whole().file(name, b"");
        found(
            &added.check(),
            &RawPath::new(name),
            Exit::Untrusted,
            "added",
        );
    }

    // An interrupted test left a file, and nothing depends on it.
    let left = Chain::new().start().file(log, b"half").check();
    assert_eq!(left.exit(), Exit::Yes, "{left:?}");
    assert_eq!(
        left.after.unvouched,
        [
            "after.jsonl record 0 (TEST_STARTED): a test of a merge that began",
            log
        ]
    );
    let refused = Chain::new().test(b"red\n").file(log, b"green\n").check();
    found(
        &refused,
        &RawPath::new(log),
        Exit::Untrusted,
        "unlike its record",
    );
}

#[test]
fn an_end_that_was_cut_is_missed_where_it_is_pinned() {
    let chain = whole();
    let pins = |head: &Head| Pins {
        ledger: None,
        after: Some(head.clone()),
    };
    let trusted = [key(1).public()];
    let with = |bundle: &Bundle, pins: &Pins| verify(bundle, &trusted, pins, None);
    let end = chain.head.clone();
    let bundle = chain.bundle();
    assert_eq!(with(&bundle, &pins(&end)).proof.findings, []);
    let name = RawPath::new("after.jsonl");
    let lines: Vec<_> = bundle[&name]
        .split_inclusive(|byte| *byte == b'\n')
        .collect();
    for keep in 0..lines.len() {
        let mut cut = bundle.clone();
        cut.insert(name.clone(), lines[..keep].concat());
        let report = with(&cut, &pins(&end));
        found(&report, &name, Exit::Untrusted, &format!("{keep} records"));
    }
    let mut gone = bundle.clone();
    gone.remove(&name);
    found(&with(&gone, &pins(&end)), &name, Exit::Untrusted, "gone");
    let other = with(&landed(), &pins(&end));
    found(&other, &name, Exit::Untrusted, "another history");
    // The pin may lag by what a crash left unpinned.
    let lagging = whole().push(later("APPROVED", Map::new())).bundle();
    assert_eq!(with(&lagging, &pins(&end)).proof.findings, []);
}

#[test]
fn the_lock_of_a_driver_holds_a_process_or_nothing() {
    let owner = br#"{"host":"h","boot":"b","pid_namespace":"n","pid":1,"started":2}"#;
    let line = [owner.as_slice(), b"\n"].concat();
    let with = |bytes: &[u8]| {
        let mut bundle = sealed();
        bundle.insert(RawPath::new("driver.lock"), bytes.to_vec());
        check(&bundle)
    };
    for good in [b"".as_slice(), &line] {
        assert_eq!(with(good).proof.findings, []);
    }
    let spaced = [b" ".as_slice(), &line].concat();
    let long = line.repeat(20);
    for bad in [b"notes".as_slice(), owner, &spaced, &long, b"{}\n", b"\n"] {
        found(
            &with(bad),
            &RawPath::new("driver.lock"),
            Exit::Untrusted,
            "lock",
        );
    }
}
