//! A sealed bundle verifies, whatever the contract says and however the run ends.

use std::collections::BTreeMap;

use proptest::prelude::*;
use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::layout::{ATTESTATION, PACK};
use provost_core::code::Code;
use provost_core::contract;
use provost_core::path::RawPath;
use provost_core::run::Step;
use provost_core::run::fact::{Cancel, Ending, ResultFile};
use provost_engine::bundle::verify::{self, Pins};
use provost_engine::ports::{PortError, Signer};
use provost_engine::sim::{Behaviour, Opinion, Power, Trouble};
use serde_json::{Value, json};

use crate::machine::{self, Machine};

/// A signer with a real key, so that signatures can be verified.
struct KeySigner {
    key: SigningKey,
    trusted: Vec<PublicKey>,
}

fn signer() -> KeySigner {
    let key = SigningKey::from_seed(&[7; 32], "test").unwrap();
    let trusted = vec![key.public()];
    KeySigner { key, trusted }
}

impl Signer for KeySigner {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(dsse::sign(statement, &self.key).render().into_bytes())
    }

    fn trusted(&self) -> &[PublicKey] {
        &self.trusted
    }
}

/// Runs `machine` to its seal, and gives the code of the answer and the findings of verification.
pub(crate) fn seal(mut machine: Machine) -> Option<(Code, Vec<String>)> {
    machine.signer = Box::new(signer());
    let state = machine.begin().unwrap();
    let code = state.finished?.code;
    let files = machine.bundle.all();
    assert!(files.contains_key(ATTESTATION), "{code} is not sealed");
    let files = files.into_iter();
    let files: BTreeMap<RawPath, Vec<u8>> = files
        .map(|(name, bytes)| (RawPath::new(name.into_bytes()), bytes))
        .collect();
    let pins = Pins {
        ledger: machine.registry.pins.get("run_00000001").cloned(),
        after: None,
    };
    let report = verify::verify(&files, &signer().trusted, &pins, None);
    // The simulated machine has no objects; real runs have.
    let found = report.proof.findings.iter().filter(|it| it.path != PACK);
    Some((
        code,
        found
            .map(|it| format!("{}: {}", it.path, it.problem))
            .collect(),
    ))
}

#[test]
fn an_empty_instruction_is_refused_and_its_bundle_verifies() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.contract["inputs"]["spec"] = json!("");
    let (code, found) = seal(machine).unwrap();
    assert_eq!((code, found), (Code::ContractInvalid, Vec::new()));
}

/// Every way a run can end on the simulated machine.
fn endings() -> Vec<Machine> {
    let new = |behaviour| Machine::new(behaviour, Power::steady());
    let mut all: Vec<Machine> = [
        Behaviour::Honest,
        Behaviour::Strays,
        Behaviour::Breaks,
        Behaviour::Tests,
        Behaviour::Idles,
        Behaviour::Fails,
        Behaviour::FailsAstray,
    ]
    .map(new)
    .into();
    for behaviour in [
        Behaviour::BreaksOnce,
        Behaviour::Breaks,
        Behaviour::MendsAstray,
    ] {
        let mut machine = new(behaviour);
        machine.retries = 2;
        all.push(machine);
    }
    for opinion in [
        Opinion::Refuses,
        Opinion::RefusesOnce,
        Opinion::Mumbles,
        Opinion::Meddles,
    ] {
        let mut machine = new(Behaviour::Honest);
        machine.host.opinion = opinion;
        all.push(machine);
    }
    let steps = [
        Step::Lease,
        Step::Prepare,
        Step::Workspace,
        Step::Selftest,
        Step::Agent,
        Step::Capture,
        Step::Review,
        Step::BaseAcceptance,
        Step::Acceptance,
        Step::OldTests,
        Step::NewTests,
        Step::Publish,
        Step::Clean,
    ];
    for step in steps {
        let mut machine = new(Behaviour::Tests);
        machine.host.refuses = Some(step);
        all.push(machine);
        let mut machine = new(Behaviour::Tests);
        machine.observer.cancels = Some(step);
        all.push(machine);
    }
    for at in 1..12 {
        let mut machine = new(Behaviour::Honest);
        machine.registry.trouble = Some((at, Trouble::Lost));
        all.push(machine);
    }
    let mut machine = new(Behaviour::Honest);
    machine.observer.cancel_request = Some(Cancel {
        by: None,
        at: "2026-01-01T00:00:00Z".to_owned(),
        reason: "\u{1b}[2J\nno".to_owned(),
    });
    all.push(machine);
    all.extend(agents());
    all
}

