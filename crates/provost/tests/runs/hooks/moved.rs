//! A bound checkout stays bound when it is moved, on no branch, or hidden behind a decoy.

use std::fs;

use super::bound::{BoundStage, Mode, UNHOOKED, check, push};
use super::git;
use crate::stage::Outcome;

/// Git in the directory `at` of the stage.
fn git_at(stage: &BoundStage, at: &str, words: &[&str]) -> Outcome {
    let mut command = stage.inner.command("git");
    command.args(words).current_dir(stage.inner.path(at));
    stage.inner.spawn(command).wait()
}

fn provost_at(stage: &BoundStage, at: &str, words: &[&str]) -> Outcome {
    let mut command = stage.inner.provost(words);
    command.current_dir(stage.inner.path(at));
    stage.inner.spawn(command).wait()
}

/// Stages `path` in the checkout `at` and commits it without the hook of commits.
fn commit_at(stage: &BoundStage, at: &str, path: &str) -> Outcome {
    stage.inner.write(&format!("{at}/{path}"), "new work\n");
    let added = git_at(stage, at, &["add", path]);
    assert_eq!(added.exit, 0, "{added:?}");
    git_at(stage, at, &["commit", "-q", "--no-verify", "-m", "work"])
}

/// A repository with hooks whose linked worktree `wt`, on the branch `work`, is bound.
fn linked() -> BoundStage {
    let stage = BoundStage::new(Mode::Checkout);
    let wt = stage.inner.path("wt").display().to_string();
    stage.plain(&["worktree", "add", "-q", "-b", "work", &wt]);
    let file = stage.inner.path("home/contract.yaml").display().to_string();
    assert_eq!(stage.inner.ask(&["hook", "unbind"]).exit, 0);
    let bound = provost_at(&stage, "wt", &["hook", "bind", &file]);
    assert_eq!(bound.exit, 0, "{bound:?}");
    stage
}

fn bindings(stage: &BoundStage) -> String {
    fs::read_to_string(stage.inner.path("repo/.provost/hooks.json")).unwrap()
}

fn is_broken(what: &str, done: &Outcome) {
    assert!(
        done.exit != 0 && done.stderr.contains("HOOK_BROKEN"),
        "{what}: {done:?}"
    );
}

#[test]
fn a_worktree_that_is_moved_stays_bound() {
    for by_hand in [false, true] {
        let stage = linked();
        let [wt, away] = ["wt", "away"].map(|name| stage.inner.path(name).display().to_string());
        if by_hand {
            fs::rename(&wt, &away).unwrap();
            // Another repository takes its place.
            let decoy = git(&stage.inner, &["init", "-q", &wt]);
            assert_eq!(decoy.exit, 0, "{decoy:?}");
            check(
                "unrepaired",
                false,
                &commit_at(&stage, "away", "docs/b.txt"),
            );
            stage.plain(&["worktree", "repair", &away]);
        } else {
            stage.plain(&["worktree", "move", &wt, &away]);
        }
        check("commit", false, &commit_at(&stage, "away", "docs/b.txt"));
        let plain = git_at(&stage, "away", &["commit", "-q", "-m", "work"]);
        check("plain commit", false, &plain);
        let reset = git_at(&stage, "away", &["reset", "-q", "--hard"]);
        assert_eq!(reset.exit, 0, "{reset:?}");
        let inside = commit_at(&stage, "away", "src/greet/b.txt");
        assert_eq!(inside.exit, 0, "{inside:?}");
        let status = stage.inner.ask(&["hook", "status", "--json"]);
        let to = status.json.pointer("/bindings/0/binding/to/checkout");
        assert_eq!(to.unwrap(), &away, "{status:?}");
        let unbound = provost_at(&stage, "away", &["hook", "unbind"]);
        assert_eq!(unbound.exit, 0, "{unbound:?}");
    }
}

#[test]
fn a_bound_worktree_that_is_gone_refuses_until_it_is_unbound() {
    for old_file in [false, true] {
        let stage = linked();
        if old_file {
            let file = bindings(&stage);
            let is_old = |line: &&str| !line.contains("git_dir") && !line.contains("on_branch");
            let lines: Vec<&str> = file.lines().filter(is_old).collect();
            stage
                .inner
                .write("repo/.provost/hooks.json", &lines.join("\n"));
            check("old file", false, &commit_at(&stage, "wt", "docs/b.txt"));
        }
        let wt = stage.inner.path("wt").display().to_string();
        stage.plain(&["worktree", "remove", "--force", &wt]);
        is_broken("push", &push(&stage, &["@", "work"], ""));
        is_broken("commit", &super::commit(&stage.inner, "src/greet/c.txt"));
        let update = ["update-ref", "refs/heads/work", &stage.outside];
        let moved = git(&stage.inner, &update);
        is_broken("move", &moved);
        let help = format!("provost hook unbind --checkout '{wt}'");
        assert!(moved.stderr.contains(&help), "{moved:?}");
        let status = stage.inner.ask(&["hook", "status", "--json"]);
        let problem = status.json.pointer("/bindings/0/problem").unwrap();
        assert!(problem.to_string().contains("gone"), "{status:?}");
        let unbound = stage.inner.ask(&["hook", "unbind", "--checkout", &wt]);
        assert_eq!(unbound.exit, 0, "{unbound:?}");
        let free = git(&stage.inner, &update);
        assert_eq!(free.exit, 0, "{free:?}");
    }
}

