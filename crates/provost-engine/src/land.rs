//! Lands an accepted run: exactly the candidate, or its merge with a target that moved.
//!
//! What happens after the seal goes to a second chain that begins with the sealed head. The commit
//! is a function of the ledger and of the target it is put on, so landing again after a crash finds
//! its own commit instead of making another.

use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::statement::{LandingPredicate, LedgerHead, RunStatement};
use provost_core::bundle::verify::AFTER_STATEMENT;
use provost_core::change::{Change, Finding};
use provost_core::code::Code;
use provost_core::gate::diff;
use provost_core::json::canonical;
use provost_core::object::Oid;
use provost_core::record::{Event, Head, Level, Record};
use provost_core::run::fact::{Published, Side, TestRun};
use provost_core::run::judge::{judge_tests, judge_unaltered};
use provost_core::run::{Gate, State};
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::drive::contract;
use crate::ports::{
    Bundle, Clock, Control, Host, Ledger, Observer, PortError, Progress, Signer, Watch, Wish,
};
use crate::seal::ATTESTATION;

/// The branch that a result is meant for, and the way there.
pub trait Target {
    /// Where the branch is; `None` if there is no such branch.
    fn tip(&mut self, branch: &str) -> Result<Option<Oid>, PortError>;

    /// Merges what the target and the candidate made of the base.
    fn merge(&mut self, base: &Oid, target: &Oid, candidate: &Oid) -> Result<Merge, PortError>;

    /// What `tree` would change in the commit `target`, with everything the diff gate looks at.
    fn changes(&mut self, target: &Oid, tree: &Oid) -> Result<Changed, PortError>;

    /// The one commit of `tree` on `parent`.
    fn commit(&mut self, state: &State, tree: &Oid, parent: &Oid) -> Result<Oid, PortError>;

    /// Moves the branch, and a clean checkout of it, if it still is where it was.
    fn advance(&mut self, branch: &str, from: &Oid, to: &Oid) -> Result<(), PortError>;

    /// Removes a branch of ours that is at `commit` and that nobody has checked out.
    fn retire(&mut self, branch: &str, commit: &Oid) -> Result<(), PortError>;
}

/// What a tree changes, and what it cannot hold faithfully.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// The paths that differ.
    pub changes: Vec<Change>,
    /// What a checkout of it cannot hold.
    pub findings: Vec<Finding>,
}

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// One tree.
    Clean(Oid),
    /// Paths that both sides changed.
    Conflict(Vec<String>),
}

/// The ports that a landing goes through.
pub struct LandPorts<'a, H: Host + Target> {
    /// Does things.
    pub host: &'a mut H,
    /// The chain after the seal.
    pub after: &'a mut dyn Ledger,
    /// The sealed files.
    pub bundle: &'a dyn Bundle,
    /// Signs.
    pub signer: &'a dyn Signer,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Looks on.
    pub observer: &'a mut dyn Observer,
}

/// What landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The commit it was put on.
    pub parent: Oid,
    /// The branch that moved.
    pub target: String,
}

const STARTED: &str = "LAND_STARTED";
const LANDED: &str = "LANDED";

/// Lands the run whose sealed ledger ends at `sealed`.
pub fn land<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    sealed: &Head,
) -> Result<Landed, PortError> {
    if let Some(landed) = landed(ports.after.records()) {
        retire(ports, state, &landed);
        return Ok(landed);
    }
    if !state.finished.as_ref().is_some_and(|verdict| verdict.allow) {
        return Err(refuse_unlandable(state));
    }
    let (Some(captured), Some(published), Some(branch)) =
        (&state.captured, &state.published, &state.opened.target)
    else {
        return Err(refuse_unlandable(state));
    };
    let tip = ports.host.tip(branch)?.ok_or_else(|| {
        PortError::new(
            Code::NotFound,
            format!("there is no branch `{branch}` to land on"),
        )
    })?;
    // The branch moved before a crash, and only the record of it is missing.
    if let Some(begun) = find(ports.after.records(), STARTED).filter(|begun| begun.commit == tip) {
        return record_landed(ports, state, sealed, begun);
    }
    let (commit, tree) = if tip == state.opened.base_commit {
        (published.commit.clone(), captured.tree.clone())
    } else {
        let tree = merge(ports, state, &tip, &published.commit)?;
        (ports.host.commit(state, &tree, &tip)?, tree)
    };
    let landing = Landed {
        commit,
        tree,
        parent: tip,
        target: branch.clone(),
    };
    record(ports, state, Level::Info, STARTED, &landing)?;
    ports
        .host
        .advance(branch, &landing.parent, &landing.commit)?;
    record_landed(ports, state, sealed, landing)
}

