//! Looking at runs afterwards.

use crate::stage::{GOOD, Person as _, greeting, with_sandbox};

#[test]
fn a_run_is_shown_with_what_was_asked_changed_tested_and_kept() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let agent = "sh -c 'echo at work; echo hello > src/greet; echo new > src/more'";
    assert_eq!(stage.typed(&greeting("Greet people", agent)).exit, 0);
    let shown = stage.typed(&["show"]);
    let wanted = [
        "accepted: ",
        "  asked    Greet people\n",
        "  began    20",
        " UTC, ",
        "  took     ",
        ", the agent ",
        "  changed  2 files, tree ",
        "           M src/greet  +1 -1\n",
        "           A src/more  +1 -0\n",
        "  tests    red→green\n",
        "           grep -q hello src/greet passed in ",
        "  bundle   .provost/runs/",
        "/stdout.1.log, 8 bytes\n",
        "  branch   provost/run_",
        "next: provost diff ",
        "next: provost land ",
    ];
    let mut rest = shown.out();
    for want in wanted {
        let Some((_, after)) = rest.split_once(want) else {
            panic!("{want} is not in {rest}, of {shown:?}");
        };
        rest = after;
    }
    let json = stage.typed(&["show", "--json"]).out().to_owned();
    for want in [
        "\"added\":1",
        "\"agent_ms\":",
        "\"took_ms\":",
        "\"wall_ms\":",
    ] {
        assert!(json.contains(want), "{want}: {json}");
    }
}

#[test]
fn runs_are_listed_newest_first_with_their_age() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    stage.typed(&greeting("First", "true"));
    stage.typed(&greeting("Second", GOOD));
    let said = stage.typed(&["runs"]);
    let lines: Vec<&str> = said.out().lines().collect();
    assert_eq!(lines[0], "RUN        AGE  OUTCOME             OBJECTIVE");
    assert!(
        lines[1].ends_with("s  ACCEPTED            Second"),
        "{said:?}"
    );
    assert!(
        lines[2].ends_with("s  EMPTY_DIFF          First"),
        "{said:?}"
    );
    // What stands there is enough to name the run.
    let run = lines[2].split(' ').next().unwrap();
    let shown = stage.typed(&["show", run]);
    assert!(shown.out().contains("asked    First"), "{shown:?}");
}

#[test]
fn all_that_is_kept_of_a_run_is_restored_and_a_lost_attempt_is_not_called_accepted() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    assert_eq!(stage.typed(&greeting("Greet", GOOD)).exit, 0);
    let kept = stage.git(&["for-each-ref", "--format=%(refname)", "refs/provost/runs"]);
    let run = kept.split('/').nth(3).unwrap();
    // As if the driver had died during a first attempt.
    let salvaged = format!("refs/provost/salvage/{run}/1");
    stage.git(&["update-ref", &salvaged, kept.trim()]);
    let list = stage.typed(&["salvage", "list"]).out().to_owned();
    assert!(
        list.contains("/1  ATTEMPT_LOST            Greet\n"),
        "{list}"
    );
    assert!(
        list.contains("/1  ACCEPTED                Greet\n"),
        "{list}"
    );
    let restored = stage.typed(&["salvage", "restore", "last"]);
    assert_eq!(restored.exit, 0, "{restored:?}");
    let branches = stage.git(&["branch", "--list", "provost/salvage-*"]);
    assert_eq!(branches.lines().count(), 2, "{branches}");

    // Restoring twice is fine; restoring over a branch that has moved is refused.
    let branch = format!("refs/heads/provost/salvage-salvage-{run}-1");
    assert_eq!(stage.typed(&["salvage", "restore", &salvaged]).exit, 0);
    stage.git(&["update-ref", &branch, "main"]);
    let refused = stage.typed(&["salvage", "restore", "last"]);
    assert_eq!(refused.exit, 2, "{refused:?}");
    assert!(refused.stderr.contains("exists already"), "{refused:?}");
    assert_eq!(
        stage.git(&["rev-parse", &branch]),
        stage.git(&["rev-parse", "main"])
    );

    // Landed work is no longer listed as salvage; the lost attempt is.
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    let list = stage.typed(&["salvage", "list"]).out().to_owned();
    assert!(
        list.contains("ATTEMPT_LOST") && !list.contains("ACCEPTED"),
        "{list}"
    );
}
