//! What is known of the runs and cases of one repository, kept as long as their files are the same.
//!
//! # Invariants
//!
//! - A row is computed from the ledger, and again once a stamp of its files differs.
//! - Each look sees new and removed runs, and every ledger that can still grow. Of sealed runs, of
//!   which only the second chain can change, each look examines some hundreds in turn.
//! - Each change has a number, larger than all before; the newest thousands are kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use provost_core::bundle::layout::{AFTER, ATTESTATION, LEDGER};
use provost_core::gate::command;
use provost_core::object::Oid;
use provost_core::record::Record;
use provost_core::run::State;
use provost_engine::bundle::after::Landing;
use provost_engine::ports::PortError;
use provost_engine::query::{
    self, CaseSummary, Landed, QuestionView, RunArchive as _, RunStatus, RunSummary, Stage,
};
use provost_fs::stamp::Stamp;
use provost_web::{RoomChange, RoomChangeKind, RoomChanges, RoomListing, RoomRow};

use crate::answer::Failure;
use crate::parts;
use crate::places::Places;

/// How long a look is good for, in milliseconds: one page needs the listing several times.
const LOOK_LASTS: i64 = 40;

/// How many sealed runs one look examines.
const SEALED_AT_ONCE: usize = 500;

/// How many changes are kept.
const KEPT: usize = 10_000;

/// How often the branches are read, in milliseconds.
const BRANCH_PERIOD: i64 = 2_000;

/// How often a run without a new event is asked whether its driver lives, in milliseconds.
const DRIVER_PERIOD: i64 = 500;

/// How often active runs count as changed, in milliseconds.
const PROGRESS_PERIOD: i64 = 2_000;

/// The changes of all repositories.
#[derive(Default)]
pub(super) struct ChangeLog {
    kept: VecDeque<RoomChange>,
    last: u64,
}

