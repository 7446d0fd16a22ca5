//! Answers the hooks of git: may it commit, push, or move a branch?

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json;
use provost_engine::binding::Unbound;
use provost_host::hooks::git_operation::{self, GitOperation};
use provost_host::hooks::git_request::GitRequest;
use provost_host::hooks::trees::{self, BoundTree};
use provost_host::hooks::{GitHook, bindings};

use super::{Run, Stop, broken, usable};
use crate::answer::Failure;
use crate::places::Places;

/// Judges what git is about to do, and returns notes on what was not judged.
pub(super) fn answer(run: &Run) -> Result<Vec<String>, Stop> {
    let place = place()?;
    let unbound = if run.require {
        Unbound::Refused
    } else {
        Unbound::Passes
    };
    let hook = run.hook.into();
    let all = bindings::read_found(&place.repo, &place.root)?;
    let on = GitOperation::of(hook, place.repo.git_dir());
    let prepare = || prepared(&place).map_err(Failure::into_port_error);
    let mut request = GitRequest::new(&place.repo, &prepare, &all, unbound, on)?;
    request.command = run
        .process
        .map(git_operation::command_line)
        .unwrap_or_default();
    let input = match hook {
        GitHook::PreCommit | GitHook::PreMergeCommit | GitHook::PreApplypatch => String::new(),
        GitHook::PrePush | GitHook::ReferenceTransaction => stdin_text()?,
    };
    request.ask(&input)?;
    let (trees, notes, on) = (request.trees, request.notes, request.on);
    let mut bound: Vec<BoundTree<'_>> = Vec::new();
    for ((tree, at), what) in trees {
        let binding = all.bindings.get(at);
        let binding = binding.ok_or_else(|| Failure::new(Code::Bug, "a binding is gone"))?;
        bound.push(BoundTree {
            held: usable(&place, binding)?,
            tree,
            binding,
            what,
        });
    }
    if !bound.is_empty() {
        let cache = prepared(&place)?;
        trees::judge(place.repo, &cache, bound, &on)?;
    }
    Ok(notes)
}

/// Makes what the hooks need in the runtime root and the cache; returns the cache.
fn prepared(place: &Places) -> Result<PathBuf, Failure> {
    place.prepare()?;
    Ok(place.cache()?.to_owned())
}

/// The places of the repository that git asks about, which may differ from the one around this
/// directory.
fn place() -> Result<Places, Failure> {
    let Some(named) = std::env::var_os("GIT_DIR") else {
        return Places::find();
    };
    let here = std::env::current_dir().map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let path = here.join(named);
    let git_dir = path.canonicalize().map_err(|error| broken(&error, &path))?;
    if let Ok(place) = Places::of(&here)
        && place.repo.git_dir() == git_dir
    {
        return Ok(place);
    }
    // A linked worktree is identified by the file that names its checkout.
    let link = fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
    let place = match Path::new(link.trim_end()).parent() {
        Some(checkout) if !link.is_empty() => Places::of(&git_dir.join(checkout))?,
        _ => Places::of(&git_dir)?,
    };
    if place.repo.git_dir() == git_dir {
        return Ok(place);
    }
    let reason = format!("cannot find the checkout of `{}`", git_dir.display());
    Err(Failure::new(Code::HookBroken, reason))
}

/// The text on stdin, with which git describes what it is about to do.
fn stdin_text() -> Result<String, Failure> {
    let mut text = String::new();
    let limit = json::LARGEST as u64;
    io::stdin()
        .lock()
        .take(limit + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::of(Code::HookBroken, &error))?;
    if text.len() as u64 > limit {
        let reason = "git asks about more refs than are read";
        return Err(Failure::new(Code::HookBroken, reason));
    }
    Ok(text)
}
