//! The fleet against a real Temporal server, with real processes that are killed and frozen.

#![expect(clippy::unwrap_used, reason = "what goes wrong here is a failed test")]

mod stage;

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use stage::Fleet;

#[test]
fn runs_land_once_and_a_refusal_is_a_result() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    fleet.start("beta");
    let tip = fleet.git("hub.git", &["rev-parse", "main"]);
    let one = fleet.submit("one", "src/one.txt 0 first", "src/one.txt");
    let two = fleet.submit("two", "src/two.txt 0 second", "src/two.txt");
    let outside = fleet.submit("outside", "check.sh 0 true", "src");
    assert!(fleet.end(&one).starts_with("landed"), "{}", fleet.end(&one));
    // The other one moved its target, so it was judged again on top of it.
    assert!(fleet.end(&two).starts_with("landed"), "{}", fleet.end(&two));
    let refused = fleet.end(&outside);
    assert!(refused.starts_with("refused (DIFF_REFUSED)"), "{refused}");
    let range = format!("{tip}..main");
    let landed = fleet.git("hub.git", &["log", "--format=%b", &range]);
    assert_eq!(landed.matches("Provost-Run: ").count(), 2, "{landed}");
    assert_eq!(fleet.git("hub.git", &["show", "main:src/one.txt"]), "first");
    assert_eq!(
        fleet.git("hub.git", &["show", "main:src/two.txt"]),
        "second"
    );
    // The id of a run is used once, also after its end.
    let again = fleet.as_user(&["submit", "--run", &one]);
    let words = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(words.contains("error[TICKET_DUPLICATE]"), "{words}");
    // No key of any machine is in what the hub or the server has.
    let hub = fleet.git("hub.git", &["log", "--all", "-p", "--format=%B"]);
    let history = String::from_utf8_lossy(&fs::read(fleet.path("server.db")).unwrap()).into_owned();
    for machine in ["user", "alpha", "beta", "lander"] {
        let key = fs::read_to_string(fleet.path(&format!("{machine}/keys/signing.key"))).unwrap();
        let secret = key.split([':', ' ']).nth(1).unwrap().trim();
        assert!(secret.len() > 20 && !hub.contains(secret) && !history.contains(secret));
    }
}

#[test]
fn a_killed_worker_costs_an_attempt_and_no_work() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let run = fleet.submit("killed", "src/a.txt 6 done", "src");
    fleet.until_working("alpha", &run);
    fleet.kill("alpha");
    fleet.start("beta");
    let end = fleet.end(&run);
    assert!(end.starts_with("landed") && end.ends_with("(1.2)"), "{end}");
    assert_eq!(fleet.git("hub.git", &["show", "main:src/a.txt"]), "done");
}

#[test]
fn a_restarted_worker_adopts_the_child_that_is_still_alive() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let run = fleet.submit("adopted", "src/a.txt 7 done", "src");
    fleet.until_working("alpha", &run);
    fleet.kill("alpha");
    fleet.start("alpha");
    // The evidence is of the first attempt, although the second one reported it.
    let end = fleet.end(&run);
    assert!(end.starts_with("landed") && end.ends_with("(1.1)"), "{end}");
}

#[test]
fn the_late_result_of_a_frozen_worker_is_dropped() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let run = fleet.submit("frozen", "src/a.txt 4 done", "src");
    fleet.until_working("alpha", &run);
    fleet.signal("alpha", Signal::STOP);
    fleet.start("beta");
    let end = fleet.end(&run);
    // The server may have given the second attempt to the frozen worker, which had asked for work.
    assert!(
        end.starts_with("landed") && !end.ends_with("(1.1)"),
        "{end}"
    );
    let tip = fleet.git("hub.git", &["rev-parse", "main"]);
    fleet.signal("alpha", Signal::CONT);
    // The thawed worker is cancelled or pushes to refs of its own; nothing that counts changes.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(fleet.git("hub.git", &["rev-parse", "main"]), tip);
    assert_eq!(fleet.end(&run), end);
}

#[test]
fn a_cancelled_run_ends_with_its_evidence() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let run = fleet.submit("cancelled", "src/a.txt 40 done", "src");
    fleet.until_working("alpha", &run);
    let waiting = fleet.submit("waiting", "src/a.txt 0 next", "src");
    assert!(fleet.as_user(&["cancel", &run]).status.success());
    assert_eq!(fleet.end(&run), "cancelled");
    assert!(
        fleet.refs(&run).contains("1.1/bundle"),
        "{}",
        fleet.refs(&run)
    );
    // Its lease was given back.
    let end = fleet.end(&waiting);
    assert!(end.starts_with("landed") && end.ends_with("(2.1)"), "{end}");
}

