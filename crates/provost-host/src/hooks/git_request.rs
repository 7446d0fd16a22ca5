//! A request of git that one of our hooks answers: what has to be judged before something is
//! committed, pushed, or put on a branch.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use provost_engine::binding::{
    Binding, Bindings, Bound, Concern, Decision, Descent, HookStop, Moved, Pushed, Target, Tie,
    Unbound, moved, pushed,
};
use provost_engine::ports::PortError;
use provost_engine::query::short_branch;

use super::git_operation::GitOperation;
use super::{GitHook, bindings, broken, git};
use crate::git::{GitError, Repository};

/// Makes the cache directory of the repository, if it is missing.
pub type PrepareCache<'a> = &'a dyn Fn() -> Result<PathBuf, PortError>;

/// The request of git, and what has to be judged.
pub struct GitRequest<'a> {
    repo: &'a Repository,
    prepare_cache: PrepareCache<'a>,
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
    pub trees: BTreeMap<(Oid, usize), String>,
    pub on: GitOperation,
    /// What was not judged.
    pub notes: Vec<String>,
    /// The arguments of the git command that called the hook, if they can be read.
    pub command: Vec<String>,
}

impl<'a> GitRequest<'a> {
    pub fn new(
        repo: &'a Repository,
        prepare_cache: PrepareCache<'a>,
        all: &'a Bindings,
        unbound: Unbound,
        on: GitOperation,
    ) -> Result<Self, HookStop> {
        let branches = |binding: &Binding| match &binding.to {
            Bound::Branch(name) => Ok(vec![name.clone()]),
            Bound::Checkout(_) => {
                let git_dir = binding.git_dir.as_deref().unwrap_or_default();
                repo.branches_at(Path::new(git_dir))
            }
        };
        let held: Result<_, GitError> = all.bindings.iter().map(branches).collect();
        let commit = |binding: &Binding| match &binding.git_dir {
            Some(git_dir) => repo.detached_at(Path::new(git_dir)),
            None => Ok(None),
        };
        let detached: Result<_, GitError> = all.bindings.iter().map(commit).collect();
        Ok(Self {
            repo,
            prepare_cache,
            all,
            unbound,
            here: bindings::here(repo),
            branch: repo.head_branch().map_err(git)?,
            held: held.map_err(git)?,
            detached: detached.map_err(git)?,
            trees: BTreeMap::new(),
            on,
            notes: Vec::new(),
            command: Vec::new(),
        })
    }

    /// Finds what has to be judged; `input` is what git wrote to the hook.
    pub fn ask(&mut self, input: &str) -> Result<(), HookStop> {
        let unreadable = |problem: String| PortError::new(Code::HookBroken, problem);
        match self.on.hook {
            GitHook::PreCommit | GitHook::PreMergeCommit | GitHook::PreApplypatch => self.commit(),
            GitHook::PrePush => {
                for one in pushed(input).map_err(unreadable)? {
                    self.push(&one)?;
                }
                Ok(())
            }
            GitHook::ReferenceTransaction => {
                let list = moved(input).map_err(unreadable)?;
                for one in &list {
                    self.moved(one)?;
                    self.head_moved(one, &list)?;
                }
                Ok(())
            }
        }
    }

    /// A commit that is about to be made in this checkout.
    fn commit(&mut self) -> Result<(), HookStop> {
        let branch = self.branch.as_deref();
        let list = match self.all.decide(Some(&self.here), branch, self.unbound) {
            Decision::Judge(list) => list,
            Decision::Pass => return Ok(()),
            Decision::Refuse => return Err(is_unbound(branch.unwrap_or("this checkout"))),
        };
        // A plain commit continues HEAD, so it strays if HEAD does; a merge may lead back.
        let repo = self.repo;
        let head = repo.resolve("HEAD").ok().filter(|_| self.on.is_plain());
        for binding in &list {
            if let Some(head) = &head
                && !repo.follows(head, &binding.base).map_err(git)?
            {
                let verdict = strayed(branch.unwrap_or("HEAD"), head, &binding.base);
                return Err(HookStop::Refused(self.on.strayed(verdict, binding)));
            }
        }
        let tree = self.staged()?;
        for (at, binding) in self.all.bindings.iter().enumerate() {
            if list.contains(&binding) {
                self.trees.insert((tree.clone(), at), String::new());
            }
        }
        Ok(())
    }

    /// The tree that is about to be committed.
    fn staged(&self) -> Result<Oid, PortError> {
        let index = match std::env::var_os("GIT_INDEX_FILE") {
            // Git gives it relative to the directory where hooks run.
            Some(named) => std::env::current_dir()
                .map_err(|error| PortError::of(Code::HostFailed, error))?
                .join(named),
            None => self.repo.git_dir().join("index"),
        };
        // A copy, because git holds the lock of the index while a hook runs.
        let copy = (self.prepare_cache)()?.join(format!("hook-{}.index", std::process::id()));
        fs::copy(&index, &copy).map_err(|error| broken(error, &index))?;
        let tree = self.repo.staged_tree(&copy);
        let _ = fs::remove_file(&copy);
        tree.map_err(git)
    }

