//! Folds the facts of a ledger into the state of a run.

use std::collections::BTreeMap;

use super::fact::{
    AgentRun, Cancel, Capture, Cleaned, Fact, Judgement, Layered, Left, Names, NoFact, Opened,
    Published, ReviewRun, Salvage, SandboxTest, Side, TestRun, Trigger, Violation,
};
use super::fix::EarlierAttempt;
use super::judge::QuestionState;
use super::{Gate, Next, Round, Step};
use crate::approval::Approval;
use crate::children::{ChildStart, Family};
use crate::contract::{Contract, Problem};
use crate::lease::Owner;
use crate::record::Record;
use crate::verdict::Verdict;

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct State {
    /// The fields that all its records share.
    pub names: Names,
    pub began: String,
    /// The time of the last event.
    pub latest: String,
    pub opened: Opened,
    /// The resolved contract, or its problems.
    pub contract: Result<Contract, Vec<Problem>>,
    pub owner: Owner,
    /// How often another process took it over after a crash.
    pub resumed: u32,
    /// Whether a person was asked about what the contract widens.
    pub asked: bool,
    /// The approval of that person, while it is valid.
    pub approval: Option<Approval>,
    /// The questions of its agents, by digest.
    pub questions: BTreeMap<String, QuestionState>,
    /// The cancel request, if there is one.
    pub cancel: Option<Cancel>,
    /// The current attempt, from 1.
    pub attempt: u32,
    /// How many agents were lost with their driver.
    pub lost: u32,
    /// Refused attempts that later ones fix, oldest first.
    pub past: Vec<EarlierAttempt>,
    /// Why the next attempt is to fix the current one, once that is decided.
    pub trigger: Option<Trigger>,
    /// Whether all fix attempts are used up.
    pub exhausted: bool,
    /// A step that started and has no outcome.
    pub pending: Option<Step>,
    /// The fencing number, while the scope is leased.
    pub fence: Option<u64>,
    /// The prepared layers of the base.
    pub layers: Option<Vec<Layered>>,
    pub site: Site,
    /// The directory of the last finished workspace, even if it is removed.
    pub worked_in: Option<String>,
    pub tested: Option<SandboxTest>,
    /// How the agent of this attempt ended.
    pub agent: Option<AgentRun>,
    /// The children that the agents of this run started.
    pub family: Family,
    pub captured: Option<Capture>,
    pub reviewed: Option<ReviewRun>,
    pub gates: BTreeMap<Gate, Verdict>,
    /// The results of the acceptance commands.
    pub tests: BTreeMap<Side, TestRun>,
    /// The results of cross-tests.
    pub crossed: BTreeMap<Side, Round>,
    /// The branch with the candidate.
    pub published: Option<Published>,
    /// Work that is kept although it does not land.
    pub salvaged: Vec<Salvage>,
    /// Directories that stay, with work that no commit can represent.
    pub left: Vec<Left>,
    /// The refusal that ends the run.
    pub refusal: Option<Verdict>,
    /// The verdict, once all gates have decided.
    pub finished: Option<Verdict>,
}

/// What a run has on disk, outside its bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    Empty,
    /// Incomplete directories, or those that a lost attempt left for the next one.
    Begun,
    /// The finished workspace of this attempt.
    Workspace,
    /// The workspace of an agent that was lost with its driver.
    Abandoned,
}

/// A fact that is not possible in the current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot stand there")]
pub struct Misplaced;

#[derive(Debug, thiserror::Error)]
pub enum BadLedger {
    #[error("the ledger is empty")]
    Empty,
    #[error(transparent)]
    NoFact(#[from] NoFact),
    /// A record is not possible in its state.
    #[error("record {seq} ({what}) cannot stand there")]
    Order { seq: u64, what: String },
    #[error("record {seq} belongs to another run")]
    Stranger { seq: u64 },
}

impl State {
    /// Folds the records of a ledger, oldest first.
    pub fn fold(records: &[Record]) -> Result<Self, BadLedger> {
        let (first, rest) = records.split_first().ok_or(BadLedger::Empty)?;
        let Fact::Opened(opened) = Fact::of(&first.event, first.seq)? else {
            return Err(Self::misplaced(first));
        };
        let mut state = Self::begin(first, *opened);
        for record in rest {
            state.follow(record)?;
        }
        Ok(state)
    }

    /// Folds one more record of the ledger. After an error the state must not be used.
    pub fn follow(&mut self, record: &Record) -> Result<(), BadLedger> {
        if record.event.run_id != self.names.run_id {
            return Err(BadLedger::Stranger { seq: record.seq });
        }
        let fact = Fact::of(&record.event, record.seq)?;
        self.apply(fact)
            .map_err(|Misplaced| Self::misplaced(record))?;
        self.latest.clone_from(&record.event.ts);
        Ok(())
    }

    fn misplaced(record: &Record) -> BadLedger {
        BadLedger::Order {
            seq: record.seq,
            what: record.event.event_type.clone(),
        }
    }

