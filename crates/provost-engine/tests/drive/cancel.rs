//! Runs that somebody wants to end.

use provost_core::approval::Person;
use provost_core::code::Code;
use provost_core::run::Step;
use provost_core::run::fact::Cancel;
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Power};

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

#[test]
fn what_is_published_stays_accepted() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.onlooker.cancels = Some(Step::Clean);
    let state = machine.begin().unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Ok);
    assert_eq!(wishes(&machine), 0);
}
