//! Decides the effect of a request on a stored board.
//!
//! # Invariants
//!
//! - A request is answered with one fact, with nothing, or with a refusal. Only a fact changes the
//!   board, and every fact leaves a consistent board.
//! - A request that is repeated after it was granted changes nothing. A client that does not know
//!   whether its request arrived may therefore send it again.

use serde_json::Value;

use provost_core::code::Code;
use provost_core::time;

use super::delta::{Delta, DeltaError, Fault};
use super::fact::{Assigned, Blocker, Ended, Fact, LogLine, Silent, Terms};
use super::lock::LockError;
use super::reconcile::{self, Cycles, Issue};
use super::row::{Status, TaskId};
use super::state::Board;
use super::transition::TransitionError;
use super::watchdog::{self, WatchError, Watched};
use super::worklog::{self, LastEntry, WorklogError};
use provost_core::resource::Resource;

/// The largest number of locks that are held at a time.
pub const MOST_LOCKS: usize = 10_000;

const NANOS_PER_MILLI: i128 = 1_000_000;
const SECOND: i128 = 1000 * NANOS_PER_MILLI;

/// A request to a board.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Begin a task.
    Assign { owner: String, terms: Box<Terms> },
    /// Send a heartbeat.
    Heartbeat {
        task_id: TaskId,
        /// The sender, if the request names it.
        owner: Option<String>,
    },
    /// End a task, with a checked result.
    Result(Box<Report>),
    /// Block tasks whose owners are silent.
    Tick,
    /// Change rows.
    Apply {
        /// The version that the deltas were built on.
        base: u64,
        deltas: Vec<Delta>,
        /// Why tasks are blocked.
        blockers: Vec<Blocker>,
        /// The terms of tasks that deltas begin.
        terms: Vec<Terms>,
    },
    /// Lock resources.
    Lock {
        task_id: TaskId,
        resources: Vec<Resource>,
    },
    /// Release resources.
    Release {
        task_id: TaskId,
        /// `None` releases everything that the task holds.
        resources: Option<Vec<Resource>>,
    },
    /// Append to the log of a task.
    Log {
        task_id: TaskId,
        lines: Vec<LogLine>,
    },
}

/// How a task ended, as its worker reports it and the caller checked it.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub task_id: TaskId,
    /// Done, blocked or failed.
    pub status: Status,
    /// What the worker wants the planner to read first.
    pub note: Option<String>,
    /// The end of a log that the worker kept elsewhere; used when the board has no log of the task.
    pub log_end: Option<LogLine>,
    /// The result as it was received.
    pub result: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The fact to store; `None` when the request changes nothing.
    pub fact: Option<Fact>,
    /// The board after the request.
    pub board: Board,
    /// Tasks that the watchdog cannot judge.
    pub doubts: Vec<WatchError>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0} is not on the board")]
    UnknownTask(TaskId),
    #[error("{0}, which must be done before, is not on the board")]
    UnknownDependency(TaskId),
    #[error("{task} is {status}, not in progress")]
    NotInProgress { task: TaskId, status: Status },
    #[error("{task} belongs to `{owner}`, not to `{claimed}`")]
    NotOwner {
        task: TaskId,
        /// The present owner.
        owner: String,
        /// The sender of the request.
        claimed: String,
    },
    #[error("{task} is {status} and stays as it ended")]
    Ended { task: TaskId, status: Status },
    #[error("`{owner}` is at work on {task} already")]
    Taken {
        task: TaskId,
        /// The present owner.
        owner: String,
    },
    /// A task asks to lock what it must not touch.
    #[error("`{wanted}` overlaps `{forbidden}`, which is forbidden to {task}")]
    Forbidden {
        task: TaskId,
        wanted: Resource,
        forbidden: Resource,
    },
    /// A task in progress keeps its lock scope.
    #[error("{task} is in progress and needs `{place}`")]
    Needed {
        task: TaskId,
        /// The resource that it would lose.
        place: Resource,
    },
    /// More locks than can be compared in reasonable time.
    #[error("there would be {count} locks, and a board keeps {MOST_LOCKS}")]
    TooManyLocks { count: usize },
    /// An absolute path: the board does not know where it lies in the repository.
    #[error("`{0}` is an absolute path; name it relative to the top of the repository")]
    Absolute(Resource),
    #[error(transparent)]
    Step(#[from] TransitionError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Delta(#[from] DeltaError),
    #[error(transparent)]
    Row(#[from] Fault),
    #[error(transparent)]
    Log(#[from] WorklogError),
    /// A heartbeat lies in the future.
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error("the board would not be consistent: {0}")]
    Inconsistent(Issue),
}

impl Refusal {
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
    /// Decides about `request` at the time `now`, in milliseconds since 1970.
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
                terms,
            } => {
                let at = time::render(now);
                let batch = Fact::Applied {
                    deltas,
                    blockers,
                    at,
                    terms,
                };
                self.decide_apply(base, batch, now)?
            }
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

    /// Refuses a change of a task that ended.
    pub(super) fn require_open(&self, task: &TaskId) -> Result<(), Refusal> {
        match self.row(task)?.status {
            status if status.is_terminal() => Err(Refusal::Ended {
                task: task.clone(),
                status,
            }),
            _ => Ok(()),
        }
    }

    /// The inconsistencies of the board.
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

    /// Checks what does not depend on the locks of other tasks.
    fn lockable(&self, wanted: &[Resource]) -> Result<(), Refusal> {
        let held = self.locks().iter().filter(|lock| lock.active).count();
        let count = held.saturating_add(wanted.len());
        if count > MOST_LOCKS {
            return Err(Refusal::TooManyLocks { count });
        }
        // Two spellings of one resource could both be granted.
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
                // A heartbeat that cannot be parsed does not count.
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

    /// Decides about `batch`, which was built on the version `base`.
    fn decide_apply(&self, base: u64, batch: Fact, now: i64) -> Result<Option<Fact>, Refusal> {
        let Fact::Applied { deltas, terms, .. } = &batch else {
            return Ok(None);
        };
        self.ledger().require_base(base, deltas)?;
        for delta in deltas {
            // Otherwise the watchdog could not judge the task until then.
            let beat = delta.pulse.last_heartbeat_at.as_deref();
            let beat = beat.and_then(time::read);
            let limit = i128::from(now) * NANOS_PER_MILLI + watchdog::CLOCK_SKEW * SECOND;
            if beat.is_some_and(|beat| beat.nanos > limit) {
                return Err(WatchError::Future(delta.task_id.clone()).into());
            }
        }
        if deltas.iter().all(|delta| self.ledger().knows(delta)) {
            // The check for ids that are used twice still applies.
            self.clone().apply(&batch)?;
            return Ok(None);
        }
        let scopes = terms.iter().flat_map(|terms| &terms.lock_scope);
        self.lockable(&scopes.cloned().collect::<Vec<_>>())?;
        Ok(Some(batch))
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
