//! What a refusal of a hook says, and that the command it names helps.

use super::{commit, contract, git};
use crate::stage::Stage;

/// A repository with the hooks, whose branch `main` is bound.
fn bound() -> (Stage, String) {
    let stage = Stage::new();
    let file = contract(&stage);
    for words in [
        &["hook", "bind", &file, "--branch", "main"][..],
        &["hook", "install"],
    ] {
        let done = stage.ask(words);
        assert_eq!(done.exit, 0, "{done:?}");
    }
    (stage, file)
}

/// The same with a commit of another person on `theirs`, outside of the contract.
fn with_others() -> (Stage, String) {
    let (stage, file) = bound();
    let none = "core.hooksPath=/dev/null";
    stage.git(&["checkout", "-q", "-b", "theirs"]);
    stage.write("repo/docs/theirs.txt", "theirs\n");
    stage.git(&["add", "docs/theirs.txt"]);
    stage.git(&["-c", none, "commit", "-q", "-m", "theirs"]);
    stage.git(&["checkout", "-q", "main"]);
    let inside = commit(&stage, "src/greet/a.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");
    (stage, file)
}

#[test]
fn that_a_binding_is_required_stays_and_is_shown() {
    let stage = Stage::new();
    let words = "is refused (--require)";
    let text = |words: &[&str]| {
        let answer = stage.ask(words);
        assert_eq!(answer.exit, 0, "{answer:?}");
        String::from_utf8_lossy(&answer.stdout).into_owned()
    };
    for install in [
        &["hook", "install", "--require"][..],
        &["hook", "install"][..],
    ] {
        assert!(text(install).contains(words), "{install:?}");
        assert!(text(&["hook", "status"]).contains(words), "{install:?}");
        let status = stage.ask(&["hook", "status", "--json"]);
        assert_eq!(status.json["require"], true, "{status:?}");
    }
    assert!(!text(&["hook", "install", "--no-require"]).contains(words));
    assert!(!text(&["hook", "status"]).contains(words));
}

#[test]
fn a_refusal_names_the_contract_the_ref_and_the_way_on() {
    let (stage, file) = with_others();
    let base = git(&stage, &["rev-parse", "--short=7", "main~1"]);
    let base = String::from_utf8_lossy(&base.stdout).trim().to_owned();
    let judge = format!("(contract.yaml, bound to branch main from {base}");
    let again = format!("bind it again: provost hook bind {file} --branch main");
    let outside = commit(&stage, "docs/a.txt");
    for words in [&judge, &again] {
        assert!(outside.stderr.contains(words), "{words}: {outside:?}");
    }
    stage.git(&["reset", "-q", "--hard"]);
    let patch = git(&stage, &["format-patch", "-1", "--stdout", "theirs"]);
    stage.put("patch", &patch.stdout);
    let patch = stage.path("patch").display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["merge", "-q", "--no-edit", "theirs"], "git merge --abort"),
        (&["cherry-pick", "theirs"], "git cherry-pick --abort"),
        (&["rebase", "-q", "theirs"], "git rebase --abort"),
        (&["am", "-q", &patch], "git am --abort"),
    ];
    for (words, abort) in cases {
        let refused = git(&stage, words);
        assert_ne!(refused.exit, 0, "{refused:?}");
        assert!(refused.stderr.contains(&judge), "{refused:?}");
        assert!(refused.stderr.contains(abort), "{refused:?}");
        let abort: Vec<&str> = abort.split(' ').skip(1).collect();
        let ended = git(&stage, &abort);
        assert_eq!(ended.exit, 0, "{ended:?}");
        let status = git(&stage, &["status", "--short"]);
        assert_eq!(String::from_utf8_lossy(&status.stdout), "", "{words:?}");
    }
    let remote = stage.path("remote").display().to_string();
    stage.git(&["init", "-q", "--bare", &remote]);
    let none = "core.hooksPath=/dev/null";
    stage.git(&["-c", none, "merge", "-q", "--no-edit", "theirs"]);
    let pushed = git(&stage, &["push", "-q", &remote, "main"]);
    assert!(pushed.stderr.contains("push of `main` at "), "{pushed:?}");
    assert!(!pushed.stderr.contains("--abort"), "{pushed:?}");
}

#[test]
fn the_work_of_others_comes_in_once_the_contract_is_bound_to_it() {
    let (stage, file) = with_others();
    let bind = [
        "hook", "bind", &file, "--branch", "main", "--base", "theirs",
    ];
    let refused = git(&stage, &["pull", "-q", "--rebase", ".", "theirs"]);
    assert!(refused.stderr.contains("--base REV"), "{refused:?}");
    stage.git(&["rebase", "--abort"]);
    let anew = stage.ask(&bind);
    assert_eq!(anew.exit, 0, "{anew:?}");
    let answer = String::from_utf8_lossy(&anew.stdout).into_owned();
    assert!(answer.contains("bound branch main to "), "{answer}");
    // The branch still stands beside its new base, and the refusal says so.
    let beside = commit(&stage, "src/greet/b.txt");
    assert!(beside.stderr.contains("--base REV"), "{beside:?}");
    stage.git(&["reset", "-q", "--hard"]);
    let pulled = git(&stage, &["pull", "-q", "--rebase", ".", "theirs"]);
    assert_eq!(pulled.exit, 0, "{pulled:?}");
    let inside = commit(&stage, "src/greet/b.txt");
    assert_eq!(inside.exit, 0, "{inside:?}");
}

#[test]
fn a_fast_forward_that_is_refused_names_what_puts_the_files_back() {
    let (stage, _) = with_others();
    let none = "core.hooksPath=/dev/null";
    stage.git(&["-c", none, "reset", "-q", "--hard", "main~1"]);
    let refused = git(&stage, &["merge", "-q", "theirs"]);
    assert!(refused.stderr.contains("git reset --merge"), "{refused:?}");
    stage.git(&["reset", "--merge"]);
    let status = git(&stage, &["status", "--short"]);
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
}

#[test]
fn a_branch_that_is_not_there_cannot_be_bound() {
    let (stage, file) = bound();
    let none = stage.ask(&["hook", "bind", &file, "--branch", "nosuchbranch", "--json"]);
    assert_eq!((none.exit, none.code()), (2, "NOT_FOUND"), "{none:?}");
}
