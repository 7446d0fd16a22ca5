//! `provost gc`: what goes, and above all what stays.

use std::fs;

use crate::desk::{Desk, GOOD, greeting};

/// The refs of ours, one a line.
fn refs(desk: &Desk) -> String {
    let format = "--format=%(refname)";
    desk.git(&["for-each-ref", format, "refs/provost", "refs/heads/provost"])
}

/// The run whose objective is `objective`.
fn run_of(desk: &Desk, objective: &str) -> String {
    let list = desk.provost(&["runs"]).out;
    let line = list.lines().find(|line| line.ends_with(objective)).unwrap();
    line.split(' ').next().unwrap().to_owned()
}

/// A landed run, an accepted one, a refused one with work, and one that left nothing.
fn four() -> Option<Desk> {
    let desk = Desk::with_a_box()?;
    assert_eq!(desk.provost(&greeting("Landed", GOOD)).exit, 0);
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
    let more = "sh -c 'echo hello again > src/greet'";
    assert_eq!(desk.provost(&greeting("Accepted", more)).exit, 0);
    let outside = "sh -c 'echo x > elsewhere'";
    assert_eq!(desk.provost(&greeting("Refused", outside)).exit, 1);
    assert_eq!(desk.provost(&greeting("Empty", "true")).exit, 1);
    Some(desk)
}

