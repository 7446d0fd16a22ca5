//! Ways to hide a binding, or a move of a bound branch, from the hooks.

use super::bound::{BoundStage, Mode, check, push};
use super::git;
use crate::stage::Outcome;

/// Git in an environment that names another runtime root.
fn elsewhere(stage: &BoundStage, words: &[&str]) -> Outcome {
    let mut command = stage.inner.command("git");
    command.args(words).env("PROVOST_ROOT", "/nowhere/else");
    stage.inner.spawn(command).wait()
}

#[test]
fn a_runtime_root_in_the_environment_of_git_hides_no_binding() {
    for mode in [Mode::Checkout, Mode::RequiredBranch] {
        let stage = BoundStage::new(mode);
        let update = ["update-ref", "refs/heads/main", &stage.outside];
        check("update-ref", false, &elsewhere(&stage, &update));
        let plain = ["update-ref", "refs/heads/main", &stage.inside];
        check("update-ref", true, &elsewhere(&stage, &plain));
        stage.reset(&stage.base);
        stage.inner.write("repo/docs/b.txt", "work\n");
        stage.plain(&["add", "docs/b.txt"]);
        let commit = ["commit", "-q", "-m", "x"];
        check("commit", false, &elsewhere(&stage, &commit));
        stage.reset(&stage.outside);
        let push = ["push", "-q", &stage.remote, "main"];
        check("push", false, &elsewhere(&stage, &push));
    }
}

#[test]
fn what_is_bound_below_another_root_than_the_hooks_read_is_refused() {
    let stage = BoundStage::new(Mode::Checkout);
    let root = stage.inner.path("home/root");
    let contract = stage.inner.path("home/contract.yaml");
    for words in [
        &["hook", "bind", contract.to_str().unwrap(), "--json"][..],
        &["hook", "unbind", "--json"],
        &["hook", "status", "--json"],
        &["hook", "install", "--json"],
    ] {
        let mut command = stage.inner.provost(words);
        command.env("PROVOST_ROOT", &root);
        let refused = stage.inner.spawn(command).wait();
        assert_eq!(refused.code(), "HOOK_BROKEN", "{words:?}: {refused:?}");
    }
    let mut command = stage.inner.provost(&["hook", "uninstall"]);
    command.env("PROVOST_ROOT", &root);
    let out = stage.inner.spawn(command).wait();
    assert_eq!(out.exit, 0, "{out:?}");
}

#[test]
fn a_separate_git_directory_with_linked_worktrees_hides_no_binding() {
    for mode in [Mode::Checkout, Mode::RequiredBranch] {
        let stage = BoundStage::new(mode);
        let store = stage.inner.path("store").display().to_string();
        stage.plain(&["init", "-q", "--separate-git-dir", &store]);
        let update = ["update-ref", "refs/heads/main", &stage.outside];
        // The hooks were installed for a git directory that is gone.
        let moved = git(&stage.inner, &update);
        assert!(
            moved.exit != 0 && moved.stderr.contains("HOOK_BROKEN"),
            "{moved:?}"
        );
        let again = stage.inner.ask(&["hook", "install"]);
        assert_eq!(again.exit, 0, "{again:?}");
        let beside = stage.inner.path("beside").display().to_string();
        stage.plain(&["worktree", "add", "-q", "--detach", &beside]);
        let linked = |words: &[&str]| {
            let all: Vec<&str> = ["-C", &beside].iter().chain(words).copied().collect();
            git(&stage.inner, &all)
        };
        check("update-ref", false, &linked(&update));
        let plain = ["update-ref", "refs/heads/main", &stage.inside];
        check("update-ref", true, &linked(&plain));
        stage.plain(&update);
        let pushed = linked(&["push", "-q", &stage.remote, "main"]);
        check("push of main", false, &pushed);
    }
}

