//! Distinguishes running, sealed and truncated runs.

use provost_core::code::Code::{
    self, EvidenceAltered, EvidenceIncomplete, Ok, RunUnfinished, SignatureInvalid,
};
use provost_core::exit::Exit;
use provost_core::path::RawPath;
use provost_core::record::{GENESIS, Head};
use provost_engine::bundle::verify::State::{self, Running, Sealed, TailMissing, Unsealed};
use provost_engine::bundle::verify::{Pins, ProofAnswer, verify};

use crate::attacks::sealed;
use crate::sample::{Bundle, Draft, key};

fn without(bundle: &Bundle, names: &[&str]) -> Bundle {
    let mut bundle = bundle.clone();
    for name in names {
        bundle.remove(&RawPath::new(*name));
    }
    bundle
}

/// The bundle with only the first `count` records of its ledger.
fn shortened(bundle: &Bundle, count: usize) -> Bundle {
    let mut bundle = bundle.clone();
    let ledger = bundle.get_mut(&RawPath::new("events.jsonl")).unwrap();
    let lines: Vec<_> = ledger.split_inclusive(|byte| *byte == b'\n').collect();
    *ledger = lines[..count].concat();
    bundle
}

const SEAL: &[&str] = &["manifest.json", "attestation.dsse.json"];

fn is(name: &str, bundle: &Bundle, pin: Option<&Head>, state: State, code: Code) {
    let pins = Pins {
        ledger: pin.cloned(),
        after: None,
    };
    let report = verify(bundle, &[key(1).public()], &pins, None);
    assert_eq!(report.state, state, "{name}: {report:?}");
    assert_eq!(report.verdict().code, code, "{name}: {report:?}");
    assert_eq!(report.verdict().allow, code == Code::Ok, "{name}");
    assert_eq!(report.exit(), code.exit(), "{name}");
}

#[test]
fn states_are_distinguished() {
    let good = sealed();
    let open = without(&shortened(&good, 2), SEAL);
    let (records, end) = Draft::new("run_00000001").ledger();
    let at = |next, hash: &str| Head {
        next,
        hash: hash.to_owned(),
    };
    let (early, other) = (at(2, &records[1].hash), at(2, GENESIS));

    is("sealed", &good, None, Sealed, Ok);
    is("sealed, pinned", &good, Some(&end), Sealed, Ok);
    is("the pin lags", &good, Some(&early), Sealed, Ok);
    is(
        "another history",
        &good,
        Some(&other),
        Sealed,
        EvidenceAltered,
    );

    is("running", &open, None, Running, RunUnfinished);
    is(
        "running, pinned",
        &open,
        Some(&early),
        Running,
        RunUnfinished,
    );
    is(
        "running, another history",
        &open,
        Some(&other),
        Running,
        EvidenceAltered,
    );
    is(
        "cut to look running",
        &open,
        Some(&end),
        TailMissing,
        EvidenceIncomplete,
    );
}

#[test]
fn what_is_missing_decides_the_state() {
    let good = sealed();
    let unsealed = without(&good, &SEAL[1..]);
    is(
        "the seal is missing",
        &unsealed,
        None,
        Unsealed,
        SignatureInvalid,
    );
    let bare = without(&good, SEAL);
    is(
        "seal and manifest are missing",
        &bare,
        None,
        Unsealed,
        EvidenceIncomplete,
    );
    let silent = without(&good, &["events.jsonl"]);
    is(
        "the ledger is missing",
        &silent,
        None,
        TailMissing,
        EvidenceIncomplete,
    );
    let empty = without(&shortened(&good, 0), SEAL);
    is(
        "an empty ledger",
        &empty,
        None,
        TailMissing,
        EvidenceIncomplete,
    );
    is(
        "nothing is there",
        &Bundle::new(),
        None,
        TailMissing,
        EvidenceIncomplete,
    );
    // A truncated ledger under a seal also differs from the digest in the manifest.
    is(
        "a cut ledger",
        &shortened(&good, 2),
        None,
        TailMissing,
        EvidenceAltered,
    );
}

#[test]
fn a_running_run_may_be_in_the_middle_of_a_line() {
    let mut bundle = without(&shortened(&sealed(), 2), SEAL);
    let ledger = bundle.get_mut(&RawPath::new("events.jsonl")).unwrap();
    ledger.extend_from_slice(b"{\"attempt\":");
    bundle.insert(RawPath::new("patch.diff"), b"not yet named".to_vec());
    let report = verify(&bundle, &[], &Pins::default(), None);
    assert_eq!((report.state, report.exit()), (Running, Exit::NotNow));
    assert_eq!(report.proof.findings, []);
    assert_eq!(
        [report.proof.complete, report.proof.authentic],
        [ProofAnswer::Open; 2]
    );
    let ledger = bundle.get_mut(&RawPath::new("events.jsonl")).unwrap();
    ledger[20] ^= 1;
    let report = verify(&bundle, &[], &Pins::default(), None);
    assert_eq!(report.verdict().code, Code::EvidenceAltered);
}

#[test]
fn a_bundle_of_a_newer_format_is_not_called_altered() {
    let bundle = Draft {
        format: Some(3),
        ..Draft::new("run_00000001")
    };
    let mut bundle = bundle.seal(&key(1));
    let judged = |bundle: &Bundle| verify(bundle, &[key(1).public()], &Pins::default(), None);
    let report = judged(&bundle);
    let verdict = report.verdict();
    assert_eq!(verdict.code, Code::UnknownSchemaVersion, "{report:?}");
    assert_eq!(verdict.reason, "bundle format 3 is newer than this program");
    assert_eq!(
        (
            report.proof.intact,
            report.proof.complete,
            report.proof.authentic
        ),
        (ProofAnswer::Yes, ProofAnswer::Open, ProofAnswer::Yes)
    );
    bundle
        .get_mut(&RawPath::new("meta.json"))
        .unwrap()
        .push(b' ');
    assert_eq!(judged(&bundle).verdict().code, EvidenceAltered);
}
