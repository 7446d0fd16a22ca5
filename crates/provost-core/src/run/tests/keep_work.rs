use super::*;
use crate::run::fact::{EarlierVerdict, ExistingWork};
use provost_evidence::statement::LedgerHead;

/// A run whose agent passed its gates.
fn worked() -> State {
    let mut state = state(&captured(&["app/a"]));
    for passed in [Gate::Policy, Gate::Sandbox, Gate::Agent, Gate::Output] {
        state.gates.insert(passed, Verdict::allow("passed"));
    }
    state
}

/// The end of `run` if `gate` refuses it with `code`.
fn refused(mut run: State, gate: Gate, code: Code) -> State {
    let refusal = Verdict::deny(code, "refused");
    run.gates.insert(gate, refusal.clone());
    run.finished = Some(refusal);
    run
}

#[test]
fn work_is_judged_again_after_these_refusals_and_no_other() {
    use Gate::{Acceptance, Agent, Diff, Output, Policy, Review, Sandbox, Tree};
    let rows = [
        (Diff, Code::DiffRefused, true),
        (Review, Code::ReviewRefused, true),
        (Review, Code::ReviewInvalid, true),
        (Review, Code::TokenLimit, true),
        (Review, Code::ModelUnauthorized, true),
        (Review, Code::ModelUnreachable, true),
        (Review, Code::LoginUnusable, true),
        (Acceptance, Code::AcceptanceFailed, true),
        (Acceptance, Code::AcceptanceTimeout, true),
        (Acceptance, Code::TestsFewer, true),
        (Acceptance, Code::TestsUnnamed, true),
        (Acceptance, Code::MemoryLimit, true),
        (Acceptance, Code::ProcessLimit, true),
        (Acceptance, Code::DiskLimit, true),
        (Acceptance, Code::NoProgress, true),
        (Diff, Code::SecretInPatch, false),
        (Diff, Code::EmptyDiff, false),
        (Diff, Code::TreeChanged, false),
        (Sandbox, Code::SandboxLeaks, false),
        (Sandbox, Code::SandboxUnavailable, false),
        (Review, Code::SandboxLeaks, false),
        (Review, Code::LeaseLost, false),
        (Review, Code::Cancelled, false),
        (Acceptance, Code::LeaseLost, false),
        (Acceptance, Code::Cancelled, false),
        (Agent, Code::LeaseLost, false),
        (Agent, Code::AgentFailed, false),
        (Agent, Code::AgentTimeout, false),
        (Agent, Code::MemoryLimit, false),
        (Output, Code::OutputInvalid, false),
        (Output, Code::AgentReportedFailure, false),
        (Policy, Code::ContractInvalid, false),
        (Policy, Code::ApprovalNeeded, false),
        (Tree, Code::TreeChanged, false),
    ];
    let run = worked();
    let may_keep = |gate, code| refused(run.clone(), gate, code).kept_work().is_ok();
    for (gate, code, want) in rows {
        assert_eq!(may_keep(gate, code), want, "{gate:?} {code}");
    }
    let listed = |gate, code| rows.contains(&(gate, code, true));
    for gate in Gate::ALL {
        for code in Code::ALL {
            assert_eq!(
                may_keep(gate, *code),
                listed(gate, *code),
                "{gate:?} {code}"
            );
        }
    }
}

#[test]
fn work_that_was_not_measured_in_full_is_not_judged_again() {
    type Break = fn(&mut State);
    let good = refused(worked(), Gate::Diff, Code::DiffRefused);
    assert!(good.kept_work().is_ok());
    let broken: [(&str, Break); 7] = [
        ("no verdict", |it| it.finished = None),
        ("accepted", |it| it.finished = Some(Verdict::allow("yes"))),
        ("a step failed", |it| {
            it.finished = Some(Verdict::deny(Code::DiffRefused, "by a step"));
        }),
        ("nothing captured", |it| it.captured = None),
        ("no self-test", |it| {
            it.gates.remove(&Gate::Sandbox);
        }),
        ("a leaking sandbox", |it| {
            let leaks = Verdict::deny(Code::SandboxLeaks, "leaks");
            it.gates.insert(Gate::Sandbox, leaks);
        }),
        ("a failed agent", |it| {
            it.gates
                .insert(Gate::Agent, Verdict::deny(Code::AgentFailed, "no"));
        }),
    ];
    for (name, break_it) in broken {
        let mut state = good.clone();
        break_it(&mut state);
        assert!(state.kept_work().is_err(), "{name}");
    }
}

