//! Landing moves a clean checkout forward and nothing else.

use std::os::unix::fs::symlink;

use provost_core::object::Oid;
use provost_host::git::land::{LandError, checkout_fast_forward};
use provost_host::git::{Expected, GitError, Repository};

use crate::scratch::{Scratch, chmod, git, put};

/// A repository on the first of two commits.
fn two() -> (Scratch, Repository, Oid, Oid) {
    let scratch = Scratch::new();
    scratch.file("a", "a\n");
    scratch.file("gone", "gone\n");
    scratch.file("dir/file", "x\n");
    scratch.file(".gitignore", "ignored\n.provost/\n");
    let from = scratch.commit();
    scratch.file("a", "changed\n");
    scratch.file("new/deep/file", "new\n");
    std::fs::remove_file(scratch.root().join("gone")).unwrap();
    std::fs::remove_dir_all(scratch.root().join("dir")).unwrap();
    scratch.file("dir", "a file now\n");
    scratch.file("ignored", "not ignored any more\n");
    scratch.git(&["add", "-f", "-A"]);
    scratch.git(&["commit", "-q", "-m", "two"]);
    let to: Oid = scratch.git(&["rev-parse", "HEAD"]).try_into().unwrap();
    scratch.git(&["reset", "-q", "--hard", from.as_str()]);
    let repo = scratch.open();
    (scratch, repo, from, to)
}

#[test]
fn a_clean_checkout_moves_forward_and_again() {
    let (scratch, repo, from, to) = two();
    scratch.file("untracked", "stays\n");
    scratch.file(".provost/registry.db", "stays\n");
    let marker = scratch.outer().join("ran");
    let hook = format!("#!/bin/sh\ntouch {}\n", marker.display());
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        put(&scratch.root(), &format!(".git/hooks/{name}"), &hook);
        chmod(&scratch.root().join(".git/hooks").join(name), 0o755);
    }
    for _ in 0..2 {
        checkout_fast_forward(&repo, &scratch.root().join("."), &from, &to).unwrap();
        assert!(!marker.exists());
    }
    std::fs::remove_dir_all(scratch.root().join(".git/hooks")).unwrap();
    assert_eq!(scratch.git(&["rev-parse", "main"]), to.as_str());
    assert_eq!(scratch.git(&["status", "--porcelain"]), "?? untracked");
    assert!(!scratch.root().join("gone").exists());
}

#[test]
fn a_linked_and_a_detached_checkout_move_too() {
    let (scratch, repo, from, to) = two();
    scratch.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        "../linked",
        from.as_str(),
    ]);
    let linked = scratch.outer().join("linked");
    checkout_fast_forward(&repo, &linked, &from, &to).unwrap();
    assert_eq!(git(&linked, &["rev-parse", "HEAD"]), to.as_str());
    assert_eq!(git(&linked, &["status", "--porcelain"]), "");
    assert_eq!(scratch.git(&["rev-parse", "main"]), from.as_str());
}

