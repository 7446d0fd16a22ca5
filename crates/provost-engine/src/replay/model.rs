//! Runs the agent of a sealed run again, against the recorded answers of its models.
//!
//! # Invariants
//!
//! - The agent gets exactly the recorded answers, or the replay ends; nothing else is reached.
//! - A run whose record lacks anything is not run again, and every gap is named.
//! - Every attempt begins as the sealed run says: its tree, its contract, its sandbox.

use provost_core::bundle::layout::LEDGER;
use provost_core::bundle::report::ReexecReport;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::{self, Head, Record};
use provost_core::run::effect::{AgentEffect, Capture, Effect, Selftest, Workspace};
use provost_core::run::fact::{AgentRun, Ending};
use provost_core::run::{State, Step};

use super::{PACK, ReplayHost, concluded};
use crate::after::{self, AfterPorts, UnleasedWatch};
use crate::bundle::after::{REPLAY_STARTED, Replay, ReplayStart};
use crate::bundle::replay::Differences;
use crate::ports::{PortError, Watch};

/// Runs agents again on this machine.
pub trait ModelReplayHost: ReplayHost {
    /// Reads the recorded answers for the requests in `rows`, the sealed file `name`; returns
    /// everything that is missing.
    fn load_model(&mut self, name: &str, rows: &[u8]) -> Result<Vec<String>, PortError>;

    /// Runs the agent of one attempt on what was loaded for it.
    fn agent_again(
        &mut self,
        order: &AgentAgain,
        watch: &mut dyn Watch,
    ) -> Result<AgentReplayed, PortError>;
}

pub type ModelReplayPorts<'a> = AfterPorts<'a, dyn ModelReplayHost + 'a>;

/// One attempt, to be made again.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentAgain {
    pub workspace: Workspace,
    pub selftest: Box<Selftest>,
    pub agent: Box<AgentEffect>,
    pub capture: Capture,
    /// The tree that the sealed attempt left.
    pub tree: Oid,
}

/// What an agent did that ran again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReplayed {
    pub ending: Ending,
    /// The program's name for the conversation.
    pub thread: Option<String>,
    pub tree: Oid,
    /// The paths at which that tree differs from the sealed one.
    pub changed: Vec<RawPath>,
    /// Its first request that equals no recorded one.
    pub unmatched: Option<UnmatchedRequest>,
    /// How many recorded requests it did not make.
    pub left: usize,
}

/// A request that equals no recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedRequest {
    /// Counted from 1.
    pub request: u64,
    /// The number of the recorded request that is closest.
    pub closest: Option<u64>,
    /// JSON pointer to the first difference.
    pub pointer: String,
    /// What stands there, escaped.
    pub recorded: Option<String>,
    pub again: Option<String>,
}

/// Result of running the agent of a run again.
#[derive(Debug, Clone, PartialEq)]
pub struct Remodelled {
    pub report: ReexecReport,
    /// Where the bundle stores the report.
    pub replay: Replay,
    /// Whether the record lacks something, so that the agent was not run.
    pub incomplete: bool,
    /// How many attempts were made again.
    pub attempts: usize,
}

/// One attempt of the sealed run.
struct SealedAttempt {
    number: u32,
    /// The state in which the agent was started.
    before: State,
    run: AgentRun,
    tree: Oid,
}

/// Runs the agent of the sealed run `run_id` again, whose lock this process holds.
pub fn remodel(ports: &mut ModelReplayPorts<'_>, run_id: &str) -> Result<Remodelled, PortError> {
    let (mut after_seal, _) = after::AfterSeal::begin(ports, run_id, |_| Ok(()))?;
    let records = records(&after_seal)?;
    let start = ReplayStart::next(after_seal.after.records());
    after_seal.note(REPLAY_STARTED, &start)?;
    let mut found = Differences::default();
    let attempts = attempts(&after_seal, &records, &mut found)?;
    let mut made = Ok(0);
    if found.errors.is_empty() {
        made = again(&mut after_seal, &attempts, &mut found);
    }
    // A gap is found before the agent is started.
    let incomplete = !found.errors.is_empty();
    let tidied = after_seal.ports.target.tidy();
    let attempts = made?;
    let report = found.report(run_id, after_seal.now()?);
    tidied?;
    let replay = concluded(&mut after_seal, &start, &report)?;
    Ok(Remodelled {
        report,
        replay,
        incomplete,
        attempts,
    })
}

