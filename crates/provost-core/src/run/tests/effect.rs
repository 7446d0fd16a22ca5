use super::*;
use crate::change::{Finding, FindingKind};
use crate::contract::document::{Extension, Permissions};
use crate::path::RepoPath;
use crate::protect::table;
use crate::run::effect::{AgentEffect, Clean, Effect, Extent, NoEffect};
use crate::run::fact::{Placed, WorkspaceKind};

fn placed() -> Vec<Fact> {
    let placed = Placed {
        path: "ws/1".to_owned(),
        kind: WorkspaceKind::Copy,
        reason: String::new(),
    };
    vec![started(Step::Workspace), Fact::Workspace(placed)]
}

/// The state of a run with a changed first fact.
fn changed(change: impl FnOnce(&mut Opened)) -> State {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    change(&mut opened);
    State::fold(&ledger(&[Fact::Opened(opened)])).unwrap()
}

fn clean(facts: &[Vec<Fact>]) -> Clean {
    match state(&facts.concat()).effect(Step::Clean) {
        Ok(Effect::Clean(clean)) => clean,
        other => panic!("{other:?}"),
    }
}

fn agent_of(state: &State) -> AgentEffect {
    match state.effect(Step::Agent) {
        Ok(Effect::Agent(agent)) => *agent,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_step_without_its_facts_asks_for_nothing() {
    let early = state(&[]);
    for step in [Step::Acceptance, Step::Publish] {
        assert_eq!(early.effect(step), Err(NoEffect::NoCandidate), "{step:?}");
    }
    assert_eq!(early.merge(), Err(NoEffect::NoCandidate));
    let broken = changed(|opened| opened.contract.allowed_paths = vec!["**".to_owned()]);
    for step in [
        Step::Lease,
        Step::Selftest,
        Step::Agent,
        Step::BaseAcceptance,
    ] {
        assert_eq!(broken.effect(step), Err(NoEffect::NoContract), "{step:?}");
    }
}

#[test]
fn the_commands_run_on_the_tree_they_are_asked_about() {
    let state = state(&[placed(), captured(&["app/a"])].concat());
    let tree = |step| match state.effect(step) {
        Ok(Effect::Accept(accept)) => (accept.tree, accept.logs, accept.tests.len()),
        other => panic!("{other:?}"),
    };
    let base = (oid("base tree"), "ci/base".to_owned(), 2);
    assert_eq!(tree(Step::BaseAcceptance), base);
    let candidate = (oid("tree"), "ci/candidate".to_owned(), 2);
    assert_eq!(tree(Step::Acceptance), candidate);
}

#[test]
fn only_work_that_no_ref_keeps_is_saved() {
    let left_out = {
        let mut facts = captured(&["app/a"]);
        if let Some(Fact::Captured(capture)) = facts.last_mut() {
            capture.findings.push(Finding {
                path: RawPath::new("app/large"),
                kind: FindingKind::TooLarge,
                note: String::new(),
            });
        }
        facts
    };
    let lost = vec![started(Step::Agent), Fact::Lost {}];
    let begun = vec![
        started(Step::Workspace),
        Fact::Failed {
            step: Step::Workspace,
            verdict: Verdict::deny(Code::HostFailed, "no"),
        },
    ];
    let cases = [
        ("never finished", vec![begun], false, Extent::Run),
        ("not captured", vec![placed()], true, Extent::Run),
        (
            "captured",
            vec![placed(), captured(&["app/a"])],
            false,
            Extent::Run,
        ),
        (
            "captured in part",
            vec![placed(), left_out],
            true,
            Extent::Run,
        ),
        ("lost", vec![placed(), lost], true, Extent::Attempt),
    ];
    for (name, facts, saved, extent) in cases {
        let clean = clean(&facts);
        assert_eq!(clean.salvage.is_some(), saved, "{name}");
        assert_eq!(clean.extent, extent, "{name}");
    }
}

#[test]
fn what_decides_about_the_work_is_walled_unless_it_is_permitted() {
    let walled = |state: &State, path: &str| {
        let path = RepoPath::try_from(path).unwrap();
        agent_of(state).walls.cover(&path)
    };
    let plain = state(&[]);
    let permitting = changed(|opened| {
        let mut extra = Extension::default();
        let mut permit = Permissions::default();
        permit.oracle.push("pytest.ini".to_owned());
        extra.permit = Some(permit);
        extra.forbid.push("app/secret".to_owned());
        opened.contract.x_provost = Some(extra);
    });
    let cases = [
        ("app/a", false, false),
        ("app/secret/key", false, true),
        ("pytest.ini", true, false),
        ("AGENTS.md", true, true),
        (".gitattributes", true, true),
    ];
    // The sandbox and the gate use the same table.
    for pattern in table::rows().flat_map(|row| row.files().chain(row.directories())) {
        let path = pattern.trim_start_matches('/').replace('*', "x");
        assert!(walled(&plain, &path), "{path}");
    }
    for (path, by_default, here) in cases {
        assert_eq!(walled(&plain, path), by_default, "{path}");
        assert_eq!(walled(&permitting, path), here, "{path}");
    }
}
