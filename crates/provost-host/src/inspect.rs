//! Finds out what an agent did to a checkout that Provost did not make.
//!
//! The agent could write the checkout's git directory, so nothing in it is trusted. Three trees
//! (what is committed, staged and on disk) are compared with the base commit. The files that
//! control git are compared with a snapshot from before. The base's objects are read through a git
//! directory of our own, and their ids are verified.
//!
//! # Invariants
//!
//! - Git runs neither in the checkout nor with its git directory, configuration or index.
//! - Nothing is written to the repository.
//! - What cannot be read counts against the change; it is never ignored.

mod hidden;
mod history;
mod layers;
mod store;

use std::path::Path;

use provost_core::change::{Change, Finding, Ignored};
use provost_core::gate::diff::{Facts, Reason, Rules, Sign, judge};
use provost_core::object::{Kind, Mode, Oid};
use provost_core::path::RawPath;
use provost_core::verdict::Verdict;
use serde_json::json;

use crate::capture::{self, CaptureError, Limits, capture};
use crate::git::{GitError, Repository};
use crate::snapshot::{self, Layout, Refs, Snapshot, SnapshotError};
use layers::Layers;
use store::Store;

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The directory is no checkout.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Git failed in a way that says nothing about the change.
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("cannot make a private directory")]
    Scratch(#[source] std::io::Error),
}

#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The base: a full commit id, or a name among the refs of the snapshot.
    pub base: &'a str,
    pub worktree: &'a Path,
    /// The checkout before the agent started.
    pub before: Option<&'a Snapshot>,
    /// The rules by which the change is judged.
    pub rules: Rules<'a>,
}

#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The verdict of the diff gate, with `base`, `tree` and `ignored` among its details.
    pub verdict: Verdict,
    /// The patch from the base to the files on disk, if these could be captured.
    pub patch: Option<Vec<u8>>,
}

pub fn inspect(request: &Request<'_>) -> Result<Inspection, InspectError> {
    let mut found = Found::default();
    let outcome = match look(request, &mut found) {
        Err(error) if is_about_the_repository(&error) => {
            found.blind(".git/objects", chain(&error));
            Outcome::default()
        }
        other => other?,
    };
    let facts = Facts {
        changes: &found.changes,
        findings: &found.findings,
        signs: &found.signs,
    };
    let mut verdict = judge(&facts, &request.rules);
    if let Some(details) = verdict.details.as_mut() {
        details["base"] = json!(outcome.base);
        details["tree"] = json!(outcome.tree);
        details["ignored"] = json!(outcome.ignored);
        details["compared_with_snapshot"] = json!(request.before.is_some());
    }
    Ok(Inspection {
        verdict,
        patch: outcome.patch,
    })
}

/// Whether an error is about missing or damaged objects, rather than about this machine.
fn is_about_the_repository(error: &InspectError) -> bool {
    match error {
        InspectError::Git(error) | InspectError::Capture(CaptureError::Git(error)) => {
            !matches!(error, GitError::NoProgram | GitError::System { .. })
        }
        InspectError::Capture(CaptureError::Tree(_)) => true,
        InspectError::Snapshot(_) | InspectError::Capture(_) | InspectError::Scratch(_) => false,
    }
}

/// The facts for the gate.
#[derive(Debug, Default)]
struct Found {
    changes: Vec<Change>,
    findings: Vec<Finding>,
    signs: Vec<Sign>,
}

impl Found {
    fn sign(&mut self, path: &RawPath, reason: Reason, problem: impl Into<String>) {
        self.signs.push(Sign {
            path: path.clone(),
            reason,
            problem: problem.into(),
        });
    }

    /// Records something that cannot be judged.
    fn blind(&mut self, what: &str, problem: impl Into<String>) {
        self.sign(&RawPath::new(what), Reason::Unverifiable, problem);
    }
}

#[derive(Debug, Default)]
struct Outcome {
    base: Option<Oid>,
    tree: Option<Oid>,
    ignored: Option<Ignored>,
    patch: Option<Vec<u8>>,
}

