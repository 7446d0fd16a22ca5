//! What changed in all repositories, numbered.

use std::collections::VecDeque;

use provost_web::{RoomChange, RoomChangeKind, RoomChanges};

/// How many changes are kept.
const KEPT: usize = 10_000;

/// The newest changes. Each has a number, larger than all before.
#[derive(Debug, Default)]
pub struct ChangeLog {
    kept: VecDeque<RoomChange>,
    last: u64,
}

impl ChangeLog {
    pub(crate) fn push(&mut self, repository: &str, id: Option<&str>, kind: RoomChangeKind) {
        self.last += 1;
        self.kept.push_back(RoomChange {
            number: self.last,
            repository: repository.to_owned(),
            id: id.map(str::to_owned),
            kind,
        });
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// The number of the last change.
    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn after(&self, number: u64) -> RoomChanges {
        let first = self.kept.front().map_or(self.last + 1, |it| it.number);
        // The numbers are consecutive, so the place of the first later one is known.
        let known = number.saturating_add(1).saturating_sub(first);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        RoomChanges {
            changes: self.kept.iter().skip(known).cloned().collect(),
            last: self.last,
            lost: number.saturating_add(1) < first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_changes_are_listed_and_forgotten_ones_are_reported() {
        let mut log = ChangeLog::default();
        assert_eq!((log.after(0).last, log.after(0).lost), (0, false));
        for number in 0..KEPT + 5 {
            let id = format!("run_{number}");
            log.push("r", Some(&id), RoomChangeKind::Appeared);
        }
        let last = log.last();
        assert_eq!(last, KEPT as u64 + 5);
        let two = log.after(last - 2);
        let numbers: Vec<u64> = two.changes.iter().map(|it| it.number).collect();
        assert_eq!((numbers, two.lost), (vec![last - 1, last], false));
        assert!(log.after(4).lost && !log.after(5).lost);
        assert_eq!(log.after(5).changes.len(), KEPT);
        assert!(log.after(u64::MAX).changes.is_empty());
    }
}
