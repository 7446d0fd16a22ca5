//! A contract that a tier cannot enforce is refused before any step.

use super::*;
use crate::agent::Adapter;
use crate::contract::document::Extension;
use crate::path::RepoPath;
use crate::prepare;

fn step() -> prepare::Step {
    let path = |text: &str| RepoPath::try_from(text).unwrap();
    prepare::Step {
        name: "deps".to_owned(),
        run: vec![vec!["make".to_owned()]],
        inputs: vec![path("lock")],
        outputs: vec![prepare::Output::Tree(path("deps"))],
        net: Vec::new(),
        env: BTreeMap::new(),
        mount: None,
    }
}

/// The verdict of the policy gate on a run with `change` in sandboxes of `tier`.
fn judged(tier: Tier, change: fn(&mut Opened)) -> Verdict {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    opened.least_tier = Tier::Landlock;
    opened.contract.x_provost = Some(Extension {
        tier: Some(tier.name().to_owned()),
        ..Extension::default()
    });
    change(&mut opened);
    let state = State::fold(&ledger(&[Fact::Opened(opened)])).unwrap();
    state.judge(Gate::Policy)
}

#[test]
fn what_a_tier_cannot_hold_is_refused_by_the_policy_gate() {
    type Case<'a> = (&'a str, fn(&mut Opened), &'a str);
    let cases: [Case<'_>; 6] = [
        ("nothing special", |_| {}, ""),
        (
            "steps",
            |opened| opened.prepare = vec![step()],
            "[[prepare]]",
        ),
        (
            "an overlay",
            |opened| opened.workspace = WorkspaceChoice::Overlay,
            "kind `overlay`",
        ),
        (
            "a program",
            |opened| opened.contract.forbidden_actions = vec!["docker".to_owned()],
            "`docker` of `forbidden_actions`",
        ),
        (
            "a program, by a version that stopped none",
            |opened| {
                opened.contract.forbidden_actions = vec!["docker".to_owned()];
                opened.refuses_programs = false;
            },
            "",
        ),
        (
            "a model",
            |opened| opened.adapted = Adapter::named("codex").and_then(Adapter::plain),
            "the agent `codex`",
        ),
    ];
    for (name, change, words) in cases {
        assert!(judged(Tier::Namespaces, change).allow, "{name}");
        let verdict = judged(Tier::Landlock, change);
        assert_eq!(verdict.allow, words.is_empty(), "{name}");
        assert!(verdict.reason.contains(words), "{name}: {verdict:?}");
        if !verdict.allow {
            assert_eq!(verdict.code, Code::ContractInvalid, "{name}");
        }
    }
}

#[test]
fn loopback_that_the_policy_turns_off_cannot_be_asked_for() {
    let judged = |policy: bool, asked: Option<bool>| {
        let Fact::Opened(mut opened) = opened() else {
            unreachable!("it is the first fact");
        };
        opened.loopback = policy;
        opened.contract.x_provost = Some(Extension {
            loopback: asked,
            ..Extension::default()
        });
        let state = State::fold(&ledger(&[Fact::Opened(opened)])).unwrap();
        state.judge(Gate::Policy)
    };
    for (policy, asked, allow) in [
        (false, Some(true), false),
        (false, Some(false), true),
        (false, None, true),
        (true, Some(true), true),
    ] {
        let verdict = judged(policy, asked);
        assert_eq!(verdict.allow, allow, "{policy} {asked:?} {verdict:?}");
        if !allow {
            assert!(verdict.reason.contains("the policy turns loopback off"));
        }
    }
}
