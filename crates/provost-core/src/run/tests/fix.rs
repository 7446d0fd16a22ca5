use std::collections::BTreeMap;

use serde_json::Value;

use super::review::{review, reviewed_opening, says};
use super::*;
use crate::run::fact::{Fix, Placed, Trigger, WorkspaceKind};
use crate::run::fix::beyond;

/// A run with a reviewer whose refusals may be fixed twice.
fn opening() -> Fact {
    let Fact::Opened(mut opened) = reviewed_opening() else {
        unreachable!("it is the first fact");
    };
    opened.contract.timeout_retry.max_retries = 2;
    opened.contract_sha256 = contract::digest(&opened.contract).unwrap();
    Fact::Opened(opened)
}

fn folded(facts: &[Fact]) -> State {
    let all: Vec<Fact> = std::iter::once(opening())
        .chain(facts.iter().cloned())
        .collect();
    State::fold(&ledger(&all)).unwrap()
}

/// Applies everything that only needs a judgement or a record, until a step has to be done.
fn judged(mut state: State) -> State {
    loop {
        match state.next() {
            Next::Judge(gate) => {
                let verdict = state.judge(gate);
                state
                    .apply(Fact::judged(Judgement { gate, verdict }))
                    .unwrap();
            }
            _ => return state,
        }
    }
}

fn placed() -> Vec<Fact> {
    vec![
        started(Step::Lease),
        Fact::Leased { fence: 1 },
        started(Step::Workspace),
        Fact::Workspace(Placed {
            path: "ws/1".to_owned(),
            kind: WorkspaceKind::Copy,
            reason: String::new(),
        }),
    ]
}

fn sandbox_test() -> Vec<Fact> {
    let probed = || Probed {
        shape: sha256(b"s"),
        cached: false,
        attempts: vec![attempt(true)],
    };
    let test = SandboxTest {
        tier: "namespaces".to_owned(),
        processes: Processes::Own,
        landlock: None,
        sealed_gaps: Vec::new(),
        holes: Vec::new(),
        held: true,
        kernel: "k".to_owned(),
        boot: "b".to_owned(),
        launcher: sha256(b"l"),
        profile: sha256(b"p"),
        limits: BTreeMap::new(),
        agent: probed(),
        acceptance: probed(),
        program: None,
    };
    vec![started(Step::Selftest), Fact::Tested(test)]
}

/// A candidate that was captured and has this review.
fn candidate(result: ResultFile) -> State {
    let facts = [
        placed(),
        sandbox_test(),
        agent(Ending::Exited(0), ResultFile::Absent),
        captured(&["app/a"]),
        review("tree", Ending::Exited(0), result, &[]),
    ]
    .concat();
    judged(folded(&facts))
}

/// A candidate that passed its review and has these test results.
fn tested(endings: &[(&str, Ending)], altered: &[&str]) -> State {
    let mut state = candidate(says("PASS", &[]));
    let mut base = tests("base tree", &[], &[]);
    if let Some(Fact::TestsRan(run)) = base.last_mut() {
        run.side = Side::Base;
    }
    base[0] = started(Step::BaseAcceptance);
    for fact in base.into_iter().chain(tests("tree", endings, altered)) {
        state.apply(fact).unwrap();
    }
    judged(state)
}

fn refused() -> State {
    candidate(says("FAIL", &["elsewhere"]))
}

#[test]
fn only_a_reviewer_and_a_failed_command_are_fixed() {
    use Ending::{Exited, NotStarted, Signalled, TimedOut};
    let both = |one, two| tested(&[("one", one), ("two", two)], &[]);
    let cases = vec![
        ("the reviewer refuses", refused(), Some(Gate::Review)),
        (
            "the reviewer mumbles",
            candidate(ResultFile::Text("well".to_owned())),
            None,
        ),
        (
            "a command fails",
            both(Exited(1), Exited(0)),
            Some(Gate::Acceptance),
        ),
        (
            "a command dies",
            both(Signalled(6), Exited(0)),
            Some(Gate::Acceptance),
        ),
        ("a command is late", both(TimedOut, Exited(0)), None),
        ("a program is missing", both(NotStarted, Exited(1)), None),
        ("all is well", both(Exited(0), Exited(1)), None),
        (
            "the tree changed",
            tested(&[("one", Exited(1)), ("two", Exited(0))], &["app/a"]),
            None,
        ),
        (
            "a command is missing",
            tested(&[("one", Exited(1))], &[]),
            None,
        ),
    ];
    for (name, state, want) in cases {
        let next = match state.next() {
            Next::Trigger(gate) => Some(gate),
            _ => None,
        };
        assert_eq!(next, want, "{name}: {:?}", state.refusal);
    }
}

