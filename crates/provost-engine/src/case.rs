//! Drives a case: one request becomes a contract, parts, runs, and one judged whole.
//!
//! # Invariants
//!
//! - State is a fold over the ledger of the case; the result of a run is taken from that run.
//! - Which run a step gets is on disk before the run begins, so a case that is resumed finds it.
//! - Only the whole is accepted: the parts are merged by git objects alone, and one run judges the
//!   merged tree by the contract of the whole. No part lands by itself.
//! - A person is asked once, about everything that the whole and its parts do beyond the policy.

mod blame;
mod evidence;
mod fact;
mod next;
mod report;
mod state;
mod steps;

pub use fact::{
    AskedPart, CaseAnswer, CaseOpened, CaseQuestion, Drafted, Fact, FixStart, Integration,
    MergedPart, PartConflict, describe,
};
pub use next::{FixOrder, Next};
pub use report::{CasePart, CaseReport, CaseRun};
pub use state::{CaseFix, Judging, PartChange, State};

use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;

use crate::bundle::sealed::{RecordKind, RecordPredicate};
use crate::bundle::statement::SealedVerdict;
use crate::chain::{self, Chain, MergedNeeds, PartRunner};
use crate::drive;
use crate::plan;
use crate::ports::{Bundle, Clock, Ledger, PortError, Signer};
use steps::{asked, divided, loaded_parts, planned, work};

/// The contract of the whole, below the directory of the case.
pub const CONTRACT: &str = "contract.json";
/// The parts of the whole, below the directory of the case.
pub const PARTS: &str = "parts.json";
/// The file of a case that holds its result.
pub const REPORT: &str = "report.json";

/// The name of the run that judges the whole, among the names of parts. No part has it, because
/// the names of parts hold no blank.
const WHOLE: &str = "the whole";

/// The result of a planner that was asked for a document.
#[derive(Debug, Clone)]
pub struct PlannerResult<T> {
    pub plan_id: String,
    pub verdict: Verdict,
    pub document: Option<T>,
}

/// Runs the steps of a case on the machine.
pub trait CaseRunner: PartRunner {
    /// Has the planner write a contract for `request`.
    fn plan(
        &mut self,
        request: &str,
        base: &Oid,
    ) -> Result<PlannerResult<contract::document::Document>, PortError>;

    /// Has the planner divide `whole`.
    fn split(
        &mut self,
        whole: &contract::document::Document,
    ) -> Result<PlannerResult<chain::Document>, PortError>;

    /// The parts, judged by the policy of `base`.
    fn check(
        &mut self,
        parts: &chain::Document,
        base: &Oid,
    ) -> Result<Result<Chain, Verdict>, PortError>;

    /// What `contract` does beyond the policy of its base.
    fn widenings(
        &mut self,
        contract: &contract::document::Document,
    ) -> Result<Vec<Widening>, PortError>;

    /// The commit `onto` with `change`, kept by a ref of the case. The same call gives the same
    /// commit.
    fn merge(&mut self, onto: &Oid, change: &PartChange) -> Result<MergedNeeds, PortError>;

    /// The file `name` in the bundle of the run `run_id`; `None` if there is none.
    fn evidence(&mut self, run_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError>;

    /// The paths that differ between two commits.
    fn changed(&mut self, before: &Oid, after: &Oid) -> Result<Vec<String>, PortError>;
}

/// The ports that a case is driven through.
pub struct Ports<'a> {
    pub runner: &'a mut dyn CaseRunner,
    pub ledger: &'a mut dyn Ledger,
    /// The directory of the case.
    pub bundle: &'a mut dyn Bundle,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
}

/// The case that is driven.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub id: &'a str,
    /// How many parts may run at once.
    pub jobs: usize,
}

/// Begins the case.
pub fn open(ports: &mut Ports<'_>, task: &Task<'_>, opened: CaseOpened) -> Result<(), PortError> {
    let trace_id = opened.trace_id.clone();
    let fact = Fact::Opened(Box::new(opened));
    let event = fact.event(task.id, &trace_id, ports.clock.timestamp());
    ports.ledger.append(event)
}

/// The state of the case, after another process began it; with `again`, what was refused is tried
/// again.
pub fn resume(ports: &mut Ports<'_>, task: &Task<'_>, again: bool) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    record(ports, task, &mut state, Fact::Resumed { again })?;
    Ok(state)
}

/// Ends the case at once; none of its runs may be active.
pub fn cancel(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    reason: &str,
) -> Result<(), PortError> {
    let words = match reason {
        "" => "the case was cancelled".to_owned(),
        reason => format!("the case was cancelled: {reason}"),
    };
    let verdict = Verdict::deny(Code::Cancelled, words);
    record(ports, task, state, Fact::Finished { verdict })?;
    seal(ports, task, state)
}

