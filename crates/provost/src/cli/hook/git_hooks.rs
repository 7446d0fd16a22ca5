//! Answers the hooks of git: judges what is about to be committed, pushed, or put on a branch.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use provost_core::code::Code;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use provost_engine::binding::{
    Binding, Bindings, Bound, Concern, Decision, Descent, Moved, Pushed, Target, Tie, Unbound,
    moved, pushed,
};
use provost_host::git::GitError;

use super::bindings::{self, read_found};
use super::trees::{self, Judged};
use super::{Run, Stop, Which, broken, git_operation, short, usable};
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
    let all = read_found(&place)?;
    let on = git_operation::On::of(run.hook, place.repo.git_dir());
    let mut asked = Asked::new(&place, &all, unbound, on)?;
    asked.command = run
        .process
        .map(git_operation::command_line)
        .unwrap_or_default();
    match run.hook {
        Which::PreCommit | Which::PreMergeCommit | Which::PreApplypatch => asked.commit()?,
        Which::PrePush => {
            for one in pushed(&stdin_text()?).map_err(unreadable)? {
                asked.push(&one)?;
            }
        }
        Which::ReferenceTransaction => {
            let list = moved(&stdin_text()?).map_err(unreadable)?;
            for one in &list {
                asked.moved(one)?;
                asked.head_moved(one, &list)?;
            }
        }
    }
    let (trees, notes, on) = (asked.trees, asked.notes, asked.on);
    let mut judged: Vec<Judged<'_>> = Vec::new();
    for ((tree, at), what) in trees {
        let binding = all.bindings.get(at);
        let binding = binding.ok_or_else(|| Failure::new(Code::Bug, "a binding is gone"))?;
        judged.push(Judged {
            held: usable(&place, binding)?,
            tree,
            binding,
            what,
        });
    }
    trees::judge(place, judged, &on)?;
    Ok(notes)
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

/// The request of git, and what has to be judged.
struct Asked<'a> {
    place: &'a Places,
    all: &'a Bindings,
    unbound: Unbound,
    /// The git directory of this checkout.
    here: String,
    /// The branch of this checkout.
    branch: Option<String>,
    /// The branches that each binding holds.
    held: Vec<Vec<String>>,
    /// The commit of each bound checkout that is on no branch.
    detached: Vec<Option<Oid>>,
    /// Trees, each with the number of its binding, and what git would do.
    trees: BTreeMap<(Oid, usize), String>,
    on: git_operation::On,
    notes: Vec<String>,
    /// The arguments of the git command that called the hook, if they can be read.
    command: Vec<String>,
}

impl<'a> Asked<'a> {
    fn new(
        place: &'a Places,
        all: &'a Bindings,
        unbound: Unbound,
        on: git_operation::On,
    ) -> Result<Self, Stop> {
        let branches = |binding: &Binding| match &binding.to {
            Bound::Branch(name) => Ok(vec![name.clone()]),
            Bound::Checkout(_) => {
                let git_dir = binding.git_dir.as_deref().unwrap_or_default();
                place.repo.branches_at(Path::new(git_dir))
            }
        };
        let held: Result<_, GitError> = all.bindings.iter().map(branches).collect();
        let commit = |binding: &Binding| match &binding.git_dir {
            Some(git_dir) => place.repo.detached_at(Path::new(git_dir)),
            None => Ok(None),
        };
        let detached: Result<_, GitError> = all.bindings.iter().map(commit).collect();
        Ok(Self {
            place,
            all,
            unbound,
            here: bindings::here(place),
            branch: place.repo.head_branch().map_err(git)?,
            held: held.map_err(git)?,
            detached: detached.map_err(git)?,
            trees: BTreeMap::new(),
            on,
            notes: Vec::new(),
            command: Vec::new(),
        })
    }

