//! Runs the acceptance commands of a split contract on the combined results of its parts.

use std::path::Path;

use provost_core::agent::provider::FoundLogins;
use provost_core::code::Code;
use provost_core::record::Head;
use provost_core::run::State;
use provost_core::run::fact::{Ending, Fact, Names, Side, TestRun};
use provost_core::run::judge::{judge_tests, judge_unaltered};
use provost_core::verdict::Verdict;
use provost_engine::chain::CombinedResults;
use provost_engine::land::Target;
use provost_engine::opening::{self, Request, RequestedAgent};
use provost_engine::ports::{
    Clock as _, Control, Observer as _, ObserverChoice, PortError, Progress, Watch,
};
use provost_host::machine::Machine;
use provost_host::origin::GitOrigin;

use super::super::run::workspace;
use crate::answer::Failure;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::{self, SystemClock};

/// The verdict of the commands; their output is kept in `directory`.
pub(super) fn test(
    order: &CombinedResults,
    directory: &Path,
    observer: &mut ProgressObserver,
) -> Result<Verdict, PortError> {
    let bug = |reason: &str| PortError::new(Code::Bug, reason);
    let place = Places::find().map_err(Failure::into_port_error)?;
    let state = opened(&place, order)?;
    let contract = state.contract.clone();
    let contract = contract.map_err(|_| bug("the contract that was split cannot be read"))?;
    let cache = place.cache().map_err(Failure::into_port_error)?.to_owned();
    let mut machine = Machine::new(place.repo, &cache, directory, &order.run_id);
    let tree = Target::tree(&mut machine, &order.commit)?;
    let base = state.opened.base_tree.clone();
    let mut rounds = Vec::new();
    for (side, tree, name) in [(Side::Base, base, "base"), (Side::Merged, tree, "all")] {
        let round = state.accept_anew(tree, format!("together/{}/{name}", order.run_id));
        let mut round = round.map_err(|error| PortError::of(Code::Bug, error))?;
        round.side = side;
        rounds.push(round);
    }
    let ran: Result<Vec<TestRun>, PortError> = rounds
        .iter()
        .map(|round| Target::accept(&mut machine, round, &mut Looking(observer)))
        .collect();
    let tidied = Target::tidy(&mut machine);
    let ran = ran?;
    tidied?;
    let [base, ran] = ran.as_slice() else {
        return Err(bug("a round is missing"));
    };
    let mut commands = base.commands.iter().chain(&ran.commands);
    if commands.any(|it| it.ending == Ending::Cancelled) {
        let reason = "was not tested: the chain was cancelled";
        return Ok(Verdict::deny(Code::Cancelled, reason));
    }
    // All parts together must not run fewer tests than the base.
    let mut verdict = judge_tests(Some(ran), Some(base), &contract);
    if !verdict.allow {
        let mut commands = ran.commands.iter();
        let failed = commands.find(|command| command.ending != Ending::Exited(0));
        let log = failed.map(|command| format!(" ({})", command.stderr.file));
        verdict.reason += &log.unwrap_or_default();
        return Ok(verdict);
    }
    let unaltered = judge_unaltered(ran);
    Ok(if unaltered.allow { verdict } else { unaltered })
}

/// The state of a run under the split contract, by the policy of the same base.
fn opened(place: &Places, order: &CombinedResults) -> Result<State, PortError> {
    let names = Names {
        run_id: order.run_id.clone(),
        task_id: order.contract.task_id.clone(),
        trace_id: crate::trace::trace_id()
            .map_err(|error| PortError::of(Code::HostFailed, error))?,
    };
    let request = Request {
        work: None,
        contract: order.contract.clone(),
        typed: false,
        // Only the commands run.
        agent: RequestedAgent::Typed("true".to_owned()),
        review: None,
        credentials: Vec::new(),
        logins: FoundLogins::default(),
        workspace: workspace().map_err(Failure::into_port_error)?,
        owner: session::owner().map_err(Failure::into_port_error)?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let opened = opening::opening(&GitOrigin(&place.repo), request)?;
    let fact = Fact::Opened(Box::new(opened));
    let event = fact.event(&names, 1, SystemClock.timestamp());
    let state = State::fold(&[Head::genesis().append(event)]);
    state.map_err(|error| PortError::of(Code::Bug, error))
}

/// A watch without a lease: the parts are sealed and hold none.
struct Looking<'a>(&'a mut ProgressObserver);

impl Watch for Looking<'_> {
    fn tick(&mut self, progress: &Progress) -> Control {
        match self.0.progressed(progress) {
            ObserverChoice::Continue => Control::Continue,
            ObserverChoice::Cancel => Control::Cancel,
        }
    }
}
