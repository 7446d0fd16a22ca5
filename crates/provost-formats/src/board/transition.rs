//! Judges one step of a task from state to state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use provost_core::code::Code;

use super::row::{Status, TaskId};

/// A task that must be done before another begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Dependency {
    pub task_id: TaskId,
    pub status: Status,
}

/// A requested step, with the facts about the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub task_id: TaskId,
    pub from: Status,
    pub to: Status,
    /// The present version of the row.
    pub version: u64,
    /// The version that the request was made for.
    pub expected_version: u64,
    /// The present owner.
    pub owner: String,
    /// The next owner, when it changes.
    pub new_owner: Option<String>,
    /// Who sent the request.
    pub actor: String,
    pub reason: String,
    /// Why, as a code; required where a task becomes blocked.
    pub code: Option<Code>,
    /// The tasks that must be done first.
    pub dependencies: Vec<Dependency>,
    pub facts: Facts,
}

/// What the caller checked about a task; `None` if it was not checked, which never counts as true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
pub struct Facts {
    /// Its lock scope is active and free of conflicts.
    pub lock_scope_active: Option<bool>,
    /// Its assignment is valid.
    pub assignment_valid: Option<bool>,
    /// Its result is valid, and every criterion passed.
    pub result_valid: Option<bool>,
    /// The board is consistent.
    pub reconcile_ok: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The event to record.
    pub event: Event,
    /// The version of the row after the step.
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    pub task_id: TaskId,
    #[serde(rename = "from_state")]
    pub from: Status,
    #[serde(rename = "to_state")]
    pub to: Status,
    pub actor: String,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error("the request was made for version {expected}, but the row has version {current}")]
    Stale { expected: u64, current: u64 },
    #[error("a task that is {from} does not become {to}")]
    NoStep { from: Status, to: Status },
    #[error("a task that is {0} keeps its owner")]
    OwnerKept(Status),
    #[error("{task} is {status}, not done")]
    Dependency { task: TaskId, status: Status },
    /// The caller does not say whether this is true.
    #[error("the request does not say whether {0}")]
    Unknown(&'static str),
    #[error("its lock scope is not active and free of conflicts")]
    NotLocked,
    #[error("its assignment does not hold")]
    BadAssignment,
    #[error("a task in progress needs an owner")]
    NoOwner,
    #[error("its result does not hold")]
    BadResult,
    #[error("the board is not consistent")]
    Inconsistent,
    #[error("a task gets blocked with a code that says why")]
    NoCode,
    /// The actor or the reason is missing.
    #[error("the {0} is missing")]
    Unsigned(&'static str),
}

impl TransitionError {
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

/// Judges `request`. A stale version is reported first: the other facts may be outdated as well.
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
    // An ended task that is asked to end again changes nothing: the call is a replay.
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

/// Checks what must be true before a task enters its new state.
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

    /// Makes one thing about a request wrong.
    type Spoil = fn(&mut Request);

    /// The code that refuses the step after `spoil` changed the request.
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
        // A stale version is reported before anything else.
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
