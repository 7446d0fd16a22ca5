//! `provost check` by hand.

use std::fs;

use crate::stage::{Person as _, stage};

#[test]
fn a_scope_that_needs_more_than_itself_says_so() {
    let stage = stage();
    let said = stage.typed(&["check", "scope", "src", ".env", "CLAUDE.md"]);
    assert_eq!(said.exit, 0, "{said:?}");
    insta::assert_snapshot!(said.out(), @r"
    ok: every entry can be used
      note: `.env` steers git, Provost or secrets; no contract lets it change
      note: `CLAUDE.md` instructs agents; it changes only with `--permit-governing` as well
    ");
}

#[test]
fn our_own_directory_is_one_line_without_a_snapshot_and_none_with_one() {
    let stage = stage();
    let base = stage.git(&["rev-parse", "HEAD"]);
    let check = |more: &[&str]| {
        let mut words = vec!["check", "diff", "--worktree", ".", "--allow", "src"];
        words.extend(["--base", base.trim()]);
        words.extend(more);
        stage.typed(&words)
    };
    fs::create_dir_all(stage.path("repo/.provost/runs")).unwrap();
    for number in 0..50 {
        stage.write(&format!("repo/.provost/runs/{number}"), "a record\n");
    }
    let said = check(&[]);
    assert_eq!(said.exit, 1, "{said:?}");
    insta::assert_snapshot!(said.out(), @r"
    error[DIFF_REFUSED]: `.provost` holds 50 files, and only a snapshot from before the work (--before) can tell that they are Provost's own
    hint: provost explain DIFF_REFUSED
    ");
    let before = stage.path("home/before.json").display().to_string();
    let taken = stage.typed(&["snapshot", "--control", ".", "--out", &before]);
    assert_eq!(taken.exit, 0, "{taken:?}");
    let said = check(&["--before", &before]);
    assert_eq!(said.exit, 0, "{said:?}");

    // Once git tracks it, the directory is judged like any other change.
    stage.git(&["add", "--force", ".provost/runs/7"]);
    let said = check(&["--before", &before]);
    assert_eq!(said.exit, 1, "{said:?}");
    assert!(said.out().contains(".provost/runs/7"), "{said:?}");
    stage.git(&["commit", "--quiet", "--message=Sneak"]);
    let said = check(&["--before", &before]);
    assert!(said.out().contains(".provost/runs/7"), "{said:?}");
}

#[test]
fn every_kind_of_check_shows_how_it_is_called() {
    let stage = stage();
    let help = stage.typed(&["check", "--help"]).out().to_owned();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let kinds = list.lines().take_while(|line| !line.is_empty());
    let kinds: Vec<&str> = kinds
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(kinds.len() > 15, "{kinds:?}");
    for kind in kinds.iter().filter(|kind| **kind != "help") {
        let help = stage.typed(&["check", kind, "--help"]).out().to_owned();
        let example = format!("\n  provost check {kind} ");
        assert!(help.contains(&example), "{kind}: {help}");
    }
}