    /// A commit that is about to be made in this checkout.
    fn commit(&mut self) -> Result<(), Stop> {
        let branch = self.branch.as_deref();
        let list = match self.all.decide(Some(&self.here), branch, self.unbound) {
            Decision::Judge(list) => list,
            Decision::Pass => return Ok(()),
            Decision::Refuse => return Err(is_unbound(branch.unwrap_or("this checkout"))),
        };
        // A plain commit continues HEAD, so it strays if HEAD does; a merge may lead back.
        let repo = &self.place.repo;
        let head = repo.resolve("HEAD").ok().filter(|_| self.on.is_plain());
        for binding in &list {
            if let Some(head) = &head
                && !repo.follows(head, &binding.base).map_err(git)?
            {
                let verdict = strayed(branch.unwrap_or("HEAD"), head, &binding.base);
                return Err(Stop::Refused(self.on.strayed(verdict, binding)));
            }
        }
        let tree = staged(self.place)?;
        for (at, binding) in self.all.bindings.iter().enumerate() {
            if list.contains(&binding) {
                self.trees.insert((tree.clone(), at), String::new());
            }
        }
        Ok(())
    }

    /// One ref of a push.
    fn push(&mut self, one: &Pushed) -> Result<(), Stop> {
        // A deletion on the remote removes nothing here.
        let Some(object) = &one.commit else {
            return Ok(());
        };
        let commit = match self.place.repo.resolve(object.as_str()) {
            Ok(commit) => commit,
            Err(GitError::NoCommit { .. }) if self.all.bindings.is_empty() => {
                return self.unconcerned(&one.local, object);
            }
            Err(GitError::NoCommit { .. }) => {
                let reason = format!("`{}` is no commit, so nothing can be measured", one.local);
                return Err(Stop::Refused(Verdict::deny(Code::DiffRefused, reason)));
            }
            Err(error) => return Err(git(error).into()),
        };
        let mut concerned = false;
        for at in 0..self.all.bindings.len() {
            let tie = self.tie(at, one, &commit)?;
            concerned |= self.weigh(at, tie, &one.local, &commit)?;
        }
        if concerned {
            return Ok(());
        }
        self.unconcerned(&one.local, &commit)
    }

    /// One ref that is about to move in this repository.
    fn moved(&mut self, one: &Moved) -> Result<(), Stop> {
        if !one.name.starts_with("refs/heads/") {
            return Ok(());
        }
        if one.to == Target::Gone {
            return self.gone(one);
        }
        let bindings: Vec<(usize, Tie)> = (0..self.all.bindings.len())
            .filter_map(|at| Some((at, self.held_by(at, &one.name)?)))
            .collect();
        let commit = match &one.to {
            Target::Gone => return Ok(()),
            Target::Object(object) => object,
            Target::Alias(_) if bindings.is_empty() => return Ok(()),
            Target::Alias(other) => {
                let reason = format!(
                    "`{}` is bound to a contract, and would move with `{}` where no hook looks",
                    short(&one.name),
                    short(other)
                );
                return Err(Stop::Refused(Verdict::deny(Code::DiffRefused, reason)));
            }
        };
        // Packing refs does not move them.
        if self.place.repo.ref_value(&one.name).map_err(git)?.as_ref() == Some(commit) {
            return Ok(());
        }
        self.on.changed_files |=
            self.branch.as_ref() == Some(&one.name) && self.is_reset(commit)?;
        for (at, tie) in &bindings {
            self.weigh(*at, *tie, &one.name, commit)?;
        }
        let here = self.place.repo.branches_at(Path::new(&self.here));
        let is_work = bindings.is_empty()
            && self.unbound == Unbound::Refused
            && here.map_err(git)?.contains(&one.name)
            && self.place.repo.is_new(commit).map_err(git)?;
        if is_work {
            return Err(is_unbound(&one.name));
        }
        Ok(())
    }

