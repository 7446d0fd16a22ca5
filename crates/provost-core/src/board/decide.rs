//! Decides what a request does to a kept board.
//!
//! # Invariants
//!
//! - A request is answered with one fact, with nothing, or with a refusal; only a fact changes the
//!   board, and every fact leaves a board on which everything fits together.
//! - A request that comes again after it was granted changes nothing, so whoever does not know
//!   whether it was heard may ask again.

use serde_json::Value;

use crate::code::Code;
use crate::time;

use super::delta::{Delta, DeltaError, Fault};
use super::fact::{Assigned, Blocker, Ended, Fact, LogLine, Silent, Terms};
use super::lock::LockError;
use super::reconcile::{self, Cycles, Issue};
use super::resource::Resource;
use super::row::{Status, TaskId};
use super::state::Board;
use super::transition::TransitionError;
use super::watchdog::{self, WatchError, Watched};
use super::worklog::{self, LastEntry, WorklogError};

/// The most locks that are held at a time.
pub const MOST_LOCKS: usize = 10_000;

const NANOS_PER_MILLI: i128 = 1_000_000;
const SECOND: i128 = 1000 * NANOS_PER_MILLI;

/// What somebody wants of a board.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// To begin a task.
    Assign {
        /// Who works on it.
        owner: String,
        /// What was agreed.
        terms: Box<Terms>,
    },
    /// To give a sign of life.
    Heartbeat {
        task_id: TaskId,
        /// Who gives it, when that is said.
        owner: Option<String>,
    },
    /// To end a task, with a result that holds.
    Result(Box<Report>),
    /// To block tasks whose owners are silent.
    Tick,
    /// To change rows.
    Apply {
        /// The version that the deltas were built on.
        base: u64,
        /// The changes.
        deltas: Vec<Delta>,
        /// Why tasks get blocked.
        blockers: Vec<Blocker>,
    },
    /// To lock places.
    Lock {
        task_id: TaskId,
        /// Which places.
        resources: Vec<Resource>,
    },
    /// To give places back.
    Release {
        task_id: TaskId,
        /// Which places; everything when nothing is said.
        resources: Option<Vec<Resource>>,
    },
    /// To add to the log of a task.
    Log {
        task_id: TaskId,
        /// What is added.
        lines: Vec<LogLine>,
    },
}

/// How a task ended, as its worker says and somebody checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub task_id: TaskId,
    /// Done, blocked or failed.
    pub status: Status,
    /// What the worker wants the planner to know first.
    pub note: Option<String>,
    /// The end of a log that the worker kept elsewhere; counts when the board has none.
    pub log_end: Option<LogLine>,
    /// The result as it was handed over.
    pub result: Value,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to write down; nothing when the request changes nothing.
    pub fact: Option<Fact>,
    /// The board afterwards.
    pub board: Board,
    /// Tasks that the watchdog cannot judge.
    pub doubts: Vec<WatchError>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such task.
    #[error("{0} is not on the board")]
    UnknownTask(TaskId),
    /// A task before it is not there at all.
    #[error("{0}, which must be done before, is not on the board")]
    UnknownDependency(TaskId),
    /// Nobody works on it.
    #[error("{task} is {status}, not in progress")]
    NotInProgress {
        /// Which task.
        task: TaskId,
        /// Where it stands.
        status: Status,
    },
    /// Somebody else has it.
    #[error("{task} belongs to `{owner}`, not to `{claimed}`")]
    NotOwner {
        /// Which task.
        task: TaskId,
        /// Who has it.
        owner: String,
        /// Who was named.
        claimed: String,
    },
    /// It ended, and nothing about it changes any more.
    #[error("{task} is {status} and stays as it ended")]
    Ended {
        /// Which task.
        task: TaskId,
        /// How it ended.
        status: Status,
    },
    /// Somebody is at work on it.
    #[error("`{owner}` is at work on {task} already")]
    Taken {
        /// Which task.
        task: TaskId,
        /// Who has it.
        owner: String,
    },
    /// A task wants to lock what it must not touch.
    #[error("`{wanted}` overlaps `{forbidden}`, which is forbidden to {task}")]
    Forbidden {
        /// Which task.
        task: TaskId,
        /// What it wants.
        wanted: Resource,
        /// What it must not touch.
        forbidden: Resource,
    },
    /// A task in progress keeps its lock scope.
    #[error("{task} is in progress and needs `{place}`")]
    Needed {
        /// Which task.
        task: TaskId,
        /// What it would lose.
        place: Resource,
    },
    /// More is locked than anybody could keep apart in time.
    #[error("there would be {count} locks, and a board keeps {MOST_LOCKS}")]
    TooManyLocks {
        /// How many.
        count: usize,
    },
    /// Where a place of the machine lies in the repository is not known here.
    #[error("`{0}` is a place of the machine; name it from the top of the repository")]
    Absolute(Resource),
    /// The step is not allowed.
    #[error(transparent)]
    Step(#[from] TransitionError),
    /// The locks cannot be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The deltas cannot be applied.
    #[error(transparent)]
    Delta(#[from] DeltaError),
    /// The row cannot be changed so.
    #[error(transparent)]
    Row(#[from] Fault),
    /// The log does not end as it must.
    #[error(transparent)]
    Log(#[from] WorklogError),
    /// A sign of life lies in the future.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Things would no longer fit together.
    #[error("the board would not be consistent: {0}")]
    Inconsistent(Issue),
}

impl Refusal {
    /// The rule behind it.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownTask(_) | Self::Needed { .. } | Self::Inconsistent(_) => {
                Code::LedgerInconsistent
            }
            Self::UnknownDependency(_) => Code::DependencyNotMet,
            Self::NotInProgress { .. } | Self::Taken { .. } => Code::InvalidTransition,
            Self::Ended { .. } => Code::ConcurrencyConflict,
            Self::NotOwner { .. } => Code::NonCompliant,
            Self::Forbidden { .. } | Self::TooManyLocks { .. } => Code::LockConflict,
            Self::Absolute(_) => Code::SchemaInvalid,
            Self::Step(error) => error.code(),
            Self::Lock(error) => error.code(),
            Self::Delta(error) => error.code(),
            Self::Row(fault) => fault.code(),
            Self::Log(error) => error.code(),
            Self::Watch(error) => error.code(),
        }
    }
}

