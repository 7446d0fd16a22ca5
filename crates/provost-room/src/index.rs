//! What is known of the runs and cases of one repository, kept as long as their files are the same.
//!
//! # Invariants
//!
//! - A row is computed from the ledger, and again once a stamp of its files differs.
//! - Each look sees new and removed runs, and every ledger that can still grow. Of sealed runs, of
//!   which only the second chain can change, each look examines some in turn.
//! - A look takes a part of a second at most. Runs that it did not reach are counted in the listing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_core::bundle::layout::LEDGER;
use provost_engine::ports::PortError;
use provost_engine::query::{CaseSummary, LiveView, RunArchive as _, RunStatus};
use provost_fs::stamp::Stamp;
use provost_surface::answer::Failure;
use provost_surface::parts::{self, CASE};
use provost_surface::places::{Places, named};
use provost_web::{RoomChangeKind, RoomListing};

use crate::branches::Branches;
use crate::changes::ChangeLog;
use crate::live::KnownLive;
use crate::row::{KnownRun, Stamps, read};
use crate::row_cache::RowCache;

/// How long a look is good for, in milliseconds: one page needs the listing several times.
const LOOK_LASTS: i64 = 20;

/// How many sealed runs one look examines.
const SEALED_AT_ONCE: usize = 200;

/// How long one look reads ledgers that it has not read before.
const READING: Duration = Duration::from_millis(250);

/// How often the directory of runs is listed although it seems unchanged, in milliseconds: a change
/// within one tick of the clock of the file system has no stamp of its own.
const LIST_PERIOD: i64 = 500;

/// How often the branches are read, in milliseconds.
const BRANCH_PERIOD: i64 = 2_000;

/// How often a run is asked whether its driver lives, in milliseconds.
const DRIVER_PERIOD: i64 = 500;

/// How often active runs count as changed, in milliseconds.
const PROGRESS_PERIOD: i64 = 2_000;

/// How often rows are written to the disk, in milliseconds.
const KEEP_PERIOD: i64 = 60_000;

/// After how many ledgers that were read rows are written earlier, and how early, in milliseconds.
const KEEP_AFTER: usize = 200;
const KEEP_PAUSE: i64 = 5_000;

#[derive(Debug)]
struct KnownCase {
    stamp: Option<Stamp>,
    driven: bool,
    row: Arc<CaseSummary>,
}

/// The entries of the directory of runs.
#[derive(Debug, Default)]
struct KnownNames {
    stamp: Option<Stamp>,
    listed: i64,
    runs: BTreeSet<String>,
    cases: BTreeSet<String>,
}

/// What is known of one repository.
#[derive(Debug, Default)]
pub struct RepositoryIndex {
    names: KnownNames,
    runs: BTreeMap<String, KnownRun>,
    /// Runs that were found and not read yet.
    unread: BTreeSet<String>,
    cases: BTreeMap<String, KnownCase>,
    branches: Branches,
    kept: RowCache,
    /// How many sealed runs have no row on the disk yet, and when rows were written.
    read: usize,
    written: i64,
    /// When the files were looked at, in milliseconds since 1970.
    looked: i64,
    read_branches: i64,
    progressed: i64,
    /// The sealed run after which the next look begins.
    turn: String,
    /// Absent if something changed since it was made.
    listing: Option<Arc<RoomListing>>,
}