/// Every way an agent can end, and every kind of result it can leave.
fn agents() -> Vec<Machine> {
    let new = || Machine::new(Behaviour::Honest, Power::steady());
    let mut all = Vec::new();
    for ending in [
        Ending::Signalled(9),
        Ending::TimedOut,
        Ending::NoProgress,
        Ending::OutputLimit,
        Ending::MemoryLimit,
        Ending::ProcessLimit,
        Ending::DiskLimit,
        Ending::InodeLimit,
        Ending::Overspent,
        Ending::Dismissed,
        Ending::NotStarted,
        Ending::Cancelled,
        Ending::LeaseLost,
    ] {
        let mut machine = new();
        machine.host.ends = Some(ending);
        all.push(machine);
    }
    let said = |status: &str| {
        json!({ "task_id": "task-0001", "status": status, "summary": "\u{202e}\u{1b}\n",
            "evidence_refs": {}, "failure": null })
        .to_string()
    };
    for text in [
        "",
        "[]",
        "\u{feff}{}",
        r#"["task-0001","SUCCESS","s",{},null]"#,
        &said("SUCCESS"),
        &said("FAILED"),
        &said("BLOCKED"),
        &"[".repeat(100_000),
        &said(&"x".repeat(100_000)),
    ] {
        let mut machine = new();
        machine.host.result = ResultFile::Text(text.to_owned());
        machine.reviewed = false;
        all.push(machine);
    }
    let mut machine = new();
    machine.host.result = ResultFile::Unusable("is a fifo".to_owned());
    all.push(machine);
    all
}

#[test]
fn however_a_run_ends_its_bundle_verifies() {
    let mut codes = std::collections::BTreeSet::new();
    for (at, machine) in endings().into_iter().enumerate() {
        let (code, found) = seal(machine).unwrap();
        assert_eq!(found, Vec::<String>::new(), "ending {at}: {code}");
        codes.insert(code);
    }
    assert!(codes.len() > 15, "{codes:?}");
}

fn odd() -> impl Strategy<Value = Value> {
    let fixed = [
        json!(""),
        json!(" "),
        json!("\n"),
        json!("x"),
        json!("-x"),
        json!("*"),
        json!(".."),
        json!("/etc/passwd"),
        json!(".provost"),
        json!("a/b/../c"),
        json!("\u{0}\u{1b}[2J\u{202e}\u{feff}"),
        json!("\u{1f600}é\u{301}"),
        json!("sh -c 'x"),
        json!("agent:x"),
        json!("9999-99-99"),
        json!("0".repeat(64)),
        json!("y".repeat(200_000)),
        json!("\u{1}".repeat(20_000)),
        json!([]),
        json!(["", "", ""]),
        json!(vec!["dup"; 3000]),
        json!({}),
        json!(0),
        json!(u64::MAX),
        json!(10_000_000),
        json!(true),
        json!("danger-full-access"),
        json!("REVIEWER"),
        json!("git_revert_commit"),
    ];
    prop_oneof![
        proptest::sample::select(fixed.to_vec()),
        ".{0,30}".prop_map(Value::from),
    ]
}

/// Pointers of a contract, including optional fields that this one does not have.
fn places() -> impl Strategy<Value = String> {
    let more = [
        "/task_type",
        "/parent_task_id",
        "/policy_pack",
        "/handoff_chain",
        "/audit_only",
        "/browser_policy",
        "/runtime_options",
        "/x_provost",
        "/x_provost/net",
        "/x_provost/author",
        "/x_provost/forbid",
        "/x_provost/tier",
        "/x_provost/target",
        "/inputs/artifacts/0/uri",
        "/inputs/artifacts/0/name",
        "/acceptance_tests/0/name",
        "/acceptance_tests/0/cmd",
        "/allowed_paths/0",
        "/log_refs/run_id",
    ];
    let mut all: Vec<String> = more.map(str::to_owned).into();
    let contract = machine::contract();
    for (name, value) in contract.as_object().unwrap() {
        all.push(format!("/{name}"));
        for inner in value.as_object().into_iter().flat_map(|it| it.keys()) {
            all.push(format!("/{name}/{inner}"));
        }
    }
    proptest::sample::select(all)
}

/// Puts `value` at `place`, and makes the missing objects on the way.
fn put(document: &mut Value, place: &str, value: Value) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    if document.pointer(parent).is_none() {
        put(document, parent, json!({}));
    }
    match document.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(name.to_owned(), value);
        }
        Some(Value::Array(items)) if !items.is_empty() => items[0] = value,
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_a_contract_says_its_sealed_bundle_verifies(
        changes in prop::collection::vec((places(), odd()), 1..4), at in 0..6_usize,
    ) {
        let behaviour = [
            Behaviour::Honest,
            Behaviour::Strays,
            Behaviour::Breaks,
            Behaviour::Idles,
            Behaviour::Fails,
            Behaviour::BreaksOnce,
        ][at];
        let mut machine = Machine::new(behaviour, Power::steady());
        machine.reviewed = at % 2 == 0;
        for (place, value) in &changes {
            put(&mut machine.contract, place, value.clone());
        }
        // A value that cannot be read as a contract opens no run.
        if contract::from_value(&machine.contract).is_ok() {
            let document = machine.contract.clone();
            if let Some((code, found)) = seal(machine) {
                prop_assert!(found.is_empty(), "{code}: {found:?} {document}");
            }
        }
    }
}