#[test]
fn a_server_or_a_hub_that_is_away_for_a_while_loses_nothing() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let run = fleet.submit("away", "src/a.txt 4 done", "src");
    fleet.until_working("alpha", &run);
    let hub = fleet.path("hub.git");
    fs::rename(&hub, fleet.path("away.git")).unwrap();
    fleet.kill("server");
    let contract = fleet.contract("later", "src/b.txt 0 x", "src/b.txt");
    let refused = fleet.as_user(&["submit", "-f", &contract.display().to_string()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("error[HUB_UNREACHABLE]"));
    std::thread::sleep(Duration::from_millis(500));
    fleet.start("server");
    std::thread::sleep(Duration::from_secs(5));
    fs::rename(fleet.path("away.git"), &hub).unwrap();
    let end = fleet.end(&run);
    assert!(end.starts_with("landed"), "{end}");
    assert_eq!(fleet.git("hub.git", &["show", "main:src/a.txt"]), "done");
}

/// Runs to the point where the evidence is at the hub, with the lander away.
fn pushed(fleet: &mut Fleet, name: &str) -> String {
    fleet.start("alpha");
    let run = fleet.submit(name, "src/a.txt 3 done", "src");
    fleet.until_working("alpha", &run);
    fleet.kill("lander");
    let fleet = &*fleet;
    fleet.until("the evidence is pushed", || {
        fleet.refs(&run).contains("/bundle")
    });
    run
}

#[test]
fn altered_evidence_does_not_land() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    let run = pushed(&mut fleet, "altered");
    let name = format!("refs/provost/fleet/{run}/1.1/bundle");
    fleet.git("work", &["fetch", "-q", "../hub.git", &name]);
    fleet.git(
        "work",
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            "../bundle",
            "FETCH_HEAD",
        ],
    );
    let patch = fleet.path("bundle/patch.diff");
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("done", "evil")).unwrap();
    fleet.git("bundle", &["commit", "-q", "-a", "-m", "evil"]);
    fleet.git(
        "bundle",
        &[
            "push",
            "-q",
            "--force",
            "../hub.git",
            &format!("HEAD:{name}"),
        ],
    );
    fleet.start("lander");
    let end = fleet.end(&run);
    assert!(end.starts_with("refused (EVIDENCE_ALTERED)"), "{end}");
    assert_eq!(fleet.git("hub.git", &["show", "main:src/a.txt"]), "base");
}

#[test]
fn a_key_that_is_revoked_before_the_landing_does_not_count() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    let run = pushed(&mut fleet, "revoked");
    let revoked = fleet.as_user(&["keys", "revoke", "workers", "alpha"]);
    assert!(revoked.status.success(), "{revoked:?}");
    fleet.git("work", &["commit", "-q", "-a", "-m", "Revoke alpha"]);
    fleet.git("work", &["push", "-q", "../hub.git", "HEAD:main"]);
    fleet.start("lander");
    let end = fleet.end(&run);
    assert!(end.starts_with("refused (FLEET_KEY_REFUSED)"), "{end}");
    assert_eq!(fleet.git("hub.git", &["show", "main:src/a.txt"]), "base");
}

#[test]
fn a_ticket_of_an_unknown_key_and_a_wrong_clock_start_nothing() {
    let Some(mut fleet) = Fleet::new() else {
        return;
    };
    fleet.start("alpha");
    let contract = fleet.contract("forged", "src/a.txt 0 done", "src");
    let forge = |variable: &str, value: String| {
        let mut submit = fleet.command("user");
        submit
            .args(["submit", "--detach", "-f"])
            .arg(&contract)
            .env(variable, value);
        let done = submit.output().unwrap();
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    // The key of a worker is listed, and not for tickets.
    let run = forge(
        "PROVOST_KEYS",
        fleet.path("beta/keys").display().to_string(),
    );
    let end = fleet.end(&run);
    assert!(
        end.contains("TICKET_REFUSED") && end.contains("[fleet.submitters]"),
        "{end}"
    );
    let hour = 3_600_000;
    let run = forge("PROVOST_FLEET_CLOCK_OFFSET_MS", hour.to_string());
    let end = fleet.end(&run);
    assert!(
        end.contains("TICKET_REFUSED") && end.contains("in the future"),
        "{end}"
    );
    assert_eq!(fleet.git("hub.git", &["show", "main:src/a.txt"]), "base");
}