    /// The `HEAD` of a bound checkout that is about to be at a commit which no ref holds yet: work
    /// that is made on no branch. What a ref holds was made elsewhere, and is only looked at.
    fn head_moved(&mut self, one: &Moved, list: &[Moved]) -> Result<(), Stop> {
        let common = self.place.repo.common_dir();
        let git_dir = match one.name.strip_suffix("/HEAD") {
            None if one.name == "HEAD" => self.place.repo.git_dir().to_owned(),
            Some("main-worktree") => common.to_owned(),
            Some(linked) if linked.starts_with("worktrees/") => common.join(linked),
            _ => return Ok(()),
        };
        let git_dir = git_dir.display().to_string();
        let Target::Object(commit) = &one.to else {
            return Ok(());
        };
        for (at, binding) in self.all.bindings.iter().enumerate() {
            let held = self.held.get(at).map(Vec::as_slice).unwrap_or_default();
            let is_detached = self.detached.get(at).is_some_and(Option::is_some);
            // The commits of a rebase lead to the branch, which is judged at the end.
            let is_rebase = is_detached && !held.is_empty();
            let with_branch = |other: &Moved| other.to == one.to && held.contains(&other.name);
            if !binding.is_of(Some(&git_dir)) || is_rebase || list.iter().any(with_branch) {
                continue;
            }
            if self.place.repo.is_new(commit).map_err(git)? {
                self.on.changed_files |= self.is_reset(commit)?;
                self.weigh(at, Tie::Named, "HEAD", commit)?;
            }
        }
        Ok(())
    }

