//! Accepted runs compared with the branches as they are now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use provost_core::object::Oid;
use provost_engine::query::{RunArchive as _, RunStatus};
use provost_surface::places::Places;
use provost_web::RoomRow;

use crate::row::KnownRun;

/// A branch as it was read last.
#[derive(Debug, Default)]
struct KnownBranch {
    tip: Option<Oid>,
    /// Of the commits that runs landed there, those that it holds.
    held: Option<BTreeSet<Oid>>,
    asked: BTreeSet<Oid>,
}

#[derive(Debug, Default)]
pub(crate) struct Branches(BTreeMap<String, KnownBranch>);

impl Branches {
    /// Reads the branches that accepted runs are meant for.
    pub(crate) fn read(&mut self, place: &Places, runs: &BTreeMap<String, KnownRun>) {
        let accepted = |run: &&KnownRun| run.row.summary.status == RunStatus::Success;
        let mut wanted: BTreeMap<&str, BTreeSet<Oid>> = BTreeMap::new();
        for run in runs.values().filter(accepted) {
            if let Some(landing) = &run.landing {
                let commits = wanted.entry(&landing.target).or_default();
                commits.insert(landing.commit.clone());
            } else if let Some(target) = &run.row.target {
                wanted.entry(target).or_default();
            }
        }
        for (target, commits) in wanted {
            let tip = place.repo.ref_value(target).ok().flatten();
            let branch = self.0.entry(target.to_owned()).or_default();
            if branch.tip != tip || branch.asked != commits || branch.held.is_none() {
                branch.held = place.held(target, &commits);
                branch.asked = commits;
                branch.tip = tip;
            }
        }
    }

    /// Brings the row of a run up to date; whether it differs from before.
    pub(crate) fn compare(&self, run: &mut KnownRun) -> bool {
        if run.row.summary.status != RunStatus::Success {
            return false;
        }
        let target = run.landing.as_ref().map(|it| &it.target);
        let branch = target.or(run.row.target.as_ref());
        let Some(branch) = branch.and_then(|it| self.0.get(it)) else {
            return false;
        };
        let held = run.landing.as_ref().and_then(|landing| {
            let held = branch.held.as_ref()?;
            Some(held.contains(&landing.commit))
        });
        let moved = branch.tip.is_some() && branch.tip != run.base;
        let known = run.row.summary.landing.as_ref().and_then(|it| it.held);
        if known == held && run.row.target_moved == moved {
            return false;
        }
        let mut row = RoomRow::clone(&run.row);
        row.target_moved = moved;
        if let Some(landing) = &mut row.summary.landing {
            landing.held = held;
        }
        run.row = Arc::new(row);
        true
    }
}