#[test]
fn an_interrupted_landing_is_finished() {
    let (scratch, repo, from, to) = two();
    repo.land_ref("refs/heads/main", &to, &Expected::Is(from.clone()))
        .unwrap();
    checkout_fast_forward(&repo, &scratch.root(), &from, &to).unwrap();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

/// Changes of a file's stat data that change nothing that git stores.
const TOUCHES: [fn(&Scratch); 4] = [
    |scratch| {
        for name in ["a", "gone", "dir/file", ".gitignore"] {
            let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
            let file = std::fs::File::options()
                .write(true)
                .open(scratch.root().join(name));
            file.unwrap().set_modified(old).unwrap();
        }
    },
    |scratch| {
        for name in ["a", "gone", "dir/file"] {
            let path = scratch.root().join(name);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
    },
    |scratch| {
        for name in ["a", "gone", "dir/file"] {
            chmod(&scratch.root().join(name), 0o600);
        }
    },
    |scratch| {
        scratch.git(&["config", "core.fileMode", "false"]);
        chmod(&scratch.root().join("a"), 0o755);
        chmod(&scratch.root().join("gone"), 0o755);
    },
];

#[test]
fn a_checkout_whose_files_were_only_touched_is_clean() {
    for (number, touch) in TOUCHES.into_iter().enumerate() {
        let (scratch, repo, from, to) = two();
        touch(&scratch);
        let moved = checkout_fast_forward(&repo, &scratch.root(), &from, &to);
        assert!(moved.is_ok(), "{number}: {moved:?}");
        assert_eq!(scratch.git(&["rev-parse", "main"]), to.as_str(), "{number}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{number}");
    }
}

#[test]
fn a_touched_file_beside_a_changed_one_does_not_hide_it() {
    let (scratch, repo, from, to) = two();
    TOUCHES[0](&scratch);
    scratch.file("a", "b\n");
    let refused = checkout_fast_forward(&repo, &scratch.root(), &from, &to);
    assert!(
        matches!(refused, Err(LandError::Dirty { .. })),
        "{refused:?}"
    );
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M a");
}

/// Makes something that landing must refuse.
type Obstacle = fn(&Scratch);

/// Obstacles to landing, and the name of the refusal.
const OBSTACLES: [(&str, Obstacle); 13] = [
    ("Dirty", |scratch| scratch.file("a", "mine\n")),
    ("Dirty", |scratch| {
        std::fs::remove_file(scratch.root().join("a")).unwrap();
    }),
    ("Dirty", |scratch| chmod(&scratch.root().join("a"), 0o755)),
    ("Dirty", |scratch| {
        scratch.file("a", "mine\n");
        scratch.git(&["add", "a"]);
        scratch.file("a", "a\n");
    }),
    ("Dirty", |scratch| {
        // Staged, and gone from the disk.
        scratch.file("dir/mine", "mine\n");
        scratch.git(&["add", "dir/mine"]);
        std::fs::remove_file(scratch.root().join("dir/mine")).unwrap();
    }),
    ("Dirty", |scratch| {
        scratch.file("new", "mine\n");
        scratch.git(&["add", "new"]);
        std::fs::remove_file(scratch.root().join("new")).unwrap();
    }),
    ("InTheWay", |scratch| {
        scratch.file("new/deep/file", "mine\n");
    }),
    ("InTheWay", |scratch| scratch.file("new", "mine\n")),
    ("InTheWay", |scratch| {
        symlink("dir", scratch.root().join("new")).unwrap();
    }),
    ("InTheWay", |scratch| scratch.file("ignored", "mine\n")),
    ("InTheWay", |scratch| scratch.file("dir/mine", "mine\n")),
    ("Hidden", |scratch| {
        scratch.git(&["update-index", "--assume-unchanged", "a"]);
        scratch.file("a", "mine\n");
    }),
    ("Busy", |scratch| scratch.file(".git/MERGE_HEAD", "x")),
];

#[test]
fn what_would_be_lost_is_refused_and_left_alone() {
    for (number, (want, obstacle)) in OBSTACLES.into_iter().enumerate() {
        let (scratch, repo, from, to) = two();
        obstacle(&scratch);
        let state = || scratch.git(&["status", "--porcelain", "--ignored", "-uall"]);
        let before = state();
        let error = checkout_fast_forward(&repo, &scratch.root(), &from, &to).unwrap_err();
        assert!(format!("{error:?}").starts_with(want), "{number}: {error}");
        assert_eq!(
            scratch.git(&["rev-parse", "main"]),
            from.as_str(),
            "{number}"
        );
        assert_eq!(state(), before, "{number}");
    }
}

/// Adds files that the landing does not touch, in every state that git knows.
fn unrelated_changes(scratch: &Scratch) {
    scratch.file("staged", "staged\n");
    scratch.file("both", "staged\n");
    scratch.git(&["add", "staged", "both"]);
    scratch.file("both", "and changed\n");
    scratch.file(".gitignore", "ignored\n.provost/\nmine\n");
    scratch.git(&["update-index", "--chmod=+x", ".gitignore"]);
    scratch.file("untracked", "untracked\n");
    scratch.file("intended", "intended\n");
    scratch.git(&["add", "-N", "intended"]);
}

#[test]
fn changes_that_the_landing_does_not_touch_stay_as_they_are() {
    // The second time, the ref had moved before an interruption.
    for interrupted in [false, true] {
        let (scratch, repo, from, to) = two();
        unrelated_changes(&scratch);
        let state = || {
            let status = scratch.git(&["status", "--porcelain", "-uall"]);
            let staged = scratch.git(&["diff", "--cached"]);
            (status, staged, scratch.git(&["diff"]))
        };
        let before = state();
        if interrupted {
            let expected = Expected::Is(from.clone());
            repo.land_ref("refs/heads/main", &to, &expected).unwrap();
        }
        for _ in 0..2 {
            checkout_fast_forward(&repo, &scratch.root(), &from, &to).unwrap();
            assert_eq!(scratch.git(&["rev-parse", "main"]), to.as_str());
            assert_eq!(state(), before, "{interrupted}");
        }
        let text = std::fs::read_to_string(scratch.root().join("a")).unwrap();
        assert_eq!(text, "changed\n");
    }
}

#[test]
fn filters_are_neither_run_nor_skipped() {
    for file in [".git/info/attributes", ".gitattributes", "../attributes"] {
        let (scratch, repo, from, to) = two();
        let marker = scratch.outer().join("ran");
        let command = format!("touch {}; cat", marker.display());
        for setting in ["filter.evil.smudge", "filter.evil.clean", "core.fsmonitor"] {
            scratch.git(&["config", setting, &command]);
        }
        let outer = scratch.outer().join("attributes");
        scratch.git(&[
            "config",
            "core.attributesFile",
            &outer.display().to_string(),
        ]);
        scratch.file(file, "a filter=evil\n");
        let refused = checkout_fast_forward(&repo, &scratch.root(), &from, &to);
        assert!(
            matches!(refused, Err(LandError::Filtered { .. })),
            "{file}: {refused:?}"
        );
        assert!(!marker.exists(), "{file}");
    }
}

#[test]
fn the_words_of_a_refusal_are_about_the_refusal() {
    let (scratch, repo, from, _) = two();
    let blob = scratch.git(&["rev-parse", "HEAD:a"]);
    scratch.git(&["config", "core.protectNTFS", "false"]);
    let entry = format!("100644,{blob},git~1");
    scratch.git(&["update-index", "--add", "--cacheinfo", &entry]);
    scratch.git(&["commit", "-q", "-m", "a name that git takes for its own"]);
    let to: Oid = scratch.git(&["rev-parse", "HEAD"]).try_into().unwrap();
    scratch.git(&["reset", "-q", "--hard", from.as_str()]);
    let refused = checkout_fast_forward(&repo, &scratch.root(), &from, &to);
    let error = refused.unwrap_err();
    let first: Option<&dyn std::error::Error> = Some(&error);
    let chain = std::iter::successors(first, |error| error.source());
    let words: Vec<String> = chain.map(ToString::to_string).collect();
    let words = words.join(": ");
    assert!(words.contains("git~1"), "{words}");
    assert!(
        !words.contains("graft") && !words.contains("hint:"),
        "{words}"
    );
}

#[test]
fn a_branch_that_is_another_name_is_refused() {
    let (scratch, repo, from, to) = two();
    scratch.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    let refused = repo.land_ref("refs/heads/alias", &to, &Expected::Is(from));
    assert!(
        matches!(refused, Err(LandError::Alias { .. })),
        "{refused:?}"
    );
    assert_eq!(
        scratch.git(&["symbolic-ref", "refs/heads/alias"]),
        "refs/heads/main"
    );
}

#[test]
fn a_branch_in_use_has_no_checkout_to_move() {
    const MAIN: &str = "refs/heads/main";
    let (scratch, repo, _, _) = two();
    let root = scratch.root().canonicalize().unwrap();
    assert_eq!(repo.checkout_of(MAIN).unwrap(), Some(root));
    assert_eq!(repo.checkout_of("refs/heads/none").unwrap(), None);
    scratch.git(&["worktree", "add", "-q", "--detach", "../linked", "main"]);
    for note in ["", "worktrees/linked/"] {
        for (file, text) in [
            ("rebase-merge/head-name", "refs/heads/main\n"),
            ("rebase-apply/head-name", "refs/heads/main\n"),
            (
                "rebase-merge/update-refs",
                "refs/heads/x\n0\n0\nrefs/heads/main\n0\n0\n",
            ),
            ("BISECT_START", "main\n"),
        ] {
            let path = format!(".git/{note}{file}");
            scratch.file(&path, text);
            let refused = repo.checkout_of(MAIN);
            assert!(
                matches!(refused, Err(LandError::InUse { .. })),
                "{path}: {refused:?}"
            );
            repo.checkout_of("refs/heads/other").unwrap();
            std::fs::remove_file(scratch.root().join(path)).unwrap();
        }
    }
    scratch.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    let refused = repo.checkout_of(MAIN);
    let Err(LandError::Several { checkouts, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(checkouts.len(), 2, "{checkouts:?}");
}

#[test]
fn only_forward_and_only_from_where_it_is() {
    let (scratch, repo, from, to) = two();
    let back = checkout_fast_forward(&repo, &scratch.root(), &to, &from);
    assert!(
        matches!(back, Err(LandError::NotForward { .. })),
        "{back:?}"
    );
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "moved"]);
    let moved = checkout_fast_forward(&repo, &scratch.root(), &from, &to);
    assert!(
        matches!(moved, Err(LandError::Elsewhere { .. })),
        "{moved:?}"
    );
    let other = Scratch::new();
    let foreign = checkout_fast_forward(&repo, &other.root(), &from, &to);
    assert!(
        matches!(foreign, Err(LandError::NotACheckout { .. })),
        "{foreign:?}"
    );
    for name in ["refs/provost/x", "refs/tags/x", "HEAD", "refs/heads/../x"] {
        let refused = repo.land_ref(name, &to, &Expected::Any);
        assert!(
            matches!(refused, Err(LandError::Git(GitError::RefRefused { .. }))),
            "{name}"
        );
    }
}
