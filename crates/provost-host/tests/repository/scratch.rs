//! A temporary repository for tests.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use provost_core::change::FindingKind;
use provost_core::object::Oid;
use provost_host::capture::{Captured, Limits, Mode, capture};
use provost_host::git::Repository;
use provost_host::workspace::{self, PrivateGit, Workspace};
pub(crate) use provost_testkit::git;
use tempfile::TempDir;

/// A directory with a repository in `repo` and room for workspaces in `cache`.
pub(crate) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Self { directory };
        std::fs::create_dir(scratch.root()).unwrap();
        std::fs::create_dir(scratch.cache()).unwrap();
        let mut arguments = vec!["init", "-q", "-b", "main"];
        arguments.extend(options);
        scratch.git(&arguments);
        scratch
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("repo")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    pub(crate) fn outer(&self) -> &Path {
        self.directory.path()
    }

    /// Runs ordinary git in the repository.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        git(&self.root(), arguments)
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        put(&self.root(), path, bytes);
    }

    pub(crate) fn commit(&self) -> Oid {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"]).try_into().unwrap()
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::discover_with(&self.root(), self.outer()).unwrap()
    }

    /// A workspace of `HEAD` whose private git directory uses the repository's objects in place.
    pub(crate) fn workspace(&self, name: &str) -> (Repository, Oid, Workspace) {
        let repo = self.open();
        let commit = repo.resolve("HEAD").unwrap();
        let tree = repo.commit_tree(&commit).unwrap();
        let private = PrivateGit {
            commit,
            objects: repo.objects().to_owned(),
        };
        let directory = self.cache().join(name);
        let made = workspace::create(&repo, &tree, &directory, Some(&private)).unwrap();
        (repo, tree, made)
    }
}

pub(crate) fn put(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn take(repo: &Repository, tree: &Oid, workspace: &Workspace) -> Captured {
    capture(
        repo,
        tree,
        &workspace.source(),
        &Limits::default(),
        Mode::Record,
    )
    .unwrap()
}

/// Paths and kinds of the findings.
pub(crate) fn found(captured: &Captured) -> BTreeSet<(String, FindingKind)> {
    let pair = |finding: &provost_core::change::Finding| (finding.path.to_string(), finding.kind);
    captured.findings.iter().map(pair).collect()
}

pub(crate) fn changed(captured: &Captured) -> Vec<String> {
    captured
        .changes
        .iter()
        .map(|change| change.path.to_string())
        .collect()
}
