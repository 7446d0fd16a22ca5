use proptest::prelude::*;
use serde_json::json;

use provost_core::contract::resolve;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::net::traffic::Traffic;
use provost_core::run::Step;
use provost_core::run::fact::{AgentRun, Ending, Fact, ResultFile, Stream};

use super::*;
use crate::tests::sample_runs::{any_changes, edit, ledger, opened, refused, typed};

fn resolved(document: Document) -> Contract {
    let policy = CommandPolicy::shipped().unwrap();
    resolve(document, &policy, Trust::TypedByPerson).unwrap()
}

proptest! {
    /// The learned contract allows the change, and no wider one is needed.
    #[test]
    fn a_learned_contract_lets_its_run_pass_and_is_never_wider_than_the_change(
        changes in any_changes(),
        allow in "(a|b|ab)(/(a|b))?",
    ) {
        let records = refused(typed(&[&allow], &[]), &changes);
        let state = State::fold(&records).unwrap();
        let Ok(learned) = learn(&state) else {
            // Only what no contract permits is not learned.
            let why = crate::why::Why::of(&records).unwrap();
            prop_assert!(why.widening().is_none());
            return Ok(());
        };
        let contract = resolved(learned.clone());
        let verdict = state.judge_changes(&contract, &changes, &[]);
        prop_assert!(verdict.allow, "{learned:?} {verdict:?}");
        for entry in &learned.allowed_paths {
            let touched = changes.iter().flat_map(|change| {
                let origin = change.origin.iter().map(|origin| &origin.path);
                std::iter::once(&change.path).chain(origin)
            });
            let mut touched = touched.map(ToString::to_string);
            prop_assert!(touched.any(|path| path.starts_with(entry.as_str())), "{entry}");
        }
    }
}

#[test]
fn a_scope_shrinks_to_what_was_touched_and_unused_permissions_go() {
    let mut wide = typed(&["app", "docs"], &["app/frozen"]);
    wide.permit.oracle = vec!["app".to_owned()];
    wide.permit.fewer_tests = true;
    wide.net = vec![
        "a.example:443".parse().unwrap(),
        "b.example:443".parse().unwrap(),
    ];
    let records = refused(wide, &[edit("app/a"), edit("app/tox.ini")]);
    let mut state = State::fold(&records).unwrap();
    let stream = |bytes| Stream {
        file: "x".to_owned(),
        bytes,
        kept: bytes,
        sha256: String::new(),
        redacted: 0,
        cut: false,
    };
    state.agent = Some(AgentRun {
        ending: Ending::Exited(0),
        wall_ms: 61_500,
        stdout: stream(100_000),
        stderr: stream(0),
        result: ResultFile::Absent,
        redacted: 0,
        refused: std::collections::BTreeMap::new(),
        network: vec![Traffic {
            target: "b.example:443".to_owned(),
            method: "CONNECT".to_owned(),
            allow: true,
            code: Code::Ok,
            reason: None,
            count: 1,
            sent: 1,
            received: 1,
        }],
        claims: None,
        model: None,
    });
    state.opened.contract.timeout_retry.timeout_sec = 1200;
    state.contract = state.opened.resolve();
    let learned = serde_json::to_value(learn(&state).unwrap()).unwrap();
    assert_eq!(learned["allowed_paths"], json!(["app/a", "app/tox.ini"]));
    let extension = &learned["x_provost"];
    assert_eq!(extension["permit"], json!({ "oracle": ["app/tox.ini"] }));
    assert_eq!(extension["net"], json!(["b.example:443"]));
    assert_eq!(learned["timeout_retry"]["timeout_sec"], 120);
    assert_eq!(extension["limits"]["output_bytes"], 128 << 10);
}

#[test]
fn nothing_is_learned_from_a_run_that_no_contract_would_have_passed() {
    let hopeless = State::fold(&refused(typed(&["app"], &[]), &[edit("app/.env")])).unwrap();
    assert_eq!(learn(&hopeless).unwrap_err().code, Code::DiffRefused);
    let idle = State::fold(&ledger(&[opened(typed(&["app"], &[]))])).unwrap();
    assert_eq!(learn(&idle).unwrap_err().code, Code::EmptyDiff);
    let mut failed = State::fold(&refused(typed(&["app"], &[]), &[edit("app/a")])).unwrap();
    let verdict = Verdict::deny(Code::AcceptanceFailed, "failed");
    failed.gates.insert(Gate::Acceptance, verdict);
    assert_eq!(learn(&failed).unwrap_err().code, Code::AcceptanceFailed);
    // A step in between has no effect.
    let step = Step::Lease;
    let begun = [opened(typed(&["app"], &[])), Fact::Started { step }];
    assert!(learn(&State::fold(&ledger(&begun)).unwrap()).is_err());
}