/// One replay of the agent of one run.
type ModelAfterSeal<'p, 'a> = after::AfterSeal<'p, 'a, dyn ModelReplayHost + 'a>;

fn records(after_seal: &ModelAfterSeal<'_, '_>) -> Result<Vec<Record>, PortError> {
    let altered = |what: String| PortError::new(Code::EvidenceAltered, what);
    let files = after_seal.ports.sealed.files()?;
    let bytes = files.read(&RawPath::new(LEDGER)).map_err(altered)?;
    let chain = record::read(&bytes, Head::genesis());
    Ok(chain.map_err(|error| altered(error.to_string()))?.records)
}

/// The attempts of the run; what keeps them from being made again is noted in `found`.
fn attempts(
    after_seal: &ModelAfterSeal<'_, '_>,
    records: &[Record],
    found: &mut Differences,
) -> Result<Vec<SealedAttempt>, PortError> {
    let state = &after_seal.state;
    if state.opened.work.is_some() {
        found
            .errors
            .push("the run judged existing work without an agent".to_owned());
    } else if state.opened.adapted.is_none() {
        let why = "the agent is a command, whose requests to models are not read";
        found.errors.push(why.to_owned());
    }
    for (event, why) in NOT_REPEATED {
        if records
            .iter()
            .any(|record| record.event.event_type == event)
        {
            found.errors.push(why.to_owned());
        }
    }
    let mut attempts = Vec::new();
    for (index, record) in records.iter().enumerate() {
        if record.event.event_type != "AGENT_ENDED" || !found.errors.is_empty() {
            continue;
        }
        let fold = |end: usize| {
            let folded = State::fold(&records[..end]);
            folded.map_err(|error| PortError::of(Code::EvidenceAltered, error))
        };
        let before = fold(index)?;
        let rest = records[index + 1..].iter();
        let mut rest = rest.take_while(|record| record.event.event_type != "AGENT_ENDED");
        let captured = rest.position(|record| record.event.event_type == "TREE_CAPTURED");
        let after = fold(index + 2 + captured.unwrap_or(0))?;
        let number = before.attempt;
        match (captured, after.agent, after.captured) {
            (Some(_), Some(run), Some(captured)) => attempts.push(SealedAttempt {
                number,
                before,
                run,
                tree: captured.tree,
            }),
            _ => found.errors.push(format!("attempt {number} left no tree")),
        }
    }
    if attempts.is_empty() && found.errors.is_empty() {
        found.errors.push("no agent of the run ended".to_owned());
    }
    Ok(attempts)
}

/// Events of a run whose agent cannot be run again on its own.
const NOT_REPEATED: [(&str, &str); 3] = [
    ("ATTEMPT_LOST", "an attempt was lost with its driver"),
    (
        "CHILD_STARTED",
        "the agent started children, which are not run again",
    ),
    (
        "QUESTION_ASKED",
        "the agent asked for permissions, and the answers are not given again",
    ),
];

/// Makes all attempts again, one after the other; returns how many.
fn again(
    after_seal: &mut ModelAfterSeal<'_, '_>,
    attempts: &[SealedAttempt],
    found: &mut Differences,
) -> Result<usize, PortError> {
    for attempt in attempts {
        load(after_seal, attempt, found)?;
    }
    if !found.errors.is_empty() {
        return Ok(0);
    }
    let base = after_seal.state.opened.base_commit.clone();
    let files = after_seal.ports.sealed.files()?;
    let pack = files.read(&RawPath::new(PACK)).unwrap_or_default();
    for attempt in attempts {
        let target = &mut *after_seal.ports.target;
        target.trees(&base, &attempt.tree, pack.clone())?;
    }
    let mut threads: Vec<(String, String)> = Vec::new();
    for (index, attempt) in attempts.iter().enumerate() {
        let mut order = order(attempt)?;
        for (sealed, own) in &threads {
            order.agent.continue_as(sealed, own);
        }
        let mut watch = UnleasedWatch(&mut *after_seal.ports.observer);
        let replayed = after_seal.ports.target.agent_again(&order, &mut watch)?;
        if replayed.ending == Ending::Cancelled {
            return Err(PortError::new(Code::Cancelled, "the replay was cancelled"));
        }
        compare(attempt, &replayed, found);
        if !found.is_equal() {
            return Ok(index + 1);
        }
        let sealed = attempt.run.claims.as_ref();
        let sealed = sealed.and_then(|claims| claims.sum.thread.clone());
        threads.extend(sealed.zip(replayed.thread));
    }
    Ok(attempts.len())
}

