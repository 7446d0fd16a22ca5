//! Attempts that fix what a gate refused.

use provost_core::code::Code;
use provost_core::run::{Gate, State, Step};
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Cut, Opinion, Power};

use crate::check_recovery;
use crate::machine::Machine;

/// Behaviour of the agent, opinion of the reviewer, permitted fixes, code of the answer, number of
/// fixes.
const CASES: [(Behaviour, Opinion, u32, Code, usize); 9] = [
    (Behaviour::Honest, Opinion::Passes, 2, Code::Ok, 0),
    (Behaviour::BreaksOnce, Opinion::Passes, 2, Code::Ok, 1),
    (
        Behaviour::BreaksOnce,
        Opinion::Passes,
        0,
        Code::AcceptanceFailed,
        0,
    ),
    (
        Behaviour::Breaks,
        Opinion::Passes,
        2,
        Code::AcceptanceFailed,
        2,
    ),
    (
        Behaviour::MendsAstray,
        Opinion::Passes,
        2,
        Code::DiffRefused,
        1,
    ),
    (Behaviour::Honest, Opinion::RefusesOnce, 1, Code::Ok, 1),
    (
        Behaviour::Honest,
        Opinion::Refuses,
        1,
        Code::ReviewRefused,
        1,
    ),
    (
        Behaviour::Honest,
        Opinion::Mumbles,
        2,
        Code::ReviewInvalid,
        0,
    ),
    (Behaviour::Strays, Opinion::Passes, 2, Code::DiffRefused, 0),
];

fn machine(case: (Behaviour, Opinion, u32), power: Power) -> Machine {
    let (behaviour, opinion, retries) = case;
    let mut machine = Machine::new(behaviour, power);
    machine.host.opinion = opinion;
    machine.retries = retries;
    machine
}

/// The types of the records, in order.
fn events(machine: &Machine) -> Vec<&str> {
    let records = machine.ledger.records().iter();
    records
        .map(|record| record.event.event_type.as_str())
        .collect()
}

fn count(machine: &Machine, event: &str) -> usize {
    events(machine).iter().filter(|it| **it == event).count()
}

#[test]
fn what_can_be_fixed_is_tried_again_as_often_as_the_contract_says() {
    for (behaviour, opinion, retries, want, fixes) in CASES {
        let mut machine = machine((behaviour, opinion, retries), Power::steady());
        let state = machine.begin().unwrap();
        let place = format!("{behaviour:?}, {opinion:?}, {retries}");
        assert_eq!(state.finished.as_ref().unwrap().code, want, "{place}");
        assert_eq!(state.past.len(), fixes, "{place}");
        assert_eq!(machine.host.agents.len(), fixes + 1, "{place}");
        assert_eq!(count(&machine, "FIX_LOOP_ATTEMPT"), fixes, "{place}");
        let exhausted = retries > 0 && fixes == retries as usize && want != Code::Ok;
        let exhausted = exhausted && want != Code::DiffRefused;
        assert_eq!(state.exhausted, exhausted, "{place}");
        assert_eq!(
            count(&machine, "FIX_LOOP_EXHAUSTED"),
            usize::from(exhausted)
        );
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
        the_past_is_kept(&machine, &state);
    }
}

/// The first failure stays: in the state, by a ref, and with the contract of the attempt.
fn the_past_is_kept(machine: &Machine, state: &State) {
    for (at, past) in state.past.iter().enumerate() {
        let kept = format!("refs/provost/runs/run_00000001/{}", at + 1);
        assert!(machine.host.refs.contains(&kept), "{kept}");
        assert!(!past.refusal.allow);
        let task = format!("task-0001-fix-{}", at + 1);
        let contract = format!("tasks/{task}/contract.json");
        assert!(machine.bundle.files.contains_key(&contract), "{contract}");
        let records = machine.ledger.records().iter();
        let own = records.filter(|it| it.event.task_id.as_deref() == Some(&task));
        assert!(own.count() > 5, "records of {task}");
    }
    let manifest = &machine.bundle.files["manifest.json"];
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    let tasks = manifest["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), state.past.len() + 1);
}

#[test]
fn an_attempt_that_fixes_is_judged_like_any_other() {
    let mut machine = machine((Behaviour::BreaksOnce, Opinion::Passes, 1), Power::steady());
    machine.begin().unwrap();
    let gates = machine.observer.gates.borrow();
    let times = |gate| gates.iter().filter(|(it, _)| *it == gate).count();
    for gate in [
        Gate::Policy,
        Gate::Sandbox,
        Gate::Agent,
        Gate::Output,
        Gate::Diff,
        Gate::Review,
        Gate::Acceptance,
    ] {
        assert_eq!(times(gate), 2, "{gate:?}");
    }
}

#[test]
fn waiting_can_be_cancelled_and_fail() {
    let case = (Behaviour::BreaksOnce, Opinion::Passes, 1);
    let mut cancelled = machine(case, Power::steady());
    cancelled.observer.cancels = Some(Step::Fix);
    let mut broken = machine(case, Power::steady());
    broken.host.refuses = Some(Step::Fix);
    for (mut machine, want) in [(cancelled, Code::Cancelled), (broken, Code::HostFailed)] {
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.as_ref().unwrap().code, want);
        let refused = &state.gates[&Gate::Acceptance];
        assert_eq!(refused.code, Code::AcceptanceFailed, "it is still known");
        assert_eq!(machine.host.agents.len(), 1);
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
    }
}

#[test]
fn a_fixed_run_survives_a_crash_at_any_call() {
    // One that is fixed, and one that is not.
    let cases = [
        (Behaviour::BreaksOnce, Opinion::Passes, 1, Code::Ok),
        (Behaviour::Honest, Opinion::Refuses, 1, Code::ReviewRefused),
    ];
    for (behaviour, opinion, retries, want) in cases {
        for cut in [Cut::Before, Cut::After] {
            let calls = sweep((behaviour, opinion, retries), cut, want);
            assert!(calls > 60, "{behaviour:?}: only {calls} calls were cut");
        }
    }
}

fn sweep(case: (Behaviour, Opinion, u32), cut: Cut, want: Code) -> u32 {
    for call in 1.. {
        let mut machine = machine(case, Power::cut_at(call, cut));
        let first = machine.begin();
        if !machine.power.is_out() {
            assert_eq!(first.unwrap().finished.unwrap().code, want);
            return call;
        }
        machine.power.restore();
        if !machine.ledger.records().is_empty() {
            let place = format!("{case:?}, cut {cut:?} call {call}");
            check_recovery(&mut machine, Some(want), &place);
        }
    }
    unreachable!("a run has an end")
}
