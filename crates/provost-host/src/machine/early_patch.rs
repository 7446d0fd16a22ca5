//! Computes a patch in a second thread, because the seal of a run will need it.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use provost_core::object::Oid;

use crate::git::Repository;

/// A patch that is being computed.
#[derive(Debug)]
pub(super) struct EarlyPatch {
    before: Oid,
    after: Oid,
    making: JoinHandle<Option<Vec<u8>>>,
}

impl EarlyPatch {
    /// Starts to compute the patch from `before` to `after`; `None` if no thread can be started.
    pub(super) fn patch(repo: &Arc<Repository>, before: &Oid, after: &Oid) -> Option<Self> {
        let (repo, ends) = (Arc::clone(repo), (before.clone(), after.clone()));
        let make = move || repo.patch(&ends.0, &ends.1).ok();
        let making = Builder::new().spawn(make).ok()?;
        Some(Self {
            before: before.clone(),
            after: after.clone(),
            making,
        })
    }

    /// The patch, if it is this one. If it failed, the caller computes it again and gets the error.
    pub(super) fn of(self, before: &Oid, after: &Oid) -> Option<Vec<u8>> {
        let is_asked = self.before == *before && self.after == *after;
        is_asked.then(|| self.making.join().ok().flatten())?
    }
}