#[test]
fn work_on_no_branch_in_a_bound_checkout_is_judged() {
    let stage = BoundStage::new(Mode::Checkout);
    stage.plain(&["branch", "other", &stage.outside]);
    // To look at what a branch holds makes no work.
    for words in [
        &["checkout", "-q", "--detach", "other"][..],
        &["checkout", "-q", "main"],
        &["checkout", "-q", "--detach"],
    ] {
        let done = git(&stage.inner, words);
        assert_eq!(done.exit, 0, "{words:?}: {done:?}");
    }
    check("commit", false, &commit_at(&stage, "repo", "docs/b.txt"));
    stage.plain(&["reset", "-q", "--hard"]);
    let inside = commit_at(&stage, "repo", "src/greet/b.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");
    let before = stage.value("HEAD");
    let picked = git(&stage.inner, &["cherry-pick", "other"]);
    check("cherry-pick", false, &picked);
    stage.plain(&["cherry-pick", "--abort"]);
    let merged = ["merge", "-q", "--no-verify", "--no-edit", "other"];
    check("merge", false, &git(&stage.inner, &merged));
    assert_eq!(stage.value("HEAD"), before);
    stage.plain(&["reset", "-q", "--hard"]);

    // A transaction that hides it behind another branch, or names it from another checkout.
    let beside = stage.inner.path("beside").display().to_string();
    stage.plain(&["worktree", "add", "-q", "--detach", &beside]);
    let made = ["commit", "-q", "--allow-empty", "-m", "unreferenced"];
    stage.plain(&["checkout", "-q", "--detach", "other"]);
    stage.plain(&made);
    let bad = stage.value("HEAD");
    stage.plain(&["checkout", "-q", "--detach", &before]);
    let named = ["update-ref", "--no-deref", "main-worktree/HEAD", &bad];
    check(
        "main-worktree/HEAD",
        false,
        &git_at(&stage, "beside", &named),
    );
    let here = ["update-ref", "--no-deref", "HEAD", &bad];
    check("HEAD", false, &git(&stage.inner, &here));
    // The other checkout is bound to nothing.
    let free = git_at(&stage, "beside", &here);
    assert_eq!(free.exit, 0, "{free:?}");
}

#[test]
fn a_push_from_elsewhere_is_judged_while_the_bound_checkout_is_on_no_branch() {
    let stage = BoundStage::new(Mode::Checkout);
    let beside = stage.inner.path("beside").display().to_string();
    stage.plain(&["worktree", "add", "-q", "--detach", &beside]);
    stage.reset(&stage.outside);
    let [main, copy] = ["main", "main:refs/heads/copy"];
    for detached in [false, true] {
        if detached {
            stage.plain(&["checkout", "-q", "--detach"]);
        }
        for name in [main, copy] {
            let pushed = git_at(&stage, "beside", &["push", "-q", &stage.remote, name]);
            check(&format!("{name}, detached {detached}"), false, &pushed);
        }
    }
    // The commit that the checkout is at, by the name of another branch.
    stage.plain(&["branch", "also", "HEAD"]);
    let pushed = git_at(&stage, "beside", &["push", "-q", &stage.remote, "also"]);
    check("also", false, &pushed);
    // The branch that it was bound on, also if the checkout is elsewhere.
    stage.plain(&["checkout", "-q", "--detach", &stage.base]);
    let pushed = git_at(&stage, "beside", &["push", "-q", &stage.remote, "main"]);
    check("main", false, &pushed);
}

#[test]
fn a_moved_repository_with_a_decoy_at_its_place_refuses() {
    for decoy in ["directory", "repository"] {
        let stage = BoundStage::new(Mode::Checkout);
        let repo = stage.inner.path("repo");
        fs::rename(&repo, stage.inner.path("repo9")).unwrap();
        fs::create_dir_all(repo.join(".git")).unwrap();
        if decoy == "repository" {
            let made = git_at(&stage, "repo", &["init", "-q"]);
            assert_eq!(made.exit, 0, "{made:?}");
        }
        is_broken(decoy, &commit_at(&stage, "repo9", "docs/b.txt"));
        let plain = git_at(&stage, "repo9", &["commit", "-q", "-m", "work"]);
        is_broken(decoy, &plain);
        let words = [&["push", "-q", &stage.remote, "main"][..]].concat();
        is_broken(decoy, &git_at(&stage, "repo9", &words));
        // The hooks come back, and still know that something was bound.
        let again = provost_at(&stage, "repo9", &["hook", "install"]);
        assert_eq!(again.exit, 0, "{again:?}");
        is_broken(decoy, &commit_at(&stage, "repo9", "docs/b.txt"));
        let file = stage.inner.path("home/contract.yaml").display().to_string();
        let bound = provost_at(&stage, "repo9", &["hook", "bind", &file]);
        assert_eq!(bound.exit, 0, "{bound:?}");
        let old = repo.display().to_string();
        let unbound = provost_at(&stage, "repo9", &["hook", "unbind", "--checkout", &old]);
        assert_eq!(unbound.exit, 0, "{unbound:?}");
        check(decoy, false, &commit_at(&stage, "repo9", "docs/b.txt"));
        let unhooked = [UNHOOKED, &["reset", "-q", "--hard"]].concat();
        assert_eq!(git_at(&stage, "repo9", &unhooked).exit, 0);
    }
}
