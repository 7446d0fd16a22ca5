//! Changes the bytes of a sealed bundle, as an attacker without the key can.

use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::report::Sha256;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::path::RawPath;
use provost_core::record::{Event, Head, read};
use provost_engine::bundle::statement::{LedgerHead, RunStatement};
use provost_engine::bundle::verify::{Pins, ProofAnswer, Question, Report, Signer, verify};
use serde_json::{Map, Value, json};

use crate::sample::{Bundle, Draft, Land, key, later};

pub(crate) fn check(bundle: &Bundle) -> Report {
    verify(bundle, &[key(1).public()], &Pins::default(), None)
}

pub(crate) fn sealed() -> Bundle {
    Draft::new("run_00000001").seal(&key(1))
}

pub(crate) fn predicate(bundle: &Bundle) -> provost_engine::bundle::statement::RunPredicate {
    let bytes = &bundle[&RawPath::new("attestation.dsse.json")];
    let payload = Envelope::parse(bytes)
        .unwrap()
        .unverified_payload()
        .unwrap();
    RunStatement::parse(&payload).unwrap().predicate
}

/// The sealed bundle with a landing after it.
pub(crate) fn landed() -> Bundle {
    let mut bundle = sealed();
    let predicate = predicate(&bundle);
    let mut head = Head::after(&predicate.ledger_head.hash);
    let approved = head.append(later("APPROVED", Map::new()));
    let payload = Land::new(&predicate, 0, &head).sign(&key(1));
    let landed = head.append(later("LANDED", payload));
    let lines = approved.line() + "\n" + &landed.line() + "\n";
    bundle.insert(RawPath::new("after.jsonl"), lines.into_bytes());
    bundle
}

/// The report refuses, has the status `exit`, and names `name` in a finding.
pub(crate) fn found(report: &Report, name: &RawPath, exit: Exit, what: &str) {
    assert_ne!(report.verdict().code, Code::Ok, "{name}: {what}");
    assert!(!report.verdict().allow, "{name}: {what}");
    assert_eq!(report.exit(), exit, "{name}: {what}: {report:?}");
    let names = |path: &str| path == name.to_string() || path.starts_with(&format!("{name} "));
    assert!(
        report
            .proof
            .findings
            .iter()
            .any(|finding| names(&finding.path)),
        "{name}: {what}: {report:?}"
    );
}

#[test]
fn a_sealed_bundle_holds() {
    for bundle in [sealed(), landed()] {
        let report = check(&bundle);
        assert_eq!(report.proof.findings, []);
        assert_eq!(report.exit(), Exit::Yes);
        let answers = [
            report.proof.intact,
            report.proof.complete,
            report.proof.authentic,
        ];
        assert_eq!(answers, [ProofAnswer::Yes; 3]);
        assert!(report.verdict().allow);
    }
}

#[test]
fn every_flipped_byte_is_found() {
    let bundle = landed();
    for (name, bytes) in &bundle {
        // Every byte of small files, some of large ones; each verification takes a while.
        let step = (bytes.len() / 120).max(1);
        for place in (0..bytes.len())
            .step_by(step)
            .chain(bytes.len().checked_sub(1))
        {
            let mut bad = bundle.clone();
            bad.get_mut(name).unwrap()[place] ^= 1 << (place % 8);
            let report = check(&bad);
            // In the attestation, one bit may turn the key id into an unknown one. Then the
            // signature still names the right key, or is invalid.
            found(&report, name, Exit::Untrusted, &format!("byte {place}"));
        }
    }
}

#[test]
fn every_cut_file_is_found() {
    let bundle = landed();
    for (name, bytes) in &bundle {
        let step = (bytes.len() / 40).max(1);
        for length in (0..bytes.len())
            .step_by(step)
            .chain(bytes.len().checked_sub(1))
        {
            let mut bad = bundle.clone();
            bad.get_mut(name).unwrap().truncate(length);
            // The chain after the seal has no known end; see the pin.
            let whole_lines = length == 0 || bytes[length - 1] == b'\n';
            if name.as_bytes() == b"after.jsonl" && whole_lines {
                continue;
            }
            found(
                &check(&bad),
                name,
                Exit::Untrusted,
                &format!("cut at {length}"),
            );
        }
    }
}

#[test]
fn every_dropped_file_is_found() {
    let bundle = sealed();
    for name in bundle.keys() {
        let mut bad = bundle.clone();
        bad.remove(name);
        let report = check(&bad);
        found(&report, name, Exit::Untrusted, "dropped");
        let want = match name.as_bytes() {
            b"attestation.dsse.json" => Code::SignatureInvalid,
            _ => Code::EvidenceIncomplete,
        };
        // A file that a document refers to is reported there as well.
        let altered = report
            .proof
            .findings
            .iter()
            .any(|one| one.question == Question::Intact);
        let code = report.verdict().code;
        assert!(
            code == want || altered && code == Code::EvidenceAltered,
            "{name}: {report:?}"
        );
    }
}