fn existing() -> Fact {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!()
    };
    opened.work = Some(ExistingWork {
        tree: oid("tree"),
        revision: None,
        judged: vec![EarlierVerdict {
            run_id: "run_00000000".to_owned(),
            sealed_head: LedgerHead {
                seq: 9,
                hash: "a".repeat(64),
            },
            code: Code::DiffRefused,
            reason: "`x` is outside the scope".to_owned(),
        }],
        findings: Vec::new(),
        rounds: Vec::new(),
    });
    opened.contract.timeout_retry.max_retries = 3;
    opened.contract_sha256 = contract::digest(&opened.contract).unwrap();
    Fact::Opened(opened)
}

fn after(facts: &[Fact]) -> State {
    State::fold(&ledger(&[vec![existing()], facts.to_vec()].concat())).unwrap()
}

/// The sandbox of the acceptance commands held; there is no other.
fn tested() -> Vec<Fact> {
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
        agent: Probed::default(),
        acceptance: Probed {
            shape: sha256(b"s"),
            cached: false,
            attempts: vec![attempt(true)],
        },
        program: None,
    };
    vec![started(Step::Selftest), Fact::Tested(test)]
}

#[test]
fn one_sandbox_is_enough_only_where_no_agent_was() {
    assert!(after(&tested()).judge(Gate::Sandbox).allow);
    assert!(!state(&tested()).judge(Gate::Sandbox).allow);
    let mut leaking = tested();
    if let Fact::Tested(test) = &mut leaking[1] {
        test.acceptance.attempts.push(attempt(false));
    }
    assert!(!after(&leaking).judge(Gate::Sandbox).allow);
    if let Fact::Tested(test) = &mut leaking[1] {
        test.acceptance.attempts.clear();
    }
    assert!(!after(&leaking).judge(Gate::Sandbox).allow);
}

#[test]
fn existing_work_reaches_its_verdict_without_an_agent() {
    let passed = |gate| {
        Fact::Passed(Judgement {
            gate,
            verdict: Verdict::allow("passed"),
        })
    };
    let run = |side, step| {
        let mut facts = tests("tree", &[("one", Ending::Exited(0))], &[]);
        facts[0] = started(step);
        if let Fact::TestsRan(run) = &mut facts[1] {
            run.side = side;
        }
        facts
    };
    let mut facts = Vec::new();
    let mut next = Vec::new();
    let steps: [Vec<Fact>; 11] = [
        vec![passed(Gate::Policy)],
        vec![started(Step::Lease), Fact::Leased { fence: 1 }],
        captured(&["app/a"]),
        vec![passed(Gate::Diff)],
        tested(),
        vec![passed(Gate::Sandbox)],
        run(Side::Base, Step::BaseAcceptance),
        run(Side::Candidate, Step::Acceptance),
        vec![passed(Gate::Acceptance)],
        vec![passed(Gate::Tree)],
        vec![
            started(Step::Publish),
            Fact::Published(fact::Published {
                commit: oid("commit"),
                branch: "b".to_owned(),
            }),
        ],
    ];
    for step in steps {
        next.push(after(&facts).next());
        facts.extend(step);
    }
    next.push(after(&facts).next());
    let want = [
        Next::Judge(Gate::Policy),
        Next::Do(Step::Lease),
        Next::Do(Step::Capture),
        Next::Judge(Gate::Diff),
        Next::Do(Step::Selftest),
        Next::Judge(Gate::Sandbox),
        Next::Do(Step::BaseAcceptance),
        Next::Do(Step::Acceptance),
        Next::Judge(Gate::Acceptance),
        Next::Judge(Gate::Tree),
        Next::Do(Step::Publish),
        // What the judges needed on disk is removed.
        Next::Do(Step::Clean),
    ];
    assert_eq!(next, want);
}

#[test]
fn a_refusal_of_existing_work_starts_no_fix() {
    let refusal = Fact::Refused(Judgement {
        gate: Gate::Acceptance,
        verdict: Verdict::deny(Code::AcceptanceFailed, "red"),
    });
    let mut facts = captured(&["app/a"]);
    facts.extend(tests(
        "tree",
        &[("one", Ending::Exited(1)), ("two", Ending::Exited(0))],
        &[],
    ));
    facts.push(refusal);
    facts.push(Fact::Passed(Judgement {
        gate: Gate::Diff,
        verdict: Verdict::allow("passed"),
    }));
    assert_eq!(after(&facts).next(), Next::Do(Step::Clean));
}

#[test]
fn another_tree_than_the_named_one_is_refused() {
    let other = captured(&["app/a"]);
    assert!(after(&other).judge(Gate::Diff).allow);
    let mut other = other;
    if let Fact::Captured(capture) = &mut other[1] {
        capture.tree = oid("another");
    }
    assert_eq!(after(&other).judge(Gate::Diff).code, Code::TreeChanged);
}

#[test]
fn the_first_refusal_of_work_is_not_forgotten() {
    let work = after(&[]).opened.work.unwrap();
    insta::assert_snapshot!(
        work.words().join("\n"),
        @"judged 2 times, first: DIFF_REFUSED: `x` is outside the scope"
    );
}