/// Has the record of one attempt read.
fn load(
    after_seal: &mut ModelAfterSeal<'_, '_>,
    attempt: &SealedAttempt,
    found: &mut Differences,
) -> Result<(), PortError> {
    let number = attempt.number;
    let model = attempt.run.model.as_ref();
    let Some(rows) = model.and_then(|model| model.rows.as_ref()) else {
        let why = format!("attempt {number}: its requests to models were not read");
        found.errors.push(why);
        return Ok(());
    };
    let files = after_seal.ports.sealed.files()?;
    let bytes = files.read(&RawPath::new(rows.file.as_str()));
    let bytes = bytes.map_err(|why| PortError::new(Code::EvidenceIncomplete, why))?;
    let problems = after_seal.ports.target.load_model(&rows.file, &bytes)?;
    let named = problems.iter().take(MOST_NAMED);
    let named = named.map(|problem| format!("attempt {number}: {problem}"));
    found.errors.extend(named);
    if problems.len() > MOST_NAMED {
        let rest = problems.len() - MOST_NAMED;
        found
            .errors
            .push(format!("attempt {number}: and {rest} more of the kind"));
    }
    Ok(())
}

/// The most gaps of one attempt, and the most paths, that are named.
const MOST_NAMED: usize = 20;

fn order(attempt: &SealedAttempt) -> Result<AgentAgain, PortError> {
    let state = &attempt.before;
    let effect = |step: Step| {
        let effect = state.effect(step);
        effect.map_err(|error| PortError::of(Code::Bug, error))
    };
    let steps = [Step::Workspace, Step::Selftest, Step::Agent, Step::Capture];
    let [workspace, selftest, agent, capture] = steps.map(effect);
    match (workspace?, selftest?, agent?, capture?) {
        (
            Effect::Workspace(workspace),
            Effect::Selftest(selftest),
            Effect::Agent(agent),
            Effect::Capture(capture),
        ) => Ok(AgentAgain {
            workspace,
            selftest,
            agent,
            capture,
            tree: attempt.tree.clone(),
        }),
        _ => Err(PortError::new(
            Code::Bug,
            "a step has the inputs of another",
        )),
    }
}

fn compare(attempt: &SealedAttempt, replayed: &AgentReplayed, found: &mut Differences) {
    let number = attempt.number;
    if let Some(unmatched) = &replayed.unmatched {
        let of = unmatched.closest;
        let of = of.map_or(String::new(), |closest| format!(" (recorded as {closest})"));
        let UnmatchedRequest {
            request, pointer, ..
        } = unmatched;
        let key = format!("attempt {number} request {request}{of} {pointer}");
        // Nothing after it can be compared.
        return found.hard(key, &unmatched.recorded, &unmatched.again);
    }
    let (sealed, again) = (&attempt.run.ending, &replayed.ending);
    found.hard(format!("attempt {number} ending"), sealed, again);
    found.hard(
        format!("attempt {number} tree"),
        &attempt.tree,
        &replayed.tree,
    );
    for path in replayed.changed.iter().take(MOST_NAMED) {
        found.hard(
            format!("attempt {number} path {path}"),
            &"as sealed",
            &"other",
        );
    }
    let left = format!("attempt {number} requests that were not made again");
    found.soft(left, &0, &replayed.left);
    let model = attempt.run.model.as_ref();
    let sealed = attempt.before.effect(Step::Agent);
    let own = match &sealed {
        Ok(Effect::Agent(agent)) => agent.adaptation.as_ref().and_then(|it| it.model()),
        _ => None,
    };
    let own = own.filter(|_| model.is_some()).map(ToString::to_string);
    let others = attempt.run.network.iter().filter(|line| line.allow);
    for line in others.filter(|line| Some(&line.target) != own.as_ref()) {
        let key = format!("attempt {number} network {}", line.target);
        found.soft(key, &line.count, &0);
    }
}
