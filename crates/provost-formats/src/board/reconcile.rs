//! Finds inconsistencies of a board.

use std::collections::BTreeMap;

use provost_core::code::Code;

use super::lock::{self, Lock};
use super::row::{Row, Status, TaskId};
use provost_core::resource::Resource;

/// An inconsistency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Issue {
    #[error("{0} has two rows")]
    TwoRows(TaskId),
    #[error("{0} is in progress without an owner")]
    NoOwner(TaskId),
    #[error("{0} is in progress without an active lock")]
    NoLock(TaskId),
    #[error("{task} depends on {on}, which is not on the board")]
    UnknownDependency { task: TaskId, on: TaskId },
    #[error("{task} is {status}, but {on} is {on_status}")]
    TooEarly {
        task: TaskId,
        status: Status,
        on: TaskId,
        on_status: Status,
    },
    #[error("{0} waits for itself")]
    Cycle(TaskId),
    #[error("a lock on `{resource}` belongs to {task}, which is not on the board")]
    UnknownHolder { task: TaskId, resource: Resource },
    #[error("{task} is {status} and still holds `{resource}`")]
    EndedHolder {
        task: TaskId,
        status: Status,
        resource: Resource,
    },
    #[error("{one} and {two} both hold `{resource}`")]
    Overlap {
        one: TaskId,
        two: TaskId,
        /// The smaller of both resources.
        resource: Resource,
    },
    #[error("an event is about {0}, which is not on the board")]
    UnknownEvent(TaskId),
}

impl Issue {
    pub fn code(&self) -> Code {
        match self {
            Self::TooEarly { .. } => Code::DependencyNotMet,
            Self::Overlap { .. } => Code::LockConflict,
            Self::TwoRows(_)
            | Self::NoOwner(_)
            | Self::NoLock(_)
            | Self::UnknownDependency { .. }
            | Self::Cycle(_)
            | Self::UnknownHolder { .. }
            | Self::EndedHolder { .. }
            | Self::UnknownEvent(_) => Code::LedgerInconsistent,
        }
    }
}

/// Whether tasks may wait for themselves through others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cycles {
    /// They are no issue; none of them can ever begin.
    Ignore,
    Find,
}

/// All inconsistencies: rows first, then locks, then events.
pub fn issues(rows: &[Row], locks: &[Lock], events: &[TaskId], cycles: Cycles) -> Vec<Issue> {
    let mut list = Vec::new();
    let mut known: BTreeMap<&TaskId, &Row> = BTreeMap::new();
    for row in rows {
        if known.insert(&row.task_id, row).is_some() {
            list.push(Issue::TwoRows(row.task_id.clone()));
        }
    }
    let mut holders: Vec<&TaskId> = locks
        .iter()
        .filter(|lock| lock.active)
        .map(|lock| &lock.task_id)
        .collect();
    holders.sort();
    for row in rows {
        list.extend(row_issues(row, &known, &holders));
    }
    match cycles {
        Cycles::Ignore => {}
        Cycles::Find => list.extend(cyclic(&known).into_iter().map(Issue::Cycle)),
    }
    list.extend(locks.iter().filter_map(|lock| lock_issue(lock, &known)));
    for (one, two) in lock::conflicts(locks) {
        list.push(Issue::Overlap {
            one: locks[one].task_id.clone(),
            two: locks[two].task_id.clone(),
            resource: locks[two].resource.clone(),
        });
    }
    let unknown = events.iter().filter(|task| !known.contains_key(task));
    list.extend(unknown.cloned().map(Issue::UnknownEvent));
    list
}

fn row_issues(row: &Row, known: &BTreeMap<&TaskId, &Row>, holders: &[&TaskId]) -> Vec<Issue> {
    let mut list = Vec::new();
    let task = &row.task_id;
    if row.status == Status::InProgress {
        if row.owner.trim().is_empty() {
            list.push(Issue::NoOwner(task.clone()));
        }
        if holders.binary_search(&task).is_err() {
            list.push(Issue::NoLock(task.clone()));
        }
    }
    let began = matches!(row.status, Status::InProgress | Status::Done);
    for on in &row.dependencies {
        match known.get(on) {
            None => list.push(Issue::UnknownDependency {
                task: task.clone(),
                on: on.clone(),
            }),
            Some(other) if began && other.status != Status::Done => list.push(Issue::TooEarly {
                task: task.clone(),
                status: row.status,
                on: on.clone(),
                on_status: other.status,
            }),
            Some(_) => {}
        }
    }
    list
}