#[test]
fn an_added_file_is_found() {
    for name in [
        "extra.txt",
        "reports/more.json",
        "manifest.json.bak",
        "a\x1b[2Jb",
        "caf\u{e9}",
    ] {
        let mut bad = sealed();
        bad.insert(RawPath::new(name), Vec::new());
        let report = check(&bad);
        found(&report, &RawPath::new(name), Exit::Untrusted, "added");
        assert_eq!(report.verdict().code, Code::EvidenceIncomplete);
        assert_eq!(report.proof.intact, ProofAnswer::Yes);
    }
    let mut bad = sealed();
    bad.insert(RawPath::new(*b"\xff\xfe"), Vec::new());
    found(
        &check(&bad),
        &RawPath::new(*b"\xff\xfe"),
        Exit::Untrusted,
        "added",
    );
    let mut fine = sealed();
    fine.insert(RawPath::new("driver.lock"), Vec::new());
    assert!(check(&fine).verdict().allow);
}

fn lines(bundle: &Bundle, name: &str) -> Vec<Vec<u8>> {
    let bytes = &bundle[&RawPath::new(name)];
    let keep = |line: &[u8]| line.to_vec();
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(keep)
        .collect()
}

#[test]
fn a_line_that_is_moved_or_dropped_is_found() {
    let bundle = landed();
    for name in ["events.jsonl", "after.jsonl"] {
        let path = RawPath::new(name);
        let good = lines(&bundle, name);
        for at in 0..good.len() {
            let mut dropped = good.clone();
            dropped.remove(at);
            let mut twice = good.clone();
            twice.insert(at, good[at].clone());
            let mut cases = vec![twice];
            // A cut at the end of the second chain is found only with a pin.
            if name == "events.jsonl" || at + 1 < good.len() {
                cases.push(dropped);
            }
            if at > 0 {
                let mut swapped = good.clone();
                swapped.swap(at - 1, at);
                cases.push(swapped);
            }
            for case in cases {
                let mut bad = bundle.clone();
                bad.insert(path.clone(), case.concat());
                found(&check(&bad), &path, Exit::Untrusted, &format!("line {at}"));
            }
        }
    }
}

/// Changes the record `at` of a ledger and chains the rest again.
fn rewrite(bytes: &[u8], at: usize, change: impl Fn(&mut Event)) -> (Vec<u8>, Head) {
    let chain = read(bytes, Head::genesis()).unwrap();
    let mut head = Head::genesis();
    let mut text = String::new();
    for (index, mut record) in chain.records.into_iter().enumerate() {
        if index == at {
            change(&mut record.event);
        }
        text += &(head.append(record.event).line() + "\n");
    }
    (text.into_bytes(), head)
}

/// Rewrites the ledger and everything that depends on it, except the seal.
fn rebuilt() -> (Bundle, Head) {
    let mut bundle = sealed();
    let ledger = RawPath::new("events.jsonl");
    let (bytes, head) = rewrite(&bundle[&ledger], 1, |event| {
        event.payload.insert("forged".into(), json!(true));
    });
    let manifest = RawPath::new("manifest.json");
    let mut value: Value = json::parse(&bundle[&manifest]).unwrap();
    value["evidence_hashes"]["events.jsonl"] = json!(Sha256::of(&bytes));
    bundle.insert(ledger, bytes);
    bundle.insert(manifest, value.to_string().into_bytes());
    (bundle, head)
}

fn resealed(bundle: &mut Bundle, head: &Head, seed: u8) {
    let mut predicate = predicate(bundle);
    predicate.manifest_sha256 = Sha256::of(&bundle[&RawPath::new("manifest.json")]);
    predicate.ledger_head = LedgerHead::of(head).unwrap();
    let seal = predicate.state().seal(&key(seed)).render();
    bundle.insert(RawPath::new("attestation.dsse.json"), seal.into_bytes());
}

