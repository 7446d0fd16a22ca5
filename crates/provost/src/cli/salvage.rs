//! `provost salvage` and `provost lease`: work that was kept, and who holds what.

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::path::RepoPath;
use provost_host::{clock, owner};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::history;
use crate::place::Place;
use crate::session::store;
use crate::show::headline;

#[derive(Subcommand)]
pub(super) enum Salvage {
    /// List work that was kept although it did not land.
    List,
    /// Put kept work on a branch of its own.
    Restore(Restore),
}

#[derive(Args)]
#[command(after_help = "Example:
  provost salvage restore last")]
pub(super) struct Restore {
    /// The run whose work it is: its id, a part of it, or `last`; or the name of a ref.
    run: String,
}

#[derive(Subcommand)]
pub(super) enum Lease {
    /// List who holds which paths.
    List,
}

/// What the last attempt of a run left.
const CAPTURED: &str = "refs/provost/runs/";

const KEPT: &[&str] = &["refs/provost/salvage/", CAPTURED];

/// Work that a ref of ours keeps.
struct Kept {
    name: String,
    commit: Oid,
}

impl Kept {
    /// The run whose work it is: the name is `refs/provost/KIND/RUN/ATTEMPT`.
    fn run_id(&self) -> &str {
        self.name.split('/').nth(3).unwrap_or_default()
    }
}

pub(super) fn run(salvage: &Salvage) -> Outcome {
    let place = Place::find()?;
    match salvage {
        Salvage::List => list(&place),
        Salvage::Restore(restore) => put_back(&place, &restore.run),
    }
}

fn kept(place: &Place) -> Result<Vec<Kept>, Failure> {
    let mut kept = Vec::new();
    for prefix in KEPT {
        let refs = place
            .repo
            .refs(prefix)
            .map_err(|e| Failure::of(Code::GitFailed, &e))?;
        let of = |(name, commit)| Kept { name, commit };
        kept.extend(refs.into_iter().map(of));
    }
    Ok(kept)
}

fn list(place: &Place) -> Outcome {
    let mut text = String::new();
    let mut rows = Vec::new();
    for kept in kept(place)? {
        let run_id = kept.run_id();
        // Of a run that cannot be read all is shown: better too much than work unseen.
        let state = history::state(place, run_id).ok();
        if is_empty(place, &kept) || has_landed(place, &kept) {
            continue;
        }
        let word = match state.as_ref().and_then(|state| state.finished.as_ref()) {
            Some(verdict) if verdict.allow => "ACCEPTED",
            Some(verdict) => verdict.code.name(),
            None => "UNFINISHED",
        };
        let objective = state
            .as_ref()
            .map(|state| state.opened.contract.inputs.spec.as_str());
        let start = format!("{}  {}  {word:18}  ", kept.commit.short(), kept.name);
        let column = start.chars().count();
        text += &format!(
            "{start}{}\n",
            headline(objective.unwrap_or_default(), column)
        );
        rows.push(
            json!({ "ref": kept.name, "commit": kept.commit, "run_id": run_id,
            "objective": objective }),
        );
    }
    if rows.is_empty() {
        text += "nothing is kept\n";
    } else {
        text += "next: provost salvage restore RUN\n";
    }
    Ok(Answer::data(Value::Array(rows), text))
}

/// Whether the work is on its branch; what an earlier attempt left when it was lost is not.
fn has_landed(place: &Place, kept: &Kept) -> bool {
    kept.name.starts_with(CAPTURED) && history::landed(place, kept.run_id()).is_some()
}

/// Whether the commit changes nothing: the work is all in the base it was put on.
fn is_empty(place: &Place, kept: &Kept) -> bool {
    let tree = |rev: &str| {
        let commit = place.repo.resolve(rev)?;
        place.repo.commit_tree(&commit)
    };
    let parent = format!("{}^", kept.commit);
    // What cannot be compared is taken for work.
    match (place.repo.commit_tree(&kept.commit), tree(&parent)) {
        (Ok(own), Ok(base)) => own == base,
        _ => false,
    }
}

fn put_back(place: &Place, run: &str) -> Outcome {
    // The work of a run outlives the directory of its bundle.
    let run_id = place.find_run(run).unwrap_or_else(|_| run.to_owned());
    let kept = kept(place)?;
    let of_run = |kept: &&Kept| kept.name.contains(&run_id) && !is_empty(place, kept);
    let found = kept.iter().rfind(of_run);
    let Some(Kept { name, commit }) = found else {
        return Err(
            Failure::new(Code::NotFound, format!("nothing is kept of `{run_id}`"))
                .hint("`provost salvage list` shows what there is"),
        );
    };
    let tail = name.trim_start_matches("refs/provost/").replace('/', "-");
    let branch = format!("provost/salvage-{tail}");
    let kept = place.repo.keep(
        &format!("refs/heads/{branch}"),
        commit,
        &provost_host::git::Expected::Any,
    );
    kept.map_err(|error| Failure::of(Code::GitFailed, &error))?;
    let text = format!(
        "branch {branch} is at {}\nnext: git diff HEAD...{branch}\n",
        commit.short()
    );
    Ok(Answer::data(
        json!({ "branch": branch, "commit": commit, "from": name }),
        text,
    ))
}

pub(super) fn lease(lease: &Lease) -> Outcome {
    let Lease::List = lease;
    let place = Place::find()?;
    if !place.root.join("registry.db").exists() {
        return Ok(Answer::data(json!([]), "nobody holds anything\n"));
    }
    let leases = place.registry()?.registry.leases().map_err(store)?;
    let now = clock::now_millis();
    let live: Vec<_> = leases
        .iter()
        .filter(|lease| lease.is_live(now, &owner::alive))
        .collect();
    let mut text = String::new();
    for lease in &live {
        let paths: Vec<&str> = lease.scope.entries().iter().map(RepoPath::as_str).collect();
        text += &format!(
            "{}  {}  pid {}\n",
            lease.run_id,
            paths.join(" "),
            lease.owner.pid
        );
    }
    if live.is_empty() {
        text += "nobody holds anything\n";
    }
    Ok(Answer::data(json!(live), text))
}