impl RepositoryIndex {
    /// Nothing is known; rows of sealed runs are kept in `directory`, if there is one.
    pub fn kept_in(directory: Option<&Path>) -> Self {
        Self {
            kept: directory.map(RowCache::open).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Makes the next look read the files.
    pub fn forget_look(&mut self) {
        self.looked = 0;
        self.names.stamp = None;
        self.read_branches = 0;
    }

    /// Looks at the files again. Failures leave what was known.
    pub fn look(
        &mut self,
        (id, place): (&str, &Places),
        now: i64,
        log: &mut ChangeLog,
    ) -> Result<(), PortError> {
        if (0..LOOK_LASTS).contains(&(now - self.looked)) {
            return Ok(());
        }
        self.looked = now;
        let before = log.last();
        self.list((id, place), now, log)?;
        let mut accepted = false;
        for run in self.due() {
            accepted |= self.look_at_run((id, place), &run, now, log);
        }
        accepted |= self.read_some((id, place), log);
        self.look_at_cases((id, place), log);
        if accepted || !(0..BRANCH_PERIOD).contains(&(now - self.read_branches)) {
            self.read_branches = now;
            self.branches.read(place, &self.runs);
            for (name, run) in &mut self.runs {
                if self.branches.compare(run) {
                    log.push(id, Some(name), RoomChangeKind::Changed);
                }
            }
        }
        let active = self.runs.values().any(|run| run.driven);
        if active && now - self.progressed >= PROGRESS_PERIOD {
            self.progressed = now;
            log.push(id, None, RoomChangeKind::Progress);
        }
        if log.last() != before {
            self.listing = None;
        }
        self.keep(now);
        Ok(())
    }

    /// All runs and cases that are known, newest first.
    pub fn listing(&mut self) -> Arc<RoomListing> {
        if let Some(listing) = &self.listing {
            return Arc::clone(listing);
        }
        let rows = self.runs.values().rev().map(|run| Arc::clone(&run.row));
        let cases = self.cases.values().rev().map(|case| Arc::clone(&case.row));
        let listing = RoomListing {
            unread: self.unread.len(),
            ..RoomListing::of(rows.collect(), cases.collect())
        };
        Arc::clone(self.listing.insert(Arc::new(listing)))
    }

    /// What an active run does now.
    pub fn live(&mut self, place: &Places, run: &str, now: i64) -> Option<LiveView> {
        let known = self.runs.get_mut(run)?;
        let ledger = known.open.as_ref()?;
        let (state, event) = (&ledger.state, ledger.last.seq);
        let kept = known.live.as_ref();
        if let Some(view) = kept.and_then(|live| live.now(event, now)) {
            return Some(view);
        }
        let live = Box::new(KnownLive::of(place, state, event, now));
        let view = live.now(event, now);
        known.live = Some(live);
        view
    }

    /// Finds new and removed runs.
    fn list(
        &mut self,
        (id, place): (&str, &Places),
        now: i64,
        log: &mut ChangeLog,
    ) -> Result<(), PortError> {
        let directory = place.root.join("runs");
        let stamp = rustix::fs::stat(&directory).ok();
        let stamp = stamp.map(|stat| Stamp::of(&stat));
        let is_recent = (0..LIST_PERIOD).contains(&(now - self.names.listed));
        if stamp.is_some() && stamp == self.names.stamp && is_recent {
            return Ok(());
        }
        let all = named(&directory, "").map_err(Failure::into_port_error)?;
        let (mut runs, mut cases) = (BTreeSet::new(), BTreeSet::new());
        for name in all {
            if name.starts_with("run_") {
                runs.insert(name);
            } else if name.starts_with(CASE) {
                cases.insert(name);
            }
        }
        for run in self.names.runs.difference(&runs) {
            self.unread.remove(run);
            if self.runs.remove(run).is_some() {
                log.push(id, Some(run), RoomChangeKind::Removed);
            }
        }
        for case in self.names.cases.difference(&cases) {
            if self.cases.remove(case).is_some() {
                log.push(id, Some(case), RoomChangeKind::Removed);
            }
        }
        let new = runs.difference(&self.names.runs).cloned();
        self.unread.extend(new);
        self.names = KnownNames {
            stamp,
            listed: now,
            runs,
            cases,
        };
        Ok(())
    }

    /// The runs to look at now: all that are open, and the next ones of the others.
    fn due(&mut self) -> Vec<String> {
        let is_open = |run: &(&String, &KnownRun)| !run.1.stamps.sealed;
        let open = self.runs.iter().filter(is_open);
        let mut due: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        let after = self.runs.range(self.turn.clone()..);
        let turn = after.chain(self.runs.iter().take(SEALED_AT_ONCE));
        let turn = turn.filter(|run| !is_open(run) && *run.0 != self.turn);
        let turn: Vec<String> = turn
            .take(SEALED_AT_ONCE.min(self.runs.len()))
            .map(|(name, _)| name.clone())
            .collect();
        self.turn = turn.last().cloned().unwrap_or_default();
        due.extend(turn);
        due
    }

    /// Reads runs that were not read before, the newest first, as long as there is time; whether one
    /// of them was accepted.
    fn read_some(&mut self, (id, place): (&str, &Places), log: &mut ChangeLog) -> bool {
        let since = Instant::now();
        let mut accepted = false;
        while since.elapsed() < READING {
            let Some(run) = self.unread.pop_last() else {
                break;
            };
            let stamps = Stamps::of(&place.run(&run));
            let known = self.kept.take(&run, stamps).unwrap_or_else(|| {
                self.read += usize::from(stamps.sealed);
                let driven = !stamps.sealed && place.is_driven(&run);
                read(place, &run, stamps, driven, None)
            });
            accepted |= known.row.summary.status == RunStatus::Success;
            log.push(id, Some(&run), RoomChangeKind::Appeared);
            self.runs.insert(run, known);
        }
        accepted
    }

    /// Reads a known run again if its files changed; whether it is accepted and new.
    fn look_at_run(
        &mut self,
        (id, place): (&str, &Places),
        run: &str,
        now: i64,
        log: &mut ChangeLog,
    ) -> bool {
        let Some(known) = self.runs.get_mut(run) else {
            return false;
        };
        let stamps = Stamps::of(&place.run(run));
        let same = known.stamps == stamps;
        let asked_lately = (0..DRIVER_PERIOD).contains(&(now - known.asked_driver));
        if same && (stamps.sealed || asked_lately) {
            return false;
        }
        let mut asked_driver = known.asked_driver;
        let driven = if stamps.sealed {
            false
        } else if known.driven && asked_lately {
            true
        } else {
            asked_driver = now;
            place.is_driven(run)
        };
        if same && known.driven == driven {
            known.asked_driver = asked_driver;
            return false;
        }
        self.read += usize::from(stamps.sealed);
        *known = KnownRun {
            asked_driver,
            live: known.live.take(),
            ..read(place, run, stamps, driven, known.open.take())
        };
        log.push(id, Some(run), RoomChangeKind::Changed);
        known.row.summary.status == RunStatus::Success
    }

    fn look_at_cases(&mut self, (id, place): (&str, &Places), log: &mut ChangeLog) {
        for case in &self.names.cases {
            let ledger = place.run(case).join(LEDGER);
            let stamp = rustix::fs::lstat(ledger).ok().map(|stat| Stamp::of(&stat));
            let known = self.cases.get(case);
            let driven = place.is_driven(case);
            if known.is_some_and(|known| known.stamp == stamp && known.driven == driven) {
                continue;
            }
            let kind = match known {
                Some(_) => RoomChangeKind::Changed,
                None => RoomChangeKind::Appeared,
            };
            let row = match parts::case_state(place, case) {
                Ok(state) => CaseSummary::of(case, &state, driven),
                Err(failure) => CaseSummary::unreadable(case, failure.code, failure.reason),
            };
            let row = Arc::new(row);
            log.push(id, Some(case), kind);
            let known = KnownCase { stamp, driven, row };
            self.cases.insert(case.clone(), known);
        }
    }

    /// Writes the rows of sealed runs to the disk, if enough of them are new.
    fn keep(&mut self, now: i64) {
        let since = now - self.written;
        let is_time = since >= KEEP_PERIOD || self.read >= KEEP_AFTER && since >= KEEP_PAUSE;
        if self.read == 0 || !is_time || !self.unread.is_empty() {
            return;
        }
        self.written = now;
        self.read = self.kept.keep(self.runs.values());
    }
}

#[cfg(test)]
mod tests;
