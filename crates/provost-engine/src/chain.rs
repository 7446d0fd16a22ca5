//! Runs a chain of contracts: each as an ordinary run, as soon as what it needs was accepted.
//!
//! # Invariants
//!
//! - State is a fold over the records of the chain; the result of a run is taken from that run.
//! - Which run a node gets is on disk before the run begins, so a chain that is called again finds
//!   it.
//! - A node that was decided runs a second time only if the caller asks for it.

mod check;
pub mod document;
pub mod grant;
mod narrow;
mod next;
pub mod report;
mod state;
#[cfg(test)]
mod tests;

pub use check::{Chain, Checked, MOST, MOST_HANDOFFS, check, id};
pub use document::{Document, Dropped, Node};
pub use next::{Merge, Next};
pub use state::{End, Fact, Misplaced, NodeAgents, Standing, State, describe, is_final};

use crate::bundle::sealed::{RecordKind, RecordPredicate};
use crate::bundle::statement::SealedVerdict;
use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::run::fact::Part;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;

use crate::plan;
use crate::ports::{Bundle, Clock, Ledger, ObserverChoice, PortError, Signer};
use report::ChainReport;
use serde::Serialize;

/// The paths that two results change in different ways.
#[derive(Serialize)]
struct ConflictingPaths {
    paths: Vec<String>,
}

/// The file of a chain that holds its result.
pub const REPORT: &str = "report.json";

/// Runs nodes, several at once.
pub trait PartRunner {
    /// A run id that was never used before.
    fn name(&mut self) -> Result<String, PortError>;

    /// One commit with everything that `merge` names, kept by a ref for the run `run_id`. The same
    /// merge gives the same commit.
    fn join(&mut self, run_id: &str, merge: &Merge) -> Result<MergedNeeds, PortError>;

    /// Starts the run of a node, and does not wait for it.
    fn begin(&mut self, order: NodeStart) -> Result<(), PortError>;

    /// Takes over a run that another process left, and does not wait for it.
    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError>;

    /// Runs the commands of the contract that was divided on all results together.
    fn test(&mut self, order: &CombinedResults) -> Result<Verdict, PortError>;

    /// Waits until one of the runs ends that were started or taken over.
    fn ended(&mut self) -> Result<Came, PortError>;

    /// Shows `line` to the user; the answer says whether the user cancels the chain.
    fn report(&mut self, line: &str) -> ObserverChoice;
}

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergedNeeds {
    Clean(Oid),
    /// The paths that cannot be merged.
    Conflict(Vec<String>),
}

/// The order to run one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeStart {
    pub node: String,
    pub run_id: String,
    /// The contract, with the commit that it starts from.
    pub contract: contract::document::Document,
    /// The agent, if it is not that of the chain.
    pub agent: Option<String>,
    /// The commit that is judged without an agent, if the work exists already.
    pub judges: Option<Oid>,
    /// The contract that the node is a part of, if the chain divides one.
    pub part: Option<Part>,
    /// The trace that the run belongs to; one of its own if there is none.
    pub trace_id: Option<String>,
    /// What a person approved for this node, when asked about all nodes at once.
    pub approved: Vec<Widening>,
}

/// The order to test all results of a chain together.
#[derive(Debug, Clone, PartialEq)]
pub struct CombinedResults {
    /// The id under which the test is recorded; no run has it.
    pub run_id: String,
    /// The contract that was divided, with the commit that the chain starts from.
    pub contract: contract::document::Document,
    pub commit: Oid,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    Ended {
        node: String,
        end: Box<End>,
    },
    /// The run never began, or its records are gone.
    Nothing {
        node: String,
    },
}

/// The ports that a chain is driven through.
pub struct Ports<'a> {
    pub runner: &'a mut dyn PartRunner,
    pub ledger: &'a mut dyn Ledger,
    /// The directory of the chain, which also holds its report.
    pub bundle: &'a mut dyn Bundle,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
}

/// The chain that is to be run, with the choices of the caller.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The id of the chain.
    pub id: &'a str,
    pub chain: &'a Chain,
    /// SHA-256 of the document that describes the chain.
    pub sha256: &'a str,
    /// The commit that nodes without needs start from.
    pub base: &'a Oid,
    /// How many nodes may run at once.
    pub jobs: usize,
    /// Whether nodes that were refused are run again.
    pub again: bool,
    /// The agent, reviewer and credentials that the caller names.
    pub hands: &'a NodeAgents,
}

impl Task<'_> {
    /// The agent, reviewer and credentials of `node`; `None` if the chain has no such node.
    fn agents_of(&self, node: &str) -> Option<NodeAgents> {
        let checked = self.chain.nodes.iter().find(|it| it.id == node)?;
        let mut agents = self.hands.clone();
        if let Some(agent) = &checked.agent {
            agents.agent.clone_from(agent);
        }
        Some(agents)
    }
}

