//! Runs that are cancelled by a request.

use provost_core::approval::Person;
use provost_core::code::Code;
use provost_core::run::Step;
use provost_core::run::fact::Cancel;
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Cut, Power};

use crate::check_recovery;
use crate::machine::Machine;

fn request() -> Cancel {
    Cancel {
        by: Some(Person {
            user: "ann".to_owned(),
            uid: 1000,
            host: "here".to_owned(),
        }),
        at: "2026-01-01T00:00:00Z".to_owned(),
        reason: "enough".to_owned(),
    }
}

fn requests(machine: &Machine) -> usize {
    let records = machine.ledger.records().iter();
    let requests = records.filter(|it| it.event.event_type == "RUN_CANCEL_REQUESTED");
    requests.count()
}

#[test]
fn the_answer_says_who_cancelled_the_run() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.observer.cancel_request = Some(request());
    let state = machine.begin().unwrap();
    let answer = state.finished.unwrap();
    assert_eq!(answer.code, Code::Cancelled);
    assert_eq!(
        answer.reason,
        "the run was cancelled by ann@here at 2026-01-01T00:00:00Z: enough"
    );
    assert_eq!(requests(&machine), 1);
    assert!(machine.host.agents.is_empty() && machine.registry.leases.is_empty());
}

#[test]
fn a_run_whose_driver_died_is_taken_over_to_end_it() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.host.dies_at_work = true;
    machine.begin().unwrap_err();
    machine.power.restore();
    machine.host.dies_at_work = false;
    machine.observer.cancel_request = Some(request());
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Cancelled);
    assert!(machine.host.agents.is_empty(), "no agent starts");
    assert_eq!(requests(&machine), 1);
    assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
}

#[test]
fn a_run_that_waits_for_an_answer_ends_without_one() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.wide = true;
    assert!(machine.begin().unwrap().is_waiting());
    machine.observer.cancel_request = Some(request());
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Cancelled);
    assert!(machine.host.agents.is_empty());
}

/// Cuts the power at every call of a run that is cancelled while it waits for a person, or before
/// any of its steps.
#[test]
fn a_run_that_is_cancelled_survives_a_crash_at_any_call() {
    let steps = [
        None,
        Some(Step::Agent),
        Some(Step::Review),
        Some(Step::Clean),
    ];
    for step in steps {
        for cut in [Cut::Before, Cut::After] {
            let calls = sweep(step, cut);
            assert!(calls > 8, "{step:?}: only {calls} calls were cut");
        }
    }
}

/// Without a step, the run is cancelled while it waits.
fn sweep(step: Option<Step>, cut: Cut) -> u32 {
    let want = match step {
        Some(Step::Clean) => Code::Ok,
        _ => Code::Cancelled,
    };
    for call in 1.. {
        let mut machine = Machine::new(Behaviour::Honest, Power::cut_at(call, cut));
        machine.wide = step.is_none();
        machine.observer.cancels = step;
        let first = machine.begin().and_then(|state| {
            if step.is_some() {
                return Ok(state);
            }
            machine.observer.cancel_request = Some(request());
            machine.take_over(2)
        });
        if !machine.power.is_out() {
            assert_eq!(first.unwrap().finished.unwrap().code, want);
            return call;
        }
        machine.power.restore();
        let place = format!("cancelled before {step:?}, cut {cut:?} call {call}");
        if machine.ledger.records().is_empty() {
            continue;
        }
        if step.is_none() {
            machine.observer.cancel_request = Some(request());
        }
        check_recovery(&mut machine, Some(want), &place);
        assert!(requests(&machine) <= 1, "{place}");
    }
    unreachable!("a run has an end")
}

#[test]
fn what_is_published_stays_accepted() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.observer.cancels = Some(Step::Clean);
    let state = machine.begin().unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Ok);
    assert_eq!(requests(&machine), 0);
}
