//! Reads runs that are over or that other processes drive.

use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::after::Landing;
use provost_core::code::Code;
use provost_core::net::model_traffic::ModelTraffic;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::record::Record;
use provost_core::run::State;
use serde::Serialize;

use super::missing::may_lack;
use crate::dependencies::ProjectFiles;
use crate::ports::PortError;

/// The runs of one repository, read only.
pub trait RunArchive {
    /// The ids of all runs, oldest first.
    fn runs(&self) -> Result<Vec<String>, PortError>;

    /// The events of a run, oldest first.
    fn records(&self, run_id: &str) -> Result<Vec<Record>, PortError>;

    /// The events after the seal; `None` if there are none, or they cannot be read.
    fn after(&self, run_id: &str) -> Option<Vec<Record>>;

    fn is_sealed(&self, run_id: &str) -> bool;

    /// Whether a living process drives it.
    fn is_driven(&self, run_id: &str) -> bool;

    /// Whether there is neither a ledger nor a contract, and that is certain.
    fn is_bare(&self, run_id: &str) -> bool;

    /// Whether this user wrote `record` on this machine.
    fn is_by_user(&self, record: &Record) -> bool;

    /// What is kept of the run's requests to models beside its bundle; `None` if nothing is.
    fn bodies(&self, _run_id: &str) -> Option<KeptBodies> {
        None
    }

    /// The traffic between the active agent and its model so far.
    fn live(&self, run_id: &str, attempt: u32) -> Option<ModelTraffic>;

    /// Those of `commits` that `branch` holds now; `None` if that cannot be determined.
    fn held(&self, branch: &str, commits: &BTreeSet<Oid>) -> Option<BTreeSet<Oid>>;

    /// How many lines each changed path gained and lost; `None` for a path that is not text. Empty
    /// if the trees are gone.
    fn line_counts(&self, before: &Oid, after: &Oid) -> BTreeMap<RawPath, Option<LineCount>>;

    /// The files of `tree` that decide how dependencies are prepared; empty if it is gone.
    fn project_files(&self, tree: &Oid) -> ProjectFiles;

    /// The paths that two trees changed incompatibly since `base`; `None` if a tree is gone.
    fn merge_conflicts(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Option<Vec<RawPath>>;
}

/// The files of one run, read only.
pub trait RunFiles {
    fn has(&self, name: &str) -> bool;

    /// The last bytes of a file, at most `most`; `None` if it cannot be read.
    fn end_of(&self, name: &str, most: u64) -> Option<Vec<u8>>;
}

/// Bodies of requests to models and of their answers, on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeptBodies {
    pub files: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether some were left out because the limit was reached.
    pub is_full: bool,
}

/// Whether a run records bodies, and what is kept of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordedBodies {
    pub recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptBodies>,
}