/// Drives the chain to its end, from the state that its records give.
pub fn drive(ports: &mut Ports<'_>, task: &Task<'_>) -> Result<State, PortError> {
    let mut state = open(ports, task)?;
    loop {
        match state.next(task.chain, task.jobs) {
            Next::Start(at) => start(ports, task, &mut state, at)?,
            Next::TakeUp(at, run_id) => {
                let node = &task.chain.nodes[at].id;
                ports.runner.report(&format!("{node}: taking up {run_id}"));
                // The run counts as running from here on.
                let running = Standing::Running {
                    run_id: run_id.clone(),
                };
                state.nodes.insert(node.clone(), running);
                ports.runner.take_up(node, &run_id)?;
            }
            Next::PassOver(at, verdict) => {
                let node = task.chain.nodes[at].id.clone();
                ports
                    .runner
                    .report(&format!("{node}: not run, {}", verdict.reason));
                record(ports, task, &mut state, Fact::NotRun { node, verdict })?;
            }
            Next::Wait => {
                let fact = match ports.runner.ended()? {
                    Came::Ended { node, end } => {
                        let (mark, verdict) = (report::word(&end.verdict), &end.verdict);
                        let line = format!("{node}: {mark}, {}: {}", end.run_id, verdict.reason);
                        ports.runner.report(&line);
                        Fact::Ended { node, end }
                    }
                    Came::Nothing { node } => Fact::Lost { node },
                };
                record(ports, task, &mut state, fact)?;
            }
            Next::Test => test(ports, task, &mut state)?,
            Next::Finish(verdict) => {
                record(ports, task, &mut state, Fact::Finished { verdict })?;
                seal(ports, task, &state)?;
                return Ok(state);
            }
        }
    }
}

/// The state of the chain; begins it if it has no record yet.
fn open(ports: &mut Ports<'_>, task: &Task<'_>) -> Result<State, PortError> {
    let known = State::fold(ports.ledger.records());
    let known = known.map_err(|error| PortError::of(Code::EvidenceAltered, error))?;
    let Some(mut state) = known else {
        let fact = Fact::Opened {
            chain_sha256: task.sha256.to_owned(),
            base_commit: task.base.clone(),
        };
        let event = fact.event(task.id, ports.clock.timestamp());
        ports.ledger.append(event)?;
        let state = State::fold(ports.ledger.records());
        let state = state.map_err(|error| PortError::of(Code::Bug, error))?;
        return state.ok_or_else(|| PortError::new(Code::Bug, "the chain has no first record"));
    };
    if state.chain_sha256 != task.sha256 || state.base_commit != *task.base {
        let reason = "the records are about another chain";
        return Err(PortError::new(Code::EvidenceAltered, reason));
    }
    refuse_other_agents(task, &state)?;
    record(ports, task, &mut state, Fact::Resumed { again: task.again })?;
    Ok(state)
}

/// Refuses a call that names other agents, reviewers or credentials than the runs that it takes
/// over: those runs would keep theirs, without the user noticing.
fn refuse_other_agents(task: &Task<'_>, state: &State) -> Result<(), PortError> {
    let others = state.otherwise(task.again, |node| task.agents_of(node));
    let Some((node, was)) = others.first() else {
        return Ok(());
    };
    let reason = match was {
        Some(was) => format!(
            "`{node}` was begun with {}, and this call asks for {}",
            agents_text(was),
            agents_text(task.agents_of(node).as_ref().unwrap_or(task.hands))
        ),
        None => format!("no record says which agent was to work on `{node}`"),
    };
    Err(PortError::new(Code::UsageError, reason))
}

/// Agent, reviewer and credentials, as shown to the user.
fn agents_text(agents: &NodeAgents) -> String {
    let review = match &agents.review {
        Some(review) => format!("the reviewer `{review}`"),
        None => "no reviewer".to_owned(),
    };
    let secrets = counted(agents.credentials.len(), "credential");
    format!("the agent `{}`, {review} and {secrets}", agents.agent)
}