impl Board {
    /// What `request` does at the time `now`, in milliseconds since 1970.
    pub fn decide(&self, request: Request, now: i64) -> Result<Decision, Refusal> {
        let mut doubts = Vec::new();
        let fact = match request {
            Request::Assign { owner, terms } => self.decide_assign(owner, terms, now)?,
            Request::Heartbeat { task_id, owner } => self.decide_beat(task_id, owner, now)?,
            Request::Result(report) => self.decide_result(*report)?,
            Request::Tick => self.decide_tick(now, &mut doubts),
            Request::Apply {
                base,
                deltas,
                blockers,
            } => self.decide_apply(base, deltas, blockers, now)?,
            Request::Lock { task_id, resources } => {
                let mine = self.held_by(&task_id);
                let held = resources.iter().all(|one| mine.contains(one));
                let is_repeated = held && !resources.is_empty();
                if !is_repeated {
                    self.lockable(&resources)?;
                }
                (!is_repeated).then_some(Fact::Locked { task_id, resources })
            }
            Request::Release { task_id, resources } => self.decide_release(task_id, resources)?,
            Request::Log { task_id, lines } => {
                let is_repeated = self.log(&task_id).ends_with(&lines);
                (!is_repeated).then_some(Fact::Logged { task_id, lines })
            }
        };
        let mut board = self.clone();
        if let Some(fact) = &fact {
            board.apply(fact)?;
            let issue = board.issues().into_iter().next();
            issue.map_or(Ok(()), |issue| Err(Refusal::Inconsistent(issue)))?;
        }
        Ok(Decision {
            fact,
            board,
            doubts,
        })
    }

    /// Refuses what would change a task that ended.
    pub(super) fn require_open(&self, task: &TaskId) -> Result<(), Refusal> {
        match self.row(task)?.status {
            status if status.is_terminal() => Err(Refusal::Ended {
                task: task.clone(),
                status,
            }),
            _ => Ok(()),
        }
    }

    /// What does not fit together.
    pub fn issues(&self) -> Vec<Issue> {
        reconcile::issues(self.rows(), self.locks(), &[], Cycles::Find)
    }

    fn decide_assign(
        &self,
        owner: String,
        terms: Box<Terms>,
        now: i64,
    ) -> Result<Option<Fact>, Refusal> {
        let row = self.row(&terms.task_id).ok();
        if let Some(row) = row.filter(|row| row.status == Status::InProgress) {
            if row.owner == owner && self.terms(&terms.task_id) == Some(&*terms) {
                return Ok(None);
            }
            return Err(Refusal::Taken {
                task: terms.task_id,
                owner: row.owner.clone(),
            });
        }
        self.lockable(&terms.lock_scope)?;
        let at = time::render(now);
        let terms = *terms;
        Ok(Some(Fact::Assigned(Box::new(Assigned {
            owner,
            terms,
            at,
        }))))
    }

    /// Whether places can be locked at all, whoever holds what.
    fn lockable(&self, wanted: &[Resource]) -> Result<(), Refusal> {
        let held = self.locks().iter().filter(|lock| lock.active).count();
        let count = held.saturating_add(wanted.len());
        if count > MOST_LOCKS {
            return Err(Refusal::TooManyLocks { count });
        }
        // Two spellings of one place could both be granted.
        match wanted.iter().find(|place| place.is_absolute()) {
            Some(place) => Err(Refusal::Absolute(place.clone())),
            None => Ok(()),
        }
    }