    fn begin(first: &Record, opened: Opened) -> Self {
        Self {
            names: Names {
                run_id: first.event.run_id.clone(),
                task_id: opened.contract.task_id.clone(),
                trace_id: first.event.trace_id.clone(),
            },
            began: first.event.ts.clone(),
            latest: first.event.ts.clone(),
            owner: opened.owner.clone(),
            contract: opened.resolve(),
            opened,
            resumed: 0,
            asked: false,
            approval: None,
            questions: BTreeMap::new(),
            cancel: None,
            attempt: 1,
            lost: 0,
            past: Vec::new(),
            trigger: None,
            exhausted: false,
            pending: None,
            fence: None,
            layers: None,
            site: Site::Empty,
            worked_in: None,
            tested: None,
            agent: None,
            family: Family::default(),
            captured: None,
            reviewed: None,
            gates: BTreeMap::new(),
            tests: BTreeMap::new(),
            crossed: BTreeMap::new(),
            published: None,
            salvaged: Vec::new(),
            left: Vec::new(),
            refusal: None,
            finished: None,
        }
    }

    /// Applies one more fact. After an error the state must not be used.
    pub fn apply(&mut self, fact: Fact) -> Result<(), Misplaced> {
        if self.finished.is_some() {
            return Err(Misplaced);
        }
        match fact {
            Fact::Opened(_) => Err(Misplaced),
            Fact::Resumed { owner } => {
                self.resume(owner);
                Ok(())
            }
            fact @ (Fact::Asked { .. }
            | Fact::Approved(_)
            | Fact::Expired {}
            | Fact::Rejected(_)) => self.apply_answer(fact),
            fact @ (Fact::QuestionAsked(_)
            | Fact::QuestionAnswered(_)
            | Fact::QuestionExpired { .. }) => self.apply_question(fact),
            Fact::CancelRequested(cancel) => self.cancelled(cancel),
            Fact::Started { step } => self.start(step),
            Fact::Lost {} => self.abandon(),
            Fact::Failed { step, verdict } => self.failed(step, verdict),
            Fact::Leased { fence } => self.leased(fence),
            Fact::Prepared { layers } => {
                self.layers = Some(layers);
                self.end(Step::Prepare)
            }
            Fact::Workspace(placed) => {
                self.site = Site::Workspace;
                self.worked_in = Some(placed.path);
                self.end(Step::Workspace)
            }
            Fact::Tested(test) => {
                self.tested = Some(test);
                self.end(Step::Selftest)
            }
            fact @ (Fact::ChildStarted(_)
            | Fact::ChildEnded(_)
            | Fact::ChildRefused(_)
            | Fact::ChildMessage(_)) => self.apply_child(fact),
            Fact::AgentEnded(run) => self.agent_ended(run),
            Fact::Captured(capture) => {
                self.captured = Some(capture);
                self.end(Step::Capture)
            }
            Fact::Passed(judgement) => self.judged(judgement, true),
            Fact::Refused(judgement) | Fact::Violation(Violation::Gate(judgement)) => {
                self.judged(judgement, false)
            }
            // While the program was running, so before the outcome of its step.
            Fact::Violation(Violation::Sandbox(_)) => self.pending.map(|_| ()).ok_or(Misplaced),
            Fact::Reviewed(run) => {
                self.reviewed = Some(*run);
                self.end(Step::Review)
            }
            Fact::TestsRan(run) => self.tests_ran(run),
            fact @ (Fact::Triggered(_) | Fact::Fixing(_) | Fact::Exhausted { .. }) => {
                self.apply_fix(fact)?;
                self.between_steps()
            }
            Fact::Published(published) => {
                self.published = Some(published);
                self.end(Step::Publish)
            }
            Fact::Cleaned(cleaned) => self.cleaned(cleaned),
            Fact::Finished { verdict } => {
                self.finished = Some(verdict);
                self.between_steps()
            }
        }
    }

    fn leased(&mut self, fence: u64) -> Result<(), Misplaced> {
        self.fence = Some(fence);
        match self.pending {
            // The lease grew with what a person permitted.
            Some(Step::Agent) => Ok(()),
            _ => self.end(Step::Lease),
        }
    }

    fn cleaned(&mut self, cleaned: Cleaned) -> Result<(), Misplaced> {
        self.clean(cleaned);
        self.end(Step::Clean)
    }

    /// No agent ends before its children.
    fn agent_ended(&mut self, run: AgentRun) -> Result<(), Misplaced> {
        if self.family.running().next().is_some() {
            return Err(Misplaced);
        }
        self.agent = Some(run);
        self.end_questions();
        self.end(Step::Agent)
    }

    /// The start of a step: one at a time, but the same one may be recorded again after a crash.
    fn start(&mut self, step: Step) -> Result<(), Misplaced> {
        if self.pending.is_some_and(|pending| pending != step) {
            return Err(Misplaced);
        }
        self.pending = Some(step);
        // Without an agent, the judges are the first that need a directory.
        let makes = match step {
            Step::Workspace => true,
            Step::Lease | Step::Clean => false,
            _ => self.opened.work.is_some(),
        };
        if makes && self.site == Site::Empty {
            self.site = Site::Begun;
        }
        Ok(())
    }

