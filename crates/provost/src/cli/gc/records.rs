//! Records of plans and chains, and the output of detached runs, as far as `gc` removes them.
//!
//! # Invariants
//!
//! - A sealed record is evidence, and is removed only with `--bundles`.
//! - A chain continues when it is called again, so one that has not ended stays, and so does one
//!   with work that is on no branch.
//! - The output of a run stays as long as the run does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::bundle::layout::LEDGER;
use provost_core::record::Head;
use provost_core::{json, time};
use provost_engine::bundle::sealed::SEAL;
use provost_engine::chain::{self, State};
use provost_engine::plan::{Asked, layout};
use provost_engine::retention::{self, Candidate, Standing};

use super::unchanged::Mark;
use crate::answer::Failure;
use crate::history;
use crate::places::{Places, named};
use crate::stores;

/// A record, and the facts that decide whether it stays.
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) directory: PathBuf,
    pub(super) candidate: Candidate,
    pub(super) mark: Mark,
}

/// All records of plans, newest first.
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
            // No process can continue it.
            abandoned(&directory)
        };
        let began = asked.and_then(|asked| time::parse(&asked.began).ok());
        kept(id, directory, mark, began, standing)
    };
    all(&place.plans(), "plan_", of)
}

/// All chains, newest first; `runs` has the standing of the runs that exist here.
pub(super) fn chains(
    place: &Places,
    runs: &BTreeMap<&str, Standing>,
) -> Result<Vec<Kept>, Failure> {
    let of = |id: String, directory: PathBuf| {
        let mark = Mark::of(&directory);
        let records = stores::read_ledger(&directory.join(LEDGER), Head::genesis());
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

/// The standing of a chain, by itself and by its runs.
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
        // A run that does not exist here was removed itself.
        runs.get(run_id.as_str()).copied()
    };
    retention::together(state.nodes.values().filter_map(run))
}

/// The standing of a record that has neither a driver nor a first event.
fn abandoned(directory: &Path) -> Standing {
    match idle(directory) {
        Some(idle) if idle > retention::NOT_BEGUN => Standing::NeverBegan,
        _ => Standing::Open,
    }
}

/// How long ago the last file was created there.
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

/// The records that `of` makes of all directories below `within`, newest first.
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
    // The name of a chain follows from its content, and says nothing about its age.
    all.sort_by_key(|kept| std::cmp::Reverse(kept.candidate.began));
    Ok(all)
}

/// Output files of detached runs that are none of `runs`, and that are old enough.
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

/// The output files of the run `run_id`, if it was detached.
pub(super) fn printed(place: &Places, run_id: &str) -> Vec<PathBuf> {
    let file = |end: &&str| place.detached().join(format!("{run_id}.{end}"));
    let there = |path: &PathBuf| path.symlink_metadata().is_ok();
    OUTPUTS.iter().map(file).filter(there).collect()
}

/// The endings of the output files of a detached run.
const OUTPUTS: [&str; 2] = ["stdout", "stderr"];
