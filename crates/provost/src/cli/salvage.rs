//! `provost salvage`: lists and restores work that was kept although it did not land.

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::refs::KEPT;
use provost_engine::query;
use provost_host::git::{Expected, GitError};
use provost_host::kept_work::{self, KeptWork};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
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
    let mut text = String::new();
    let mut rows = Vec::new();
    for kept in kept_work::unlanded(&place.repo, place)? {
        let run_id = kept.run_id();
        let state = query::state(place, run_id).ok();
        let word = match state.as_ref().and_then(|state| state.finished.as_ref()) {
            // Another attempt was accepted, not this one.
            Some(verdict) if verdict.allow && kept.is_salvaged() => "ATTEMPT_LOST",
            Some(verdict) if verdict.allow => "ACCEPTED",
            Some(verdict) => verdict.code.name(),
            None => "UNFINISHED",
        };
        let objective = state
            .as_ref()
            .map(|state| state.opened.contract.inputs.spec.as_str());
        let start = format!("{}  {}  {word:22}  ", kept.commit.short(), kept.name);
        let column = start.chars().count();
        text += &format!(
            "{start}{}\n",
            headline(objective.unwrap_or_default(), column)
        );
        rows.push(
            json!({ "ref": kept.name, "commit": kept.commit, "run_id": run_id,
            "outcome": word, "objective": objective }),
        );
    }
    if rows.is_empty() {
        text += "nothing is kept\n";
    } else {
        text += "next: provost salvage restore RUN\n";
    }
    Ok(Answer::data(Value::Array(rows), text))
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
    let mut text = String::new();
    let mut rows = Vec::new();
    for KeptWork { name, commit } in &kept {
        let tail = name.trim_start_matches(KEPT).replace('/', "-");
        let branch = format!("provost/salvage-{tail}");
        restore(place, &branch, commit)?;
        text += &format!("branch {branch} is at {}\n", commit.short());
        text += &format!("next: git diff HEAD...{branch}\n");
        rows.push(json!({ "branch": branch, "commit": commit, "from": name }));
    }
    Ok(Answer::data(json!({ "restored": rows }), text))
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
