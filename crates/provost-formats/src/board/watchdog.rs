//! Finds tasks whose owners are silent.
//!
//! A task in progress is late when its last heartbeat is older than its limit, to the nanosecond.
//! One task that cannot be judged does not hide the others.

use provost_core::code::Code;

use super::row::{Status, TaskId};

/// The shortest limit a task may have, in seconds.
pub const SHORTEST_TIMEOUT: u64 = 30;

/// How far in the future a heartbeat may lie because clocks differ, in seconds.
pub const CLOCK_SKEW: i128 = 30;

const SECOND: i128 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub task_id: TaskId,
    /// Only a task in progress is watched.
    pub status: Status,
    /// How long its owner may be silent.
    pub timeout_seconds: u64,
    /// When its owner last sent a heartbeat, in nanoseconds since 1970.
    pub last_heartbeat: i128,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    pub task_id: TaskId,
    /// How long its owner has been silent, in nanoseconds.
    pub silence: i128,
    /// How long its owner may be silent.
    pub timeout_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("{task} has a timeout of {seconds} seconds; at least {SHORTEST_TIMEOUT} are needed")]
    ShortTimeout { task: TaskId, seconds: u64 },
    #[error("the heartbeat of {0} lies more than {CLOCK_SKEW} seconds in the future")]
    Future(TaskId),
}

impl WatchError {
    pub fn code(&self) -> Code {
        match self {
            Self::ShortTimeout { .. } | Self::Future(_) => Code::SchemaInvalid,
        }
    }
}

/// Judges one task at the time `now`, in nanoseconds since 1970.
pub fn look(now: i128, watched: &Watched) -> Result<Option<Late>, WatchError> {
    match watched.status {
        Status::InProgress => {}
        Status::Todo | Status::Blocked | Status::Done | Status::Failed | Status::Canceled => {
            return Ok(None);
        }
    }
    if watched.timeout_seconds < SHORTEST_TIMEOUT {
        return Err(WatchError::ShortTimeout {
            task: watched.task_id.clone(),
            seconds: watched.timeout_seconds,
        });
    }
    let silence = now - watched.last_heartbeat;
    if silence < -CLOCK_SKEW * SECOND {
        return Err(WatchError::Future(watched.task_id.clone()));
    }
    let is_late = silence > i128::from(watched.timeout_seconds) * SECOND;
    Ok(is_late.then(|| Late {
        task_id: watched.task_id.clone(),
        silence,
        timeout_seconds: watched.timeout_seconds,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_strictly_later_than_the_limit() {
        let now = 10_000 * SECOND;
        let watched = |status, ago: i128| Watched {
            task_id: TaskId::parse("T-1").unwrap(),
            status,
            timeout_seconds: 1200,
            last_heartbeat: now - ago,
        };
        let cases = [
            (Status::InProgress, 1200 * SECOND, Ok(false)),
            (Status::InProgress, 1200 * SECOND + 1, Ok(true)),
            (Status::InProgress, 1200 * SECOND - 1, Ok(false)),
            (Status::InProgress, -30 * SECOND, Ok(false)),
            (
                Status::InProgress,
                -30 * SECOND - 1,
                Err(Code::SchemaInvalid),
            ),
            (Status::Blocked, 9999 * SECOND, Ok(false)),
            (Status::Done, -9999 * SECOND, Ok(false)),
        ];
        for (status, ago, want) in cases {
            let got = look(now, &watched(status, ago));
            let got = got.map(|late| late.is_some()).map_err(|error| error.code());
            assert_eq!(got, want, "{status} {ago}");
        }
    }

    #[test]
    fn a_limit_that_is_too_short_is_refused() {
        let watched = Watched {
            task_id: TaskId::parse("T-1").unwrap(),
            status: Status::InProgress,
            timeout_seconds: SHORTEST_TIMEOUT - 1,
            last_heartbeat: 0,
        };
        assert!(look(0, &watched).is_err());
    }
}
