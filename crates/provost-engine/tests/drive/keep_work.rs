//! Work that exists already is judged without an agent, and survives crashes like any other run.

use provost_core::code::Code;
use provost_core::run::fact::ExistingWork;
use provost_core::run::{Gate, Step};
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Cut, Opinion, Power, oid};
use serde_json::json;

use crate::machine::Machine;
use crate::sealed::seal;

/// A machine that judges the work in which `path` changed.
fn judging(path: &str, power: Power) -> Machine {
    // The agent would fail; it must not start.
    let mut machine = Machine::new(Behaviour::Fails, power);
    machine.work = Some(ExistingWork {
        tree: oid(path),
        revision: None,
        judged: Vec::new(),
        findings: Vec::new(),
        rounds: Vec::new(),
    });
    machine.retries = 2;
    machine
}

#[test]
fn every_gate_but_those_of_an_agent_judges_existing_work() {
    let cases = [
        ("app/a", Opinion::Passes, Code::Ok),
        ("other/x", Opinion::Passes, Code::DiffRefused),
        ("app/a", Opinion::Refuses, Code::ReviewRefused),
        // No file of it is known, so another tree would be captured.
        ("unknown", Opinion::Passes, Code::TreeChanged),
    ];
    for (path, opinion, want) in cases {
        let mut machine = judging(path, Power::steady());
        machine.host.opinion = opinion;
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, want, "{path}");
        assert!(machine.host.agents.is_empty() && state.agent.is_none());
        for gate in [Gate::Agent, Gate::Output] {
            assert!(!state.gates.contains_key(&gate), "{path}: {gate:?}");
        }
        assert!(state.worked_in.is_none());
        assert!(machine.registry.leases.is_empty());
        let mut machine = judging(path, Power::steady());
        machine.host.opinion = opinion;
        assert_eq!(seal(machine), Some((want, Vec::new())), "{path}");
    }
}

#[test]
fn a_wider_contract_accepts_what_was_refused() {
    let mut machine = judging("other/x", Power::steady());
    machine.contract["allowed_paths"] = json!(["app", "other"]);
    assert_eq!(seal(machine), Some((Code::Ok, Vec::new())));
}

#[test]
fn existing_work_is_judged_to_its_end_after_a_crash_at_any_call() {
    for (path, want) in [("app/a", Code::Ok), ("other/x", Code::DiffRefused)] {
        for cut in [Cut::Before, Cut::After, Cut::Flicker] {
            for call in 1.. {
                let mut machine = judging(path, Power::cut_at(call, cut));
                let first = machine.begin();
                if !machine.power.has_struck() {
                    assert!(call > 12, "{path}: only {call} calls were cut");
                    break;
                }
                let place = format!("{path}, {cut:?} {call}");
                machine.power.restore();
                if machine.ledger.records().is_empty() {
                    continue;
                }
                let state = match first {
                    Ok(state) => state,
                    Err(_) => machine.take_over(2).unwrap(),
                };
                let code = state.finished.unwrap().code;
                // A call that fails while the machine stays up is a refusal of its step.
                assert!(code == want || cut == Cut::Flicker, "{place}: {code}");
                assert!(machine.host.agents.is_empty(), "{place}");
                assert!(machine.registry.leases.is_empty(), "{place}");
            }
        }
    }
}

#[test]
fn judging_existing_work_is_cancelled_before_any_step() {
    for step in [
        Step::Lease,
        Step::Review,
        Step::BaseAcceptance,
        Step::Acceptance,
        Step::Publish,
    ] {
        let mut machine = judging("app/a", Power::steady());
        machine.observer.cancels = Some(step);
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, Code::Cancelled, "{step:?}");
        assert!(machine.registry.leases.is_empty(), "{step:?}");
    }
}
