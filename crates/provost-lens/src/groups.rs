//! Sets that are joined until nothing more belongs together.

/// Sets of numbers.
#[derive(Debug)]
pub(crate) struct Groups(Vec<usize>);

impl Groups {
    /// `count` sets of one each.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The member that stands for the set of `at`.
    pub(crate) fn leader(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Makes the sets of both one.
    pub(crate) fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.leader(one), self.leader(other));
        let (low, high) = (one.min(other), one.max(other));
        self.0[high] = low;
    }

    /// How many sets there are.
    pub(crate) fn count(&mut self) -> usize {
        (0..self.0.len())
            .filter(|at| self.leader(*at) == *at)
            .count()
    }
}
