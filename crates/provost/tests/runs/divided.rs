//! Contracts that were divided: what their parts come to together, and how such a chain is called
//! again.

use std::fs;

use serde_json::{Value, json};

use crate::scene::{Outcome, Scene};

/// An agent that writes into the file it may write.
const AGENT: &str = r#"
    path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    echo done >> $path
"#;

/// A command that passes while only one of two files is there.
const APART: &str = "test ! -e src/one.txt || test ! -e src/two.txt\n";

fn scene(check: &str) -> Scene {
    let scene = Scene::new();
    scene.commit(&[
        ("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n"),
        ("check.sh", check),
    ]);
    scene
}

fn contract(scene: &Scene, paths: &[&str]) -> Value {
    let file = scene.path("outside/made.json").display().to_string();
    let mut words = vec!["contract", "new", &file, "Do it", "--timeout", "60s"];
    words.extend(["--accept", "sh check.sh"]);
    words.extend(paths.iter().flat_map(|path| ["--allow", path]));
    let made = scene.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    let contract = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    contract
}

/// Two parts of one contract.
fn divided(scene: &Scene) -> Value {
    let (one, two) = ("src/one.txt", "src/two.txt");
    json!({
        "schema_version": 1,
        "parent": contract(scene, &[one, two]),
        "nodes": [
            { "id": "one", "contract": contract(scene, &[one]) },
            { "id": "two", "contract": contract(scene, &[two]) },
        ],
    })
}

fn call(scene: &Scene, document: &Value, more: &[&str]) -> Outcome {
    scene.write("chain.json", &document.to_string());
    let file = scene.path("chain.json").display().to_string();
    let agent = scene.agent(AGENT);
    let words = ["chain", "-f", &file, "--agent-cmd", &agent, "--json"];
    scene.ask(&[&words, more].concat())
}

fn runs(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.json["nodes"].as_array().unwrap().iter();
    rows.map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn parts_that_fail_together_are_neither_accepted_nor_landed() {
    let scene = scene(APART);
    let document = divided(&scene);
    for _ in 0..2 {
        let outcome = call(&scene, &document, &[]);
        let want = (1, "ACCEPTANCE_FAILED");
        assert_eq!((outcome.exit, outcome.code()), want, "{outcome:?}");
        assert_eq!(outcome.json["together"]["allow"], false, "{outcome:?}");
        let rows = outcome.json["nodes"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["status"] == "accepted"));
        for run in runs(&outcome) {
            let landed = scene.ask(&["land", &run, "--json"]);
            assert_eq!((landed.exit, landed.code()), (1, "CHAIN_NOT_ACCEPTED"));
        }
        let verified = scene.ask(&["verify", outcome.text("chain_id"), "--json"]);
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
    assert_eq!(scene.runs().len(), 2);
    assert!(!scene.path("repo/src/one.txt").exists());
}

#[test]
fn parts_that_hold_together_are_accepted_and_land() {
    let scene = scene("test ! -e src/bad\n");
    let before = scene.surroundings();
    let outcome = call(&scene, &divided(&scene), &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    assert_eq!(outcome.json["together"]["allow"], true, "{outcome:?}");
    scene.assert_clean(&before, "together");
    for run in runs(&outcome) {
        let landed = scene.ask(&["land", &run, "--json"]);
        assert_eq!(landed.exit, 0, "{landed:?}");
    }
    assert!(scene.path("repo/src/two.txt").exists());
}

#[test]
fn a_chain_is_not_gone_on_with_by_other_agents_than_it_was_begun_with() {
    let scene = scene("true\n");
    let mut asks = contract(&scene, &["src/one.txt"]);
    asks["x_provost"]["author"] = json!("agent:planner");
    let document = json!({ "schema_version": 1, "nodes": [{ "id": "one", "contract": asks }] });
    let waits = call(&scene, &document, &[]);
    assert_eq!(
        (waits.exit, waits.code()),
        (3, "APPROVAL_NEEDED"),
        "{waits:?}"
    );
    let run = scene.last_run().unwrap();
    assert_eq!(scene.ask(&["approve", &run, "--json"]).exit, 0);
    let agent = scene.path("chain.json").display().to_string();
    let other = ["chain", "-f", &agent, "--agent-cmd", "true", "--json"];
    for refused in [
        call(&scene, &document, &["--review-cmd", "true"]),
        scene.ask(&other),
    ] {
        assert_eq!(
            (refused.exit, refused.code()),
            (2, "USAGE_ERROR"),
            "{refused:?}"
        );
    }
    let outcome = call(&scene, &document, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    assert_eq!(runs(&outcome), [run]);
    // What was accepted without a review is not called reviewed.
    let late = call(&scene, &document, &["--review-cmd", "true", "--again"]);
    assert_eq!(late.exit, 2, "{late:?}");
}

#[test]
fn what_no_node_would_feel_is_refused() {
    let scene = scene("true\n");
    let mut document = json!({ "schema_version": 1,
        "nodes": [{ "id": "one", "contract": contract(&scene, &["src/one.txt"]) }] });
    let net = call(&scene, &document, &["--net", "a.example:443"]);
    assert_eq!((net.exit, net.code()), (2, "USAGE_ERROR"), "{net:?}");
    let secret = "https://a.example X-Key: $PATH";
    let secret = call(&scene, &document, &["--credential", secret]);
    assert_eq!(
        (secret.exit, secret.code()),
        (2, "USAGE_ERROR"),
        "{secret:?}"
    );
    document["nodes"][0]["drops"] = json!([{ "cmd": "sh check.sh", "reason": "slow" }]);
    let drops = call(&scene, &document, &[]);
    assert_eq!(
        (drops.exit, drops.code()),
        (1, "CHAIN_INVALID"),
        "{drops:?}"
    );
    assert!(drops.text("reason").contains("/nodes/0/drops"), "{drops:?}");
    assert!(scene.runs().is_empty());
}

/// A part that a person let go on by itself: landing it is refused, so nothing proposes that.
#[test]
fn a_part_is_not_proposed_for_landing_before_all_are_accepted_together() {
    let scene = scene("test ! -e src/bad\n");
    let mut document = divided(&scene);
    document["nodes"][0]["contract"]["x_provost"]["author"] = json!("agent:planner");
    let waits = call(&scene, &document, &["--jobs", "1"]);
    assert_eq!(waits.exit, 3, "{waits:?}");
    let run = waits.json["nodes"][0]["run_id"].as_str().unwrap();
    let gone = scene.ask(&["approve", run, "--go"]);
    for told in [gone, scene.ask(&["show", run])] {
        assert_eq!(told.exit, 0, "{told:?}");
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(text.contains("note: it is a part of chain_"), "{text}");
        assert!(!text.contains("provost land"), "{text}");
    }
    let outcome = call(&scene, &document, &[]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    let shown = scene.ask(&["show", run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains(&format!("next: provost land {run}")),
        "{shown}"
    );
}
