//! The patch contains everything that happened in a workspace.

use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use provost_core::path::RawPath;
use provost_host::git::Repository;

use crate::scratch::{Scratch, chmod, found, git, put, take};

/// An action of an agent on a path.
#[derive(Debug, Clone)]
enum Step {
    Write(String, Vec<u8>),
    Remove(String),
    Link(String, String),
    Execute(String),
    Rename(String, String),
    Copy(String, String),
}

fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("c d".to_owned()),
        Just("\"q\"".to_owned()),
        Just("ünï".to_owned()),
        Just("-x".to_owned()),
        Just(" lead".to_owned()),
        Just("e=>f".to_owned()),
    ];
    proptest::collection::vec(name, 1..4).prop_map(|parts| parts.join("/"))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ab\n]{0,60}".prop_map(String::into_bytes),
        "[ab\r\n]{0,60}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..200),
        Just(b"no newline at the end".to_vec()),
        Just("many lines\n".repeat(50).into_bytes()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (path(), bytes()).prop_map(|(path, bytes)| Step::Write(path, bytes)),
        1 => path().prop_map(Step::Remove),
        1 => (path(), path()).prop_map(|(path, target)| Step::Link(path, target)),
        1 => path().prop_map(Step::Execute),
        1 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Step::Copy(from, to)),
    ]
}

/// Applies a step as far as possible; errors do not matter.
fn apply(root: &Path, step: &Step) {
    let make_parent = |path: &str| {
        let parent = root.join(path);
        std::fs::create_dir_all(parent.parent().unwrap()).is_ok()
    };
    match step {
        Step::Write(path, bytes) if make_parent(path) => {
            let _ = std::fs::remove_file(root.join(path));
            let _ = std::fs::write(root.join(path), bytes);
        }
        Step::Remove(path) => {
            let _ = std::fs::remove_file(root.join(path));
            let _ = std::fs::remove_dir_all(root.join(path));
        }
        Step::Link(path, target) if make_parent(path) => {
            let _ = symlink(target, root.join(path));
        }
        Step::Execute(path)
            if root
                .join(path)
                .symlink_metadata()
                .is_ok_and(|data| data.is_file()) =>
        {
            chmod(&root.join(path), 0o755);
        }
        Step::Rename(from, to) if make_parent(to) => {
            let _ = std::fs::rename(root.join(from), root.join(to));
        }
        Step::Copy(from, to) if make_parent(to) => {
            let regular = root
                .join(from)
                .symlink_metadata()
                .is_ok_and(|data| data.is_file());
            if regular && root.join(to).symlink_metadata().is_err() {
                let _ = std::fs::copy(root.join(from), root.join(to));
            }
        }
        _ => {}
    }
}

/// The tree that `git apply` makes from `before` and the patch.
fn patched(scratch: &Scratch, repo: &Repository, before: &str, patch: &[u8]) -> String {
    let other = scratch.outer().join("apply");
    std::fs::create_dir(&other).unwrap();
    put(scratch.outer(), "the.patch", patch);
    git(&other, &["init", "-q"]);
    let objects = format!("{}\n", repo.objects().display());
    put(&other, ".git/objects/info/alternates", objects);
    git(&other, &["read-tree", before]);
    if !patch.is_empty() {
        git(
            &other,
            &["apply", "--cached", "--whitespace=nowarn", "../the.patch"],
        );
    }
    git(&other, &["write-tree"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_patch_makes_the_captured_tree(
        base in proptest::collection::vec(step(), 0..10),
        steps in proptest::collection::vec(step(), 1..12),
    ) {
        let scratch = Scratch::new();
        scratch.file("always", "here\n");
        for step in &base {
            apply(&scratch.root(), step);
        }
        scratch.commit();
        let (repo, tree, workspace) = scratch.workspace("w");
        prop_assert_eq!(&take(&repo, &tree, &workspace).tree, &tree);
        for step in &steps {
            apply(&workspace.tree, step);
        }
        let captured = take(&repo, &tree, &workspace);
        prop_assert_eq!(found(&captured), [].into());
        let patch = repo.patch(&tree, &captured.tree).unwrap();
        let got = patched(&scratch, &repo, tree.as_str(), &patch);
        prop_assert_eq!(got.as_str(), captured.tree.as_str());
        let paths: Vec<RawPath> = captured.changes.iter().map(|one| one.path.clone()).collect();
        prop_assert_eq!(repo.names(&tree, &captured.tree).unwrap(), paths);
    }
}
