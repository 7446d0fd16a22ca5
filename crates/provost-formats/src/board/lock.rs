//! Decides which task may lock which resources.
//!
//! # Invariants
//!
//! - Active locks of different tasks never overlap; a task never blocks itself.
//! - A request is granted as a whole or not at all.
//! - A lock that was released stays in the list, inactive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use provost_core::code::Code;

use super::row::{Status, TaskId};
use provost_core::resource::{self, Cover, Resource};

/// A resource that a task holds, or held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    pub task_id: TaskId,
    pub resource: Resource,
    pub active: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    #[error("no resource is named")]
    Nothing,
    #[error("`{wanted}` overlaps `{held}`, which {holder} holds")]
    Held {
        wanted: Resource,
        held: Resource,
        holder: TaskId,
    },
    #[error("{task} is {status} and takes no new locks")]
    Ended { task: TaskId, status: Status },
}

impl LockError {
    pub fn code(&self) -> Code {
        match self {
            Self::Nothing => Code::MissingRequiredInput,
            Self::Held { .. } => Code::LockConflict,
            Self::Ended { .. } => Code::InvalidTransition,
        }
    }
}

/// Pairs of active locks of different tasks that overlap, as positions in `locks`.
pub fn conflicts(locks: &[Lock]) -> Vec<(usize, usize)> {
    let (active, held): (Vec<usize>, Vec<_>) = locks
        .iter()
        .enumerate()
        .filter(|(_, lock)| lock.active)
        .map(|(at, lock)| (at, (&lock.resource, Some(&lock.task_id))))
        .unzip();
    let pairs = resource::clashes(&held);
    pairs
        .into_iter()
        .map(|(one, two)| (active[one], active[two]))
        .collect()
}

/// The `locks` that keep `task` from locking `wanted`: their positions, and what they overlap.
pub fn hindrances<'a>(
    task: &TaskId,
    wanted: &'a [Resource],
    locks: &[Lock],
) -> Vec<(usize, &'a Resource)> {
    let cover = Cover::of(wanted);
    let hinders = |(at, lock): (usize, &Lock)| {
        let foreign = lock.active && lock.task_id != *task;
        let wanted = cover.touched_by(&lock.resource).filter(|_| foreign)?;
        Some((at, wanted))
    };
    locks.iter().enumerate().filter_map(hinders).collect()
}

/// All locks of a board, active and past.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locks {
    list: Vec<Lock>,
}

impl Locks {
    /// The locks, oldest first.
    pub fn list(&self) -> &[Lock] {
        &self.list
    }

    /// Grants all of `wanted` to `task`, which is in the state `status`, or refuses all of it.
    pub fn acquire(
        &mut self,
        task: &TaskId,
        status: Status,
        wanted: &[Resource],
    ) -> Result<(), LockError> {
        if wanted.is_empty() {
            return Err(LockError::Nothing);
        }
        if status.is_terminal() {
            return Err(LockError::Ended {
                task: task.clone(),
                status,
            });
        }
        if let Some((at, wanted)) = hindrances(task, wanted, &self.list).first() {
            let held = &self.list[*at];
            return Err(LockError::Held {
                wanted: (*wanted).clone(),
                held: held.resource.clone(),
                holder: held.task_id.clone(),
            });
        }
        for resource in wanted {
            if !self.holds(task, resource) {
                self.list.push(Lock {
                    task_id: task.clone(),
                    resource: resource.clone(),
                    active: true,
                });
            }
        }
        Ok(())
    }

    /// Ends the locks of `task` on `resources`, or all its locks. A resource that it does not hold
    /// is no error, so that a release can be repeated.
    pub fn release(&mut self, task: &TaskId, resources: Release<'_>) {
        let own = self.list.iter_mut().filter(|lock| lock.task_id == *task);
        for lock in own {
            let named = match resources {
                Release::All => true,
                Release::Only(list) => list.contains(&lock.resource),
            };
            lock.active &= !named;
        }
    }

    /// Whether `task` holds exactly `resource`.
    pub fn holds(&self, task: &TaskId, resource: &Resource) -> bool {
        self.list
            .iter()
            .any(|lock| lock.active && lock.task_id == *task && lock.resource == *resource)
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Release<'a> {
    All,
    Only(&'a [Resource]),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(list: &[&str]) -> Vec<Resource> {
        list.iter()
            .map(|text| Resource::parse(text).unwrap())
            .collect()
    }

    fn task(text: &str) -> TaskId {
        TaskId::parse(text).unwrap()
    }

    #[test]
    fn a_refused_request_holds_nothing() {
        let mut locks = Locks::default();
        let todo = Status::Todo;
        let (one, two) = (task("T-1"), task("T-2"));
        assert_eq!(locks.acquire(&one, todo, &places(&["z"])), Ok(()));
        let before = locks.clone();
        let refused = locks.acquire(&two, todo, &places(&["y", "z/a"]));
        assert_eq!(refused.unwrap_err().code(), Code::LockConflict);
        assert_eq!(locks, before);
    }

    #[test]
    fn an_ended_task_takes_no_locks() {
        let mut locks = Locks::default();
        for status in [Status::Done, Status::Failed, Status::Canceled] {
            let refused = locks.acquire(&task("T-1"), status, &places(&["a"]));
            assert_eq!(refused.unwrap_err().code(), Code::InvalidTransition);
        }
        assert!(locks.list().is_empty());
    }

    #[test]
    fn a_release_ends_own_locks_only_and_keeps_them_listed() {
        let mut locks = Locks::default();
        let (one, two) = (task("T-1"), task("T-2"));
        let todo = Status::Todo;
        locks.acquire(&one, todo, &places(&["a", "b"])).unwrap();
        locks.release(&two, Release::All);
        locks.release(&one, Release::Only(&places(&["a", "c"])));
        let active: Vec<bool> = locks.list().iter().map(|lock| lock.active).collect();
        assert_eq!(active, [false, true]);
        assert_eq!(locks.acquire(&two, todo, &places(&["a"])), Ok(()));
        // A resource that was released can be locked again, by any task.
        locks.release(&two, Release::All);
        assert_eq!(locks.acquire(&one, todo, &places(&["a"])), Ok(()));
        assert_eq!(locks.list().iter().filter(|lock| lock.active).count(), 2);
    }
}
