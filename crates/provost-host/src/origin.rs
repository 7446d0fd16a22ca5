//! Reads the start of a run from git: base, tree and policy.

use std::fs::File;
use std::io::Read as _;

use provost_core::change::Node;
use provost_core::code::Code;
use provost_core::object::{Mode, ObjectFormat, Oid, sha256};
use provost_core::path::{RawPath, RepoPath};
use provost_core::policy::{self, Policy};
use provost_engine::opening::Origin;
use provost_engine::ports::PortError;

use crate::git::{GitError, Repository, TreeRead};

#[derive(Debug, Clone, Copy)]
pub struct GitOrigin<'a>(pub &'a Repository);

impl GitOrigin<'_> {
    /// The policy file of a tree, if there is one.
    pub fn policy_file(&self, tree: &Oid) -> Result<Option<Oid>, PortError> {
        let top = self.0.read_top(tree).map_err(git)?;
        let file = top.files.get(&RawPath::new(policy::FILE));
        Ok(file.map(|file| file.oid.clone()))
    }

    /// The file at `path` of a tree; only the directories on its way are read.
    fn file(self, tree: &Oid, path: &RepoPath) -> Result<Option<Node>, PortError> {
        let wanted = path.as_str().as_bytes();
        let on_the_way = |place: &RawPath| {
            let rest = wanted.strip_prefix(place.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        let (mut batch, mut read) = (self.0.batch().map_err(git)?, TreeRead::default());
        let mut level = vec![(RawPath::new(""), tree.clone())];
        while !level.is_empty() {
            let below = self.0.read_level(&mut batch, &mut read, level);
            level = below.map_err(git)?;
            level.retain(|(place, _)| on_the_way(place));
        }
        Ok(read.files.remove(&RawPath::new(wanted)))
    }

    /// Whether the policy in the checkout, which no run reads, can be parsed.
    fn is_corrected(self) -> bool {
        let path = self
            .0
            .checkout()
            .map(|checkout| checkout.join(policy::FILE));
        let file = path.and_then(|path| File::open(path).ok());
        let mut bytes = Vec::new();
        let most = policy::LARGEST as u64 + 1;
        let read = file.is_some_and(|file| file.take(most).read_to_end(&mut bytes).is_ok());
        read && policy::parse(&bytes).is_ok()
    }
}

impl Origin for GitOrigin<'_> {
    fn format(&self) -> ObjectFormat {
        self.0.format()
    }

    fn resolve(&self, revision: &str) -> Result<Oid, PortError> {
        self.0.resolve(revision).map_err(|error| match error {
            GitError::NoCommit { .. } => PortError::of(Code::NotFound, error),
            error => git(error),
        })
    }

    fn tree(&self, commit: &Oid) -> Result<Oid, PortError> {
        self.0.commit_tree(commit).map_err(git)
    }

    fn policy(&self, tree: &Oid) -> Result<Policy, PortError> {
        let Some(file) = self.policy_file(tree)? else {
            return Ok(Policy::default());
        };
        let bytes = self.0.blob(&file).map_err(git)?;
        policy::parse(&bytes).map_err(|error| {
            let hint = if self.is_corrected() {
                "provost.toml of your checkout has no error, but a run reads the one of its commit: \
                 git add provost.toml && git commit -m 'Correct the policy of Provost'"
            } else {
                "correct provost.toml and commit it: a run reads the one of its commit"
            };
            PortError::of(Code::InputInvalid, error).hint(hint)
        })
    }

    fn largest(&self, tree: &Oid) -> Result<Option<RepoPath>, PortError> {
        let whole = self.0.read_tree(tree).map_err(git)?;
        // Files are in order, so a directory with more than half of them holds the middle one.
        let middle = whole.files.keys().nth(whole.files.len() / 2);
        let Some((top, _)) = middle.and_then(|path| {
            let bytes = path.as_bytes();
            bytes.split_at_checked(bytes.iter().position(|byte| *byte == b'/')? + 1)
        }) else {
            return Ok(None);
        };
        let inside = whole.files.keys();
        let inside = inside
            .filter(|path| path.as_bytes().starts_with(top))
            .count();
        let most = inside * 2 > whole.files.len();
        // A path that a contract cannot name is in no scope.
        let path = RepoPath::try_from(&RawPath::new(&top[..top.len() - 1]));
        Ok(path.ok().filter(|_| most))
    }

    fn digest(&self, tree: &Oid, path: &RepoPath) -> Result<Option<String>, PortError> {
        let bytes = self.read(tree, path, usize::MAX)?;
        Ok(bytes.map(|bytes| sha256(&bytes)))
    }

    fn read(&self, tree: &Oid, path: &RepoPath, most: usize) -> Result<Option<Vec<u8>>, PortError> {
        let file = self.file(tree, path)?;
        let Some(file) = file.filter(|file| matches!(file.mode, Mode::File | Mode::Executable))
        else {
            return Ok(None);
        };
        let mut bytes = self.0.blob(&file.oid).map_err(git)?;
        bytes.truncate(most.saturating_add(1));
        Ok(Some(bytes))
    }

    fn checked_out(&self) -> Result<Option<String>, PortError> {
        self.0.head_branch().map_err(git)
    }

    fn has_branch(&self, branch: &str) -> Result<bool, PortError> {
        match self.0.ref_value(branch) {
            Ok(found) => Ok(found.is_some()),
            Err(GitError::RefRefused { .. }) => Ok(false),
            Err(error) => Err(git(error)),
        }
    }
}

/// A repository with the policy that holds where its commits have none.
#[derive(Debug)]
pub struct OriginWithPolicy<'a> {
    pub git: GitOrigin<'a>,
    pub policy: Option<Policy>,
}

impl Origin for OriginWithPolicy<'_> {
    fn policy(&self, tree: &Oid) -> Result<Policy, PortError> {
        let Some(policy) = &self.policy else {
            return self.git.policy(tree);
        };
        match self.git.policy_file(tree)? {
            None => Ok(policy.clone()),
            Some(_) => self.git.policy(tree),
        }
    }

    fn format(&self) -> ObjectFormat {
        self.git.format()
    }

    fn resolve(&self, revision: &str) -> Result<Oid, PortError> {
        self.git.resolve(revision)
    }

    fn tree(&self, commit: &Oid) -> Result<Oid, PortError> {
        self.git.tree(commit)
    }

    fn largest(&self, tree: &Oid) -> Result<Option<RepoPath>, PortError> {
        self.git.largest(tree)
    }

    fn digest(&self, tree: &Oid, path: &RepoPath) -> Result<Option<String>, PortError> {
        self.git.digest(tree, path)
    }

    fn read(&self, tree: &Oid, path: &RepoPath, most: usize) -> Result<Option<Vec<u8>>, PortError> {
        self.git.read(tree, path, most)
    }

    fn checked_out(&self) -> Result<Option<String>, PortError> {
        self.git.checked_out()
    }

    fn has_branch(&self, branch: &str) -> Result<bool, PortError> {
        self.git.has_branch(branch)
    }
}

fn git(error: GitError) -> PortError {
    PortError::of(Code::GitFailed, error)
}
