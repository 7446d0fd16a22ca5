//! Reads runs that are over or that other processes drive; never repairs and never locks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use provost_core::bundle::after::Landing;
use provost_core::bundle::layout::{AFTER, ATTESTATION, CONTRACT, DRIVER_LOCK, LEDGER};
use provost_core::code::Code;
use provost_core::net::model_traffic::ModelTraffic;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::{Head, Record};
use provost_core::run::State;
use provost_host::git::{GitError, Lines};
use provost_host::{clock, machine, process_owner};
use provost_store::ledger;
use provost_store::lock::DriverLock;

use crate::answer::Failure;
use crate::places::Places;
use crate::show::neutralise;

/// Facts about a run that are not in its own ledger.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) stage: Stage,
    /// Whether another user began it.
    pub(crate) foreign: bool,
    pub(crate) landed: Option<Landed>,
    /// Why it cannot land alone, if it is a part of a chain whose parts were not accepted together.
    pub(crate) part: Option<String>,
    /// The traffic between the active agent and its model so far.
    pub(crate) live: Option<ModelTraffic>,
    /// Details for `provost show`.
    pub(crate) closer: Option<Closer>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A living process drives it.
    Running,
    /// No process drives it, and it has no seal.
    Interrupted,
    /// It waits for a person's approval.
    Waiting,
    /// It has ended.
    #[default]
    Sealed,
}

impl Beside {
    /// The facts about a run that this process has just driven as far as it goes.
    pub(crate) fn driven(state: &State) -> Self {
        let waits = state.is_waiting();
        Self {
            stage: if waits { Stage::Waiting } else { Stage::Sealed },
            ..Self::default()
        }
    }
}

/// Where a run landed, and whether it is still there.
#[derive(Debug)]
pub(crate) struct Landed {
    /// The landing, by the second chain of the run; `land` and `verify` check whether it is true.
    pub(crate) landing: Landing,
    /// Whether the branch holds the commit; `None` if that cannot be determined.
    pub(crate) held: Option<bool>,
}

/// Facts that need more than a ledger.
#[derive(Debug)]
pub(crate) struct Closer {
    pub(crate) now: i64,
    /// How many lines each path gained and lost; empty if the trees are gone.
    pub(crate) lines: BTreeMap<RawPath, Option<Lines>>,
}

/// The events of the run `run_id`, oldest first.
pub(crate) fn records(place: &Places, run_id: &str) -> Result<Vec<Record>, Failure> {
    let directory = place.run(run_id);
    if directory.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        let reason = "is a symbolic link, and no run of yours";
        return Err(Failure::new(Code::RootUnsafe, reason).about(&directory));
    }
    let path = directory.join(LEDGER);
    Ok(ledger::read(&path, Head::genesis())?.records)
}

pub(crate) fn state(place: &Places, run_id: &str) -> Result<State, Failure> {
    let folded = records(place, run_id).and_then(|records| {
        let state = State::fold(&records);
        let state = state.map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
        if state.names.run_id != run_id {
            let other = neutralise(&state.names.run_id);
            let reason = format!("the directory of {run_id} holds the evidence of {other}");
            return Err(Failure::new(Code::EvidenceAltered, reason));
        }
        Ok(state)
    });
    folded.map_err(|failure| {
        if never_began(place, run_id) {
            nothing(run_id)
        } else {
            failure
        }
    })
}

/// The failure for a run that never began.
pub(crate) fn nothing(run_id: &str) -> Failure {
    let reason = format!("{run_id} never began: its driver died before the first event");
    let hint = "start it again; `provost gc` removes the leftovers after an hour";
    Failure::new(Code::NotFound, reason).hint(hint)
}

/// Whether this user began the run `run_id` on this machine, and wrote every event of it.
pub(crate) fn is_own(place: &Places, run_id: &str) -> bool {
    let Some(secret) = place.known_secret().filter(|_| !place.is_foreign()) else {
        return false;
    };
    let of_run = |record: &Record| record.event.run_id == run_id;
    let records = records(place, run_id).unwrap_or_default();
    let last = records.last().filter(|_| records.iter().all(of_run));
    last.is_some_and(|last| last.is_by(secret))
}

/// Refuses to continue a run that another user began.
pub(crate) fn require_own(place: &Places, run_id: &str) -> Result<(), Failure> {
    // An unreadable run is reported as such; a run that never began has no owner.
    if never_began(place, run_id) || is_own(place, run_id) {
        return Ok(());
    }
    state(place, run_id)?;
    let reason = format!("{run_id} was not begun by you on this machine");
    Err(Failure::new(Code::RunForeign, reason).hint(format!(
        "`provost show {run_id}` and `provost verify {run_id}` say what it is; \
         begin your own with `provost run`"
    )))
}

