//! Runs driven through the simulated machine, with the power cut at every call.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod cancel;
mod consent;
mod fix;
mod keep_work;
mod machine;
mod sealed;

use provost_core::code::Code;
use provost_core::record::Record;
use provost_core::run::{Gate, Step};
use provost_engine::drive::fold;
use provost_engine::ports::Ledger as _;
use provost_engine::sim::{Behaviour, Cut, Opinion, Power, SimClock, Trouble};

use machine::Machine;

#[test]
fn a_run_ends_as_its_facts_say() {
    let cases = [
        (Behaviour::Honest, Code::Ok),
        (Behaviour::Tests, Code::Ok),
        (Behaviour::Strays, Code::DiffRefused),
        (Behaviour::Breaks, Code::AcceptanceFailed),
        (Behaviour::Idles, Code::EmptyDiff),
        (Behaviour::Fails, Code::AgentFailed),
        (Behaviour::FailsAstray, Code::AgentFailed),
    ];
    for (behaviour, want) in cases {
        let mut machine = Machine::new(behaviour, Power::steady());
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, want, "{behaviour:?}");
        assert_eq!(state.published.is_some(), want == Code::Ok, "{behaviour:?}");
        assert_eq!(state.layers.map(|layers| layers.len()), Some(1));
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
    }
}

#[test]
fn what_is_not_reviewed_well_is_not_tested() {
    let cases = [
        (Opinion::Passes, Code::Ok),
        (Opinion::Refuses, Code::ReviewRefused),
        (Opinion::Mumbles, Code::ReviewInvalid),
        (Opinion::Meddles, Code::ReviewInvalid),
    ];
    for (opinion, want) in cases {
        let mut machine = Machine::new(Behaviour::Honest, Power::steady());
        machine.host.opinion = opinion;
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, want, "{opinion:?}");
        assert_eq!(state.tests.is_empty(), want != Code::Ok, "{opinion:?}");
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
    }
}

#[test]
fn a_run_is_cancelled_before_any_step_and_left_clean() {
    for step in [
        Step::Lease,
        Step::Prepare,
        Step::Workspace,
        Step::Selftest,
        Step::Agent,
        Step::Review,
        Step::BaseAcceptance,
        Step::Acceptance,
        Step::OldTests,
        Step::NewTests,
        Step::Publish,
    ] {
        let mut machine = Machine::new(Behaviour::Tests, Power::steady());
        machine.observer.cancels = Some(step);
        let end = machine.begin().unwrap().finished.unwrap();
        assert_eq!(end.code, Code::Cancelled, "{step:?}");
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
    }
}

#[test]
fn what_a_failed_agent_left_is_judged_too() {
    let cases = [
        (Behaviour::Fails, Code::Ok),
        (Behaviour::FailsAstray, Code::DiffRefused),
    ];
    for (behaviour, want) in cases {
        let mut machine = Machine::new(behaviour, Power::steady());
        let state = machine.begin().unwrap();
        let diff = state.gates.get(&Gate::Diff).map(|verdict| verdict.code);
        assert_eq!(diff, Some(want), "{behaviour:?}");
        assert_eq!(state.finished.unwrap().code, Code::AgentFailed);
        assert!(state.tests.is_empty() && state.published.is_none());
    }
}

#[test]
fn a_step_that_cannot_be_done_ends_the_run_with_its_reason() {
    for step in [
        Step::Prepare,
        Step::Workspace,
        Step::Selftest,
        Step::Agent,
        Step::Capture,
        Step::Review,
        Step::BaseAcceptance,
        Step::Acceptance,
        Step::Publish,
    ] {
        let mut machine = Machine::new(Behaviour::Honest, Power::steady());
        machine.host.refuses = Some(step);
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, Code::HostFailed, "{step:?}");
        assert!(state.published.is_none(), "{step:?}");
        assert!(machine.host.workspaces.is_empty() && machine.registry.leases.is_empty());
    }
}