fn lock_issue(lock: &Lock, known: &BTreeMap<&TaskId, &Row>) -> Option<Issue> {
    let task = lock.task_id.clone();
    let resource = lock.resource.clone();
    match known.get(&lock.task_id) {
        None => Some(Issue::UnknownHolder { task, resource }),
        Some(row) if lock.active && row.status.is_terminal() => Some(Issue::EndedHolder {
            task,
            status: row.status,
            resource,
        }),
        Some(_) => None,
    }
}

/// The tasks that can never begin because they wait, through others, for themselves.
///
/// Tasks without an open dependency are removed until none is left to remove. Those that stay are
/// in a cycle or wait for one.
fn cyclic(known: &BTreeMap<&TaskId, &Row>) -> Vec<TaskId> {
    let mut waits: BTreeMap<&TaskId, usize> = BTreeMap::new();
    let mut waited_for: BTreeMap<&TaskId, Vec<&TaskId>> = BTreeMap::new();
    for (task, row) in known {
        let there = row.dependencies.iter().filter(|on| known.contains_key(on));
        let mut count = 0;
        for on in there {
            count += 1;
            waited_for.entry(on).or_default().push(task);
        }
        waits.insert(task, count);
    }
    let mut free: Vec<&TaskId> = waits
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(task, _)| *task)
        .collect();
    while let Some(task) = free.pop() {
        waits.remove(task);
        for waiting in waited_for.get(task).into_iter().flatten() {
            if let Some(count) = waits.get_mut(*waiting) {
                *count -= 1;
                if *count == 0 {
                    free.push(*waiting);
                }
            }
        }
    }
    waits.into_keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::row::Pulse;

    fn task(text: &str) -> TaskId {
        TaskId::parse(text).unwrap()
    }

    fn row(id: &str, status: Status, dependencies: &[&str]) -> Row {
        Row {
            task_id: task(id),
            status,
            owner: "a".to_owned(),
            dependencies: dependencies.iter().map(|id| task(id)).collect(),
            pulse: Pulse::default(),
        }
    }

    fn lock(id: &str, resource: &str, active: bool) -> Lock {
        Lock {
            task_id: task(id),
            resource: Resource::parse(resource).unwrap(),
            active,
        }
    }

    fn words(rows: &[Row], locks: &[Lock], events: &[TaskId], cycles: Cycles) -> Vec<String> {
        let found = issues(rows, locks, events, cycles);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_that_does_not_fit_is_listed() {
        use Status::{Done, Failed, InProgress, Todo};
        let mut idle = row("T-3", InProgress, &["T-1", "T-9"]);
        idle.owner = " ".to_owned();
        let rows = [
            row("T-1", Todo, &[]),
            row("T-1", Todo, &[]),
            row("T-2", Failed, &["T-1"]),
            idle,
            row("T-4", Done, &["T-2"]),
        ];
        let locks = [
            lock("T-2", "a", true),
            lock("T-4", "a/b", true),
            lock("T-8", "c", false),
        ];
        let want = [
            "T-1 has two rows",
            "T-3 is in progress without an owner",
            "T-3 is in progress without an active lock",
            "T-3 is in_progress, but T-1 is todo",
            "T-3 depends on T-9, which is not on the board",
            "T-4 is done, but T-2 is failed",
            "T-2 is failed and still holds `a`",
            "T-4 is done and still holds `a/b`",
            "a lock on `c` belongs to T-8, which is not on the board",
            "T-2 and T-4 both hold `a/b`",
            "an event is about T-7, which is not on the board",
        ];
        assert_eq!(words(&rows, &locks, &[task("T-7")], Cycles::Ignore), want);
    }

    #[test]
    fn a_board_in_order_has_no_issues() {
        use Status::{Done, Failed, InProgress, Todo};
        let rows = [
            row("T-1", Done, &[]),
            row("T-2", InProgress, &["T-1"]),
            row("T-3", Failed, &[]),
            row("T-4", Todo, &["T-3"]),
        ];
        let locks = [lock("T-2", "a", true), lock("T-1", "a", false)];
        let none: [&str; 0] = [];
        assert_eq!(words(&rows, &locks, &[task("T-1")], Cycles::Find), none);
    }

    #[test]
    fn circles_are_found_at_any_length() {
        use Status::Todo;
        let rows = [
            row("T-1", Todo, &["T-2", "T-2"]),
            row("T-2", Todo, &["T-3"]),
            row("T-3", Todo, &["T-1"]),
            row("T-4", Todo, &["T-4"]),
            row("T-5", Todo, &["T-6"]),
            row("T-6", Todo, &[]),
        ];
        let want = ["T-1", "T-2", "T-3", "T-4"].map(|id| format!("{id} waits for itself"));
        assert_eq!(words(&rows, &[], &[], Cycles::Find), want);
        assert_eq!(words(&rows, &[], &[], Cycles::Ignore).len(), 0);
    }
}
