//! Judges one step of a task from state to state.

use crate::code::Code;

use super::row::{Status, TaskId};

/// A task that must be done before another begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub task_id: TaskId,
    /// Where it stands.
    pub status: Status,
}

/// A step that somebody wants to take, with what is known about the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub task_id: TaskId,
    /// Where it stands.
    pub from: Status,
    /// Where it shall go.
    pub to: Status,
    /// The version of the row now.
    pub version: u64,
    /// The version that the request was made for.
    pub expected_version: u64,
    /// Who has the task.
    pub owner: String,
    /// Who shall have it, when that changes.
    pub new_owner: Option<String>,
    /// Who asks.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Why, as a code; asked for where a task gets blocked.
    pub code: Option<Code>,
    /// What must be done before.
    pub dependencies: Vec<Dependency>,
    /// What has been checked.
    pub facts: Facts,
}

/// What has been checked about a task; what nobody checked is not taken to be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its lock scope is active and free of conflicts.
    pub lock_scope_active: Option<bool>,
    /// Its assignment holds.
    pub assignment_valid: Option<bool>,
    /// Its result holds, with every criterion passed.
    pub result_valid: Option<bool>,
    /// The board is consistent.
    pub reconcile_ok: Option<bool>,
}

/// A step that may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What to write down.
    pub event: Event,
    /// The version of the row afterwards.
    pub version: u64,
}

/// What happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub task_id: TaskId,
    /// Where it stood.
    pub from: Status,
    /// Where it stands.
    pub to: Status,
    /// Who did it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Why, as a code.
    pub code: Option<Code>,
}

