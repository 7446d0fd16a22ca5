//! Workspaces are exact, salvageable and removable.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use provost_core::change::FindingKind;
use provost_fs::remove::RemoveError;
use provost_host::workspace::{self, PrivateGit, WorkspaceError};

use crate::scratch::{Scratch, chmod, git, put};

fn base() -> Scratch {
    let scratch = Scratch::new();
    for number in 0..700 {
        scratch.file(
            &format!("d{}/f{number}", number % 7),
            format!("content {}", number % 300),
        );
    }
    scratch.file("run.sh", "#!/bin/sh\n");
    chmod(&scratch.root().join("run.sh"), 0o755);
    symlink("run.sh", scratch.root().join("link")).unwrap();
    scratch.file(".gitignore", "/out/\n");
    scratch.commit();
    scratch
}

#[test]
fn a_workspace_without_git_is_only_the_files() {
    let scratch = base();
    let repo = scratch.open();
    let tree = repo.commit_tree(&repo.resolve("HEAD").unwrap()).unwrap();
    let made = workspace::create(&repo, &tree, &scratch.cache().join("w"), None).unwrap();
    assert_eq!(made.git, None);
    assert!(!made.tree.join(".git").exists());
    let permissions =
        |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(permissions(&made.root), 0o700);
    assert_eq!(permissions(&made.tree.join("run.sh")) & 0o100, 0o100);
    assert_eq!(permissions(&made.tree.join("d1/f1")) & 0o100, 0);
    assert_eq!(
        std::fs::read_link(made.tree.join("link")).unwrap().to_str(),
        Some("run.sh")
    );
    assert_eq!(
        std::fs::read(made.tree.join("d6/f699")).unwrap(),
        b"content 99"
    );
    let again = workspace::create(&repo, &tree, &scratch.cache().join("w"), None);
    assert!(again.is_err(), "a directory is never reused");
}

#[test]
fn git_works_in_a_workspace_and_stays_there() {
    let scratch = base();
    let (repo, _, made) = scratch.workspace("w");
    assert_eq!(git(&made.tree, &["status", "--porcelain"]), "");
    put(&made.tree, "d1/f1", "changed content");
    assert_eq!(git(&made.tree, &["status", "--porcelain"]), " M d1/f1");
    git(&made.tree, &["commit", "-q", "-a", "-m", "agent's"]);
    assert_eq!(git(&made.tree, &["log", "--oneline"]).lines().count(), 2);
    let commit = git(&made.tree, &["rev-parse", "HEAD"]);
    assert!(repo.resolve(&commit).is_err());
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    let plain = std::process::Command::new("git")
        .args(["log", "-1", "--format=%an"])
        .current_dir(&made.tree)
        .output()
        .unwrap();
    assert!(plain.status.success());
}

#[test]
fn objects_may_be_found_elsewhere_later() {
    let scratch = base();
    let repo = scratch.open();
    let commit = repo.resolve("HEAD").unwrap();
    let tree = repo.commit_tree(&commit).unwrap();
    let elsewhere = PrivateGit {
        commit: commit.clone(),
        objects: "/run/provost/objects".into(),
    };
    let at = scratch.cache().join("w");
    let made = workspace::create(&repo, &tree, &at, Some(&elsewhere)).unwrap();
    let text = std::fs::read_to_string(made.git.unwrap().join("objects/info/alternates")).unwrap();
    assert_eq!(text, "/run/provost/objects\n");
    let relative = PrivateGit {
        commit,
        objects: "objects".into(),
    };
    let refused = workspace::create(&repo, &tree, &scratch.cache().join("v"), Some(&relative));
    assert!(matches!(refused, Err(WorkspaceError::BadObjects { .. })));
}

#[test]
fn removal_stays_below_its_root() {
    let scratch = base();
    let cache = scratch.cache();
    put(scratch.outer(), "precious/file", "x");
    put(&cache, "run/w/file", "x");
    symlink(scratch.outer(), cache.join("out")).unwrap();
    let outer = scratch.outer();
    for path in [
        cache.clone(),
        outer.join("precious"),
        cache.join("../precious"),
        cache.join("run/../../precious"),
        "/".into(),
    ] {
        let refused = workspace::remove(&cache, &path);
        assert!(
            matches!(
                refused,
                Err(WorkspaceError::Remove(RemoveError::Outside { .. }))
            ),
            "{}",
            path.display()
        );
    }
    assert!(workspace::remove(&cache, &cache.join("out/precious")).is_err());
    assert!(outer.join("precious/file").exists());
    workspace::remove(&cache, &cache.join("out")).unwrap();
    assert!(outer.join("precious/file").exists() && !cache.join("out").exists());
    workspace::remove(&cache, &cache.join("run/w")).unwrap();
    workspace::remove(&cache, &cache.join("run/w")).unwrap();
    workspace::remove(&cache, &cache.join("no/such")).unwrap();
    assert!(cache.join("run").exists() && !cache.join("run/w").exists());
}

#[test]
fn closed_directories_are_removed() {
    let scratch = base();
    let root = scratch.cache().join("w");
    put(&root, "a/b/c/file", "x");
    put(&root, "deep/deep/x", "x");
    chmod(&root.join("a/b/c"), 0);
    chmod(&root.join("a/b"), 0o100);
    chmod(&root.join("deep/deep"), 0);
    chmod(&root.join("deep"), 0o500);
    chmod(&root.join("a"), 0);
    workspace::remove(&scratch.cache(), &root).unwrap();
    assert!(!root.exists());
}

#[test]
fn salvage_saves_what_a_tree_can_hold() {
    let scratch = base();
    let (repo, tree, made) = scratch.workspace("w");
    put(&made.tree, "notes/idea.txt", "precious");
    put(&made.tree, "vendor/.git/config", "x");
    put(&made.tree, "vendor/code", "x");
    put(&made.tree, "out/ignored", "x");
    std::os::unix::net::UnixListener::bind(made.tree.join("socket")).unwrap();
    let saved = workspace::salvage(&repo, &tree, &made.source()).unwrap();
    let read = repo.read_tree(&saved.tree).unwrap();
    let files = &read.files;
    let has = |path: &str| files.contains_key(&provost_core::path::RawPath::new(path));
    assert!(has("notes/idea.txt") && has("vendor/code") && has("d1/f1"));
    assert!(!has("out/ignored"));
    let kinds: Vec<FindingKind> = saved.findings.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [FindingKind::SpecialFile, FindingKind::NestedRepository]
    );
}
