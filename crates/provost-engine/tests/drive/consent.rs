//! Runs that wait for the answer of a person.

use std::time::Duration;

use provost_core::approval::Person;
use provost_core::code::Code;
use provost_core::question::AnswerMeans;
use provost_core::run::State;
use provost_engine::drive::{Draft, approve, drive, reject};
use provost_engine::ports::{Ledger as _, PortError};
use provost_engine::sim::{Behaviour, Cut, Power};

use crate::check_recovery;
use crate::machine::Machine;

const HOUR: Duration = Duration::from_hours(1);

fn ann() -> Person {
    Person {
        user: "ann".to_owned(),
        uid: 1000,
        host: "here".to_owned(),
    }
}

fn draft(seen: Option<&str>, lasts: Duration) -> Draft<'_> {
    Draft {
        by: ann(),
        seen,
        lasts,
        how: AnswerMeans::Terminal,
        reason: "",
    }
}

fn wide(power: Power) -> Machine {
    let mut machine = Machine::new(Behaviour::Honest, power);
    machine.wide = true;
    machine
}

fn say_yes(machine: &mut Machine, lasts: Duration) -> Result<State, PortError> {
    approve(&mut machine.ports(), draft(None, lasts), &mut |_, _| Ok(()))
}

#[test]
fn a_run_that_waits_holds_nothing_and_continues_after_a_yes() {
    let mut machine = wide(Power::steady());
    let waits = machine.begin().unwrap();
    assert!(waits.is_waiting() && waits.finished.is_none());
    assert!(machine.registry.leases.is_empty() && machine.host.workspaces.is_empty());
    assert_eq!(machine.ledger.records().len(), 2, "opened and asked");
    say_yes(&mut machine, HOUR).unwrap();
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Ok);
}

#[test]
fn only_the_question_that_was_seen_is_answered_and_only_once() {
    let mut machine = wide(Power::steady());
    let waits = machine.begin().unwrap();
    let digest = waits.question().unwrap().digest();
    let other = "0".repeat(64);
    let records = machine.ledger.records().len();
    let wrong = approve(
        &mut machine.ports(),
        draft(Some(&other), HOUR),
        &mut |_, _| Ok(()),
    )
    .unwrap_err();
    assert_eq!(wrong.code, Code::NothingToApprove);
    let wrong = reject(
        &mut machine.ports(),
        (ann(), AnswerMeans::Terminal),
        Some(&other),
        "",
    )
    .unwrap_err();
    assert_eq!(wrong.code, Code::NothingToApprove);
    assert_eq!(machine.ledger.records().len(), records);
    approve(
        &mut machine.ports(),
        draft(Some(&digest), HOUR),
        &mut |_, _| Ok(()),
    )
    .unwrap();
    assert_eq!(
        say_yes(&mut machine, HOUR).unwrap_err().code,
        Code::NothingToApprove
    );
    let mut narrow = Machine::new(Behaviour::Honest, Power::steady());
    narrow.begin().unwrap();
    assert_eq!(
        say_yes(&mut narrow, HOUR).unwrap_err().code,
        Code::NothingToApprove
    );
}

#[test]
fn a_yes_whose_time_is_over_begins_nothing() {
    let mut machine = wide(Power::steady());
    machine.begin().unwrap();
    say_yes(&mut machine, Duration::ZERO).unwrap();
    let waits = machine.take_over(2).unwrap();
    assert!(waits.is_waiting() && waits.finished.is_none());
    assert!(machine.registry.leases.is_empty() && machine.host.workspaces.is_empty());
    say_yes(&mut machine, HOUR).unwrap();
    let state = machine.take_over(3).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::Ok);
}

#[test]
fn a_no_is_sealed_as_any_refusal() {
    let mut machine = wide(Power::steady());
    machine.begin().unwrap();
    reject(
        &mut machine.ports(),
        (ann(), AnswerMeans::Terminal),
        None,
        "too wide",
    )
    .unwrap();
    let state = drive(&mut machine.ports()).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::ApprovalRejected);
    assert!(machine.host.workspaces.is_empty() && machine.host.agents.is_empty());
}

/// Cuts the power at every call from the beginning to the end of a run that is approved on the way.
#[test]
fn a_run_that_is_approved_survives_a_crash_at_any_call() {
    for cut in [Cut::Before, Cut::After] {
        for call in 1.. {
            let mut machine = wide(Power::cut_at(call, cut));
            let place = format!("cut {cut:?} call {call}");
            let outcome = machine.begin().and_then(|_| {
                say_yes(&mut machine, HOUR)?;
                machine.take_over(2)
            });
            if !machine.power.is_out() {
                assert_eq!(outcome.unwrap().finished.unwrap().code, Code::Ok);
                assert!(call > 25, "only {call} calls were cut");
                break;
            }
            machine.power.restore();
            if machine.ledger.records().is_empty() {
                continue;
            }
            let state = machine.take_over(2).unwrap();
            if state.is_waiting() {
                assert!(machine.host.agents.is_empty(), "{place}");
                say_yes(&mut machine, HOUR).unwrap();
            }
            check_recovery(&mut machine, Some(Code::Ok), &place);
        }
    }
}
