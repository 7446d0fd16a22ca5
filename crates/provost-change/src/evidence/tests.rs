//! Verification of changes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::intent::tests::intent;
use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::layout::{ATTESTATION, LEDGER};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::path::RawPath;
use provost_core::record::{Head, Record};
use provost_engine::bundle::verify::ProofAnswer;

type Files = BTreeMap<RawPath, Vec<u8>>;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32], "").unwrap()
}

fn keys() -> [PublicKey; 1] {
    [key(7).public()]
}

fn chained(happenings: &[(IntentEvent, Value)]) -> Vec<Record> {
    let mut head = Head::genesis();
    let event = |(what, facts): &(IntentEvent, Value)| {
        what.event("i1", "2026-01-01T00:00:00Z".into(), facts.clone())
    };
    happenings
        .iter()
        .map(|one| head.append(event(one)))
        .collect()
}

fn ledger(records: &[Record]) -> Vec<u8> {
    let lines: String = records.iter().map(|record| record.line() + "\n").collect();
    lines.into_bytes()
}

fn seal(files: &mut Files, records: &[Record], key: &SigningKey) {
    let statement = spelled(&state(records).unwrap());
    let envelope = dsse::sign(statement.as_bytes(), key).render();
    files.insert(RawPath::new(ATTESTATION), envelope.into_bytes());
    files.insert(RawPath::new(LEDGER), ledger(records));
}

/// The records of an accepted change, and their files.
fn course() -> (Vec<(IntentEvent, Value)>, Files) {
    let mut files = Files::new();
    let mut put = |name: &'static str, document: &Value| {
        let bytes = json::canonical(document).into_bytes();
        let digest = sha256(&bytes);
        files.insert(RawPath::new(name), bytes);
        (name, digest)
    };
    let before = put(BEFORE, &json!({ "files": 1 }));
    let mut declared = intent("i1", 1, &["a"]);
    declared.report_digest.clone_from(&before.1);
    let declared = put(INTENT, &serde_json::to_value(declared).unwrap());
    let after = put(AFTER, &json!({ "files": 2 }));
    let receipt = put(RECEIPT, &json!({ "intent_id": "i1" }));
    let trail = put(TRAIL, &json!({ "intent_id": "i1", "counts": {} }));
    let judged = json!({ "status": "accepted" });
    let happenings = vec![
        (
            IntentEvent::Declared,
            naming(json!({}), &[declared, before]),
        ),
        (
            IntentEvent::Judged,
            naming(judged, &[after, receipt, trail]),
        ),
        (IntentEvent::Closed, json!({ "state": "clean" })),
    ];
    (happenings, files)
}

fn whole() -> (Files, Vec<Record>) {
    let (happenings, mut files) = course();
    let records = chained(&happenings);
    seal(&mut files, &records, &key(7));
    (files, records)
}

/// The code of an answer, and the places it names.
fn found(files: &Files, pin: Option<&Head>) -> (Code, Vec<String>) {
    let report = verify(files, &keys(), pin, None);
    let places = report.proof.findings.iter().map(|one| one.path.clone());
    (report.code(), places.collect())
}

#[test]
fn what_was_sealed_and_left_alone_is_intact_complete_and_authentic() {
    let (files, _) = whole();
    assert!(is_one(&files));
    let report = verify(&files, &keys(), None, None);
    assert_eq!(report.exit(), Exit::Yes, "{:?}", report.proof.findings);
    let answers = [
        report.proof.intact,
        report.proof.complete,
        report.proof.authentic,
    ];
    assert_eq!(answers, [ProofAnswer::Yes; 3]);
    assert_eq!(report.status.as_deref(), Some("accepted"));
    assert_eq!(report.intent_id.as_deref(), Some("i1"));
}

#[test]
fn every_missing_or_added_file_is_named() {
    let (files, _) = whole();
    for name in files.keys() {
        let mut less = files.clone();
        less.remove(name);
        let report = verify(&less, &keys(), None, None);
        assert_eq!(report.exit(), Exit::Untrusted, "{name}");
        let named = report
            .proof
            .findings
            .iter()
            .any(|one| one.path == name.to_string());
        assert!(named, "{name}: {:?}", report.proof.findings);
    }
    let mut more = files;
    more.insert(RawPath::new("note.txt"), Vec::new());
    assert_eq!(
        found(&more, None),
        (Code::EvidenceIncomplete, vec!["note.txt".into()])
    );
}

#[test]
fn a_chain_that_was_cut_reordered_extended_or_rebuilt_is_seen() {
    let (files, records) = whole();
    let with = |bytes: Vec<u8>| {
        let mut files = files.clone();
        files.insert(RawPath::new(LEDGER), bytes);
        found(&files, None)
    };
    let lines: Vec<Vec<u8>> = records
        .iter()
        .map(|one| ledger(std::slice::from_ref(one)))
        .collect();
    for cut in 0..lines.len() {
        let (code, places) = with(lines[..cut].concat());
        // No record names what a cut record named, or nothing is there at all.
        assert!(
            [Code::EvidenceAltered, Code::EvidenceIncomplete].contains(&code),
            "{cut}"
        );
        assert!(
            places.iter().any(|place| place.starts_with(LEDGER)),
            "{cut}: {places:?}"
        );
    }
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    assert_eq!(
        with(swapped.concat()),
        (Code::EvidenceAltered, vec![LEDGER.to_owned()])
    );
    let mut torn = lines.concat();
    torn.extend(b"{\"more\"");
    assert_eq!(with(torn).0, Code::EvidenceAltered);
    // A hash needs no key, so anyone can make a chain; only the seal shows that it was replaced.
    let (mut happenings, _) = course();
    happenings.push((IntentEvent::Reset, json!({})));
    assert_eq!(
        with(ledger(&chained(&happenings))),
        (Code::EvidenceIncomplete, vec![LEDGER.to_owned()])
    );
    happenings.pop();
    happenings[1].1["status"] = json!("violated");
    let place = format!("{LEDGER} record 2");
    assert_eq!(
        with(ledger(&chained(&happenings))),
        (Code::EvidenceAltered, vec![place])
    );
}