    /// The end of a step, which must have started.
    pub(super) fn end(&mut self, step: Step) -> Result<(), Misplaced> {
        if self.pending.take() == Some(step) {
            Ok(())
        } else {
            Err(Misplaced)
        }
    }

    fn between_steps(&self) -> Result<(), Misplaced> {
        self.pending.map_or(Ok(()), |_| Err(Misplaced))
    }

    /// Another process took over: the scope must be leased again, and a started step starts again.
    fn resume(&mut self, owner: Owner) {
        self.owner = owner;
        self.resumed += 1;
        self.fence = None;
        if self.pending != Some(Step::Agent) {
            self.pending = None;
        }
        if self.agent.is_none() {
            // The next agent may have another kernel or another program than was tested.
            self.tested = None;
            self.gates.remove(&Gate::Sandbox);
            // Layers are held by a process, and may be gone since.
            self.layers = None;
        }
    }

    /// The agent is gone, and its work is not used.
    fn abandon(&mut self) -> Result<(), Misplaced> {
        if self.site != Site::Workspace {
            return Err(Misplaced);
        }
        self.site = Site::Abandoned;
        self.family.lose();
        self.end(Step::Agent)
    }

    /// What children do while the agent of their parent works.
    fn apply_child(&mut self, fact: Fact) -> Result<(), Misplaced> {
        let stands = self.pending == Some(Step::Agent)
            && match fact {
                Fact::ChildStarted(start) => self.is_left(&start) && self.family.start(*start),
                Fact::ChildEnded(end) => self.family.end(*end),
                Fact::ChildRefused(refused) => {
                    self.family.refused.push(*refused);
                    true
                }
                Fact::ChildMessage(message) => {
                    let parent = self.opened.child.as_ref().map(|it| it.run.as_str());
                    self.family.record_message(*message, parent)
                }
                _ => false,
            };
        stands.then_some(()).ok_or(Misplaced)
    }

    /// Whether the share of a child is within what the contract grants and others have left.
    fn is_left(&self, start: &ChildStart) -> bool {
        let contract = &self.opened.contract;
        let extension = contract.x_provost.as_ref();
        let Some(grant) = extension.and_then(|extension| extension.children.as_ref()) else {
            return false;
        };
        let left = self.family.left(grant, contract.timeout_retry.timeout_sec);
        start.children < left.children && start.given.excess(&left.budget).is_empty()
    }

    /// Cancellation was requested. A running step ends on its own and records that; a run that only
    /// waits for an answer has no running step.
    fn cancelled(&mut self, cancel: Cancel) -> Result<(), Misplaced> {
        if self.cancel.is_some() {
            return Err(Misplaced);
        }
        if matches!(self.next(), Next::Ask | Next::Wait) {
            self.refusal = Some(cancel.verdict());
        }
        self.cancel = Some(cancel);
        Ok(())
    }

    fn judged(&mut self, judgement: Judgement, allow: bool) -> Result<(), Misplaced> {
        let Judgement { gate, verdict } = judgement;
        if verdict.allow != allow || self.gates.contains_key(&gate) {
            return Err(Misplaced);
        }
        if !allow {
            self.refusal.get_or_insert_with(|| verdict.clone());
        }
        self.gates.insert(gate, verdict);
        self.between_steps()
    }

    fn failed(&mut self, step: Step, verdict: Verdict) -> Result<(), Misplaced> {
        if step == Step::Agent {
            self.end_questions();
        }
        match (step, self.site) {
            // The work of a lost agent is not saved, so no agent may continue on top of it.
            (Step::Clean, Site::Abandoned) => {
                self.site = Site::Workspace;
                self.refusal.get_or_insert(verdict);
            }
            // The directory stays, and the ledger says so; the verdict stays as well.
            (Step::Clean, _) => self.clean(Cleaned::default()),
            (Step::Agent, _) => {
                self.family.lose();
                self.refusal.get_or_insert(verdict);
            }
            _ if self.round_failed(step, &verdict) => {}
            // The fix did not happen, and the reason is the verdict.
            _ if self.trigger.take().is_some() => self.refusal = Some(verdict),
            _ => {
                self.refusal.get_or_insert(verdict);
            }
        }
        self.end(step)
    }

    fn tests_ran(&mut self, run: TestRun) -> Result<(), Misplaced> {
        let step = match run.side {
            Side::Base => Step::BaseAcceptance,
            Side::BaseAgain => Step::BaseAgain,
            Side::Candidate => Step::Acceptance,
            // Comes after the seal, in another chain.
            Side::Merged => return Err(Misplaced),
            Side::OldTests => return self.round_ran(Step::OldTests, run),
            Side::NewTests => return self.round_ran(Step::NewTests, run),
        };
        self.tests.insert(run.side, run);
        self.end(step)
    }

    fn clean(&mut self, cleaned: Cleaned) {
        self.salvaged.extend(cleaned.salvage);
        self.left.extend(cleaned.left);
        self.site = if self.site == Site::Abandoned {
            // Another attempt may follow, in the same home.
            self.attempt += 1;
            self.lost += 1;
            Site::Begun
        } else if self.trigger.is_some() {
            Site::Begun
        } else {
            Site::Empty
        };
    }
}