/// The state that the records of the case give.
pub fn fold(ledger: &dyn Ledger) -> Result<State, PortError> {
    let state = State::fold(ledger.records());
    let state = state.map_err(|error| PortError::of(Code::EvidenceAltered, error))?;
    state.ok_or_else(|| PortError::new(Code::RunUnfinished, "the case never began"))
}

/// Records the answer of a person to the question of the case.
pub fn answer(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    answer: CaseAnswer,
) -> Result<(), PortError> {
    let open = state.asked.as_ref().filter(|it| !it.is_empty());
    let Some(question) = open.filter(|_| state.answered.is_none()) else {
        let reason = "the case asks nothing that is unanswered";
        return Err(PortError::new(Code::NothingToApprove, reason));
    };
    if question.digest != answer.digest {
        let reason = format!("the case asks {}, another question", question.digest);
        let hint = "read it with `provost show CASE`, then name its digest";
        return Err(PortError::new(Code::NothingToApprove, reason).hint(hint));
    }
    let ask = &state.opened.ask;
    let given = (answer.how, answer.signature.as_ref());
    let may = ask.admit(ask.needs, given, &answer.statement());
    may.map_err(|refused| drive::refusal(task.id, &refused))?;
    record(ports, task, state, Fact::Answered(answer))
}

/// Drives the case to its end, or to a question that a person has to answer.
pub fn drive(ports: &mut Ports<'_>, task: &Task<'_>, mut state: State) -> Result<State, PortError> {
    let mut chain = None;
    while state.finished.is_none() {
        if chain.is_none() {
            chain = loaded_parts(ports, &state)?;
        }
        let now = ports.clock.millis();
        let is_over = state.answered.as_ref().is_some_and(|it| it.is_over(now));
        if is_over && state.may_expire() {
            record(ports, task, &mut state, Fact::Expired {})?;
        }
        match state.next(chain.as_ref(), task.jobs) {
            Next::Plan => planned(ports, task, &mut state)?,
            Next::Split => divided(ports, task, &mut state)?,
            Next::Ask => asked(ports, task, &mut state)?,
            Next::Approval => return Ok(state),
            Next::Finish(verdict) => {
                record(ports, task, &mut state, Fact::Finished { verdict })?;
            }
            next => work(ports, task, &mut state, chain.as_ref(), next)?,
        }
    }
    seal(ports, task, &state)?;
    Ok(state)
}

/// Appends `fact` if the state permits it, then applies it.
fn record(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    fact: Fact,
) -> Result<(), PortError> {
    let event = fact.event(task.id, &state.opened.trace_id, ports.clock.timestamp());
    let mut after = state.clone();
    let misplaced = |what| PortError::new(Code::Bug, format!("{}: {what}", event.event_type));
    after.apply(fact).map_err(misplaced)?;
    ports.ledger.append(event)?;
    *state = after;
    Ok(())
}

/// The same for a fact about a part.
fn record_part(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    fact: chain::Fact,
) -> Result<(), PortError> {
    let mut event = fact.event(task.id, ports.clock.timestamp());
    event.trace_id.clone_from(&state.opened.trace_id);
    let mut after = state.clone();
    let misplaced = |what| PortError::new(Code::Bug, format!("{}: {what}", event.event_type));
    after.apply_part(fact).map_err(misplaced)?;
    ports.ledger.append(event)?;
    *state = after;
    Ok(())
}

/// Records that the whole was landed as `commit`, and signs the case again.
pub fn landed(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    (branch, commit): (String, Oid),
) -> Result<(), PortError> {
    if state.landed.as_ref() != Some(&commit) {
        record(ports, task, state, Fact::Landed { branch, commit })?;
    }
    seal(ports, task, state)
}

/// Writes the report, and signs all files of the case.
fn seal(ports: &mut Ports<'_>, task: &Task<'_>, state: &State) -> Result<(), PortError> {
    let report = CaseReport::of(task.id, state);
    let text = json::pretty(&report).map_err(|error| PortError::of(Code::Bug, error))?;
    ports.bundle.put(REPORT, text.as_bytes())?;
    evidence::collect(ports, state)?;
    let verdict = state.finished.as_ref();
    let predicate = RecordPredicate {
        kind: RecordKind::Case,
        id: task.id.to_owned(),
        verdict: SealedVerdict {
            allow: verdict.is_some_and(|verdict| verdict.allow),
            code: verdict.map_or(Code::Bug, |verdict| verdict.code),
        },
        sealed_at: plan::time(ports.clock)?,
    };
    plan::seal_record(ports.bundle, ports.signer, predicate)
}
