//! The cache or the state of a user is gone, or lies elsewhere than before.

use std::fs;
use std::os::unix::fs::symlink;

use provost_testkit::stage::Outcome;

use crate::stage::Users;

const BASE: &[(&str, &str)] = &[
    ("src/a.txt", "base\n"),
    ("check.sh", "grep -q good src/a.txt\n"),
];

fn accepted(stage: &Users) {
    stage.repository("victim/repo", BASE);
    let words = [
        "run",
        "x",
        "--allow",
        "src",
        "--accept",
        "sh check.sh",
        "--agent-cmd",
        "sh -c 'echo good > src/a.txt'",
        "--json",
    ];
    let outcome = stage.ask("victim", "victim/repo", &words);
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
}

/// Calls the program with its state in `directory`.
fn with_state(stage: &Users, directory: &str, words: &[&str]) -> Outcome {
    let mut command = stage.call("victim", "victim/repo", words);
    command.env("XDG_STATE_HOME", stage.path(directory));
    stage.spawn(command).wait()
}

#[test]
fn a_landing_needs_no_cache_that_is_there() {
    let stage = Users::new();
    accepted(&stage);
    stage.copy("victim/repo", "victim/copied");
    fs::remove_dir_all(stage.path("victim/.cache")).unwrap();
    for place in ["victim/copied", "victim/repo"] {
        let landed = stage.ask("victim", place, &["land", "last"]);
        assert_eq!(landed.exit, 0, "{place}: {landed:?}");
        assert!(landed.says("landed: main"), "{place}: {landed:?}");
        let again = stage.ask("victim", place, &["land", "last"]);
        assert_eq!(again.exit, 0, "{place}: {again:?}");
        assert!(again.says("landed before"), "{place}: {again:?}");
    }
}

#[test]
fn a_lost_secret_is_named_before_anything_is_moved_away() {
    let stage = Users::new();
    accepted(&stage);
    let lost = with_state(&stage, "victim/other", &["land", "last"]);
    assert!(lost.says("ROOT_UNSAFE"), "{lost:?}");
    assert!(lost.says("victim/other/provost/secret"), "{lost:?}");
    let hint = lost.stderr.lines().find(|line| line.starts_with("hint:"));
    let hint = hint.unwrap();
    let (check, mv) = (hint.find("XDG_STATE_HOME"), hint.find("`mv "));
    assert!(check.is_some() && check < mv, "{hint}");
    for words in [["status"], ["runs"]] {
        let answer = with_state(&stage, "victim/other", &words);
        assert_eq!(answer.exit, 0, "{answer:?}");
        assert!(
            answer.says("note: 1 run here is FOREIGN"),
            "{words:?}: {answer:?}"
        );
        assert!(answer.says("RUN_FOREIGN"), "{words:?}: {answer:?}");
        assert!(
            answer.says("victim/other/provost/secret"),
            "{words:?}: {answer:?}"
        );
        assert!(!answer.says("no active runs"), "{answer:?}");
    }
    let own = stage.ask("victim", "victim/repo", &["runs"]);
    assert!(!own.says("FOREIGN"), "{own:?}");
}

#[test]
fn a_state_directory_that_cannot_be_used_is_what_is_refused() {
    let stage = Users::new();
    accepted(&stage);
    stage.write("victim/file", "no directory\n");
    let words: [&[&str]; 2] = [&["land", "last"], &["retry", "last"]];
    symlink("nowhere", stage.path("victim/dangling")).unwrap();
    for (state, words) in ["victim/file", "victim/dangling"].into_iter().zip(words) {
        let refused = with_state(&stage, state, words);
        assert_eq!(refused.exit, 4, "{words:?}: {refused:?}");
        assert!(
            refused.says(&format!("{state}/provost")),
            "{words:?}: {refused:?}"
        );
        assert!(!refused.says("`mv "), "{words:?}: {refused:?}");
    }
    let new = stage.path("victim/repo/.provost");
    fs::rename(&new, stage.path("victim/away")).unwrap();
    let words = [
        "run",
        "x",
        "--allow",
        "src",
        "--accept",
        "true",
        "--agent-cmd",
        "true",
    ];
    let refused = with_state(&stage, "victim/file", &words);
    assert_eq!(refused.exit, 4, "{refused:?}");
    assert!(refused.says("victim/file/provost"), "{refused:?}");
}

/// The hint is a command that can be pasted as it is, from any directory of any checkout.
#[test]
fn what_is_said_of_a_tracked_root_can_be_done_as_it_is() {
    for (repo, staged) in [("victim/repo", false), ("victim/it's mine", true)] {
        let stage = Users::new();
        let files = [(".provost/runs/x", "x"), ("sub/a.txt", "a\n")];
        stage.repository(repo, &files);
        if staged {
            // Taken out of the index, and still in the last commit.
            stage.git_in(repo, &["rm", "-r", "-q", "--cached", ".provost"]);
        }
        let below = format!("{repo}/sub");
        let refused = stage.ask("victim", &below, &["status"]);
        let hint = refused
            .stderr
            .lines()
            .find_map(|it| it.strip_prefix("hint: "));
        let hint = hint.unwrap_or_else(|| panic!("{refused:?}"));
        let doctor = stage.ask("victim", &below, &["doctor"]);
        assert!(doctor.says(hint), "{doctor:?}");
        let mut shell = stage.command("sh");
        shell.args(["-c", hint]).current_dir(stage.path(&below));
        let done = stage.spawn(shell).wait();
        assert_eq!(done.exit, 0, "{hint}: {done:?}");
        let made = stage.ask("victim", &below, &["init"]);
        assert_eq!(made.exit, 0, "{hint}: {made:?}");
    }
}
