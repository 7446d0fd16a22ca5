//! Folds the facts of a ledger into where a run stands.

use std::collections::BTreeMap;

use super::fact::{
    AgentRun, BoxTest, Capture, Fact, Judgement, Names, NoFact, Opened, Published, Salvage, Side,
    TestRun,
};
use super::{Gate, Step};
use crate::lease::Owner;
use crate::record::Record;
use crate::verdict::Verdict;

/// Where a run stands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct State {
    /// What its records share.
    pub names: Names,
    /// When it began.
    pub began: String,
    /// When the last thing happened.
    pub latest: String,
    /// How it began.
    pub opened: Opened,
    /// Who drives it.
    pub owner: Owner,
    /// How often it was taken over after a crash.
    pub resumed: u32,
    /// The attempt that goes on, from 1.
    pub attempt: u32,
    /// A step that began and has no outcome.
    pub pending: Option<Step>,
    /// The fencing number, while the scope is ours.
    pub fence: Option<u64>,
    /// Where the workspace of this attempt is, until it is removed.
    pub workspace: Option<String>,
    /// Where the last workspace was.
    pub workspace_was: Option<String>,
    /// Whether directories of the run may be there, whole or in part.
    pub littered: bool,
    /// Whether the agent of this attempt was lost with its driver.
    pub lost: bool,
    /// What the probe found out.
    pub tested: Option<BoxTest>,
    /// How the agent of this attempt ended.
    pub agent: Option<AgentRun>,
    /// What it left.
    pub captured: Option<Capture>,
    /// What each gate said.
    pub gates: BTreeMap<Gate, Verdict>,
    /// What the acceptance commands did.
    pub tests: BTreeMap<Side, TestRun>,
    /// The branch with the candidate.
    pub published: Option<Published>,
    /// Work that is kept although it does not land.
    pub salvaged: Vec<Salvage>,
    /// The refusal that ends the run.
    pub refusal: Option<Verdict>,
    /// The answer, once the gates are through.
    pub finished: Option<Verdict>,
}

/// Why records are not the ledger of a run.
#[derive(Debug, thiserror::Error)]
pub enum BadLedger {
    /// There is nothing.
    #[error("the ledger is empty")]
    Empty,
    /// A record is not of this format.
    #[error(transparent)]
    NoFact(#[from] NoFact),
    /// A record stands where it cannot have happened.
    #[error("record {seq} ({what}) cannot stand there")]
    Order {
        /// Which.
        seq: u64,
        /// What it says.
        what: String,
    },
    /// A record belongs to another run.
    #[error("record {seq} belongs to another run")]
    Stranger {
        /// Which.
        seq: u64,
    },
}

impl State {
    /// Folds the records of a ledger, oldest first.
    pub fn fold(records: &[Record]) -> Result<Self, BadLedger> {
        let (first, rest) = records.split_first().ok_or(BadLedger::Empty)?;
        let order = |record: &Record| BadLedger::Order {
            seq: record.seq,
            what: record.event.event_type.clone(),
        };
        let Fact::Opened(opened) = Fact::of(&first.event, first.seq)? else {
            return Err(order(first));
        };
        let mut state = Self::begin(first, *opened);
        for record in rest {
            if record.event.run_id != state.names.run_id {
                return Err(BadLedger::Stranger { seq: record.seq });
            }
            let fact = Fact::of(&record.event, record.seq)?;
            if !state.apply(fact) {
                return Err(order(record));
            }
            state.latest.clone_from(&record.event.ts);
        }
        Ok(state)
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
            opened,
            resumed: 0,
            attempt: 1,
            pending: None,
            fence: None,
            workspace: None,
            workspace_was: None,
            littered: false,
            lost: false,
            tested: None,
            agent: None,
            captured: None,
            gates: BTreeMap::new(),
            tests: BTreeMap::new(),
            published: None,
            salvaged: Vec::new(),
            refusal: None,
            finished: None,
        }
    }

