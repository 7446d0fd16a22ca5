//! Makes a new candidate on a target that moved: merged, judged by the diff gate, reviewed if its
//! patch differs, and tested. Tests the sealed one again if it was accepted on build caches.

use crate::bundle::after::{Candidate, TEST_RESULT, TEST_STARTED, TestStart};
use crate::bundle::statement::Acceptance;
use provost_core::bundle::layout::LATER;
use provost_core::bundle::report::TestStatus;
use provost_core::code::Code;
use provost_core::contract::Contract;
use provost_core::object::Oid;
use provost_core::run::Gate;
use provost_core::run::effect::{Accept, NoEffect};
use provost_core::run::fact::{CacheStart, Ending, Side, TestRun};
use provost_core::run::judge::judge_unaltered;

use super::{LandAfterSeal, MergeOutcome, review};
use crate::acceptance_cache;
use crate::after::UnleasedWatch;
use crate::ports::PortError;

/// The run merged with `tip`, accepted and signed.
///
/// Merges in `known` were tested before and need not be tested again.
pub(super) fn merge(
    after_seal: &mut LandAfterSeal<'_, '_>,
    tip: &Oid,
    known: &[TestRun],
) -> Result<Candidate, PortError> {
    let bug = |error: NoEffect| PortError::of(Code::Bug, error);
    let contract = after_seal.state.contract.clone();
    let contract = contract.map_err(|_| bug(NoEffect::NoContract))?;
    let order = after_seal.state.merge().map_err(bug)?;
    let candidate = match after_seal.ports.target.merge(&order, tip)? {
        MergeOutcome::Clean(candidate) => candidate,
        MergeOutcome::Conflict(paths) => {
            let paths = paths.join(", ");
            let reason = format!("the target moved and both sides changed {paths}");
            return Err(PortError::new(Code::LandConflict, reason));
        }
    };
    let changed = after_seal.ports.target.changes(tip, &candidate.tree)?;
    if changed.changes.is_empty() {
        let reason = "the target has this change already; nothing is left to land";
        return Err(PortError::new(Code::EmptyDiff, reason));
    }
    let verdict = after_seal
        .state
        .judge_changes(&contract, &changed.changes, &changed.findings);
    after_seal.settle(Gate::Diff, verdict)?;
    review::again(after_seal, tip, &candidate.tree, &changed.changes)?;
    let run = judged(
        after_seal,
        (&candidate.tree, known),
        "on the merge with the target that moved",
    )?;
    after_seal.merged(&candidate, acceptance(&contract, &run))?;
    Ok(candidate)
}

/// Tests the sealed candidate cold if only a warm round accepted it, unless the policy of its base
/// lets it land so.
pub(super) fn confirm(
    after_seal: &mut LandAfterSeal<'_, '_>,
    known: &[TestRun],
) -> Result<(), PortError> {
    let state = &after_seal.state;
    let warm = state
        .tests
        .get(&Side::Candidate)
        .filter(|run| run.is_warm());
    let Some(tree) = warm.map(|run| run.tree.clone()) else {
        return Ok(());
    };
    let confirmed = |run: &TestRun| run.tree == tree && !run.is_warm();
    if state.opened.cache.land == CacheStart::Warm || known.iter().any(confirmed) {
        return Ok(());
    }
    let place = "without the build cache that the run was accepted with";
    judged(after_seal, (&tree, known), place).map(drop)
}

/// Runs the acceptance commands on `tree`, and lets the gates judge them. `place` says in a refusal
/// where they failed.
fn judged(
    after_seal: &mut LandAfterSeal<'_, '_>,
    (tree, known): (&Oid, &[TestRun]),
    place: &str,
) -> Result<TestRun, PortError> {
    let contract = after_seal.state.contract.clone();
    let contract = contract.map_err(|_| PortError::of(Code::Bug, NoEffect::NoContract))?;
    let run = test(after_seal, tree, known)?;
    // Not fewer tests may run than on the accepted candidate.
    let accepted = after_seal.state.tests.get(&Side::Candidate);
    let mut verdict = after_seal
        .state
        .judge_round(Some(&run), accepted, &contract);
    if !verdict.allow {
        let mut ran = run.commands.iter();
        let failed = ran.find(|command| command.ending != Ending::Exited(0));
        let log = failed.map(|command| format!(" ({})", command.stderr.file));
        let (reason, log) = (&verdict.reason, log.unwrap_or_default());
        verdict.reason = format!("{place}, {reason}{log}");
    }
    after_seal.settle(Gate::Acceptance, verdict)?;
    after_seal.settle(Gate::Tree, judge_unaltered(&run))?;
    Ok(run)
}

/// Runs the acceptance commands on the merge; each time with logs of its own.
fn test(
    after_seal: &mut LandAfterSeal<'_, '_>,
    tree: &Oid,
    known: &[TestRun],
) -> Result<TestRun, PortError> {
    let records = after_seal.after.records().iter();
    let earlier = records.filter(|record| record.event.event_type == TEST_STARTED);
    let start = TestStart {
        tree: tree.clone(),
        logs: format!("{LATER}{}", earlier.count() + 1),
    };
    after_seal.note(TEST_STARTED, &start)?;
    let order = after_seal.state.accept_merge(start.tree, start.logs, known);
    let order = order.map_err(|error| PortError::of(Code::Bug, error))?;
    let mut watch = UnleasedWatch(&mut *after_seal.ports.observer);
    let (state, target) = (&after_seal.state, &mut *after_seal.ports.target);
    let is_refused = |run: &_| acceptance_cache::is_refused(state, run);
    let mut accept = |order: &Accept| target.accept(order, &mut watch);
    let run = acceptance_cache::settled(&order, is_refused, &mut accept)?;
    after_seal.note(TEST_RESULT, &run)?;
    Ok(run)
}

/// How the commands of an accepted merge ended.
fn acceptance(contract: &Contract, run: &TestRun) -> Acceptance {
    let passed = run.commands.iter();
    let passed = passed.filter(|command| command.ending == Ending::Exited(0));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Acceptance {
        status: TestStatus::Pass,
        commands: count(contract.tests.len()),
        passed: count(passed.count()),
        start: run.cache.as_ref().map(|cache| cache.start),
    }
}