#[test]
fn what_is_done_with_goes_and_work_that_has_not_landed_stays() {
    let Some(desk) = four() else { return };
    let (before, landed) = (refs(&desk), run_of(&desk, "Landed"));
    let said = desk.provost(&["gc", "--dry-run"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(said.out.starts_with("would remove "), "{said:?}");
    assert_eq!(refs(&desk), before);

    let said = desk.provost(&["gc"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(
        said.out
            .contains("2 runs left alone: their work has not landed"),
        "{said:?}"
    );
    let after = refs(&desk);
    let stays = |objective: &str| after.contains(&run_of(&desk, objective));
    assert!(!stays("Landed") && !stays("Empty"), "{after}");
    assert!(stays("Accepted") && stays("Refused"), "{after}");
    assert!(
        before.contains(&landed) && after.contains("refs/heads/provost/"),
        "{after}"
    );

    // Nothing that was proven is lost, and what can land still can.
    let shown = desk.provost(&["show", &landed]);
    assert!(shown.out.contains("  landed   main, commit "), "{shown:?}");
    assert_eq!(desk.provost(&["verify", &landed]).exit, 0);
    assert_eq!(desk.provost(&["diff", &landed]).exit, 0);
    let accepted = run_of(&desk, "Accepted");
    assert_eq!(desk.provost(&["land", &accepted]).exit, 0);
    let again = desk.provost(&["gc"]);
    assert!(
        again.out.contains("1 run left alone: its work"),
        "{again:?}"
    );
    assert!(!refs(&desk).contains(&accepted));
    let idle = desk.provost(&["gc"]);
    assert!(idle.out.starts_with("removed 0 refs"), "{idle:?}");
}

#[test]
fn an_age_takes_work_as_well_and_bundles_only_if_asked() {
    let Some(desk) = four() else { return };
    let young = desk.provost(&["gc", "--older-than", "1h"]);
    assert!(young.out.starts_with("removed 0 refs"), "{young:?}");
    assert!(
        young
            .out
            .contains("4 runs left alone: they are not that old"),
        "{young:?}"
    );
    let kept = desk.provost(&["gc", "--keep", "4"]);
    assert!(kept.out.starts_with("removed 0 refs"), "{kept:?}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let old = desk.provost(&["gc", "--older-than", "1s", "--keep", "1"]);
    assert_eq!(old.exit, 0, "{old:?}");
    let refs = refs(&desk);
    assert!(
        refs.lines()
            .all(|name| name.contains(&run_of(&desk, "Empty"))),
        "{refs}"
    );
    assert_eq!(desk.provost(&["runs"]).out.lines().count(), 5);
    let all = desk.provost(&["gc", "--older-than", "1s", "--bundles"]);
    assert_eq!(all.exit, 0, "{all:?}");
    assert!(desk.provost(&["runs"]).out.starts_with("no runs yet"));
    assert!(!desk.at("repository/.provost/removed").exists());
}

#[test]
fn a_run_that_never_began_goes_after_a_while() {
    let desk = Desk::new();
    desk.provost(&["init"]);
    let run = desk.at("repository/.provost/runs/run_20260101_000000_abcdef123456");
    fs::create_dir_all(&run).unwrap();
    let shown = desk.provost(&["show", "last"]);
    assert!(shown.err.contains("never began"), "{shown:?}");
    let resumed = desk.provost(&["resume", "last"]);
    assert!(resumed.err.contains("never began"), "{resumed:?}");
    let said = desk.provost(&["gc"]);
    assert!(said.out.contains("1 run left alone"), "{said:?}");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    let directory = fs::File::open(&run).unwrap();
    directory.set_modified(long_ago).unwrap();
    let said = desk.provost(&["gc"]);
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(!run.exists(), "{said:?}");
}

#[test]
fn nobody_loses_what_they_still_use() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    // A landed run whose branch came back, and somebody went on with.
    assert_eq!(desk.provost(&greeting("Landed", GOOD)).exit, 0);
    let branch = desk.git(&["for-each-ref", "--format=%(refname)", "refs/heads/provost"]);
    let branch = branch.trim();
    let commit = desk.git(&["rev-parse", branch]);
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
    desk.git(&["update-ref", branch, "HEAD~1"]);
    let said = desk.provost(&["gc"]);
    assert!(said.out.contains("(somebody went on with it)"), "{said:?}");
    desk.git(&["update-ref", branch, commit.trim()]);
    let work = desk.at("work").display().to_string();
    desk.git(&[
        "worktree",
        "add",
        "--quiet",
        &work,
        branch.trim_start_matches("refs/heads/"),
    ]);
    let said = desk.provost(&["gc"]);
    assert!(said.out.contains("(it is checked out)"), "{said:?}");
    desk.git(&["worktree", "remove", &work]);
    let said = desk.provost(&["gc"]);
    assert!(said.out.starts_with("removed 1 ref, "), "{said:?}");

    // A landing that was taken back is work again.
    assert_eq!(
        desk.provost(&greeting("Reset", "sh -c 'echo hello you > src/greet'"))
            .exit,
        0
    );
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
    desk.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let said = desk.provost(&["gc"]);
    assert!(
        said.out
            .contains("1 run left alone: its work has not landed"),
        "{said:?}"
    );
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
}

#[test]
fn runs_that_have_not_ended_or_cannot_be_read_stay_and_a_broken_sweep_is_finished() {
    let Some(desk) = four() else { return };
    // As if the driver had died before the seal, the ledger were torn, the bundle were gone.
    let run = |objective: &str| {
        let tail = run_of(&desk, objective);
        let runs = fs::read_dir(desk.at("repository/.provost/runs")).unwrap();
        let mut paths = runs.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.display().to_string().ends_with(&tail))
            .unwrap()
    };
    let (open, torn, gone) = (run("Landed"), run("Empty"), run("Refused"));
    fs::remove_file(open.join("attestation.dsse.json")).unwrap();
    fs::write(torn.join("events.jsonl"), "{}\n").unwrap();
    fs::remove_dir_all(&gone).unwrap();
    let before = refs(&desk);
    // What an interrupted sweep leaves.
    let aside = desk.at("repository/.provost/removed/run_x");
    fs::create_dir_all(&aside).unwrap();
    fs::write(aside.join("events.jsonl"), "12345").unwrap();
    let said = desk.provost(&["gc", "--bundles", "--dry-run"]);
    assert!(
        said.out
            .starts_with("would remove 0 refs, 1 directory; 5 bytes\n"),
        "{said:?}"
    );
    assert!(aside.exists());
    let said = desk.provost(&["gc", "--bundles"]);
    for words in [
        "1 run left alone: it has not ended",
        "1 run left alone: it cannot be read",
        "1 run left alone: its work has not landed",
        "2 refs left alone: the bundle of the run is not here",
    ] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    assert!(!aside.exists() && open.exists() && torn.exists());
    assert_eq!(refs(&desk), before);
}
