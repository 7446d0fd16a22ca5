//! A sealed run for the machine of these tests.

use provost_core::change::Change;
use provost_core::object::Oid;
use provost_core::record::Head;
use provost_core::run::State;

use crate::machine::{RUN, published};
use crate::sample::{Bundle, Draft, key};

/// A run that can land, with its registry entries.
#[derive(Clone)]
pub(crate) struct SealedRun {
    pub(crate) base: Oid,
    pub(crate) head: Head,
    pub(crate) changes: Vec<Change>,
    pub(crate) files: Bundle,
}

impl SealedRun {
    /// A run without a reviewer.
    pub(crate) fn new() -> Self {
        Self::of(Draft::new(RUN))
    }

    /// A run with one.
    pub(crate) fn reviewed() -> Self {
        Self::of(Draft::new(RUN).reviewed())
    }

    fn of(mut draft: Draft) -> Self {
        draft.lands = Some((published(), "refs/heads/main"));
        let (records, head) = draft.ledger();
        let captured = State::fold(&records).unwrap().captured.unwrap();
        Self {
            base: draft.predicate.base_commit.clone(),
            head,
            changes: captured.changes,
            files: draft.seal(&key(1)),
        }
    }
}
