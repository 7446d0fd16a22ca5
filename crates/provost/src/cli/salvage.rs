//! `provost salvage` and `provost lease`: work that was kept, and who holds what.

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::path::RepoPath;
use provost_host::{clock, owner};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::place::Place;
use crate::session::store;

#[derive(Subcommand)]
pub(super) enum Salvage {
    /// List work that was kept although it did not land.
    List,
    /// Put kept work on a branch of its own.
    Restore(Restore),
}

#[derive(Args)]
pub(super) struct Restore {
    /// The run whose work it is.
    run: String,
}

#[derive(Subcommand)]
pub(super) enum Lease {
    /// List who holds which paths.
    List,
}

const KEPT: &[&str] = &["refs/provost/salvage/", "refs/provost/runs/"];

pub(super) fn run(salvage: &Salvage) -> Outcome {
    let place = Place::find()?;
    match salvage {
        Salvage::List => list(&place),
        Salvage::Restore(restore) => put_back(&place, &restore.run),
    }
}

fn kept(place: &Place) -> Result<Vec<(String, provost_core::object::Oid)>, Failure> {
    let mut kept = Vec::new();
    for prefix in KEPT {
        let refs = place
            .repo
            .refs(prefix)
            .map_err(|e| Failure::of(Code::GitFailed, &e))?;
        kept.extend(refs);
    }
    Ok(kept)
}

fn list(place: &Place) -> Outcome {
    let kept = kept(place)?;
    let mut text = String::new();
    for (name, oid) in &kept {
        text += &format!("{}  {name}\n", oid.short());
    }
    let row = |(name, oid): &(String, _)| json!({ "ref": name, "commit": oid });
    let rows: Vec<Value> = kept.iter().map(row).collect();
    Ok(Answer::data(
        json!(rows),
        if text.is_empty() {
            "nothing is kept\n".into()
        } else {
            text
        },
    ))
}

fn put_back(place: &Place, run: &str) -> Outcome {
    let kept = kept(place)?;
    let found = kept.iter().rfind(|(name, _)| name.contains(run));
    let Some((name, commit)) = found else {
        return Err(
            Failure::new(Code::NotFound, format!("nothing is kept of `{run}`"))
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