#[test]
fn cross_tests_decide_nothing_and_stop_no_run() {
    let notes = |refuses: Option<Step>| {
        let mut machine = Machine::new(Behaviour::Tests, Power::steady());
        machine.host.refuses = refuses;
        let state = machine.begin().unwrap();
        let lines = state.crossed_words();
        assert_eq!(state.finished.unwrap().code, Code::Ok, "{refuses:?}");
        assert!(state.published.is_some(), "{refuses:?}");
        lines
    };
    let old = "the tests of the base, with the change,";
    let new = "the changed tests, without the change,";
    let lost = "could not be run: the machine refuses";
    let (passed, failed) = (format!("{old} pass"), format!("{new} fail"));
    assert_eq!(notes(None), [&*passed, &failed]);
    assert_eq!(
        notes(Some(Step::OldTests)),
        [&*format!("{old} {lost}"), &failed]
    );
    assert_eq!(
        notes(Some(Step::NewTests)),
        [&*passed, &format!("{new} {lost}")]
    );
}

#[test]
fn a_workspace_that_cannot_be_removed_changes_no_answer() {
    for (behaviour, want) in [
        (Behaviour::Honest, Code::Ok),
        (Behaviour::Strays, Code::DiffRefused),
    ] {
        let mut machine = Machine::new(behaviour, Power::steady());
        machine.host.refuses = Some(Step::Clean);
        let state = machine.begin().unwrap();
        assert_eq!(state.finished.unwrap().code, want);
        assert_eq!(machine.host.workspaces.len(), 1, "it stays for a person");
    }
}

#[test]
fn no_agent_works_on_top_of_a_lost_attempt_that_is_not_saved() {
    let machine = Machine::new(Behaviour::Honest, Power::steady());
    let mut machine = lose_agent(machine, 2);
    machine.host.dies_at_work = false;
    machine.host.refuses = Some(Step::Clean);
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::HostFailed);
    assert_eq!((state.attempt, machine.host.workspaces.len()), (1, 1));
}

#[test]
fn a_lease_that_is_lost_at_any_renewal_ends_the_run() {
    let renewals = striding_renewals();
    assert!(renewals > 8, "steps and watches renew: {renewals}");
    for at in 1..=renewals {
        let mut machine = striding();
        machine.registry.trouble = Some((at, Trouble::Lost));
        let state = machine.begin().unwrap();
        let code = state.finished.unwrap().code;
        assert_eq!(code, Code::LeaseLost, "at renewal {at} of {renewals}");
        assert!(state.published.is_none() && machine.host.workspaces.is_empty());
    }
}

#[test]
fn a_registry_that_cannot_be_asked_is_believed_while_its_last_answer_holds() {
    let mut ended = 0;
    let mut stopped = 0;
    for at in 1..=striding_renewals() {
        let mut machine = striding();
        machine.registry.trouble = Some((at, Trouble::Unreachable));
        match machine.begin() {
            // During a long effect the last answer still holds.
            Ok(state) => {
                assert_eq!(state.finished.unwrap().code, Code::Ok);
                ended += 1;
            }
            // Between steps the registry has to answer; the run can be taken over later.
            Err(error) => {
                assert_eq!(error.verdict().code, Code::StoreFailed);
                let state = machine.take_over(2).unwrap();
                assert!(state.finished.is_some());
                stopped += 1;
            }
        }
    }
    assert!(
        ended >= 3 && stopped >= 5,
        "{ended} ended, {stopped} stopped"
    );
}

/// A machine whose clock moves by a renewal interval at every read.
fn striding() -> Machine {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    machine.clock = SimClock::striding(15_000);
    machine
}

fn striding_renewals() -> u32 {
    let mut machine = striding();
    machine.begin().unwrap();
    machine.registry.renewals
}

/// Cuts the power at every call, before and after it took effect, and takes the run over.
#[test]
fn a_run_survives_a_crash_at_any_call() {
    use Behaviour::{Breaks, Fails, FailsAstray, Honest, Idles, Strays, Tests};
    for behaviour in [Honest, Tests, Strays, Breaks, Idles, Fails, FailsAstray] {
        let want = Machine::new(behaviour, Power::steady())
            .begin()
            .unwrap()
            .finished;
        for cut in [Cut::Before, Cut::After] {
            let calls = sweep(behaviour, cut, want.as_ref().map(|verdict| verdict.code));
            assert!(calls > 20, "{behaviour:?}: only {calls} calls were cut");
        }
    }
}