/// Why a step may not be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The row changed since the request was made.
    #[error("the request was made for version {expected}, but the row has version {current}")]
    Stale {
        /// What the request was made for.
        expected: u64,
        /// What is there.
        current: u64,
    },
    /// There is no such step.
    #[error("a task that is {from} does not become {to}")]
    NoStep {
        /// Where it stands.
        from: Status,
        /// Where it shall not go.
        to: Status,
    },
    /// An ended task keeps its owner.
    #[error("a task that is {0} keeps its owner")]
    OwnerKept(Status),
    /// A task before it is not done.
    #[error("{task} is {status}, not done")]
    Dependency {
        /// The task before it.
        task: TaskId,
        /// Where that stands.
        status: Status,
    },
    /// Nobody said whether this holds.
    #[error("nobody said whether {0}")]
    Unknown(&'static str),
    /// Its lock scope is not active.
    #[error("its lock scope is not active and free of conflicts")]
    NotLocked,
    /// Its assignment does not hold.
    #[error("its assignment does not hold")]
    BadAssignment,
    /// It has no owner.
    #[error("a task in progress needs an owner")]
    NoOwner,
    /// Its result does not hold.
    #[error("its result does not hold")]
    BadResult,
    /// The board is not consistent.
    #[error("the board is not consistent")]
    Inconsistent,
    /// It gets blocked without a code.
    #[error("a task gets blocked with a code that says why")]
    NoCode,
    /// Nobody is named, or no reason.
    #[error("the {0} is missing")]
    Unsigned(&'static str),
}

impl TransitionError {
    /// The rule behind it.
    pub fn code(&self) -> Code {
        match self {
            Self::Stale { .. } => Code::ConcurrencyConflict,
            Self::NoStep { .. } | Self::OwnerKept(_) => Code::InvalidTransition,
            Self::Dependency { .. } => Code::DependencyNotMet,
            Self::NotLocked => Code::LockConflict,
            Self::BadAssignment => Code::SchemaInvalid,
            Self::NoOwner | Self::Inconsistent => Code::LedgerInconsistent,
            Self::BadResult => Code::AcceptanceFailed,
            Self::Unknown(_) | Self::NoCode | Self::Unsigned(_) => Code::MissingRequiredInput,
        }
    }
}

/// Judges `request`. That the row moved on is said first: everything else may be about the past.
pub fn judge(request: &Request) -> Result<Step, TransitionError> {
    if request.expected_version != request.version {
        return Err(TransitionError::Stale {
            expected: request.expected_version,
            current: request.version,
        });
    }
    let (from, to) = (request.from, request.to);
    if !from.may_become(to) {
        return Err(TransitionError::NoStep { from, to });
    }
    for (what, text) in [("actor", &request.actor), ("reason", &request.reason)] {
        if text.trim().is_empty() {
            return Err(TransitionError::Unsigned(what));
        }
    }
    let new_owner = request.new_owner.as_ref();
    if from.is_terminal() && new_owner.is_some_and(|owner| *owner != request.owner) {
        return Err(TransitionError::OwnerKept(from));
    }
    // An ended task that is told to end again changes nothing: the call is a replay.
    let is_replay = from.is_terminal();
    if !is_replay {
        enter(request)?;
    }
    Ok(Step {
        event: Event {
            task_id: request.task_id.clone(),
            from,
            to,
            actor: request.actor.clone(),
            reason: request.reason.clone(),
            code: request.code,
        },
        version: request.version.saturating_add(u64::from(!is_replay)),
    })
}

/// What must hold before a task enters its new state.
fn enter(request: &Request) -> Result<(), TransitionError> {
    let facts = &request.facts;
    let fact = |known: Option<bool>, what, refusal| match known {
        Some(true) => Ok(()),
        Some(false) => Err(refusal),
        None => Err(TransitionError::Unknown(what)),
    };
    match request.to {
        Status::InProgress => {
            let not_done = |one: &&Dependency| one.status != Status::Done;
            if let Some(one) = request.dependencies.iter().find(not_done) {
                return Err(TransitionError::Dependency {
                    task: one.task_id.clone(),
                    status: one.status,
                });
            }
            let owner = request.new_owner.as_ref().unwrap_or(&request.owner);
            if owner.trim().is_empty() {
                return Err(TransitionError::NoOwner);
            }
            let what = "its lock scope is active";
            fact(facts.lock_scope_active, what, TransitionError::NotLocked)?;
            let what = "its assignment holds";
            fact(facts.assignment_valid, what, TransitionError::BadAssignment)
        }
        Status::Done => {
            let what = "its result holds";
            fact(facts.result_valid, what, TransitionError::BadResult)?;
            let what = "the board is consistent";
            fact(facts.reconcile_ok, what, TransitionError::Inconsistent)
        }
        Status::Blocked if request.code.is_none() => Err(TransitionError::NoCode),
        Status::Blocked | Status::Todo | Status::Failed | Status::Canceled => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(from: Status, to: Status) -> Request {
        Request {
            task_id: TaskId::parse("T-1").unwrap(),
            from,
            to,
            version: 3,
            expected_version: 3,
            owner: "a".to_owned(),
            new_owner: None,
            actor: "planner".to_owned(),
            reason: "step".to_owned(),
            code: Some(Code::TaskTimeout),
            dependencies: Vec::new(),
            facts: Facts {
                lock_scope_active: Some(true),
                assignment_valid: Some(true),
                result_valid: Some(true),
                reconcile_ok: Some(true),
            },
        }
    }

    #[test]
    fn with_everything_in_order_the_table_alone_decides() {
        for from in Status::ALL {
            for to in Status::ALL {
                let step = judge(&request(from, to));
                assert_eq!(step.is_ok(), from.may_become(to), "{from} → {to}");
                if let Ok(step) = step {
                    assert_eq!(step.version, if from.is_terminal() { 3 } else { 4 });
                }
            }
        }
    }

    /// Takes something away from a request.
    type Spoil = fn(&mut Request);

    /// The code that refuses the step after `spoil` took something away from it.
    fn refusal(from: Status, to: Status, spoil: impl Fn(&mut Request)) -> Option<Code> {
        let mut request = request(from, to);
        spoil(&mut request);
        judge(&request).err().map(|error| error.code())
    }

    #[test]
    fn a_task_begins_only_when_everything_is_in_place() {
        let begin = |spoil: Spoil| refusal(Status::Todo, Status::InProgress, spoil);
        let cases: [(Spoil, Code); 6] = [
            (|r| r.owner = " ".into(), Code::LedgerInconsistent),
            (
                |r| r.facts.lock_scope_active = Some(false),
                Code::LockConflict,
            ),
            (
                |r| r.facts.lock_scope_active = None,
                Code::MissingRequiredInput,
            ),
            (
                |r| r.facts.assignment_valid = Some(false),
                Code::SchemaInvalid,
            ),
            (
                |r| r.facts.assignment_valid = None,
                Code::MissingRequiredInput,
            ),
            (
                |r| r.dependencies.push(open_dependency()),
                Code::DependencyNotMet,
            ),
        ];
        for (spoil, want) in cases {
            assert_eq!(begin(spoil), Some(want));
        }
    }

    fn open_dependency() -> Dependency {
        Dependency {
            task_id: TaskId::parse("T-9").unwrap(),
            status: Status::Canceled,
        }
    }

    #[test]
    fn a_task_ends_only_with_what_shows_it() {
        let end = |spoil: Spoil| refusal(Status::InProgress, Status::Done, spoil);
        let cases: [(Spoil, Code); 4] = [
            (
                |r| r.facts.result_valid = Some(false),
                Code::AcceptanceFailed,
            ),
            (|r| r.facts.result_valid = None, Code::MissingRequiredInput),
            (
                |r| r.facts.reconcile_ok = Some(false),
                Code::LedgerInconsistent,
            ),
            (|r| r.facts.reconcile_ok = None, Code::MissingRequiredInput),
        ];
        for (spoil, want) in cases {
            assert_eq!(end(spoil), Some(want));
        }
        let replay = |r: &mut Request| r.new_owner = Some("b".into());
        let refused = refusal(Status::Done, Status::Done, replay);
        assert_eq!(refused, Some(Code::InvalidTransition));
    }

    #[test]
    fn a_step_is_signed_and_made_for_the_version_that_is_there() {
        let block = |spoil: Spoil| refusal(Status::Todo, Status::Blocked, spoil);
        let cases: [(Spoil, Code); 5] = [
            (|r| r.version = 4, Code::ConcurrencyConflict),
            (|r| r.version = 2, Code::ConcurrencyConflict),
            (|r| r.code = None, Code::MissingRequiredInput),
            (|r| r.actor.clear(), Code::MissingRequiredInput),
            (|r| r.reason = "\t".into(), Code::MissingRequiredInput),
        ];
        for (spoil, want) in cases {
            assert_eq!(block(spoil), Some(want));
        }
        // That the row moved on is said before anything else.
        let refused = refusal(Status::Done, Status::Todo, |r| r.version = 4);
        assert_eq!(refused, Some(Code::ConcurrencyConflict));
    }

    #[test]
    fn a_new_owner_counts_where_a_task_begins() {
        let mut request = request(Status::Todo, Status::InProgress);
        request.owner.clear();
        request.new_owner = Some("b".to_owned());
        assert!(judge(&request).is_ok());
    }
}
