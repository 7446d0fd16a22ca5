//! Checks the commits between the base and the work.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::gate::diff::{Reason, Rules};
use provost_core::object::{Kind, Oid};
use provost_core::path::RawPath;

use super::layers::Layers;
use super::{Found, InspectError, chain};
use crate::git::{Batch, GitError};

/// The most commits that are read.
const MOST: usize = 10_000;

/// Checks that `tip` descends from `base`, and that no commit in between leaves the scope.
pub(super) fn judge(
    layers: &Layers<'_>,
    rules: &Rules<'_>,
    base: &Oid,
    tip: &Oid,
    found: &mut Found,
) -> Result<(), InspectError> {
    if tip == base {
        return Ok(());
    }
    let name = RawPath::new("HEAD");
    let commits = match between(layers, base, tip) {
        Ok(Some(commits)) => commits,
        Ok(None) => {
            let problem = format!(
                "{} does not descend from the base {}",
                tip.short(),
                base.short()
            );
            found.sign(&name, Reason::HistoryRewritten, problem);
            return Ok(());
        }
        Err(error) => {
            found.sign(&name, Reason::Unverifiable, chain(&error));
            return Ok(());
        }
    };
    // What the last commit still has is reported as a change; this is about reverted changes.
    let mut carried = BTreeSet::new();
    if let Some(last) = commits.get(tip) {
        carried.extend(layers.repo.names(&layers.base_tree, &last.tree)?);
    }
    for (oid, commit) in &commits {
        let before = match commit.parents.first() {
            Some(parent) => commits
                .get(parent)
                .map_or_else(|| layers.repo.commit_tree(parent), |it| Ok(it.tree.clone()))?,
            None => layers.base_tree.clone(),
        };
        for path in layers.repo.names(&before, &commit.tree)? {
            if !rules.covers(&path) && !carried.contains(&path) {
                let problem = format!("was changed by commit {} and put back later", oid.short());
                found.sign(&path, Reason::HistoryOutOfScope, problem);
            }
        }
    }
    Ok(())
}

struct Commit {
    tree: Oid,
    parents: Vec<Oid>,
}

/// The commits that lead to `tip` and not to `base`; `None` if `tip` does not descend from it.
fn between(
    layers: &Layers<'_>,
    base: &Oid,
    tip: &Oid,
) -> Result<Option<BTreeMap<Oid, Commit>>, GitError> {
    let mut batch = layers.repo.batch()?;
    let (mut commits, met) = walk(&mut batch, tip, Some(base))?;
    if !met {
        return Ok(None);
    }
    // A path around the base leads to commits that are older than it.
    if commits.values().any(|commit| commit.parents.is_empty()) {
        let (older, _) = walk(&mut batch, base, None)?;
        commits.retain(|oid, _| !older.contains_key(oid));
    }
    Ok(Some(commits))
}

/// The commits that lead to `tip`, up to `stop`, and whether `stop` was reached.
fn walk(
    batch: &mut Batch,
    tip: &Oid,
    stop: Option<&Oid>,
) -> Result<(BTreeMap<Oid, Commit>, bool), GitError> {
    let mut commits = BTreeMap::new();
    let mut met = false;
    let mut open = vec![tip.clone()];
    while let Some(oid) = open.pop() {
        if Some(&oid) == stop {
            met = true;
            continue;
        }
        if commits.contains_key(&oid) {
            continue;
        }
        if commits.len() >= MOST {
            return Err(GitError::TooMuch {
                command: "rev-list".to_owned(),
                most: MOST as u64,
            });
        }
        let bytes = batch.one(&oid, Kind::Commit)?;
        let wrong = || GitError::WrongKind {
            oid: oid.clone(),
            wanted: Kind::Commit,
        };
        let tree = header(&bytes, b"tree ").ok_or_else(wrong)?;
        let parents = parents(&bytes);
        open.extend(parents.iter().cloned());
        commits.insert(oid, Commit { tree, parents });
    }
    Ok((commits, met))
}

/// The object named by the first header line that starts with `beginning`.
pub(super) fn header(bytes: &[u8], beginning: &[u8]) -> Option<Oid> {
    headers(bytes).find_map(|line| id(line.strip_prefix(beginning)?))
}

fn parents(bytes: &[u8]) -> Vec<Oid> {
    headers(bytes)
        .filter_map(|line| id(line.strip_prefix(b"parent ")?))
        .collect()
}

fn headers(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.is_empty())
}

fn id(text: &[u8]) -> Option<Oid> {
    Oid::try_from(std::str::from_utf8(text).ok()?).ok()
}