fn triggered(mut state: State) -> State {
    let Next::Trigger(gate) = state.next() else {
        panic!("{:?}", state.next());
    };
    let trigger = Trigger {
        gate,
        code: state.refusal.as_ref().unwrap().code,
        not_before: "2026-01-01T00:00:07Z".to_owned(),
    };
    state.apply(Fact::Triggered(trigger)).unwrap();
    assert_eq!(state.next(), Next::Do(Step::Clean));
    state.apply(started(Step::Clean)).unwrap();
    state.apply(Fact::Cleaned(Cleaned::default())).unwrap();
    assert_eq!(state.next(), Next::Do(Step::Fix));
    state.apply(started(Step::Fix)).unwrap();
    state
}

fn fix_of(state: &State) -> Fix {
    let evidence = state.failed_evidence();
    let text = |file: &String| (file.clone(), b"first\nlast \x1b[31mred\n".to_vec());
    let texts = evidence.iter().map(|it| text(&it.file)).collect();
    state.fix(&texts).unwrap()
}

#[test]
fn a_fix_begins_anew_with_what_was_refused() {
    let state = triggered(refused());
    let fix = fix_of(&state);
    let mut next = state.clone();
    next.apply(Fact::Fixing(Box::new(fix))).unwrap();
    assert_eq!((next.attempt, next.past.len()), (2, 1));
    assert_eq!(next.task_id(), "task-0001-fix-1");
    assert_eq!(next.names.task_id, "task-0001");
    assert_eq!(next.past[0].refusal.code, Code::ReviewRefused);
    assert!(next.refusal.is_none() && next.gates.is_empty() && next.captured.is_none());
    assert_eq!(next.next(), Next::Judge(Gate::Policy));
    assert!(next.judge(Gate::Policy).allow, "{:?}", next.contract);
    let workspace = match next.effect(Step::Workspace).unwrap() {
        crate::run::effect::Effect::Workspace(order) => order,
        other => panic!("{other:?}"),
    };
    assert_eq!((workspace.attempt, workspace.tree), (2, oid("tree")));
    assert_eq!(workspace.base.tree, oid("base tree"));
    let capture = match next.effect(Step::Capture).unwrap() {
        crate::run::effect::Effect::Capture(order) => order,
        other => panic!("{other:?}"),
    };
    assert_eq!(capture.base, oid("base tree"), "judged against the base");
    assert_eq!(next.given()[0].file, "reviews/1.report.json");
}

#[test]
fn a_contract_of_a_fix_says_what_failed() {
    let by_reviewer = fix_of(&triggered(refused())).contract.inputs.spec;
    for words in ["say hello", "I looked. Twice.", "elsewhere", "odd"] {
        assert!(by_reviewer.contains(words), "{words}: {by_reviewer}");
    }
    let mut state = tested(
        &[("one", Ending::Exited(1)), ("two", Ending::Exited(0))],
        &[],
    );
    if let Some(run) = state.tests.get_mut(&Side::Candidate) {
        run.commands[0].stdout.kept = 9;
    }
    let fix = fix_of(&triggered(state));
    let spec = &fix.contract.inputs.spec;
    for words in ["`pytest -q` failed with status 1", "    last [31mred\n"] {
        assert!(spec.contains(words), "{words}: {spec}");
    }
    let evidence = fix.contract.inputs.artifacts.last().unwrap();
    assert_eq!(
        (evidence.uri.as_str(), evidence.name.as_str()),
        ("x.log", "x.log")
    );
    assert_eq!(evidence.sha256, stream().sha256);
}