#[test]
fn a_bundle_rebuilt_without_the_key_is_found() {
    let (mut bundle, head) = rebuilt();
    let report = check(&bundle);
    assert_eq!(report.verdict().code, Code::EvidenceAltered);
    found(
        &report,
        &RawPath::new("manifest.json"),
        Exit::Untrusted,
        "rebuilt",
    );
    found(
        &report,
        &RawPath::new("events.jsonl"),
        Exit::Untrusted,
        "rebuilt",
    );

    // Signed by the forger: only the key is wrong.
    resealed(&mut bundle, &head, 2);
    let report = check(&bundle);
    assert_eq!(report.verdict().code, Code::KeyUnknown);
    assert_eq!(report.exit(), Exit::No);
    assert_eq!(
        [report.proof.intact, report.proof.complete],
        [ProofAnswer::Open, ProofAnswer::Yes]
    );
    assert_eq!(report.proof.authentic, ProofAnswer::No);

    // With the name of the trusted key on it, the signature is invalid.
    let seal = RawPath::new("attestation.dsse.json");
    let mut envelope = Envelope::parse(&bundle[&seal]).unwrap();
    envelope.signatures[0].keyid = key(1).public().id();
    bundle.insert(seal.clone(), envelope.render().into_bytes());
    let report = check(&bundle);
    assert_eq!(report.verdict().code, Code::SignatureInvalid);
    assert_eq!(report.proof.intact, ProofAnswer::Open);
    found(&report, &seal, Exit::Untrusted, "renamed key");
}

type Case<'a> = (&'a str, &'a [PublicKey], Option<&'a PublicKey>, Code, Exit);

#[test]
fn the_key_decides_who_is_believed() {
    let (mine, other) = (key(1).public(), key(2).public());
    let bundle = sealed();
    let cases: [Case<'_>; 7] = [
        ("trusted", &[mine], None, Code::Ok, Exit::Yes),
        ("one of several", &[other, mine], None, Code::Ok, Exit::Yes),
        ("no trusted key", &[], None, Code::KeyUnknown, Exit::No),
        (
            "another trusted",
            &[other],
            None,
            Code::KeyUnknown,
            Exit::No,
        ),
        ("asked for", &[], Some(&mine), Code::Ok, Exit::Yes),
        (
            "another asked for",
            &[],
            Some(&other),
            Code::KeyUnknown,
            Exit::Untrusted,
        ),
        (
            "trusted, another asked for",
            &[mine],
            Some(&other),
            Code::KeyUnknown,
            Exit::Untrusted,
        ),
    ];
    for (name, trusted, want, code, exit) in cases {
        let report = verify(&bundle, trusted, &Pins::default(), want);
        assert_eq!(report.verdict().code, code, "{name}");
        assert_eq!(report.exit(), exit, "{name}");
        // A signature that cannot be checked may cover anything.
        let checked = !matches!(report.proof.signer, Signer::Unknown(_));
        let intact = if checked {
            ProofAnswer::Yes
        } else {
            ProofAnswer::Open
        };
        assert_eq!(report.proof.intact, intact, "{name}");
    }
}

#[test]
fn the_seal_of_another_run_does_not_fit() {
    let mut bundle = sealed();
    let other = Draft::new("run_00000002").seal(&key(1));
    let seal = RawPath::new("attestation.dsse.json");
    bundle.insert(seal.clone(), other[&seal].clone());
    let report = check(&bundle);
    assert_eq!(report.verdict().code, Code::EvidenceAltered);
    for name in ["manifest.json", "events.jsonl"] {
        found(&report, &RawPath::new(name), Exit::Untrusted, "swapped");
    }
}

#[test]
fn a_statement_about_something_else_is_found() {
    type Change = fn(&mut RunStatement);
    let cases: [(Change, &str, &str); 4] = [
        (
            |s| s.predicate.contract_sha256 = Sha256::of(b"another"),
            "contract.json",
            "not the contract that was sealed",
        ),
        (
            |s| s.subject[0].digest.git_tree = s.predicate.base_tree.clone(),
            "attestation.dsse.json",
            "about something else",
        ),
        (
            |s| s.predicate.ledger_head.seq = u64::MAX,
            "events.jsonl",
            "its tail is missing",
        ),
        (
            |s| s.predicate.ledger_head.seq = 1,
            "events.jsonl",
            "continues after its sealed end",
        ),
    ];
    for (change, place, problem) in cases {
        let mut bundle = sealed();
        let mut statement = predicate(&bundle).state();
        change(&mut statement);
        let seal = statement.seal(&key(1)).render();
        bundle.insert(RawPath::new("attestation.dsse.json"), seal.into_bytes());
        let report = check(&bundle);
        assert_eq!(report.exit(), Exit::Untrusted, "{problem}");
        let fits = |path: &str, words: &str| path == place && words.contains(problem);
        let findings = &report.proof.findings;
        let hit = findings.iter().any(|one| fits(&one.path, &one.problem));
        assert!(hit, "{problem}: {findings:?}");
    }
}

#[test]
fn another_spelling_of_the_seal_is_found() {
    let mut bundle = sealed();
    let seal = RawPath::new("attestation.dsse.json");
    let mut spaced = bundle[&seal].clone();
    spaced.push(b'\n');
    bundle.insert(seal.clone(), spaced);
    let report = check(&bundle);
    assert_eq!(
        report.proof.authentic,
        ProofAnswer::Yes,
        "the signature still holds"
    );
    found(&report, &seal, Exit::Untrusted, "spelling");
}
