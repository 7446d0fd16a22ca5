//! Runs that somebody wants to end.

use provost_core::approval::Person;
use provost_core::code::Code;
use provost_core::run::Step;
use provost_core::run::fact::Cancel;
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Cut, Power};

use crate::check_recovery;
use crate::machine::Machine;

fn wish() -> Cancel {
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

fn wishes(machine: &Machine) -> usize {
    let records = machine.ledger.records().iter();
    let wishes = records.filter(|it| it.event.event_type == "RUN_CANCEL_REQUESTED");
    wishes.count()
}

#[test]
fn the_answer_says_who_wanted_the_end() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.onlooker.wish = Some(wish());
    let state = machine.begin().unwrap();
    let answer = state.finished.unwrap();
    assert_eq!(answer.code, Code::Cancelled);
    assert_eq!(
        answer.reason,
        "the run was cancelled by ann@here at 2026-01-01T00:00:00Z: enough"
    );
    assert_eq!(wishes(&machine), 1);
    assert!(machine.host.agents.is_empty() && machine.registry.leases.is_empty());
}

#[test]
fn a_run_whose_driver_died_is_taken_over_to_end_it() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.host.dies_at_work = true;
    machine.begin().unwrap_err();
    machine.power.restore();
    machine.host.dies_at_work = false;
    machine.onlooker.wish = Some(wish());
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Cancelled);
    assert!(machine.host.agents.is_empty(), "nobody works to be ended");
    assert_eq!(wishes(&machine), 1);
    assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
}

#[test]
fn a_run_that_waits_for_an_answer_ends_without_one() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.wide = true;
    assert!(machine.begin().unwrap().is_waiting());
    machine.onlooker.wish = Some(wish());
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Cancelled);
    assert!(machine.host.agents.is_empty());
}

/// Cuts the power at every call of a run that somebody wants to end while it waits for a person, or
/// before any of its steps.
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

/// Without a step, it is cancelled while it waits.
fn sweep(step: Option<Step>, cut: Cut) -> u32 {
    let want = match step {
        Some(Step::Clean) => Code::Ok,
        _ => Code::Cancelled,
    };
    for call in 1.. {
        let mut machine = Machine::new(Behaviour::Honest, Power::cut_at(call, cut));
        machine.wide = step.is_none();
        machine.onlooker.cancels = step;
        let first = machine.begin().and_then(|state| {
            if step.is_some() {
                return Ok(state);
            }
            machine.onlooker.wish = Some(wish());
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
            machine.onlooker.wish = Some(wish());
        }
        check_recovery(&mut machine, Some(want), &place);
        assert!(wishes(&machine) <= 1, "{place}");
    }
    unreachable!("a run has an end")
}

#[test]
fn what_is_published_stays_accepted() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.onlooker.cancels = Some(Step::Clean);
    let state = machine.begin().unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Ok);
    assert_eq!(wishes(&machine), 0);
}