impl RecordedBodies {
    /// Of a run with a known agent; the models of commands are not read.
    pub(super) fn of(state: &State, kept: Option<KeptBodies>) -> Option<Self> {
        let adapted = state.opened.adapted.as_ref()?;
        let recorded = adapted.grants.record;
        Some(Self { recorded, kept })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCount {
    pub added: u64,
    pub removed: u64,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
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

/// Where a run landed, and whether it is still there.
#[derive(Debug, Clone)]
pub struct Landed {
    /// The landing, by the second chain of the run; `land` and `verify` check whether it is true.
    pub landing: Landing,
    /// Whether the branch holds the commit; `None` if that cannot be determined.
    pub held: Option<bool>,
}

/// The files of the base that decide how dependencies are prepared, if the run may lack some.
pub fn project(archive: &dyn RunArchive, state: &State) -> ProjectFiles {
    if may_lack(state) {
        archive.project_files(&state.opened.base_tree)
    } else {
        ProjectFiles::new()
    }
}

pub fn state(archive: &dyn RunArchive, run_id: &str) -> Result<State, PortError> {
    let folded = archive.records(run_id).and_then(|records| {
        let state = State::fold(&records);
        let state = state.map_err(|error| PortError::of(Code::EvidenceAltered, error))?;
        if state.names.run_id != run_id {
            let other = &state.names.run_id;
            let reason = format!("the directory of {run_id} holds the evidence of {other}");
            return Err(PortError::new(Code::EvidenceAltered, reason));
        }
        Ok(state)
    });
    folded.map_err(|error| {
        if never_began(archive, run_id) {
            nothing(run_id)
        } else {
            error
        }
    })
}

/// The failure for a run that never began.
pub fn nothing(run_id: &str) -> PortError {
    let reason = format!("{run_id} never began: its driver died before the first event");
    let hint = "start it again; `provost gc` removes the leftovers after an hour";
    PortError::new(Code::NotFound, reason).hint(hint)
}

/// Whether the driver of a run died before its first event: nothing was begun, so nothing is left.
///
/// The ledger is made before the contract is written, so without both there never was an event.
pub fn never_began(archive: &dyn RunArchive, run_id: &str) -> bool {
    let empty = || archive.records(run_id).is_ok_and(|it| it.is_empty());
    archive.is_bare(run_id) || empty()
}

/// Whether this user began the run `run_id` on this machine, and wrote every event of it.
pub fn is_own(archive: &dyn RunArchive, run_id: &str) -> bool {
    let of_run = |record: &Record| record.event.run_id == run_id;
    let records = archive.records(run_id).unwrap_or_default();
    let last = records.last().filter(|_| records.iter().all(of_run));
    last.is_some_and(|last| archive.is_by_user(last))
}

/// Refuses to continue a run that another user began.
pub fn require_own(archive: &dyn RunArchive, run_id: &str) -> Result<(), PortError> {
    // An unreadable run is reported as such; a run that never began has no owner.
    if never_began(archive, run_id) || is_own(archive, run_id) {
        return Ok(());
    }
    state(archive, run_id)?;
    let reason = format!("{run_id} was not begun by you on this machine");
    Err(PortError::new(Code::RunForeign, reason).hint(format!(
        "`provost show {run_id}` and `provost verify {run_id}` say what it is; \
         begin your own with `provost run`"
    )))
}

pub fn stage(archive: &dyn RunArchive, run_id: &str) -> Stage {
    if archive.is_sealed(run_id) {
        Stage::Sealed
    } else if archive.is_driven(run_id) {
        Stage::Running
    } else if state(archive, run_id).is_ok_and(|state| state.is_waiting()) {
        Stage::Waiting
    } else {
        Stage::Interrupted
    }
}

/// Runs of this user without a driver and without a seal: their driver died.
pub fn interrupted(archive: &dyn RunArchive) -> Result<Vec<String>, PortError> {
    let mut runs = archive.runs()?;
    runs.retain(|run_id| stage(archive, run_id) == Stage::Interrupted);
    runs.retain(|run_id| !never_began(archive, run_id) && is_own(archive, run_id));
    Ok(runs)
}

/// Where each of the runs landed, compared with the branches as they are now.
pub fn landed(archive: &dyn RunArchive, runs: &[&str]) -> BTreeMap<String, Landed> {
    let mut commits: BTreeMap<String, BTreeSet<Oid>> = BTreeMap::new();
    let mut landings = Vec::new();
    for run_id in runs {
        let recorded = archive.after(run_id);
        let recorded = recorded.and_then(|after| Landing::recorded(&after));
        if let Some(landing) = recorded {
            let of_target = commits.entry(landing.target.clone()).or_default();
            of_target.insert(landing.commit.clone());
            landings.push(((*run_id).to_owned(), landing));
        }
    }
    let held: BTreeMap<String, Option<BTreeSet<Oid>>> = commits
        .into_iter()
        .map(|(target, commits)| {
            let held = archive.held(&target, &commits);
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