fn refuse_unlandable(state: &State) -> PortError {
    let run = &state.names.run_id;
    match &state.finished {
        Some(verdict) if verdict.allow => PortError::new(
            Code::NotFound,
            format!("{run} names no branch to land on; give one with --target when running"),
        ),
        Some(verdict) => PortError::new(
            Code::NotAccepted,
            format!("{run} was refused: {}", verdict.reason),
        ),
        None => PortError::new(Code::RunUnfinished, format!("{run} has not ended")),
    }
}

/// A new candidate on a target that moved: merged, judged by the diff gate, and tested.
fn merge<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    tip: &Oid,
    candidate: &Oid,
) -> Result<Oid, PortError> {
    let tree = match ports
        .host
        .merge(&state.opened.base_commit, tip, candidate)?
    {
        Merge::Clean(tree) => tree,
        Merge::Conflict(paths) => {
            let reason = format!(
                "the target moved and both sides changed {}",
                paths.join(", ")
            );
            return Err(PortError::new(Code::LandConflict, reason));
        }
    };
    let changed = ports.host.changes(tip, &tree)?;
    if changed.changes.is_empty() {
        let reason = "the target has this change already; nothing is left to land";
        return Err(PortError::new(Code::EmptyDiff, reason));
    }
    let verdict = judge_changes(state, &changed)?;
    settle(ports, state, Gate::Diff, verdict)?;
    let mut watch = Looking(&mut *ports.observer);
    let run = ports.host.accept(state, Side::Merged, &tree, &mut watch)?;
    record(ports, state, Level::Info, "TEST_RESULT", &run)?;
    let verdict = judge_run(state, &run)?;
    settle(ports, state, Gate::Acceptance, verdict)?;
    settle(ports, state, Gate::Tree, judge_unaltered(&run))?;
    state_candidate(ports, state, &tree)?;
    Ok(tree)
}

/// Signs a second statement: the same run, with the merged tree as its candidate.
fn state_candidate<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    tree: &Oid,
) -> Result<(), PortError> {
    let unreadable = |what: String| PortError::new(Code::EvidenceAltered, what);
    let sealed = ports.bundle.get(ATTESTATION)?;
    let sealed = sealed.ok_or_else(|| unreadable("the seal is missing".to_owned()))?;
    let payload = Envelope::parse(&sealed)
        .and_then(|envelope| envelope.unverified_payload())
        .map_err(|error| unreadable(format!("the seal does not parse: {error}")))?;
    let statement = RunStatement::parse(&payload)
        .map_err(|error| unreadable(format!("the seal does not parse: {error}")))?;
    let mut predicate = statement.predicate;
    predicate.candidate_tree = Some(tree.clone());
    let envelope = signed(ports.signer, &predicate.state())?;
    let payload = Map::from_iter([
        ("tree".to_owned(), json!(tree)),
        (AFTER_STATEMENT.to_owned(), envelope),
    ]);
    append(ports, state, Level::Info, "CANDIDATE_MERGED", payload)
}

/// The envelope that holds `statement`, signed.
fn signed(signer: &dyn Signer, statement: &impl Serialize) -> Result<Value, PortError> {
    let bug = |error: serde_json::Error| PortError::of(Code::Bug, error);
    let statement = serde_json::to_value(statement).map_err(bug)?;
    let envelope = signer.sign(canonical(&statement).as_bytes())?;
    serde_json::from_slice(&envelope).map_err(bug)
}