#[test]
fn no_branch_takes_the_place_of_a_bound_one_unjudged() {
    let stage = BoundStage::new(Mode::RequiredBranch);
    stage.plain(&["branch", "other", &stage.outside]);
    stage.plain(&["checkout", "-q", "--detach"]);
    for packed in [false, true] {
        if packed {
            stage.plain(&["pack-refs", "--all"]);
        }
        for words in [
            &["branch", "-M", "other", "main"][..],
            &["branch", "-m", "main", "away"],
            &["branch", "-D", "main"],
            &["update-ref", "-d", "refs/heads/main"],
            &["update-ref", "-d", "refs/heads/main", &stage.base],
        ] {
            let refused = git(&stage.inner, words);
            check(&format!("{words:?} packed {packed}"), false, &refused);
            let way = "provost hook unbind --branch main";
            assert!(refused.stderr.contains(way), "{refused:?}");
            assert_eq!(stage.main(), stage.base, "{words:?}");
            assert_eq!(stage.value("refs/heads/other"), stage.outside, "{words:?}");
        }
    }
    // Git asks no hook about a copy; the hooks refuse to push it or to commit on it.
    let copied = git(&stage.inner, &["branch", "-C", "other", "main"]);
    assert_eq!(copied.exit, 0, "{copied:?}");
    check("push", false, &push(&stage, &["@", "main"], ""));
    stage.plain(&["checkout", "-q", "main"]);
    stage.inner.write("repo/src/greet/b.txt", "work\n");
    stage.plain(&["add", "src/greet/b.txt"]);
    check(
        "commit",
        false,
        &git(&stage.inner, &["commit", "-q", "-m", "x"]),
    );
    // A branch that is no longer bound may be deleted.
    stage.plain(&["checkout", "-q", "--detach"]);
    let unbound = stage.inner.ask(&["hook", "unbind", "--branch", "main"]);
    assert_eq!(unbound.exit, 0, "{unbound:?}");
    let gone = git(&stage.inner, &["branch", "-D", "main"]);
    assert_eq!(gone.exit, 0, "{gone:?}");
}

#[test]
fn no_branch_is_renamed_to_one_that_a_bound_checkout_has_yet_to_begin() {
    let stage = BoundStage::new(Mode::Checkout);
    stage.plain(&["branch", "other", &stage.outside]);
    for packed in [false, true] {
        stage.plain(&["update-ref", "-d", "refs/heads/main"]);
        if packed {
            stage.plain(&["pack-refs", "--all"]);
        }
        let renamed = git(&stage.inner, &["branch", "-m", "other", "main"]);
        check(&format!("packed {packed}"), false, &renamed);
        assert_eq!(stage.main(), "", "{renamed:?}");
        assert_eq!(stage.value("refs/heads/other"), stage.outside);
    }
    // Its own branch may have another name: it holds what it held.
    stage.plain(&["update-ref", "refs/heads/main", &stage.base]);
    let renamed = git(&stage.inner, &["branch", "-m", "better"]);
    assert_eq!(renamed.exit, 0, "{renamed:?}");
}

#[test]
fn a_reset_that_is_refused_names_what_puts_the_files_back() {
    let stage = BoundStage::new(Mode::Checkout);
    stage.plain(&["branch", "other", &stage.outside]);
    let status = || {
        let listed = git(&stage.inner, &["status", "--short"]);
        String::from_utf8_lossy(&listed.stdout).into_owned()
    };
    for words in [
        &["reset", "-q", "--hard", &stage.outside][..],
        &["reset", "-q", "--keep", "other"],
        &["reset", "-q", "--merge", "other"],
        &["checkout", "-q", "-B", "main", "other"],
    ] {
        let hard = words.contains(&"--hard");
        if !hard {
            stage.inner.write("repo/docs/readme.md", "edited\n");
        }
        let before = status();
        let refused = git(&stage.inner, words);
        check(&format!("{words:?}"), false, &refused);
        assert!(
            refused.stderr.contains("puts them back: git reset --merge"),
            "{refused:?}"
        );
        assert_ne!(status(), before, "{words:?} has changed files");
        let back = git(&stage.inner, &["reset", "-q", "--merge"]);
        assert_eq!(back.exit, 0, "{words:?}: {back:?}");
        assert_eq!(status(), before, "{words:?}");
        assert_eq!(stage.main(), stage.base);
        stage.plain(&["reset", "-q", "--hard"]);
    }
    // A commit that is refused keeps what is staged, and is given no such advice.
    stage.inner.write("repo/docs/b.txt", "work\n");
    stage.plain(&["add", "docs/b.txt"]);
    stage.plain(&["update-ref", "-d", "ORIG_HEAD"]);
    let commit = git(&stage.inner, &["commit", "-q", "--no-verify", "-m", "x"]);
    check("commit", false, &commit);
    assert!(!commit.stderr.contains("git reset"), "{commit:?}");
}