/// The facts about the run of `state` that are not in its own ledger.
pub(crate) fn beside(place: &Places, state: &State) -> Beside {
    let run_id = &state.names.run_id;
    let tree = state.captured.as_ref().map(|captured| &captured.tree);
    let lines = tree.map(|tree| place.repo.line_counts(&state.opened.base_tree, tree));
    let reached = stage(place, run_id);
    let cache = place.cache().ok().filter(|_| reached == Stage::Running);
    Beside {
        stage: reached,
        live: cache.and_then(|cache| machine::live(cache, run_id, state.attempt)),
        foreign: !is_own(place, run_id),
        landed: landed(place, &[run_id.as_str()]).remove(run_id),
        part: None,
        closer: Some(Closer {
            now: clock::now_millis(),
            lines: lines.and_then(Result::ok).unwrap_or_default(),
        }),
    }
}

/// Where each of the runs landed, compared with the branches as they are now.
pub(crate) fn landed(place: &Places, runs: &[&str]) -> BTreeMap<String, Landed> {
    let mut commits: BTreeMap<String, BTreeSet<Oid>> = BTreeMap::new();
    let mut landings = Vec::new();
    for run_id in runs {
        let recorded = after(place, run_id).and_then(|after| Landing::recorded(&after));
        if let Some(landing) = recorded {
            let of_target = commits.entry(landing.target.clone()).or_default();
            of_target.insert(landing.commit.clone());
            landings.push(((*run_id).to_owned(), landing));
        }
    }
    let held: BTreeMap<String, Option<BTreeSet<Oid>>> = commits
        .into_iter()
        .map(|(target, commits)| {
            let held = held(place, &target, &commits).ok();
            (target, held)
        })
        .collect();
    let landed = |(run_id, landing): (String, Landing)| {
        let held = held.get(&landing.target).and_then(Option::as_ref);
        let held = held.map(|held| held.contains(&landing.commit));
        (run_id, Landed { landing, held })
    };
    landings.into_iter().map(landed).collect()
}

/// Those of `commits` that `branch` holds now; a missing branch holds none.
fn held(place: &Places, branch: &str, commits: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, GitError> {
    match place.repo.ref_value(branch)? {
        Some(tip) => place.repo.held_by(&tip, commits),
        None => Ok(BTreeSet::new()),
    }
}

/// The events after the seal; `None` if there are none, or they cannot be read.
pub(crate) fn after(place: &Places, run_id: &str) -> Option<Vec<Record>> {
    let path = place.run(run_id).join(AFTER);
    if !path.exists() {
        return None;
    }
    let sealed = records(place, run_id).ok()?;
    let after = ledger::read(&path, Head::after(&sealed.last()?.hash)).ok()?;
    Some(after.records)
}

pub(crate) fn stage(place: &Places, run_id: &str) -> Stage {
    if is_sealed(place, run_id) {
        Stage::Sealed
    } else if is_driven(place, run_id) {
        Stage::Running
    } else if state(place, run_id).is_ok_and(|state| state.is_waiting()) {
        Stage::Waiting
    } else {
        Stage::Interrupted
    }
}

/// The command that continues a run that has not ended.
pub(crate) fn go_on(run_id: &str, stage: Stage) -> String {
    match stage {
        Stage::Running => format!("provost log {run_id} --follow"),
        Stage::Waiting => {
            format!("provost approve {run_id} --go # or: provost reject {run_id}")
        }
        Stage::Interrupted | Stage::Sealed => format!("provost resume {run_id}"),
    }
}

/// Whether a run that was opened has its seal.
pub(crate) fn is_sealed(place: &Places, run_id: &str) -> bool {
    place.run(run_id).join(ATTESTATION).is_file()
}

/// Whether the driver of a run died before its first event: nothing was begun, so nothing is left.
///
/// The ledger is made before the contract is written, so without both there never was an event.
pub(crate) fn never_began(place: &Places, run_id: &str) -> bool {
    let absent = |name: &str| {
        let there = place.run(run_id).join(name).try_exists();
        there.is_ok_and(|there| !there)
    };
    let empty = || records(place, run_id).is_ok_and(|records| records.is_empty());
    absent(LEDGER) && absent(CONTRACT) || empty()
}

/// How long ago the last file was created in the directory of a run.
pub(crate) fn idle(place: &Places, run_id: &str) -> Option<Duration> {
    let changed = place.run(run_id).metadata().and_then(|it| it.modified());
    changed.ok()?.elapsed().ok()
}

/// Runs of this user without a driver and without a seal: their driver died.
pub(crate) fn interrupted(place: &Places) -> Result<Vec<String>, Failure> {
    let mut runs = place.runs()?;
    runs.retain(|run_id| stage(place, run_id) == Stage::Interrupted);
    runs.retain(|run_id| !never_began(place, run_id) && is_own(place, run_id));
    Ok(runs)
}

pub(crate) fn is_driven(place: &Places, run_id: &str) -> bool {
    has_driver(&place.run(run_id))
}

/// Whether a living process drives what `directory` holds.
pub(crate) fn has_driver(directory: &Path) -> bool {
    let driver = DriverLock::last_owner(&directory.join(DRIVER_LOCK));
    driver.is_some_and(|driver| process_owner::alive(&driver))
}