/// Every place of a value that holds no list and no object.
fn leaves(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                leaves(value, &format!("{place}/{key}"), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (at, value) in list.iter().enumerate() {
                leaves(value, &format!("{place}/{at}"), found);
            }
        }
        _ => found.push(place.to_owned()),
    }
}

#[test]
fn a_fix_is_never_beyond_its_parent_in_any_field() {
    let state = triggered(refused());
    let fix = fix_of(&state);
    let first = state.opened.contract.clone();
    assert_eq!(beyond(&first, &fix), None);
    let whole = serde_json::to_value(&fix.contract).unwrap();
    let mut places = Vec::new();
    leaves(&whole, "", &mut places);
    let free = [
        "/inputs/spec",
        "/inputs/artifacts/1/name",
        "/inputs/artifacts/1/uri",
    ];
    let mut tried = 0;
    for place in places {
        let mut changed = whole.clone();
        let leaf = changed.pointer_mut(&place).unwrap();
        *leaf = match &*leaf {
            Value::String(text) => json!(format!("x{text}")),
            Value::Number(number) => json!(number.as_u64().unwrap() + 1),
            Value::Bool(flag) => json!(!flag),
            Value::Array(_) => json!(["x"]),
            other => panic!("{place}: {other}"),
        };
        // Names that the format does not know make the contract invalid.
        let Ok(contract) = serde_json::from_value(changed) else {
            continue;
        };
        let other = Fix {
            contract,
            ..fix.clone()
        };
        if free[1..].contains(&place.as_str()) || place == "/inputs/artifacts/1/sha256" {
            continue;
        }
        tried += 1;
        assert!(beyond(&first, &other).is_some(), "{place}");
        let mut forged = state.clone();
        assert!(forged.apply(Fact::Fixing(Box::new(other))).is_err());
    }
    assert!(tried > 20, "only {tried} fields");
    let mut wider = fix.clone();
    wider.contract.allowed_paths.push("more".to_owned());
    assert_eq!(beyond(&first, &wider), Some("contract"));
    let mut poorer = fix;
    poorer.contract.inputs.artifacts.clear();
    assert_eq!(beyond(&first, &poorer), Some("inputs.artifacts"));
}

#[test]
fn the_loop_stands_only_where_it_can_have_happened() {
    let trigger = |gate, code, not_before: &str| {
        Fact::Triggered(Trigger {
            gate,
            code,
            not_before: not_before.to_owned(),
        })
    };
    let when = "2026-01-01T00:00:00Z";
    let cases = [
        trigger(Gate::Acceptance, Code::ReviewRefused, when),
        trigger(Gate::Review, Code::AcceptanceFailed, when),
        trigger(Gate::Review, Code::ReviewRefused, "soon"),
        Fact::Exhausted { fixes: 0 },
    ];
    for fact in cases {
        assert!(refused().apply(fact.clone()).is_err(), "{fact:?}");
    }
    let again = trigger(Gate::Review, Code::ReviewRefused, when);
    assert!(refused().apply(again.clone()).is_ok());
    let mut waiting = refused();
    waiting.apply(again.clone()).unwrap();
    assert!(waiting.apply(again).is_err(), "twice");
    // A contract without retries is never tried again.
    let mut once = refused();
    once.opened.contract.timeout_retry.max_retries = 0;
    assert_eq!(once.next(), Next::Do(Step::Clean));
}

#[test]
fn a_long_name_stays_a_name() {
    let Fact::Opened(mut opened) = opening() else {
        unreachable!("it is the first fact");
    };
    opened.contract.task_id = "t".repeat(128);
    let mut state = triggered(refused());
    state.opened.contract = opened.contract.clone();
    let fix = fix_of(&state);
    assert_eq!(fix.contract.task_id.len(), 128);
    assert!(fix.contract.task_id.ends_with("-fix-1"));
    assert_eq!(beyond(&opened.contract, &fix), None);
}
