//! `provost gc`: what goes, and above all what stays.

use std::fs;

use provost_testkit::stage::Stage;

use crate::stage::{GOOD, Person as _, greeting, stage, with_sandbox};

/// The refs of ours, one a line.
fn refs(stage: &Stage) -> String {
    let format = "--format=%(refname)";
    stage.git(&["for-each-ref", format, "refs/provost", "refs/heads/provost"])
}

/// The run whose objective is `objective`.
fn run_of(stage: &Stage, objective: &str) -> String {
    let list = stage.typed(&["runs"]).out().to_owned();
    let line = list.lines().find(|line| line.ends_with(objective)).unwrap();
    line.split(' ').next().unwrap().to_owned()
}

/// A landed run, an accepted one, a refused one with work, and one that left nothing.
fn four() -> Option<Stage> {
    let stage = with_sandbox()?;
    assert_eq!(stage.typed(&greeting("Landed", GOOD)).exit, 0);
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    let more = "sh -c 'echo hello again > src/greet'";
    assert_eq!(stage.typed(&greeting("Accepted", more)).exit, 0);
    let outside = "sh -c 'echo x > elsewhere'";
    assert_eq!(stage.typed(&greeting("Refused", outside)).exit, 1);
    assert_eq!(stage.typed(&greeting("Empty", "true")).exit, 1);
    Some(stage)
}