fn judge_changes(state: &State, changed: &Changed) -> Result<Verdict, PortError> {
    let contract = contract(state)?;
    let rules = diff::Rules {
        scope: &contract.scope,
        forbid: &contract.forbid,
        permit: &contract.permit,
        extra: &state.opened.protect,
    };
    let facts = diff::Facts {
        changes: &changed.changes,
        findings: &changed.findings,
        ..diff::Facts::default()
    };
    Ok(diff::judge(&facts, &rules))
}

fn judge_run(state: &State, run: &TestRun) -> Result<Verdict, PortError> {
    Ok(judge_tests(Some(run), &contract(state)?))
}

/// Writes a gate's answer down; a refusal ends the landing.
fn settle<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    gate: Gate,
    verdict: Verdict,
) -> Result<(), PortError> {
    ports.observer.judged(gate, &verdict);
    let (level, name) = if verdict.allow {
        (Level::Info, "GATE_PASSED")
    } else {
        (Level::Error, "gate_failed")
    };
    record(
        ports,
        state,
        level,
        name,
        &json!({ "gate": gate, "verdict": verdict }),
    )?;
    if verdict.allow {
        Ok(())
    } else {
        Err(PortError::new(verdict.code, verdict.reason))
    }
}

fn record_landed<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    sealed: &Head,
    landed: Landed,
) -> Result<Landed, PortError> {
    let bug = |what: &str| PortError::new(Code::Bug, what.to_owned());
    let predicate = LandingPredicate {
        run_id: state.names.run_id.clone(),
        sealed_head: LedgerHead::of(sealed).ok_or_else(|| bug("the sealed ledger is empty"))?,
        tree: landed.tree.clone(),
        parent: landed.parent.clone(),
        target: landed.target.clone(),
        landed_at: ports
            .clock
            .timestamp()
            .try_into()
            .map_err(|_| bug("the clock gives no time"))?,
    };
    let envelope = signed(ports.signer, &predicate.state(landed.commit.clone()))?;
    let mut payload = fields(&landed);
    payload.insert(AFTER_STATEMENT.to_owned(), envelope);
    append(ports, state, Level::Info, LANDED, payload)?;
    retire(ports, state, &landed);
    Ok(landed)
}

/// Removes the branch of the run once the target has exactly its commit; a merge keeps it.
fn retire<H: Host + Target>(ports: &mut LandPorts<'_, H>, state: &State, landed: &Landed) {
    let done = |branch: &&Published| branch.commit == landed.commit;
    if let Some(published) = state.published.as_ref().filter(done) {
        // It has landed either way; a branch that stays can be deleted by hand.
        let _ = ports.host.retire(&published.branch, &published.commit);
    }
}

/// The landing that the chain after the seal tells of.
pub fn landed(after: &[Record]) -> Option<Landed> {
    find(after, LANDED)
}

/// The last landing that a record called `name` tells of.
fn find(records: &[Record], name: &str) -> Option<Landed> {
    let record = records
        .iter()
        .rev()
        .find(|record| record.event.event_type == name)?;
    let mut payload = record.event.payload.clone();
    payload.remove(AFTER_STATEMENT);
    serde_json::from_value(Value::Object(payload)).ok()
}

fn fields(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        // Only structures come here.
        _ => Map::new(),
    }
}

fn record<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    level: Level,
    name: &str,
    value: &impl Serialize,
) -> Result<(), PortError> {
    append(ports, state, level, name, fields(value))
}

fn append<H: Host + Target>(
    ports: &mut LandPorts<'_, H>,
    state: &State,
    level: Level,
    name: &str,
    payload: Map<String, Value>,
) -> Result<(), PortError> {
    ports.after.append(Event {
        ts: ports.clock.timestamp(),
        level,
        event_type: name.to_owned(),
        run_id: state.names.run_id.clone(),
        task_id: Some(state.names.task_id.clone()),
        attempt: None,
        payload,
        trace_id: state.names.trace_id.clone(),
    })
}

/// A watch without a lease: a sealed run holds none.
struct Looking<'a>(&'a mut dyn Observer);

impl Watch for Looking<'_> {
    fn tick(&mut self, progress: &Progress) -> Control {
        match self.0.goes_on(progress) {
            Wish::GoOn => Control::Continue,
            Wish::Cancel => Control::Cancel,
        }
    }
}