    fn decide_beat(
        &self,
        task_id: TaskId,
        claimed: Option<String>,
        now: i64,
    ) -> Result<Option<Fact>, Refusal> {
        let row = self.row(&task_id)?;
        if let Some(claimed) = claimed.filter(|claimed| *claimed != row.owner) {
            return Err(Refusal::NotOwner {
                task: task_id,
                owner: row.owner.clone(),
                claimed,
            });
        }
        let at = time::render(now);
        Ok(Some(Fact::Heartbeat { task_id, at }))
    }

    fn decide_result(&self, report: Report) -> Result<Option<Fact>, Refusal> {
        let row = self.row(&report.task_id)?;
        let earlier = self
            .card(&report.task_id)
            .and_then(|card| card.result.as_ref());
        if row.status == report.status && earlier == Some(&report.result) {
            return Ok(None);
        }
        self.require_open(&report.task_id)?;
        let last = self.log(&report.task_id).last().or(report.log_end.as_ref());
        let end = last.map(|line| LastEntry {
            code: line.code,
            next_step: &line.next_step,
        });
        worklog::end(report.status, end)?;
        if report.status == Status::Done && !self.issues().is_empty() {
            return Err(TransitionError::Inconsistent.into());
        }
        let succeeded = report.status == Status::Done;
        let code = last.and_then(|line| line.code).filter(|_| !succeeded);
        let next_step = || last.map(|line| line.next_step.clone());
        let reason = report.note.clone().or_else(next_step);
        Ok(Some(Fact::Ended(Box::new(Ended {
            task_id: report.task_id,
            status: report.status,
            code,
            reason: reason.unwrap_or_default(),
            result: report.result,
        }))))
    }

    fn decide_tick(&self, now: i64, doubts: &mut Vec<WatchError>) -> Option<Fact> {
        let mut late = Vec::new();
        for row in self.rows() {
            let heartbeat = row.pulse.last_heartbeat_at.clone().unwrap_or_default();
            let watched = Watched {
                task_id: row.task_id.clone(),
                status: row.status,
                timeout_seconds: self.terms(&row.task_id).map_or(0, |t| t.timeout_seconds),
                // A heartbeat that cannot be read is no sign of life.
                last_heartbeat: time::read(&heartbeat).map_or(i128::MIN / 2, |time| time.nanos),
            };
            match watchdog::look(i128::from(now) * NANOS_PER_MILLI, &watched) {
                Ok(None) => {}
                Ok(Some(one)) => late.push(Silent {
                    task_id: one.task_id,
                    silent_ms: i64::try_from(one.silence / NANOS_PER_MILLI).unwrap_or(i64::MAX),
                    timeout_seconds: one.timeout_seconds,
                    last_heartbeat_at: heartbeat,
                }),
                Err(doubt) => doubts.push(doubt),
            }
        }
        (!late.is_empty()).then_some(Fact::TimedOut { late })
    }

    fn decide_apply(
        &self,
        base: u64,
        deltas: Vec<Delta>,
        blockers: Vec<Blocker>,
        now: i64,
    ) -> Result<Option<Fact>, Refusal> {
        self.ledger().require_base(base, &deltas)?;
        for delta in &deltas {
            // Else the watchdog could not judge the task for as long.
            let beat = delta
                .pulse
                .last_heartbeat_at
                .as_deref()
                .and_then(time::read);
            let limit = i128::from(now) * NANOS_PER_MILLI + watchdog::CLOCK_SKEW * SECOND;
            if beat.is_some_and(|beat| beat.nanos > limit) {
                return Err(WatchError::Future(delta.task_id.clone()).into());
            }
        }
        if deltas.iter().all(|delta| self.ledger().knows(delta)) {
            // That no id is used twice is still looked at.
            self.clone().apply(&applied(deltas, blockers, now))?;
            return Ok(None);
        }
        Ok(Some(applied(deltas, blockers, now)))
    }

    fn decide_release(
        &self,
        task_id: TaskId,
        named: Option<Vec<Resource>>,
    ) -> Result<Option<Fact>, Refusal> {
        self.row(&task_id)?;
        let mut resources = self.held_by(&task_id);
        if let Some(named) = named {
            resources.retain(|held| named.contains(held));
        }
        Ok((!resources.is_empty()).then_some(Fact::Released { task_id, resources }))
    }
}

fn applied(deltas: Vec<Delta>, blockers: Vec<Blocker>, now: i64) -> Fact {
    Fact::Applied {
        deltas,
        blockers,
        at: time::render(now),
    }
}