fn test(ports: &mut Ports<'_>, task: &Task<'_>, state: &mut State) -> Result<(), PortError> {
    let bug = |what: &str| PortError::new(Code::Bug, what);
    let merge = state.together(task.chain);
    let merge = merge.ok_or_else(|| bug("a node has no result"))?;
    let whole = task.chain.whole.clone();
    let mut contract = whole.ok_or_else(|| bug("nothing was divided"))?;
    contract.rollback.baseline_ref = task.base.to_string();
    let run_id = ports.runner.name()?;
    if ports.runner.report("testing all results together") == ObserverChoice::Cancel {
        let verdict = Verdict::deny(Code::Cancelled, "was not tested: the chain was cancelled");
        let commit = None;
        return record(ports, task, state, Fact::Tested { commit, verdict });
    }
    let (commit, verdict) = match ports.runner.join(&run_id, &merge)? {
        MergedNeeds::Clean(commit) => {
            let order = CombinedResults {
                run_id,
                contract,
                commit: commit.clone(),
            };
            (Some(commit), ports.runner.test(&order)?)
        }
        MergedNeeds::Conflict(paths) => {
            let reason = format!(
                "the results do not go together: {} in conflict, `{}`",
                counted(paths.len(), "path"),
                paths.first().map_or("", String::as_str)
            );
            let verdict = Verdict::deny(Code::ChainConflict, reason);
            (None, verdict.with(ConflictingPaths { paths }))
        }
    };
    let mark = report::word(&verdict);
    ports
        .runner
        .report(&format!("together: {mark}, {}", verdict.reason));
    record(ports, task, state, Fact::Tested { commit, verdict })
}

/// Starts the run of the node at `at`, if the results that it needs can be merged.
fn start(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    at: usize,
) -> Result<(), PortError> {
    let checked = &task.chain.nodes[at];
    let node = checked.id.clone();
    let merge = state.base(task.chain, at);
    let merge = merge.ok_or_else(|| PortError::new(Code::Bug, "a need has no result"))?;
    let run_id = ports.runner.name()?;
    if ports.runner.report(&format!("{node}: {run_id} begins")) == ObserverChoice::Cancel {
        let verdict = Verdict::deny(Code::Cancelled, "the chain was cancelled");
        return record(ports, task, state, Fact::NotRun { node, verdict });
    }
    let base_commit = match ports.runner.join(&run_id, &merge)? {
        MergedNeeds::Clean(commit) => commit,
        MergedNeeds::Conflict(paths) => {
            let verdict = conflicting_needs(paths);
            ports
                .runner
                .report(&format!("{node}: not run, {}", verdict.reason));
            return record(ports, task, state, Fact::NotRun { node, verdict });
        }
    };
    let mut contract = checked.contract.document.clone();
    contract.rollback.baseline_ref = base_commit.to_string();
    let digest = contract::digest(&contract);
    let hands = task.agents_of(&node);
    let fact = Fact::Started {
        hands,
        node: node.clone(),
        run_id: run_id.clone(),
        base_commit,
        contract_sha256: digest.map_err(|error| PortError::of(Code::Bug, error))?,
    };
    record(ports, task, state, fact)?;
    let part = task.chain.whole.as_ref().map(|_| Part {
        chain: task.id.to_owned(),
        node: node.clone(),
    });
    ports.runner.begin(NodeStart {
        part,
        trace_id: None,
        judges: None,
        approved: Vec::new(),
        node,
        run_id,
        contract,
        agent: checked.agent.clone(),
    })
}

/// Why a node is not run whose needs cannot be merged, because of `paths`.
pub(crate) fn conflicting_needs(paths: Vec<String>) -> Verdict {
    let reason = format!(
        "the results it needs do not go together: {} in conflict, `{}`",
        counted(paths.len(), "path"),
        paths.first().map_or("", String::as_str)
    );
    Verdict::deny(Code::ChainConflict, reason).with(ConflictingPaths { paths })
}

/// Appends `fact` if the state permits it, then applies it.
fn record(
    ports: &mut Ports<'_>,
    task: &Task<'_>,
    state: &mut State,
    fact: Fact,
) -> Result<(), PortError> {
    let event = fact.event(task.id, ports.clock.timestamp());
    let mut after = state.clone();
    after.apply(fact).map_err(|misplaced| {
        PortError::new(Code::Bug, format!("{} {misplaced}", event.event_type))
    })?;
    ports.ledger.append(event)?;
    *state = after;
    Ok(())
}

/// Writes the report, and signs all files of the chain.
fn seal(ports: &mut Ports<'_>, task: &Task<'_>, state: &State) -> Result<(), PortError> {
    let report = ChainReport::of(task.id, task.chain, state);
    let text = json::pretty(&report).map_err(|error| PortError::of(Code::Bug, error))?;
    ports.bundle.put(REPORT, text.as_bytes())?;
    let verdict = state.finished.as_ref();
    let predicate = RecordPredicate {
        kind: RecordKind::Chain,
        id: task.id.to_owned(),
        verdict: SealedVerdict {
            allow: verdict.is_some_and(|verdict| verdict.allow),
            code: verdict.map_or(Code::Bug, |verdict| verdict.code),
        },
        sealed_at: plan::time(ports.clock)?,
    };
    plan::seal_record(ports.bundle, ports.signer, predicate)
}
