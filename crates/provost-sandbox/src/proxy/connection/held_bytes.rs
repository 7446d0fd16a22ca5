//! Bounds the memory for request bodies that are kept at one time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of bodies all connections keep together: four of the largest bodies.
const MOST: usize = 64 << 20;

/// What one connection keeps of the shared number.
pub(super) struct HeldBytes<'a> {
    total: &'a AtomicUsize,
    own: usize,
}

impl<'a> HeldBytes<'a> {
    pub(super) fn new(total: &'a AtomicUsize) -> Self {
        Self { total, own: 0 }
    }

    /// Takes `count` more bytes; returns whether there is room for them.
    pub(super) fn take(&mut self, count: usize) -> bool {
        self.own += count;
        self.total.fetch_add(count, Ordering::Relaxed) + count <= MOST
    }

    pub(super) fn release(&mut self) {
        self.total.fetch_sub(self.own, Ordering::Relaxed);
        self.own = 0;
    }
}

impl Drop for HeldBytes<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_room_and_give_it_back() {
        let total = AtomicUsize::new(0);
        let mut one = HeldBytes::new(&total);
        let mut other = HeldBytes::new(&total);
        assert!(one.take(MOST - 1) && other.take(1));
        assert!(!other.take(1));
        drop(one);
        assert!(other.take(1));
        other.release();
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