    /// Takes in one more fact; false if it cannot have happened here.
    pub fn apply(&mut self, fact: Fact) -> bool {
        if self.finished.is_some() {
            return false;
        }
        match fact {
            Fact::Opened(_) => return false,
            Fact::Resumed { owner } => self.resume(owner),
            Fact::Started { step } => {
                if self.pending.is_some_and(|pending| pending != step) {
                    return false;
                }
                self.pending = Some(step);
                self.littered |= step == Step::Workspace;
            }
            Fact::Lost {} => {
                self.lost = true;
                return self.end(Step::Agent);
            }
            Fact::Failed { step, verdict } => return self.failed(step, verdict),
            Fact::Leased { fence } => {
                self.fence = Some(fence);
                return self.end(Step::Lease);
            }
            Fact::Workspace(placed) => {
                self.workspace_was = Some(placed.path.clone());
                self.workspace = Some(placed.path);
                return self.end(Step::Workspace);
            }
            Fact::Tested(test) => {
                self.tested = Some(test);
                return self.end(Step::Selftest);
            }
            Fact::AgentEnded(run) => {
                self.agent = Some(run);
                return self.end(Step::Agent);
            }
            Fact::Captured(capture) => {
                self.captured = Some(capture);
                return self.end(Step::Capture);
            }
            Fact::Passed(judgement) => return self.judged(judgement, true),
            Fact::Refused(judgement) | Fact::Violation(judgement) => {
                return self.judged(judgement, false);
            }
            Fact::TestsRan(run) => return self.tests_ran(run),
            Fact::Published(published) => {
                self.published = Some(published);
                return self.end(Step::Publish);
            }
            Fact::Cleaned { salvage } => {
                self.clean(salvage);
                return self.end(Step::Clean);
            }
            Fact::Finished { verdict } => {
                if self.pending.is_some() {
                    return false;
                }
                self.finished = Some(verdict);
            }
        }
        true
    }

    /// An outcome needs its intent.
    fn end(&mut self, step: Step) -> bool {
        self.pending.take() == Some(step)
    }

    /// Another process took over: the lease has to be got again, and what was begun begins anew.
    fn resume(&mut self, owner: Owner) {
        self.owner = owner;
        self.resumed += 1;
        self.fence = None;
        if self.pending != Some(Step::Agent) {
            self.pending = None;
        }
        if self.agent.is_none() {
            // The next agent may meet another kernel or another program than was tested.
            self.tested = None;
            self.gates.remove(&Gate::Box);
        }
    }

    fn judged(&mut self, judgement: Judgement, allow: bool) -> bool {
        let Judgement { gate, verdict } = judgement;
        if verdict.allow != allow || self.gates.contains_key(&gate) || self.pending.is_some() {
            return false;
        }
        if !allow {
            self.refusal.get_or_insert_with(|| verdict.clone());
        }
        self.gates.insert(gate, verdict);
        true
    }

    fn failed(&mut self, step: Step, verdict: Verdict) -> bool {
        match step {
            // The directory stays, and the ledger says so; the answer stays as well.
            Step::Clean if !self.lost => self.clean(None),
            // What a lost agent left is not saved, so nobody may work on top of it.
            Step::Clean => {
                self.lost = false;
                self.refusal.get_or_insert(verdict);
            }
            _ => {
                self.refusal.get_or_insert(verdict);
            }
        }
        self.end(step)
    }

    fn tests_ran(&mut self, run: TestRun) -> bool {
        let step = match run.side {
            Side::Base => Step::BaseAcceptance,
            Side::Candidate => Step::Acceptance,
            // Comes after the seal, in another chain.
            Side::Merged => return false,
        };
        self.tests.insert(run.side, run);
        self.end(step)
    }

    fn clean(&mut self, salvage: Option<Salvage>) {
        self.workspace = None;
        self.salvaged.extend(salvage);
        if self.lost {
            // Another attempt may follow, in the same home.
            self.lost = false;
            self.attempt += 1;
        } else {
            self.littered = false;
        }
    }
}