    /// A branch that is about to be removed. Git renames a branch onto another by removing first
    /// the branch, then the other, and asks about nothing else; refusing the second step does not
    /// restore the first.
    fn gone(&self, one: &Moved) -> Result<(), Stop> {
        let from = one.from.as_ref();
        let packed = from.is_some_and(|from| self.is_packed(&one.name, from));
        for (binding, held) in self.all.bindings.iter().zip(&self.held) {
            let refuse = |reason: String| {
                let verdict = Verdict::deny(Code::DiffRefused, reason);
                Err(Stop::Refused(self.on.removed(verdict, binding)))
            };
            let (name, goes) = (
                short(&one.name),
                binding.to == Bound::Branch(one.name.clone()),
            );
            if goes && !packed {
                return refuse(format!(
                    "`{name}` is bound to a contract, so it is neither removed nor renamed, and no \
                     branch is renamed onto it: git asks no hook about what takes its place"
                ));
            }
            for other in held.iter().filter(|other| **other != one.name) {
                let is_it = |word: &String| word == other || word == short(other);
                let named = from.is_some()
                    && matches!(binding.to, Bound::Branch(_))
                    && self.command.iter().any(is_it);
                let absent = !packed && self.place.repo.ref_value(other).map_err(git)?.is_none();
                if named || absent {
                    return refuse(format!(
                        "`{name}` may be renamed to `{}`, which is bound to a contract: git asks no \
                         hook about what takes its place",
                        short(other)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether the branch `name` is packed at `commit`, so that git only removes its loose copy.
    fn is_packed(&self, name: &str, commit: &Oid) -> bool {
        let packed = fs::read(self.place.repo.common_dir().join("packed-refs"));
        let wanted = format!("{} {name}", commit.as_str());
        let mut lines = packed
            .as_deref()
            .unwrap_or_default()
            .split(|byte| *byte == b'\n');
        lines.any(|line| line == wanted.as_bytes())
    }

    /// Whether this checkout goes to `commit` by a reset or by a checkout, which change files
    /// before the branch moves, and not by a commit that is being made.
    fn is_reset(&self, commit: &Oid) -> Result<bool, Stop> {
        let repo = &self.place.repo;
        let left = fs::read_to_string(repo.git_dir().join("ORIG_HEAD")).unwrap_or_default();
        let head = repo.resolve("HEAD").ok();
        let is_left = head.is_some_and(|head| left.trim_end() == head.as_str());
        Ok(is_left || !repo.is_new(commit).map_err(git)?)
    }

    /// How a move of the branch `name` concerns a binding, if at all.
    fn held_by(&self, at: usize, name: &str) -> Option<Tie> {
        if self.held.get(at)?.iter().any(|held| held == name) {
            return Some(Tie::Named);
        }
        // On no branch, as during a rebase; only git knows to which branch it returns.
        (self.branch.is_none() && self.is_here(at)).then_some(Tie::Leaves)
    }

    /// Whether a binding holds this checkout.
    fn is_here(&self, at: usize) -> bool {
        let binding = self.all.bindings.get(at);
        binding.is_some_and(|binding| binding.is_of(Some(&self.here)))
    }

    /// How the push `one` of `commit` concerns a binding; the bound branch is matched by its name
    /// on either side.
    fn tie(&self, at: usize, one: &Pushed, commit: &Oid) -> Result<Tie, Stop> {
        let local = &one.local;
        let head = self.detached.get(at).and_then(Option::as_ref);
        let mut names = self.held.get(at).cloned().unwrap_or_default();
        if head.is_some() {
            // On no branch, the checkout still answers for the one that it was bound on.
            let bound_on = self.all.bindings.get(at);
            names.extend(bound_on.and_then(|binding| binding.on_branch.clone()));
        }
        if names
            .iter()
            .any(|name| name == local || *name == one.remote)
        {
            return Ok(Tie::Named);
        }
        let repo = &self.place.repo;
        let Some(binding) = self.all.bindings.get(at) else {
            return Ok(Tie::Elsewhere);
        };
        if self.is_here(at) {
            let is_head = || repo.resolve("HEAD").is_ok_and(|head| head == *commit);
            let from_here = !local.starts_with("refs/") || is_head();
            return Ok(if from_here { Tie::Named } else { Tie::Leaves });
        }
        let elsewhere = repo.is_elsewhere(commit, &binding.base, &names, head);
        Ok(if elsewhere.map_err(git)? {
            Tie::Elsewhere
        } else {
            Tie::Leaves
        })
    }

    /// Adds what a binding has to judge; false if the update does not concern it.
    fn weigh(&mut self, at: usize, tie: Tie, name: &str, commit: &Oid) -> Result<bool, Stop> {
        let Some(binding) = self.all.bindings.get(at) else {
            return Ok(false);
        };
        let repo = &self.place.repo;
        let descent = if repo.follows(commit, &binding.base).map_err(git)? {
            Descent::Holds
        } else if repo.follows(&binding.base, commit).map_err(git)? {
            Descent::Older
        } else {
            Descent::Apart
        };
        match Concern::of(tie, descent) {
            Concern::Judge => {
                let tree = repo.commit_tree(commit).map_err(git)?;
                let what = format!("`{}` at {}", short(name), commit.short());
                self.trees.insert((tree, at), what);
                Ok(true)
            }
            Concern::Covered => Ok(true),
            Concern::Strayed => {
                let verdict = strayed(name, commit, &binding.base);
                Err(Stop::Refused(self.on.strayed(verdict, binding)))
            }
            Concern::None => Ok(false),
        }
    }

    /// A push that concerns no binding.
    fn unconcerned(&mut self, local: &str, object: &Oid) -> Result<(), Stop> {
        if self.unbound == Unbound::Refused {
            return Err(is_unbound(local));
        }
        if !self.all.bindings.is_empty() {
            self.notes.push(format!(
                "`{}` at {} belongs to no bound contract: not judged",
                short(local),
                object.short()
            ));
        }
        Ok(())
    }
}

fn git(error: GitError) -> Failure {
    error.into()
}

fn unreadable(problem: String) -> Failure {
    Failure::new(Code::HookBroken, problem)
}

fn is_unbound(what: &str) -> Stop {
    let what = short(what);
    let reason = format!("`{what}` is bound to no contract, and everything has to be");
    Stop::Refused(Verdict::deny(Code::HookUnbound, reason))
}

fn strayed(local: &str, commit: &Oid, base: &Oid) -> Verdict {
    let reason = format!(
        "`{}` at {} does not descend from {}, the base of its contract",
        short(local),
        commit.short(),
        base.short()
    );
    Verdict::deny(Code::DiffRefused, reason)
}

/// The tree that is about to be committed.
fn staged(place: &Places) -> Result<Oid, Failure> {
    let index = match std::env::var_os("GIT_INDEX_FILE") {
        // Git gives it relative to the directory where hooks run.
        Some(named) => std::env::current_dir()
            .map_err(|error| Failure::of(Code::HostFailed, &error))?
            .join(named),
        None => place.repo.git_dir().join("index"),
    };
    place.prepare()?;
    // A copy, because git holds the lock of the index while a hook runs.
    let copy = place
        .cache()?
        .join(format!("hook-{}.index", std::process::id()));
    fs::copy(&index, &copy).map_err(|error| broken(&error, &index))?;
    let tree = place.repo.staged_tree(&copy);
    let _ = fs::remove_file(&copy);
    tree.map_err(git)
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
