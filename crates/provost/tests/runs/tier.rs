//! Runs in sandboxes without namespaces: asked for, permitted by the policy, and reported
//! in every answer.

use serde_json::Value;

use crate::stage::{Ask, Stage, is_root, lacks};

/// The policy that accepts such sandboxes.
const POLICY: &[(&str, &str)] = &[("provost.toml", "[box]\nleast_tier = \"landlock\"\n")];

/// Tries the outside, and then does honest work.
const WORK: &str = "echo good > src/a.txt; cat @OUTSIDE@/canary; echo owned > @OUTSIDE@/canary
    cat @HOME@/secret; ls @REPO@; echo x > \"$HOME/mine\"; echo x > \"$TMPDIR/mine\"
    git status --porcelain; git log --oneline; git add -A; git commit -qm mine
    test -r \"$PROVOST_CONTRACT\" && echo contract is there
    setsid sleep 60 &";

fn check(stage: &Stage) {
    stage.commit(POLICY);
    stage.write("outside/canary", "outside\n");
    let before = stage.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = stage.run(WORK, &ask);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let printed = stage.printed();
    assert!(printed.contains("contract is there"), "{printed}");
    assert!(printed.contains("src/a.txt"), "git works inside: {printed}");
    assert!(!printed.contains("outside\n"), "{printed}");
    stage.assert_clean(&before, "landlock");

    let run = outcome.text("run_id");
    assert_eq!(stage.verify(run).exit, 0);
    let shown = stage.ask(&["show", "--json", run]).json;
    assert_eq!(shown["sandbox"]["tier"], "landlock", "{shown}");
    let holes = shown["sandbox"]["holes"].as_array().unwrap();
    assert!(!holes.is_empty());
    let text = std::fs::read(stage.evidence(run, "attestation.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&text).unwrap();
    assert!(envelope["payload"].is_string());
    let ledger = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    assert!(ledger.contains("\"tier\":\"landlock\""), "{ledger}");
    assert!(ledger.contains(holes[0].as_str().unwrap()), "{ledger}");
}

#[test]
fn a_run_in_a_sandbox_without_namespaces_is_honest_about_it() {
    check(&Stage::new());
}

#[test]
fn a_run_in_a_sandbox_without_namespaces_works_for_an_ordinary_user() {
    // Without root, the test above has already run as an ordinary user.
    if is_root() && !lacks("setpriv") {
        let stage = Stage::of_nobody();
        stage.copy_binary();
        check(&stage);
    }
}

#[cfg(feature = "failpoints")]
#[test]
fn an_older_landlock_is_named_wherever_its_run_is() {
    use crate::stage::run_arguments;

    let stage = Stage::new();
    let with_version_2 = |words: &[&str]| {
        let mut command = stage.provost(words);
        command.env("PROVOST_TEST_LANDLOCK", "2");
        stage.spawn(command).wait()
    };
    let agent =
        stage.agent("mkdir src/b; echo good > src/b/a.txt; mv src/b/a.txt src; rmdir src/b");
    let outcome = with_version_2(&run_arguments(&agent, &Ask::default()));
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let run = outcome.text("run_id");
    assert_eq!(stage.verify(run).exit, 0);

    let shown = stage.ask(&["show", "--json", run]).json;
    assert_eq!(shown["sandbox"]["landlock"], 2, "{shown}");
    let gaps = shown["sandbox"]["sealed_gaps"].as_array().unwrap();
    assert_eq!(gaps.len(), 5, "{shown}");
    assert_eq!(shown["sandbox"]["holes"], serde_json::json!([]));
    let text = stage.ask(&["show", run]);
    let words = "landlock version 2, 5 gaps closed by other means";
    assert!(text.out().contains(words), "{text:?}");
    for file in ["events.jsonl", "sandbox/selftest.json"] {
        let text = std::fs::read_to_string(stage.evidence(run, file)).unwrap();
        assert!(text.contains(gaps[0].as_str().unwrap()), "{file}: {text}");
    }

    // A test with this version says nothing about a sandbox with a newer one.
    let newer = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!((newer.code(), newer.exit), ("OK", 0), "{newer:?}");
    let newer = stage.ask(&["show", "--json", newer.text("run_id")]).json;
    assert_ne!(newer["sandbox"]["landlock"], 2, "{newer}");

    let doctor = with_version_2(&["doctor", "--json"]).json;
    let rows = doctor["rows"].as_array().unwrap();
    let sealed = rows.iter().filter(|row| row["state"] == "sealed");
    assert_eq!(sealed.count(), 5, "{doctor}");

    let refused = with_version_2(&["sandbox", "--tier", "landlock", "--", "true"]);
    assert!(
        refused.says("landlock of version 6 is needed, not 2"),
        "{refused:?}"
    );
}

#[test]
fn a_weaker_sandbox_than_the_policy_accepts_is_refused() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("CONTRACT_INVALID", 1),
        "{outcome:?}"
    );
    assert!(
        outcome.json.to_string().contains("least_tier"),
        "{outcome:?}"
    );
    stage.assert_clean(&before, "refused");
}

#[test]
fn a_policy_with_steps_of_preparation_is_refused_before_anything_is_done() {
    let stage = Stage::new();
    let policy = "[box]\nleast_tier = \"landlock\"\n[[prepare]]\nrun = \"mkdir deps\"\n\
        inputs = [\"src\"]\noutputs = [\"deps\"]\n";
    stage.commit(&[("provost.toml", policy)]);
    let before = stage.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = stage.run("echo good > src/a.txt", &ask);
    let want = ("CONTRACT_INVALID", 1);
    assert_eq!((outcome.code(), outcome.exit), want, "{outcome:?}");
    let reported = outcome.json.to_string();
    assert!(reported.contains("take tier `namespaces`"), "{reported}");
    let run = outcome.text("run_id");
    let ledger = std::fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    assert!(!ledger.contains("STEP_STARTED"), "{ledger}");
    stage.assert_clean(&before, "refused");
}
