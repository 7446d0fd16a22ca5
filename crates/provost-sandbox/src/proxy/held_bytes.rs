//! Bounds the memory for bodies that are kept at one time, of requests or of replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of bodies all connections keep together: four of the largest bodies.
const MOST: usize = 64 << 20;

/// What one connection keeps of the shared number.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    total: Arc<AtomicUsize>,
    own: usize,
}

impl HeldBytes {
    pub(super) fn new(total: &Arc<AtomicUsize>) -> Self {
        Self {
            total: Arc::clone(total),
            own: 0,
        }
    }

    /// Takes `count` more bytes; returns whether there is room for them.
    pub(super) fn take(&mut self, count: usize) -> bool {
        self.own += count;
        self.total.fetch_add(count, Ordering::Relaxed) + count <= MOST
    }

    /// Holds `count` bytes from now on; returns whether there is room for them.
    pub(super) fn hold(&mut self, count: usize) -> bool {
        if let Some(more) = count.checked_sub(self.own) {
            return self.take(more);
        }
        self.total.fetch_sub(self.own - count, Ordering::Relaxed);
        self.own = count;
        true
    }

    pub(super) fn release(&mut self) {
        self.hold(0);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_room_and_give_it_back() {
        let total = Arc::default();
        let mut one = HeldBytes::new(&total);
        let mut other = HeldBytes::new(&total);
        assert!(one.take(MOST - 1) && other.hold(1));
        assert!(!other.take(1));
        drop(one);
        assert!(other.take(1));
        other.hold(2);
        assert_eq!(total.load(Ordering::Relaxed), 2);
        other.release();
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