/// Lets every call fail once while the machine stays up. A driver that takes over brings the run to
/// a verdict, and nothing is left behind.
#[test]
fn a_run_survives_a_failure_of_any_call() {
    use Behaviour::{Breaks, Honest, Strays};
    for behaviour in [Honest, Strays, Breaks] {
        for call in 1.. {
            let mut machine = Machine::new(behaviour, Power::cut_at(call, Cut::Flicker));
            let first = machine.begin();
            let place = format!("{behaviour:?}, call {call} fails");
            if !machine.power.has_struck() {
                assert!(call > 20, "only {call} calls failed");
                break;
            }
            machine.power.restore();
            if machine.ledger.records().is_empty() {
                assert!(machine.host.workspaces.is_empty(), "{place}");
                continue;
            }
            let state = match first {
                Ok(state) => state,
                Err(_) => machine.take_over(2).unwrap(),
            };
            // A failure of the machine refuses the run; it never lets a bad result pass.
            let code = state.finished.map(|verdict| verdict.code);
            let passes = code == Some(Code::Ok);
            assert!(!passes || behaviour == Honest, "{place}: {code:?}");
            // A workspace that could not be removed stays for a person; `gc` lists it.
            let failed = |it: &Record| {
                let event = &it.event;
                event.event_type == "STEP_FAILED" && event.payload["step"] == "clean"
            };
            if machine.ledger.records().iter().any(failed) {
                machine.host.workspaces.clear();
            }
            check_recovery(&mut machine, code, &place);
        }
    }
}

fn sweep(behaviour: Behaviour, cut: Cut, want: Option<Code>) -> u32 {
    for call in 1.. {
        let mut machine = Machine::new(behaviour, Power::cut_at(call, cut));
        let first = machine.begin();
        if !machine.power.is_out() {
            assert_eq!(first.unwrap().finished.map(|verdict| verdict.code), want);
            return call;
        }
        machine.power.restore();
        let place = format!("{behaviour:?}, cut {cut:?} call {call}");
        if machine.ledger.records().is_empty() {
            // The run was never opened: there is nothing to take over and nothing left behind.
            assert!(machine.host.workspaces.is_empty(), "{place}");
            continue;
        }
        check_recovery(&mut machine, want, &place);
    }
    unreachable!("a run has an end")
}

pub(crate) fn check_recovery(machine: &mut Machine, want: Option<Code>, place: &str) {
    let state = machine.take_over(2).unwrap();
    assert_eq!(state.finished.map(|verdict| verdict.code), want, "{place}");
    assert!(
        machine.host.workspaces.is_empty(),
        "{place}: a workspace is left"
    );
    assert!(
        machine.registry.leases.is_empty(),
        "{place}: a lease is left"
    );
    for (attempt, count) in &machine.host.agents {
        assert_eq!(
            *count, 1,
            "{place}: the agent of attempt {attempt} ran {count} times"
        );
        let run = "run_00000001";
        let kept = ["runs", "salvage"].map(|kind| format!("refs/provost/{kind}/{run}/{attempt}"));
        let idle = machine.host.behaviour == Behaviour::Idles;
        assert!(
            idle || kept.iter().any(|name| machine.host.refs.contains(name)),
            "{place}"
        );
    }
    let records = machine.ledger.records().len();
    let again = machine.take_over(3).unwrap();
    assert!(again.finished.is_some());
    assert_eq!(
        machine.ledger.records().len(),
        records,
        "{place}: the second resume did something"
    );
}

#[test]
fn an_agent_lost_three_times_is_given_up() {
    let mut machine = Machine::new(Behaviour::Honest, Power::steady());
    let started = |machine: &Machine| {
        let state = fold(&machine.ledger).unwrap();
        (state.attempt, state.finished)
    };
    let mut pid = 1;
    loop {
        pid += 1;
        machine = lose_agent(machine, pid);
        if let (_, Some(verdict)) = started(&machine) {
            assert_eq!(verdict.code, Code::AgentLost);
            assert_eq!(pid, 5, "three attempts and one that gives up");
            return;
        }
    }
}

/// Drives until the agent has begun, then cuts the power.
fn lose_agent(mut machine: Machine, pid: u32) -> Machine {
    machine.host.dies_at_work = true;
    let outcome = match pid {
        2 => machine.begin(),
        _ => machine.take_over(pid - 1),
    };
    if outcome.is_err() {
        machine.power.restore();
    }
    machine
}
