//! Repositories of every kind give exact workspaces, or the error names what is missing.

use std::path::{Path, PathBuf};

use provost_core::object::Oid;
use provost_host::capture::{Limits, Mode, capture};
use provost_host::git::{GitError, Repository};
use provost_host::workspace::{self, Lowers, PrivateGit, Workspace, WorkspaceError};

use crate::scratch::{Scratch, changed, found, git, put};

struct Kind {
    scratch: Scratch,
    root: PathBuf,
}

impl Kind {
    fn plain(options: &[&str]) -> Self {
        let scratch = Scratch::with(options);
        scratch.file("kept/file", "one\r\ntwo\n");
        scratch.file("left/out", "elsewhere\n");
        scratch.commit();
        scratch.file("kept/file", "three\r\nfour\n");
        scratch.commit();
        let root = scratch.root();
        Self { scratch, root }
    }

    /// A clone of a plain repository, made with `options`.
    fn cloned(options: &[&str]) -> Self {
        let mut kind = Self::plain(&[]);
        kind.scratch
            .git(&["config", "uploadpack.allowFilter", "true"]);
        let from = format!("file://{}", kind.root.display());
        let mut arguments = vec!["clone", "-q"];
        arguments.extend(options);
        arguments.extend([from.as_str(), "clone"]);
        git(kind.scratch.outer(), &arguments);
        kind.root = kind.scratch.outer().join("clone");
        kind
    }

    fn open(&self) -> (Repository, Oid, PrivateGit) {
        let repo = Repository::discover_with(&self.root, self.scratch.outer()).unwrap();
        let commit = repo.resolve("HEAD").unwrap();
        let tree = repo.commit_tree(&commit).unwrap();
        let objects = repo.objects().to_owned();
        (repo, tree, PrivateGit { commit, objects })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.cache().join(name)
    }
}

fn shallow() -> Kind {
    Kind::cloned(&["--depth=1"])
}

fn sparse() -> Kind {
    let kind = Kind::cloned(&[]);
    git(&kind.root, &["sparse-checkout", "set", "kept"]);
    assert!(!kind.root.join("left").exists());
    kind
}

fn sha256() -> Kind {
    Kind::plain(&["--object-format=sha256"])
}

/// The submodule is an empty directory.
fn submodule() -> Kind {
    let kind = Kind::plain(&[]);
    let from = kind.scratch.root().display().to_string();
    kind.scratch
        .git(&["submodule", "--quiet", "add", &from, "sub"]);
    kind.scratch.git(&["commit", "-q", "-m", "submodule"]);
    kind
}

/// The files are LFS pointers: no filter runs.
fn large_files() -> Kind {
    let kind = Kind::plain(&[]);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    kind.scratch.file("big.bin", pointer);
    kind.scratch.git(&["add", "-A"]);
    kind.scratch.file(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    kind.scratch.git(&["add", ".gitattributes"]);
    kind.scratch.git(&["commit", "-q", "-m", "large"]);
    for name in ["smudge", "clean"] {
        kind.scratch
            .git(&["config", &format!("filter.lfs.{name}"), "echo filtered"]);
    }
    kind
}

/// An untouched workspace gives the base; one edit is one change.
fn check(name: &str, repo: &Repository, tree: &Oid, made: &Workspace) {
    let take = || capture(repo, tree, &made.source(), &Limits::default(), Mode::Record).unwrap();
    let untouched = take();
    assert_eq!(untouched.tree, *tree, "{name}");
    assert_eq!(changed(&untouched), [""; 0], "{name}");
    put(&made.tree, "kept/file", "edited\n");
    let edited = take();
    assert_eq!(changed(&edited), ["kept/file"], "{name}");
    assert_eq!(found(&edited), [].into(), "{name}");
    assert_eq!(repo.names(tree, &edited.tree).unwrap().len(), 1, "{name}");
}

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn copies_and_overlays_of_all_kinds_are_exact() {
    type Make = fn() -> Kind;
    let kinds: [(&str, Make); 5] = [
        ("shallow", shallow),
        ("sparse", sparse),
        ("sha256", sha256),
        ("submodule", submodule),
        ("large files", large_files),
    ];
    for (name, make) in kinds {
        let kind = make();
        let (repo, tree, private) = kind.open();
        let copy = workspace::create(&repo, &tree, &kind.at("copy"), Some(&private)).unwrap();
        let lower = Lowers::new(&kind.scratch.cache())
            .hold(&repo, &tree)
            .unwrap();
        for root in [&copy.tree, &lower.files()] {
            assert_eq!(read(root, "kept/file"), "three\r\nfour\n", "{name}");
            assert_eq!(read(root, "left/out"), "elsewhere\n", "{name}");
            let sub = root.join("sub");
            assert_eq!(sub.exists(), name == "submodule", "{name}");
            if name == "large files" {
                assert!(
                    read(root, "big.bin").starts_with("version https://git-lfs"),
                    "{name}"
                );
            }
        }
        assert_eq!(git(&copy.tree, &["status", "--porcelain"]), "", "{name}");
        check(name, &repo, &tree, &copy);
        let over = workspace::create_over(&repo, &lower, &kind.at("over"), &private).unwrap();
        check(name, &repo, &tree, &over);
    }
}

#[test]
fn a_partial_clone_says_what_is_missing_and_leaves_nothing() {
    let kind = Kind::cloned(&["--filter=blob:none", "--no-checkout"]);
    let (repo, tree, _) = kind.open();
    let refused = workspace::create(&repo, &tree, &kind.at("copy"), None);
    let missing =
        |error: &WorkspaceError| matches!(error, WorkspaceError::Git(GitError::Missing { .. }));
    assert!(refused.is_err_and(|error| missing(&error)));
    let lowers = Lowers::new(&kind.scratch.cache());
    assert!(
        lowers
            .hold(&repo, &tree)
            .is_err_and(|error| missing(&error))
    );
    let left = std::fs::read_dir(kind.at("lower")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        names
            .into_iter()
            .all(|name| name.strip_suffix(".lock").is_some())
    );
}
