//! What is bound to nothing starts no program and is not slowed.

use std::fs;
use std::time::{Duration, Instant};

use super::bound::{BoundStage, Mode, UNHOOKED};
use super::git;

/// How long `words` take.
fn once(stage: &BoundStage, words: &[&str]) -> Duration {
    let began = Instant::now();
    let done = git(&stage.inner, words);
    assert_eq!(done.exit, 0, "{words:?}: {done:?}");
    began.elapsed()
}

/// From here on the hook is broken for every ref that it asks the program about.
fn trap(stage: &BoundStage) {
    let hook = stage.inner.path("repo/.git/hooks/reference-transaction");
    let script = fs::read_to_string(&hook).unwrap();
    let line = script.lines().find(|line| line.starts_with("provost="));
    fs::write(&hook, script.replace(line.unwrap(), "provost=/nowhere")).unwrap();
    let update = ["update-ref", "refs/heads/main", &stage.inside];
    let refused = git(&stage.inner, &update);
    assert!(
        refused.exit != 0 && refused.stderr.contains("HOOK_BROKEN"),
        "{refused:?}"
    );
}

#[test]
fn a_fetch_and_a_clean_up_start_no_program() {
    for mode in [Mode::Checkout, Mode::RequiredBranch] {
        let stage = BoundStage::new(mode);
        stage.plain(&["branch", "other", &stage.outside]);
        stage.plain(&["push", "-q", &stage.remote, "main", "other"]);
        // More refs than the hook reads line by line.
        for number in 0..40 {
            let name = format!("HEAD:refs/heads/more/{number}");
            stage.plain(&["push", "-q", &stage.remote, &name]);
        }
        trap(&stage);
        // So that the bound branch is packed, and its loose file goes.
        stage.plain(&["update-ref", "refs/heads/main", &stage.inside]);
        let all = "refs/heads/*:refs/remotes/r/*";
        for words in [
            &["fetch", "-q", &stage.remote, all][..],
            &["tag", "light", &stage.outside],
            &["stash", "list"],
            &["branch", "-q", "another"],
            &["gc", "-q", "--prune=now"],
            &["pack-refs", "--all"],
            &["branch", "-q", "-m", "another", "renamed"],
            &["branch", "-q", "-D", "renamed"],
            &["remote", "add", "r", &stage.remote],
            &["fetch", "-q", "--prune", "r"],
        ] {
            let done = git(&stage.inner, words);
            assert_eq!(done.exit, 0, "{mode:?} {words:?}: {done:?}");
        }
    }
}

#[test]
fn the_move_of_an_unbound_ref_is_not_slowed() {
    let stage = BoundStage::new(Mode::Checkout);
    let update = ["update-ref", "refs/remotes/r/x", &stage.inside];
    let without: Vec<&str> = UNHOOKED.iter().chain(&update).copied().collect();
    // The shortest of many turns: on a busy machine the others are about the machine.
    let turns = (0..25).map(|_| (once(&stage, &update), once(&stage, &without)));
    let (with, without): (Vec<Duration>, Vec<Duration>) = turns.unzip();
    let (with, without) = (with.iter().min().unwrap(), without.iter().min().unwrap());
    assert!(
        *with < *without + Duration::from_millis(10),
        "{with:?} with hooks, {without:?} without"
    );
}
