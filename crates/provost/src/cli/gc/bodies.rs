//! Recorded bodies of models whose run is gone.

use std::collections::BTreeSet;

use super::sweep::{Sweep, Swept};
use crate::answer::Failure;

impl Sweep<'_> {
    /// Removes bodies that belong to none of `runs`.
    pub(super) fn stray_bodies(&mut self, runs: &BTreeSet<&str>) -> Result<(), Failure> {
        let root = self.place.root.clone();
        let mut swept = Swept::default();
        let mut names = self.place.runs_with_bodies()?;
        names.retain(|name| !runs.contains(name.as_str()));
        for name in names {
            self.set_aside(&root, &self.place.bodies(&name), &mut swept)?;
        }
        self.total.add(&swept);
        Ok(())
    }
}