impl ChangeLog {
    fn push(&mut self, repository: &str, id: Option<&str>, kind: RoomChangeKind) {
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

    pub(super) fn after(&self, number: u64) -> RoomChanges {
        let first = self.kept.front().map_or(self.last + 1, |it| it.number);
        let later = self.kept.iter().filter(|it| it.number > number);
        RoomChanges {
            changes: later.cloned().collect(),
            last: self.last,
            lost: number.saturating_add(1) < first,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamps {
    ledger: Option<Stamp>,
    after: Option<Stamp>,
    sealed: bool,
}

impl Stamps {
    fn of(directory: &Path) -> Self {
        let stamp = |name: &str| {
            let stat = rustix::fs::lstat(directory.join(name));
            stat.ok().map(|stat| Stamp::of(&stat))
        };
        Self {
            ledger: stamp(LEDGER),
            after: stamp(AFTER),
            sealed: stamp(ATTESTATION).is_some(),
        }
    }
}

struct KnownRun {
    stamps: Stamps,
    driven: bool,
    /// When the driver was looked for, in milliseconds since 1970.
    asked_driver: i64,
    base: Option<Oid>,
    landing: Option<Landing>,
    row: Arc<RoomRow>,
}

struct KnownCase {
    stamp: Option<Stamp>,
    driven: bool,
    row: Arc<CaseSummary>,
}

/// A branch as it was read last.
#[derive(Default)]
struct KnownBranch {
    tip: Option<Oid>,
    /// Of the commits that runs landed there, those that it holds.
    held: Option<BTreeSet<Oid>>,
    asked: BTreeSet<Oid>,
}

#[derive(Default)]
pub(super) struct RepositoryCache {
    runs: BTreeMap<String, KnownRun>,
    cases: BTreeMap<String, KnownCase>,
    branches: BTreeMap<String, KnownBranch>,
    /// When the files were looked at, in milliseconds since 1970.
    looked: i64,
    read_branches: i64,
    progressed: i64,
    /// The sealed run after which the next look begins.
    turn: String,
    listing: Arc<RoomListing>,
}

impl RepositoryCache {
    /// Makes the next look read the files.
    pub(super) fn forget_look(&mut self) {
        self.looked = 0;
    }

    /// Looks at the files again. Failures leave what was known.
    pub(super) fn look(
        &mut self,
        (id, place): (&str, &Places),
        now: i64,
        log: &mut ChangeLog,
    ) -> Result<Arc<RoomListing>, PortError> {
        if (0..LOOK_LASTS).contains(&(now - self.looked)) {
            return Ok(Arc::clone(&self.listing));
        }
        self.looked = now;
        let before = log.last;
        let runs = place.runs().map_err(Failure::into_port_error)?;
        let here: BTreeSet<&str> = runs.iter().map(String::as_str).collect();
        let gone = self.runs.keys().filter(|run| !here.contains(run.as_str()));
        for run in gone.cloned().collect::<Vec<_>>() {
            self.runs.remove(&run);
            log.push(id, Some(&run), RoomChangeKind::Removed);
        }
        for run in self.due(&runs) {
            self.look_at_run((id, place), &run, now, log);
        }
        self.look_at_cases((id, place), log)?;
        if now - self.read_branches >= BRANCH_PERIOD || log.last != before {
            self.read_branches = now;
            self.read_branches((id, place), log);
        }
        let active = self.runs.values().any(|run| run.driven);
        if active && now - self.progressed >= PROGRESS_PERIOD {
            self.progressed = now;
            log.push(id, None, RoomChangeKind::Progress);
        }
        if log.last != before {
            let rows = self.runs.values().rev().map(|run| Arc::clone(&run.row));
            let cases = self.cases.values().rev().map(|case| Arc::clone(&case.row));
            self.listing = Arc::new(RoomListing::of(rows.collect(), cases.collect()));
        }
        Ok(Arc::clone(&self.listing))
    }

    /// The runs to look at now: all that are new or open, and the next ones of the others.
    fn due(&mut self, runs: &[String]) -> Vec<String> {
        let is_open = |run: &&String| {
            let known = self.runs.get(run.as_str());
            known.is_none_or(|known| !known.stamps.sealed)
        };
        let mut due: Vec<String> = runs.iter().filter(is_open).cloned().collect();
        let sealed: Vec<&String> = runs.iter().filter(|run| !is_open(run)).collect();
        let begin = sealed.partition_point(|run| **run <= self.turn);
        let turn = sealed.iter().cycle().skip(begin);
        let turn = turn.take(SEALED_AT_ONCE.min(sealed.len()));
        let turn: Vec<String> = turn.map(|run| (*run).clone()).collect();
        self.turn = turn.last().cloned().unwrap_or_default();
        due.extend(turn);
        due
    }

    fn look_at_run(
        &mut self,
        (id, place): (&str, &Places),
        run: &str,
        now: i64,
        log: &mut ChangeLog,
    ) {
        let stamps = Stamps::of(&place.run(run));
        let known = self.runs.get(run);
        let same = known.filter(|known| known.stamps == stamps);
        if let Some(same) = same {
            let waits = stamps.sealed || now - same.asked_driver < DRIVER_PERIOD;
            if waits {
                return;
            }
        }
        let driven = !stamps.sealed && place.is_driven(run);
        if same.is_some_and(|same| same.driven == driven) {
            if let Some(known) = self.runs.get_mut(run) {
                known.asked_driver = now;
            }
            return;
        }
        let kind = match known {
            Some(_) => RoomChangeKind::Changed,
            None => RoomChangeKind::Appeared,
        };
        let mut read = read(place, run, stamps, driven);
        read.asked_driver = now;
        self.runs.insert(run.to_owned(), read);
        log.push(id, Some(run), kind);
    }

    fn look_at_cases(
        &mut self,
        (id, place): (&str, &Places),
        log: &mut ChangeLog,
    ) -> Result<(), PortError> {
        for case in place.cases().map_err(Failure::into_port_error)? {
            let ledger = place.run(&case).join(LEDGER);
            let stamp = rustix::fs::lstat(ledger).ok().map(|stat| Stamp::of(&stat));
            let known = self.cases.get(&case);
            let driven = place.is_driven(&case);
            if known.is_some_and(|known| known.stamp == stamp && known.driven == driven) {
                continue;
            }
            let kind = match known {
                Some(_) => RoomChangeKind::Changed,
                None => RoomChangeKind::Appeared,
            };
            let row = match parts::case_state(place, &case) {
                Ok(state) => CaseSummary::of(&case, &state, driven),
                Err(failure) => CaseSummary::unreadable(&case, failure.code, failure.reason),
            };
            let row = Arc::new(row);
            log.push(id, Some(&case), kind);
            self.cases.insert(case, KnownCase { stamp, driven, row });
        }
        Ok(())
    }

    /// Compares accepted runs with the branches as they are now.
    fn read_branches(&mut self, (id, place): (&str, &Places), log: &mut ChangeLog) {
        let accepted = |run: &&KnownRun| run.row.summary.status == RunStatus::Success;
        let mut wanted: BTreeMap<String, BTreeSet<Oid>> = BTreeMap::new();
        for run in self.runs.values().filter(accepted) {
            if let Some(landing) = &run.landing {
                let commits = wanted.entry(landing.target.clone()).or_default();
                commits.insert(landing.commit.clone());
            } else if let Some(target) = &run.row.target {
                wanted.entry(target.clone()).or_default();
            }
        }
        for (target, commits) in wanted {
            let tip = place.repo.ref_value(&target).ok().flatten();
            let branch = self.branches.entry(target.clone()).or_default();
            if branch.tip != tip || branch.asked != commits || branch.held.is_none() {
                branch.held = place.held(&target, &commits);
                branch.asked = commits;
                branch.tip = tip;
            }
        }
        for (name, run) in &mut self.runs {
            if run.row.summary.status != RunStatus::Success {
                continue;
            }
            let target = run.landing.as_ref().map(|it| &it.target);
            let branch = target.or(run.row.target.as_ref());
            let Some(branch) = branch.and_then(|it| self.branches.get(it)) else {
                continue;
            };
            let held = run.landing.as_ref().and_then(|landing| {
                let held = branch.held.as_ref()?;
                Some(held.contains(&landing.commit))
            });
            let moved = branch.tip.is_some() && branch.tip != run.base;
            let summary = &run.row.summary;
            let known = summary.landing.as_ref().and_then(|it| it.held);
            if known != held || run.row.target_moved != moved {
                let mut row = RoomRow::clone(&run.row);
                row.target_moved = moved;
                if let Some(landing) = &mut row.summary.landing {
                    landing.held = held;
                }
                run.row = Arc::new(row);
                log.push(id, Some(name), RoomChangeKind::Changed);
            }
        }
    }
}

/// The row of a run, from one reading of its ledger.
fn read(place: &Places, run: &str, stamps: Stamps, driven: bool) -> KnownRun {
    let known = |row: RoomRow, base: Option<Oid>, landing: Option<Landing>| KnownRun {
        stamps,
        driven,
        asked_driver: 0,
        base,
        landing,
        row: Arc::new(row),
    };
    let records = place.records(run);
    let folded = records.as_ref().ok().and_then(|it| State::fold(it).ok());
    let state = folded.filter(|state| state.names.run_id == run);
    let (Some(state), Ok(records)) = (state, &records) else {
        let rows = query::summaries(place, &[run.to_owned()]);
        let unread = || RunSummary::without_facts(run, RunStatus::Unreadable, None, String::new());
        let summary = rows.into_iter().next().unwrap_or_else(unread);
        return known(bare(summary), None, None);
    };
    let reached = match (stamps.sealed, driven) {
        (true, _) => Stage::Sealed,
        (false, true) => Stage::Running,
        (false, false) if state.is_waiting() => Stage::Waiting,
        (false, false) => Stage::Interrupted,
    };
    let of_run = |record: &Record| record.event.run_id == run;
    let last = records.last().filter(|_| records.iter().all(of_run));
    let own = last.is_some_and(|last| place.is_by_user(last));
    let after = stamps.after.and_then(|_| place.after(run));
    let landing = after.and_then(|after| Landing::recorded(&after));
    let landed = landing.clone().map(|landing| Landed {
        landing,
        held: None,
    });
    let summary = RunSummary::folded(&state, reached, own, landed.as_ref());
    let waits = summary.status == RunStatus::Waiting;
    let row = RoomRow {
        question: QuestionView::of(&state).filter(|_| waits).map(Arc::new),
        questions: state.open_questions().cloned().collect(),
        parent: state.opened.parent.clone(),
        agent: Some(command::line(&state.opened.agent)),
        contract_sha256: Some(state.opened.contract_sha256.clone()),
        target: state.opened.target.clone(),
        target_moved: false,
        lost: state.lost,
        part_of: state.opened.part.as_ref().map(|part| part.chain.clone()),
        summary,
    };
    known(row, Some(state.opened.base_commit), landing)
}

fn bare(summary: RunSummary) -> RoomRow {
    RoomRow {
        summary,
        question: None,
        questions: Vec::new(),
        parent: None,
        agent: None,
        contract_sha256: None,
        target: None,
        target_moved: false,
        lost: 0,
        part_of: None,
    }
}
