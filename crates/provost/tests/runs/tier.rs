//! Runs in sandboxes without namespaces: asked for, permitted by the policy, and told everywhere.

use serde_json::Value;

use crate::scene::{Ask, Scene, is_root, lacks};

/// The policy that accepts such sandboxes.
const POLICY: &[(&str, &str)] = &[("provost.toml", "[box]\nleast_tier = \"landlock\"\n")];

/// Tries the outside, and then does honest work.
const WORK: &str = "echo good > src/a.txt; cat @OUTSIDE@/canary; echo owned > @OUTSIDE@/canary
    cat @HOME@/secret; ls @REPO@; echo x > \"$HOME/mine\"; echo x > \"$TMPDIR/mine\"
    git status --porcelain; git log --oneline; git add -A; git commit -qm mine
    test -r \"$PROVOST_CONTRACT\" && echo contract is there
    setsid sleep 60 &";

fn check(scene: &Scene) {
    scene.commit(POLICY);
    scene.write("outside/canary", "outside\n");
    let before = scene.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = scene.run(WORK, &ask);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let printed = scene.printed();
    assert!(printed.contains("contract is there"), "{printed}");
    assert!(printed.contains("src/a.txt"), "git works inside: {printed}");
    assert!(!printed.contains("outside\n"), "{printed}");
    scene.assert_clean(&before, "landlock");

    let run = outcome.text("run_id");
    assert_eq!(scene.verify(run).exit, 0);
    let shown = scene.ask(&["show", "--json", run]).json;
    assert_eq!(shown["sandbox"]["tier"], "landlock", "{shown}");
    let holes = shown["sandbox"]["holes"].as_array().unwrap();
    assert!(!holes.is_empty());
    let text = std::fs::read(scene.evidence(run, "attestation.dsse.json")).unwrap();
    let envelope: Value = serde_json::from_slice(&text).unwrap();
    assert!(envelope["payload"].is_string());
    let ledger = std::fs::read_to_string(scene.evidence(run, "events.jsonl")).unwrap();
    assert!(ledger.contains("\"tier\":\"landlock\""), "{ledger}");
    assert!(ledger.contains(holes[0].as_str().unwrap()), "{ledger}");
}

#[test]
fn a_run_in_a_sandbox_without_namespaces_is_honest_about_it() {
    check(&Scene::new());
}

#[test]
fn a_run_in_a_sandbox_without_namespaces_works_for_an_ordinary_user() {
    // Where this is no root, the test above was by an ordinary user.
    if is_root() && !lacks("setpriv") {
        let scene = Scene::of_nobody();
        scene.copy_binary();
        check(&scene);
    }
}

#[test]
fn a_weaker_sandbox_than_the_policy_accepts_is_refused() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = scene.run("echo good > src/a.txt", &ask);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("CONTRACT_INVALID", 1),
        "{outcome:?}"
    );
    assert!(
        outcome.json.to_string().contains("least_tier"),
        "{outcome:?}"
    );
    scene.assert_clean(&before, "refused");
}

#[test]
fn a_policy_with_steps_of_preparation_is_refused_before_anything_is_done() {
    let scene = Scene::new();
    let policy = "[box]\nleast_tier = \"landlock\"\n[[prepare]]\nrun = \"mkdir deps\"\n\
        inputs = [\"src\"]\noutputs = [\"deps\"]\n";
    scene.commit(&[("provost.toml", policy)]);
    let before = scene.surroundings();
    let ask = Ask {
        more: &["--tier", "landlock"],
        ..Ask::default()
    };
    let outcome = scene.run("echo good > src/a.txt", &ask);
    let want = ("CONTRACT_INVALID", 1);
    assert_eq!((outcome.code(), outcome.exit), want, "{outcome:?}");
    let told = outcome.json.to_string();
    assert!(told.contains("take tier `namespaces`"), "{told}");
    let run = outcome.text("run_id");
    let ledger = std::fs::read_to_string(scene.evidence(run, "events.jsonl")).unwrap();
    assert!(!ledger.contains("STEP_STARTED"), "{ledger}");
    scene.assert_clean(&before, "refused");
}
