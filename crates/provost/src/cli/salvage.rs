//! `provost salvage`: lists and restores work that was kept although it did not land.

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::refs::KEPT;
use provost_engine::query;
use provost_host::git::{Expected, GitError};
use provost_host::kept_work::{self, KeptWork};
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::places::Places;
use crate::show::headline;

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Salvage {
    /// List work that was kept although it did not land.
    List,
    /// Restore all kept work of a run to branches.
    Restore(Restore),
}

#[derive(Args)]
#[command(after_help = "\
Each attempt that left work gets a branch provost/salvage-…; your checkout stays as it is.
Work that has landed is not kept separately.

Examples:
  provost salvage restore last
  provost salvage restore refs/provost/salvage/RUN/1")]
pub(super) struct Restore {
    /// The run: its id, a part of it, or `last`; or the name of a ref.
    run: String,
}

pub(super) fn run(salvage: &Salvage) -> Outcome {
    match salvage {
        Salvage::List => list(&Places::look()?),
        Salvage::Restore(restore) => put_back(&Places::find()?, &restore.run),
    }
}

fn list(place: &Places) -> Outcome {
    let row = |kept: KeptWork| {
        let run_id = kept.run_id().to_owned();
        let state = query::state(place, &run_id).ok();
        let outcome = match state.as_ref().and_then(|state| state.finished.as_ref()) {
            // Another attempt was accepted, not this one.
            Some(verdict) if verdict.allow && kept.is_salvaged() => "ATTEMPT_LOST",
            Some(verdict) if verdict.allow => "ACCEPTED",
            Some(verdict) => verdict.code.name(),
            None => "UNFINISHED",
        };
        SalvagedWork {
            name: kept.name,
            commit: kept.commit,
            run_id,
            outcome,
            objective: state.map(|state| state.opened.contract.inputs.spec),
        }
    };
    let rows = kept_work::unlanded(&place.repo, place)?
        .into_iter()
        .map(row);
    Ok(SalvagedList(rows.collect()).into())
}

#[derive(Serialize)]
struct SalvagedList(Vec<SalvagedWork>);

#[derive(Serialize)]
struct SalvagedWork {
    #[serde(rename = "ref")]
    name: String,
    commit: Oid,
    run_id: String,
    outcome: &'static str,
    objective: Option<String>,
}

impl Answered for SalvagedList {
    fn text(&self) -> String {
        let line = |row: &SalvagedWork| {
            let start = format!("{}  {}  {:22}  ", row.commit.short(), row.name, row.outcome);
            let objective = row.objective.as_deref().unwrap_or_default();
            let objective = headline(objective, start.chars().count());
            format!("{start}{objective}\n")
        };
        match self.0.as_slice() {
            [] => "nothing is kept\n".to_owned(),
            rows => {
                rows.iter().map(line).collect::<String>() + "next: provost salvage restore RUN\n"
            }
        }
    }
}

#[derive(Serialize)]
struct RestoredWork {
    restored: Vec<RestoredBranch>,
}

#[derive(Serialize)]
struct RestoredBranch {
    branch: String,
    commit: Oid,
    from: String,
}

impl Answered for RestoredWork {
    fn text(&self) -> String {
        let lines = |RestoredBranch { branch, commit, .. }: &RestoredBranch| {
            let commit = commit.short();
            format!("branch {branch} is at {commit}\nnext: git diff HEAD...{branch}\n")
        };
        self.restored.iter().map(lines).collect()
    }
}

/// Restores all kept work of a run, or of one ref, to branches.
fn put_back(place: &Places, run: &str) -> Outcome {
    // The work of a run outlives the directory of its bundle.
    let run_id = place.find_run(run).unwrap_or_else(|_| run.to_owned());
    if place.run(&run_id).symlink_metadata().is_ok() {
        query::require_own(place, &run_id)?;
    }
    let mut kept = kept_work::unlanded(&place.repo, place)?;
    kept.retain(|kept| kept.name == run || kept.run_id() == run_id);
    if kept.is_empty() {
        let landed = query::landed(place, &[&run_id]);
        let reason = match landed.get(&run_id) {
            Some(landed) if landed.held == Some(true) => format!("all work of {run_id} has landed"),
            _ => format!("nothing is kept of `{run_id}`"),
        };
        return Err(
            Failure::new(Code::NotFound, reason).hint("`provost salvage list` shows what there is")
        );
    }
    let mut restored = Vec::new();
    for KeptWork { name, commit } in kept {
        let tail = name.trim_start_matches(KEPT).replace('/', "-");
        let branch = format!("provost/salvage-{tail}");
        restore(place, &branch, &commit)?;
        restored.push(RestoredBranch {
            branch,
            commit,
            from: name,
        });
    }
    Ok(RestoredWork { restored }.into())
}

/// Creates `branch`; an existing one with another commit is left alone.
fn restore(place: &Places, branch: &str, commit: &Oid) -> Result<(), Failure> {
    let name = format!("refs/heads/{branch}");
    let kept = place.repo.keep(&name, commit, &Expected::Absent);
    match kept {
        Err(GitError::RefMoved {
            found: Some(found), ..
        }) if found == *commit => Ok(()),
        Err(GitError::RefMoved {
            found: Some(found), ..
        }) => {
            let reason = format!("branch {branch} exists already, at {}", found.short());
            Err(Failure::new(Code::UsageError, reason)
                .hint(format!("rename it first: git branch -m {branch} NAME")))
        }
        other => Ok(other?),
    }
}
