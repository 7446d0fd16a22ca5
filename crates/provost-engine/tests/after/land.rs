//! Landings: on the branch as it was, and on one that moved.

use provost_engine::land::{LandPorts, Landed, When, land};
use provost_engine::ports::PortError;
use provost_engine::sim::Cut;

use crate::machine::{Machine, RUN, commit};
use crate::sealed_run::SealedRun;

/// What happens to the branch before the landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Nothing.
    AsItWas,
    /// Another process puts a commit on it.
    Moved,
    /// The same, and the merge is another patch than was reviewed.
    MovedUnderReview,
}

fn machine(case: Case, run: &SealedRun, call: u32, cut: Cut) -> Machine {
    let mut machine = Machine::new(run, call, cut);
    if case != Case::AsItWas {
        machine.target.history.push(commit("d"));
    }
    machine.target.differs = case == Case::MovedUnderReview;
    machine
}

fn landing(machine: &mut Machine) -> Result<Landed, PortError> {
    machine.with(|ports| {
        let mut ports = LandPorts {
            target: ports.target,
            sealed: ports.sealed,
            registry: ports.registry,
            signer: ports.signer,
            clock: ports.clock,
            observer: ports.observer,
        };
        land(&mut ports, RUN)
    })
}

/// The branch moved once, to the accepted commit, and nothing is left to do or to remove.
fn check(machine: &mut Machine, case: Case, landed: &Landed, place: &str) {
    let tip = machine.target.history.last();
    assert_eq!(tip, Some(&landed.landing.commit), "{place}");
    // The commit that is recorded first, with its signature, is the one that lands.
    assert_eq!(machine.count("COMMIT_WRITTEN"), 1, "{place}");
    assert!(machine.target.retired, "{place}");
    assert_eq!(machine.target.moves, 1, "{place}");
    assert_eq!(machine.target.cached, 0, "{place}: something is cached");
    let merged = case != Case::AsItWas;
    assert_eq!(machine.target.tested.is_empty(), !merged, "{place}");
    assert_eq!(
        machine.target.reviews > 0,
        case == Case::MovedUnderReview,
        "{place}"
    );
    assert_eq!(machine.count("LANDED"), 1, "{place}");
    assert_eq!(machine.count("CANDIDATE_MERGED") > 0, merged, "{place}");
    // Landing again begins with evidence that verifies, as the registry knows it.
    let records = machine.records();
    let again = landing(machine).unwrap();
    assert_eq!(again.when, When::Before, "{place}");
    assert_eq!(machine.records(), records, "{place}: it was done twice");
}

/// Cuts the power at every call, or lets just that call fail, and lands again.
fn survives(case: Case, run: &SealedRun, least: u32) {
    for cut in [Cut::Before, Cut::After, Cut::Flicker] {
        let calls = sweep(case, run, cut);
        assert!(calls > least, "only {calls} calls were cut");
    }
}

#[test]
fn a_landing_survives_failure_and_crash_at_any_call() {
    survives(Case::AsItWas, &SealedRun::new(), 12);
}

#[test]
fn a_landing_on_a_target_that_moved_survives_failure_and_crash_at_any_call() {
    survives(Case::Moved, &SealedRun::new(), 25);
}

#[test]
fn a_landing_that_is_reviewed_again_survives_failure_and_crash_at_any_call() {
    survives(Case::MovedUnderReview, &SealedRun::reviewed(), 28);
}

fn sweep(case: Case, run: &SealedRun, cut: Cut) -> u32 {
    for call in 1.. {
        let mut machine = machine(case, run, call, cut);
        let first = landing(&mut machine);
        let place = format!("{case:?}, cut {cut:?} call {call}");
        let struck = machine.power.has_struck();
        machine.power.restore();
        if !struck {
            check(&mut machine, case, &first.unwrap(), &place);
            return call;
        }
        // The last failure may have been in tidying, after everything was done.
        let landed = landing(&mut machine).unwrap();
        check(&mut machine, case, &landed, &place);
    }
    unreachable!("a landing has an end")
}