#[test]
fn a_record_that_was_not_sealed_any_more_is_incomplete_and_not_altered() {
    let (happenings, mut files) = course();
    let records = chained(&happenings);
    seal(&mut files, &records[..1], &key(7));
    files.insert(RawPath::new(LEDGER), ledger(&records));
    let report = verify(&files, &keys(), None, None);
    let answers = [
        report.proof.intact,
        report.proof.complete,
        report.proof.authentic,
    ];
    // Anyone could have added the record, so its files cannot be trusted.
    assert_eq!(
        answers,
        [ProofAnswer::Open, ProofAnswer::No, ProofAnswer::Yes]
    );
    assert_eq!(
        (report.code(), report.exit()),
        (Code::EvidenceIncomplete, Exit::Untrusted)
    );
    assert_eq!(report.status, None, "what no seal covers is not said");
    let tail = "continues after its sealed end: the seal of the last record is missing";
    assert_eq!(
        report.proof.findings.len(),
        1,
        "{:?}",
        report.proof.findings
    );
    assert_eq!(report.proof.findings[0].problem, tail);
    seal(&mut files, &records, &key(7));
    assert_eq!(verify(&files, &keys(), None, None).exit(), Exit::Yes);
}

#[test]
fn an_older_state_of_a_change_is_seen_where_its_end_is_pinned() {
    let (_, records) = whole();
    let (happenings, mut files) = course();
    let older = chained(&happenings[..1]);
    files.retain(|name, _| {
        [INTENT, BEFORE]
            .iter()
            .any(|kept| RawPath::new(*kept) == *name)
    });
    seal(&mut files, &older, &key(7));
    let report = verify(&files, &keys(), None, None);
    assert_eq!(
        (report.code(), report.exit()),
        (Code::RunUnfinished, Exit::NotNow)
    );
    assert!(report.holds() && !report.verdict().allow);
    let last = &records[2];
    let pin = Head {
        next: last.seq + 1,
        hash: last.hash.clone(),
    };
    assert_eq!(
        found(&files, Some(&pin)),
        (Code::EvidenceIncomplete, vec![LEDGER.to_owned()])
    );
}

#[test]
fn another_signer_differs_from_no_signer() {
    let (happenings, mut files) = course();
    let records = chained(&happenings);
    seal(&mut files, &records, &key(8));
    let report = verify(&files, &keys(), None, None);
    assert_eq!((report.code(), report.exit()), (Code::KeyUnknown, Exit::No));
    assert_eq!(report.proof.intact, ProofAnswer::Open);
    let wanted = keys()[0];
    let report = verify(&files, &[], None, Some(&wanted));
    assert_eq!(report.exit(), Exit::Untrusted);
    files.remove(&RawPath::new(ATTESTATION));
    let report = verify(&files, &keys(), None, None);
    assert_eq!(
        (report.code(), report.exit()),
        (Code::SignatureInvalid, Exit::Untrusted)
    );
}

#[test]
fn documents_about_another_change_do_not_agree_although_they_are_signed() {
    let cases = [
        (RECEIPT, json!({ "intent_id": "i2" })),
        (
            INTENT,
            serde_json::to_value(intent("i2", 1, &["a"])).unwrap(),
        ),
        (INTENT, json!({ "not": "an intent" })),
    ];
    for (name, document) in cases {
        let (mut happenings, mut files) = course();
        let bytes = json::canonical(&document).into_bytes();
        let at = usize::from(name == RECEIPT);
        happenings[at].1["files"][name] = json!(sha256(&bytes));
        files.insert(RawPath::new(name), bytes);
        let records = chained(&happenings);
        seal(&mut files, &records, &key(7));
        let (code, places) = found(&files, None);
        assert_eq!(code, Code::EvidenceAltered, "{document}");
        assert!(places.contains(&name.to_owned()), "{places:?}");
    }
}

proptest! {
    #[test]
    fn a_flipped_bit_of_any_file_is_seen(
        file: prop::sample::Index,
        byte: prop::sample::Index,
        bit in 0..8_u8,
    ) {
        let (mut files, _) = whole();
        let name = file.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
        let bytes = files.get_mut(&name).unwrap();
        let at = byte.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let report = verify(&files, &keys(), None, None);
        prop_assert_eq!(report.exit(), Exit::Untrusted);
        let place = name.to_string();
        prop_assert!(report.proof.findings.iter().any(|one| one.path.starts_with(&place)));
    }
}