#[test]
fn what_is_done_with_goes_and_work_that_has_not_landed_stays() {
    let Some(stage) = four() else { return };
    let (before, landed) = (refs(&stage), run_of(&stage, "Landed"));
    let said = stage.typed(&["gc", "--dry-run"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(said.out().starts_with("would remove "), "{said:?}");
    assert_eq!(refs(&stage), before);

    let said = stage.typed(&["gc"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(
        said.out()
            .contains("2 runs left alone: their work has not landed"),
        "{said:?}"
    );
    let after = refs(&stage);
    let stays = |objective: &str| after.contains(&run_of(&stage, objective));
    assert!(!stays("Landed") && !stays("Empty"), "{after}");
    assert!(stays("Accepted") && stays("Refused"), "{after}");
    assert!(
        before.contains(&landed) && after.contains("refs/heads/provost/"),
        "{after}"
    );

    // Nothing that was proven is lost, and what can land still can.
    let shown = stage.typed(&["show", &landed]);
    assert!(
        shown.out().contains("  landed   main, commit "),
        "{shown:?}"
    );
    assert_eq!(stage.typed(&["verify", &landed]).exit, 0);
    assert_eq!(stage.typed(&["diff", &landed]).exit, 0);
    let accepted = run_of(&stage, "Accepted");
    assert_eq!(stage.typed(&["land", &accepted]).exit, 0);
    let again = stage.typed(&["gc"]);
    assert!(
        again.out().contains("1 run left alone: its work"),
        "{again:?}"
    );
    assert!(!refs(&stage).contains(&accepted));
    let idle = stage.typed(&["gc"]);
    assert!(idle.out().starts_with("removed 0 refs"), "{idle:?}");
}

#[test]
fn an_age_takes_work_as_well_and_bundles_only_if_asked() {
    let Some(stage) = four() else { return };
    let young = stage.typed(&["gc", "--older-than", "1h"]);
    assert!(young.out().starts_with("removed 0 refs"), "{young:?}");
    assert!(
        young
            .out()
            .contains("4 runs left alone: they are not that old"),
        "{young:?}"
    );
    let kept = stage.typed(&["gc", "--keep", "4"]);
    assert!(kept.out().starts_with("removed 0 refs"), "{kept:?}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let old = stage.typed(&["gc", "--older-than", "1s", "--keep", "1"]);
    assert_eq!(old.exit, 0, "{old:?}");
    let refs = refs(&stage);
    assert!(
        refs.lines()
            .all(|name| name.contains(&run_of(&stage, "Empty"))),
        "{refs}"
    );
    assert_eq!(stage.typed(&["runs"]).out().lines().count(), 5);
    let all = stage.typed(&["gc", "--older-than", "1s", "--bundles"]);
    assert_eq!(all.exit, 0, "{all:?}");
    assert!(stage.typed(&["runs"]).out().starts_with("no runs yet"));
    assert!(!stage.path("repo/.provost/removed").exists());
}

#[test]
fn a_run_that_never_began_goes_after_a_while() {
    let stage = stage();
    stage.typed(&["init"]);
    let run = stage.path("repo/.provost/runs/run_20260101_000000_abcdef123456");
    fs::create_dir_all(&run).unwrap();
    let shown = stage.typed(&["show", "last"]);
    assert!(shown.stderr.contains("never began"), "{shown:?}");
    let resumed = stage.typed(&["resume", "last"]);
    assert!(resumed.stderr.contains("never began"), "{resumed:?}");
    let said = stage.typed(&["gc"]);
    assert!(said.out().contains("1 run left alone"), "{said:?}");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    let directory = fs::File::open(&run).unwrap();
    directory.set_modified(long_ago).unwrap();
    let said = stage.typed(&["gc"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(!run.exists(), "{said:?}");
}

#[test]
fn what_is_still_in_use_is_not_removed() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    // A landed run whose branch exists again and has moved.
    assert_eq!(stage.typed(&greeting("Landed", GOOD)).exit, 0);
    let branch = stage.git(&["for-each-ref", "--format=%(refname)", "refs/heads/provost"]);
    let branch = branch.trim();
    let commit = stage.git(&["rev-parse", branch]);
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    stage.git(&["update-ref", branch, "HEAD~1"]);
    let said = stage.typed(&["gc"]);
    assert!(
        said.out().contains("(it has moved since the run)"),
        "{said:?}"
    );
    stage.git(&["update-ref", branch, commit.trim()]);
    let work = stage.path("work").display().to_string();
    stage.git(&[
        "worktree",
        "add",
        "--quiet",
        &work,
        branch.trim_start_matches("refs/heads/"),
    ]);
    let said = stage.typed(&["gc"]);
    assert!(said.out().contains("(it is checked out)"), "{said:?}");
    stage.git(&["worktree", "remove", &work]);
    let said = stage.typed(&["gc"]);
    assert!(said.out().starts_with("removed 1 ref, "), "{said:?}");

    // A landing that was taken back is work again.
    assert_eq!(
        stage
            .typed(&greeting("Reset", "sh -c 'echo hello you > src/greet'"))
            .exit,
        0
    );
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    stage.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let said = stage.typed(&["gc"]);
    assert!(
        said.out()
            .contains("1 run left alone: its work has not landed"),
        "{said:?}"
    );
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
}

#[test]
fn runs_that_have_not_ended_or_cannot_be_read_stay_and_a_broken_sweep_is_finished() {
    let Some(stage) = four() else { return };
    // As if the driver had died before the seal, the ledger were torn, the bundle were gone.
    let run = |objective: &str| {
        let tail = run_of(&stage, objective);
        let runs = fs::read_dir(stage.path("repo/.provost/runs")).unwrap();
        let mut paths = runs.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.display().to_string().contains(&format!("_{tail}")))
            .unwrap()
    };
    let (open, torn, gone) = (run("Landed"), run("Empty"), run("Refused"));
    fs::remove_file(open.join("attestation.dsse.json")).unwrap();
    fs::write(torn.join("events.jsonl"), "{}\n").unwrap();
    fs::remove_dir_all(&gone).unwrap();
    let before = refs(&stage);
    // What an interrupted sweep leaves.
    let aside = stage.path("repo/.provost/removed/run_x");
    fs::create_dir_all(&aside).unwrap();
    fs::write(aside.join("events.jsonl"), "12345").unwrap();
    let said = stage.typed(&["gc", "--bundles", "--dry-run"]);
    assert!(
        said.out()
            .starts_with("would remove 0 refs, 1 directory; 5 bytes\n"),
        "{said:?}"
    );
    assert!(aside.exists());
    let said = stage.typed(&["gc", "--bundles"]);
    for words in [
        "1 run left alone: it has not ended",
        "1 run left alone: it cannot be read",
        "1 run left alone: its work has not landed",
        "2 refs left alone: the bundle of the run is not here",
    ] {
        assert!(said.out().contains(words), "{words}: {said:?}");
    }
    assert!(!aside.exists() && open.exists() && torn.exists());
    assert_eq!(refs(&stage), before);
}