    /// One ref of a push.
    fn push(&mut self, one: &Pushed) -> Result<(), HookStop> {
        // A deletion on the remote removes nothing here.
        let Some(object) = &one.commit else {
            return Ok(());
        };
        let commit = match self.repo.resolve(object.as_str()) {
            Ok(commit) => commit,
            Err(GitError::NoCommit { .. }) if self.all.bindings.is_empty() => {
                return self.unconcerned(&one.local, object);
            }
            Err(GitError::NoCommit { .. }) => {
                let reason = format!("`{}` is no commit, so nothing can be measured", one.local);
                return Err(HookStop::Refused(Verdict::deny(Code::DiffRefused, reason)));
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
    fn moved(&mut self, one: &Moved) -> Result<(), HookStop> {
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
                    short_branch(&one.name),
                    short_branch(other)
                );
                return Err(HookStop::Refused(Verdict::deny(Code::DiffRefused, reason)));
            }
        };
        // Packing refs does not move them.
        if self.repo.ref_value(&one.name).map_err(git)?.as_ref() == Some(commit) {
            return Ok(());
        }
        self.on.changed_files |=
            self.branch.as_ref() == Some(&one.name) && self.is_reset(commit)?;
        for (at, tie) in &bindings {
            self.weigh(*at, *tie, &one.name, commit)?;
        }
        let here = self.repo.branches_at(Path::new(&self.here));
        let is_work = bindings.is_empty()
            && self.unbound == Unbound::Refused
            && here.map_err(git)?.contains(&one.name)
            && self.repo.is_new(commit).map_err(git)?;
        if is_work {
            return Err(is_unbound(&one.name));
        }
        Ok(())
    }

    /// The `HEAD` of a bound checkout that is about to be at a commit which no ref holds yet: work
    /// that is made on no branch. What a ref holds was made elsewhere, and is only looked at.
    fn head_moved(&mut self, one: &Moved, list: &[Moved]) -> Result<(), HookStop> {
        let common = self.repo.common_dir();
        let git_dir = match one.name.strip_suffix("/HEAD") {
            None if one.name == "HEAD" => self.repo.git_dir().to_owned(),
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
            if self.repo.is_new(commit).map_err(git)? {
                self.on.changed_files |= self.is_reset(commit)?;
                self.weigh(at, Tie::Named, "HEAD", commit)?;
            }
        }
        Ok(())
    }

    /// A branch that is about to be removed. Git renames a branch onto another by removing first
    /// the branch, then the other, and asks about nothing else; refusing the second step does not
    /// restore the first.
    fn gone(&self, one: &Moved) -> Result<(), HookStop> {
        let from = one.from.as_ref();
        let packed = from.is_some_and(|from| self.is_packed(&one.name, from));
        for (binding, held) in self.all.bindings.iter().zip(&self.held) {
            let refuse = |reason: String| {
                let verdict = Verdict::deny(Code::DiffRefused, reason);
                Err(HookStop::Refused(self.on.removed(verdict, binding)))
            };
            let (name, goes) = (
                short_branch(&one.name),
                binding.to == Bound::Branch(one.name.clone()),
            );
            if goes && !packed {
                return refuse(format!(
                    "`{name}` is bound to a contract, so it is neither removed nor renamed, and no \
                     branch is renamed onto it: git asks no hook about what takes its place"
                ));
            }
            for other in held.iter().filter(|other| **other != one.name) {
                let is_it = |word: &String| word == other || word == short_branch(other);
                let named = from.is_some()
                    && matches!(binding.to, Bound::Branch(_))
                    && self.command.iter().any(is_it);
                let absent = !packed && self.repo.ref_value(other).map_err(git)?.is_none();
                if named || absent {
                    return refuse(format!(
                        "`{name}` may be renamed to `{}`, which is bound to a contract: git asks no \
                         hook about what takes its place",
                        short_branch(other)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether the branch `name` is packed at `commit`, so that git only removes its loose copy.
    fn is_packed(&self, name: &str, commit: &Oid) -> bool {
        let packed = fs::read(self.repo.common_dir().join("packed-refs"));
        let wanted = format!("{} {name}", commit.as_str());
        let mut lines = packed
            .as_deref()
            .unwrap_or_default()
            .split(|byte| *byte == b'\n');
        lines.any(|line| line == wanted.as_bytes())
    }

    /// Whether this checkout goes to `commit` by a reset or by a checkout, which change files
    /// before the branch moves, and not by a commit that is being made.
    fn is_reset(&self, commit: &Oid) -> Result<bool, HookStop> {
        let repo = self.repo;
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
    fn tie(&self, at: usize, one: &Pushed, commit: &Oid) -> Result<Tie, HookStop> {
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
        let repo = self.repo;
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
    fn weigh(&mut self, at: usize, tie: Tie, name: &str, commit: &Oid) -> Result<bool, HookStop> {
        let Some(binding) = self.all.bindings.get(at) else {
            return Ok(false);
        };
        let repo = self.repo;
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
                let what = format!("`{}` at {}", short_branch(name), commit.short());
                self.trees.insert((tree, at), what);
                Ok(true)
            }
            Concern::Covered => Ok(true),
            Concern::Strayed => {
                let verdict = strayed(name, commit, &binding.base);
                Err(HookStop::Refused(self.on.strayed(verdict, binding)))
            }
            Concern::None => Ok(false),
        }
    }

    /// A push that concerns no binding.
    fn unconcerned(&mut self, local: &str, object: &Oid) -> Result<(), HookStop> {
        if self.unbound == Unbound::Refused {
            return Err(is_unbound(local));
        }
        if !self.all.bindings.is_empty() {
            self.notes.push(format!(
                "`{}` at {} belongs to no bound contract: not judged",
                short_branch(local),
                object.short()
            ));
        }
        Ok(())
    }
}

fn is_unbound(what: &str) -> HookStop {
    let what = short_branch(what);
    let reason = format!("`{what}` is bound to no contract, and everything has to be");
    HookStop::Refused(Verdict::deny(Code::HookUnbound, reason))
}

fn strayed(local: &str, commit: &Oid, base: &Oid) -> Verdict {
    let reason = format!(
        "`{}` at {} does not descend from {}, the base of its contract",
        short_branch(local),
        commit.short(),
        base.short()
    );
    Verdict::deny(Code::DiffRefused, reason)
}