fn look(request: &Request<'_>, found: &mut Found) -> Result<Outcome, InspectError> {
    let mut outcome = Outcome::default();
    let Some(layout) = choose_layout(request, found)? else {
        return Ok(outcome);
    };
    let now = match Snapshot::take_at(layout.clone()) {
        Ok(now) => Some(now),
        Err(error) => {
            found.blind(".git", chain(&error));
            None
        }
    };
    if let (Some(before), Some(now)) = (request.before, &now) {
        found.signs.extend(before.compare(now));
    }
    let known = request
        .before
        .or(now.as_ref())
        .map(|snapshot| &snapshot.refs);
    let named = known.and_then(|refs| snapshot::named(request.base, refs));
    let Some(named) = named else {
        let problem = format!("`{}` is not a commit of the earlier snapshot", request.base);
        found.blind("base", problem);
        return Ok(outcome);
    };
    let store = Store::open(&layout, named.format())?;
    let repo = &store.repo;
    let (base, base_tree) = match peel(repo, named) {
        Ok(pair) => pair,
        Err(error) => {
            found.blind("base", chain(&error));
            return Ok(outcome);
        }
    };
    outcome.base = Some(base.clone());
    let captured = capture(
        repo,
        &base_tree,
        &capture::Source::Directory(layout.worktree()),
        &Limits::default(),
        capture::Mode::Record,
    )?;
    outcome.patch = Some(repo.patch(&base_tree, &captured.tree)?);
    outcome.tree = Some(captured.tree.clone());
    outcome.ignored = Some(captured.ignored);
    found.findings.extend(captured.findings);

    let mut layers = Layers::new(repo, &base_tree, captured.changes)?;
    layers.leave_runtime_out(request.before, found);
    if let Some(now) = &now {
        judge_history(&layers, request, now, &base, found)?;
        layers.add_committed(&tips(request.before, &now.refs), found)?;
    }
    layers.add_staged(&layout, found)?;
    layers.leave_sparse_out(request.before);
    hidden::look(&layers, request, &layout, found);
    links(&layers, &request.rules, found)?;
    found.changes = layers.finish();
    Ok(outcome)
}

/// The git directories of the snapshot, because the live `.git` may lead elsewhere.
fn choose_layout(request: &Request<'_>, found: &mut Found) -> Result<Option<Layout>, InspectError> {
    let Some(before) = request.before else {
        return Ok(Some(Layout::find(request.worktree)?));
    };
    let same = request
        .worktree
        .canonicalize()
        .is_ok_and(|worktree| worktree == before.layout.worktree());
    if !same {
        let problem = format!(
            "is not the checkout the snapshot was taken of, `{}`",
            before.layout.worktree().display()
        );
        found.blind(&request.worktree.to_string_lossy(), problem);
        return Ok(None);
    }
    Ok(Some(before.layout.clone()))
}

/// The commits that a merge would take: that of `HEAD`, and that of the branch of the work.
fn tips(before: Option<&Snapshot>, now: &Refs) -> Vec<Oid> {
    let branch = before
        .and_then(|before| before.refs.head_branch())
        .and_then(|branch| now.id(branch));
    let mut tips: Vec<Oid> = now.head_id().into_iter().chain(branch).collect();
    tips.sort();
    tips.dedup();
    tips
}

fn judge_history(
    layers: &Layers<'_>,
    request: &Request<'_>,
    now: &Snapshot,
    base: &Oid,
    found: &mut Found,
) -> Result<(), InspectError> {
    let tips = tips(request.before, &now.refs);
    if tips.is_empty() {
        found.blind("HEAD", format!("names no commit: `{}`", now.refs.head));
    }
    for tip in tips {
        history::judge(layers, &request.rules, base, &tip, found)?;
    }
    Ok(())
}

/// The commit that `oid` leads to, through tags, and its tree.
fn peel(repo: &Repository, oid: Oid) -> Result<(Oid, Oid), GitError> {
    let mut oid = oid;
    for _ in 0..5 {
        match repo.commit_tree(&oid) {
            Err(GitError::WrongKind { .. }) => {
                let bytes = repo.batch()?.one(&oid, Kind::Tag)?;
                oid = history::header(&bytes, b"object ").ok_or(GitError::WrongKind {
                    oid,
                    wanted: Kind::Commit,
                })?;
            }
            Err(error) => return Err(error),
            Ok(tree) => return Ok((oid, tree)),
        }
    }
    Err(GitError::WrongKind {
        oid,
        wanted: Kind::Commit,
    })
}

/// Finds links of the base inside the scope that lead out of the repository. What is written
/// through them is in no tree.
fn links(layers: &Layers<'_>, rules: &Rules<'_>, found: &mut Found) -> Result<(), InspectError> {
    let open = layers.base.iter().filter(|(path, side)| {
        side.mode == Mode::Symlink
            && rules.covers(path)
            && !rules.permit.symlink.covers_raw(path)
            && !layers.on_disk.contains_key(*path)
    });
    for (path, side) in open {
        let target = RawPath::new(layers.repo.blob(&side.oid)?);
        if provost_core::gate::diff::leaves_repository(path, &target) {
            let problem = format!(
                "leads out of the repository, to `{target}`; what was written through it is not \
                 seen"
            );
            found.sign(path, Reason::SymlinkEscape, problem);
        }
    }
    Ok(())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
