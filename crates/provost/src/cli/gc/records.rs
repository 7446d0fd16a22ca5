//! What else a runtime root collects: records of plans and chains, and what detached runs printed.
//!
//! # Invariants
//!
//! - A sealed record is evidence, and goes only where bundles do.
//! - A chain goes on when it is called again, so one that has not ended stays, and so does one with
//!   work that is on no branch.
//! - What a run printed stays as long as the run does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::bundle::layout::LEDGER;
use provost_core::bundle::sealed::SEAL;
use provost_core::chain::{self, State};
use provost_core::plan::{Asked, layout};
use provost_core::record::Head;
use provost_core::retention::{self, Candidate, Standing};
use provost_core::{json, time};
use provost_store::ledger;

use super::unchanged::Mark;
use crate::answer::Failure;
use crate::history;
use crate::places::{Places, named};

/// A record, and what decides about it.
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) directory: PathBuf,
    pub(super) candidate: Candidate,
    pub(super) mark: Mark,
}

/// All records of plans, the newest first.
pub(super) fn plans(place: &Places) -> Result<Vec<Kept>, Failure> {
    let of = |id: String, directory: PathBuf| {
        let mark = Mark::of(&directory);
        let asked = fs::read(directory.join(layout::REQUEST)).ok();
        let asked = asked.and_then(|text| json::parse_as::<Asked>(&text).ok());
        let sealed = directory.join(SEAL).is_file();
        let standing = if history::has_driver(&directory) {
            Standing::Open
        } else if sealed && asked.is_some() {
            Standing::Empty
        } else if sealed {
            Standing::Unknown
        } else {
            // Nobody can go on with it.
            abandoned(&directory)
        };
        let began = asked.and_then(|asked| time::parse(&asked.began).ok());
        kept(id, directory, mark, began, standing)
    };
    all(&place.plans(), "plan_", of)
}

/// All chains, the newest first; `runs` says where the runs stand that are here.
pub(super) fn chains(
    place: &Places,
    runs: &BTreeMap<&str, Standing>,
) -> Result<Vec<Kept>, Failure> {
    let of = |id: String, directory: PathBuf| {
        let mark = Mark::of(&directory);
        let read = ledger::read(&directory.join(LEDGER), Head::genesis());
        let records = read.map(|chain| chain.records);
        let began = records.as_ref().ok().and_then(|records| records.first());
        let began = began.and_then(|first| time::parse(&first.event.ts).ok());
        let standing = match records.map(|records| State::fold(&records)) {
            _ if history::has_driver(&directory) => Standing::Open,
            Ok(Ok(Some(state))) => chain(&state, directory.join(SEAL).is_file(), runs),
            Ok(Ok(None)) => abandoned(&directory),
            Err(_) if !directory.join(LEDGER).exists() => abandoned(&directory),
            Ok(Err(_)) | Err(_) => Standing::Unknown,
        };
        kept(id, directory, mark, began, standing)
    };
    all(&place.chains(), "chain_", of)
}

/// Where a chain stands, by itself and by its runs.
fn chain(state: &State, sealed: bool, runs: &BTreeMap<&str, Standing>) -> Standing {
    if state.finished.is_none() || !sealed {
        return Standing::Open;
    }
    let run = |node: &chain::Standing| {
        let run_id = match node {
            chain::Standing::Ended(end) => &end.run_id,
            chain::Standing::Running { run_id } | chain::Standing::Left { run_id } => run_id,
            chain::Standing::NotRun(_) => return None,
        };
        // One that is not here was swept away itself.
        runs.get(run_id.as_str()).copied()
    };
    retention::together(state.nodes.values().filter_map(run))
}

/// Where something stands that has neither a driver nor a beginning.
fn abandoned(directory: &Path) -> Standing {
    match idle(directory) {
        Some(idle) if idle > retention::NOT_BEGUN => Standing::NeverBegan,
        _ => Standing::Open,
    }
}

/// For how long nobody has made anything there.
fn idle(path: &Path) -> Option<Duration> {
    let changed = path.metadata().and_then(|it| it.modified());
    changed.ok()?.elapsed().ok()
}

fn kept(
    id: String,
    directory: PathBuf,
    mark: Mark,
    began: Option<i64>,
    standing: Standing,
) -> Kept {
    Kept {
        id,
        directory,
        mark,
        candidate: Candidate {
            began,
            standing,
            salvaged: false,
        },
    }
}

/// What `of` makes of every directory below `within`, the newest first.
fn all(
    within: &Path,
    prefix: &str,
    of: impl Fn(String, PathBuf) -> Kept,
) -> Result<Vec<Kept>, Failure> {
    let names = named(within, prefix)?;
    let made = |name: String| {
        let directory = within.join(&name);
        of(name, directory)
    };
    let mut all: Vec<Kept> = names.into_iter().map(made).collect();
    // The name of a chain follows from its content, and says nothing of its age.
    all.sort_by_key(|kept| std::cmp::Reverse(kept.candidate.began));
    Ok(all)
}

/// What detached runs printed whose run is none of `runs`, and that nobody has written to for a while.
pub(super) fn strangers(
    place: &Places,
    runs: &BTreeMap<&str, Standing>,
) -> Result<Vec<PathBuf>, Failure> {
    let directory = place.detached();
    let mut files = named(&directory, "run_")?;
    files.retain(|name| {
        let run = name
            .rsplit_once('.')
            .filter(|(_, end)| OUTPUTS.contains(end));
        let unknown = run.is_some_and(|(run, _)| !runs.contains_key(run));
        unknown && idle(&directory.join(name)).is_some_and(|idle| idle > retention::NOT_BEGUN)
    });
    Ok(files.iter().map(|name| directory.join(name)).collect())
}

/// What the run `run_id` printed if it was detached.
pub(super) fn printed(place: &Places, run_id: &str) -> Vec<PathBuf> {
    let file = |end: &&str| place.detached().join(format!("{run_id}.{end}"));
    let there = |path: &PathBuf| path.symlink_metadata().is_ok();
    OUTPUTS.iter().map(file).filter(there).collect()
}

/// How the files end that hold what a detached run prints.
const OUTPUTS: [&str; 2] = ["stdout", "stderr"];
