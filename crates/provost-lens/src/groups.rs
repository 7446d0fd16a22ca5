//! Disjoint sets (union-find).

/// Sets of numbers.
#[derive(Debug)]
pub(crate) struct Groups(Vec<usize>);

impl Groups {
    /// `count` sets of one number each.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The member that represents the set of `at`.
    pub(crate) fn leader(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Joins the sets of both.
    pub(crate) fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.leader(one), self.leader(other));
        let (low, high) = (one.min(other), one.max(other));
        self.0[high] = low;
    }

    pub(crate) fn count(&mut self) -> usize {
        (0..self.0.len())
            .filter(|at| self.leader(*at) == *at)
            .count()
    }
}
