//! Whether the evidence of a change can be trusted, and what a repository accepts.

use std::path::{Path, PathBuf};

use provost_testkit::stage::Stage;
use serde_json::{Value, json};

use super::{Changes as _, stage};

/// `provost verify` of `what`: how it ended, and what it said.
fn verify(stage: &Stage, what: &Path) -> (i32, Value) {
    let outcome = stage.ask(&["verify", "--json", what.to_str().unwrap()]);
    (outcome.exit, outcome.json)
}

/// A finished change: its name, the digest of its receipt, and where its evidence is.
fn finished(stage: &Stage) -> (String, String, PathBuf) {
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let start = ["start", "say more", "--file", "docs/guide.md"];
    let id = stage.change("ada", &start).1["intent_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, answer) = verify(stage, Path::new(&id));
    assert_eq!(
        (code, &answer["code"]),
        (3, &json!("RUN_UNFINISHED")),
        "{answer}"
    );
    stage.write("repo/docs/guide.md", "# more\n");
    let run = stage.change("ada", &["analyze"]).1["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let finish = [
        "finish",
        id.as_str(),
        "--file",
        "docs/guide.md",
        "--after",
        &run,
    ];
    let (code, answer) = stage.change("ada", &finish);
    assert_eq!(
        (code, &answer["status"]),
        (0, &json!("accepted")),
        "{answer}"
    );
    let digest = answer["receipt"]["receipt_digest"]["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let place = stage.path("repo/.provost/changes").join(&id);
    (id, digest, place)
}

#[test]
fn the_evidence_of_a_change_verifies_until_a_byte_of_it_differs() {
    let stage = stage();
    let (id, digest, place) = finished(&stage);
    for what in [Path::new(&id), place.as_path()] {
        let (code, answer) = verify(&stage, what);
        assert_eq!((code, &answer["code"]), (0, &json!("OK")), "{answer}");
        assert_eq!(answer["details"]["status"], json!("accepted"));
    }
    let names = [
        "intent.json",
        "events.jsonl",
        "before.json",
        "after.json",
        "receipt.json",
        "trail.json",
        "blast.json",
        "attestation.dsse.json",
    ];
    for name in names {
        let path = place.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        // Reports are links to files that others use: the evidence gets one of its own.
        for bytes in [Some(flipped), None] {
            std::fs::remove_file(&path).unwrap();
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let (code, answer) = verify(&stage, &place);
            assert_eq!(code, 5, "{name}: {answer}");
            let reported = answer["details"]["findings"].to_string().contains(name);
            assert!(reported, "{name}: {answer}");
            let (code, receipt) = stage.change("ada", &["receipt", &digest]);
            assert_eq!(
                (code, &receipt["allow"]),
                (5, &json!(false)),
                "{name}: {receipt}"
            );
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(verify(&stage, &place).0, 0);
    // Without the registry only the seal says where the chain ended.
    let copy = stage.path("home/copy");
    std::fs::create_dir(&copy).unwrap();
    for name in names {
        std::fs::copy(place.join(name), copy.join(name)).unwrap();
    }
    assert_eq!(verify(&stage, &copy).0, 0);
    let chain = std::fs::read_to_string(copy.join("events.jsonl")).unwrap();
    let mut lines: Vec<&str> = chain.lines().collect();
    lines.pop();
    std::fs::write(copy.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
    assert_eq!(verify(&stage, &copy).0, 5);
}

#[test]
fn an_older_copy_of_the_evidence_is_not_taken_for_the_change() {
    let stage = stage();
    assert_eq!(stage.change("ada", &["analyze"]).0, 0);
    let start = ["start", "say more", "--file", "docs/guide.md"];
    let id = stage.change("ada", &start).1["intent_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let place = stage.path("repo/.provost/changes").join(&id);
    let kept = ["events.jsonl", "attestation.dsse.json"]
        .map(|name| (name, std::fs::read(place.join(name)).unwrap()));
    assert_eq!(stage.change("ada", &["clear", &id]).0, 0);
    let (code, answer) = verify(&stage, &place);
    assert_eq!(
        (code, &answer["details"]["ended"]),
        (0, &json!(true)),
        "{answer}"
    );
    for (name, bytes) in kept {
        std::fs::write(place.join(name), bytes).unwrap();
    }
    let (code, answer) = verify(&stage, &place);
    assert_eq!(
        (code, &answer["code"]),
        (5, &json!("EVIDENCE_INCOMPLETE")),
        "{answer}"
    );
}

#[test]
fn analyze_says_no_to_what_no_baseline_accepts() {
    let stage = stage();
    let analyze = |arguments: &[&str]| {
        let outcome = stage.ask(&[&["analyze"], arguments].concat());
        (outcome.exit, outcome.out().to_owned())
    };
    stage.write("repo/a.py", "def _one(x):\n    return x\n");
    assert_eq!(analyze(&["--write-baseline", "accepted.json"]).0, 0);
    let (code, text) = analyze(&["--baseline", "accepted.json"]);
    assert_eq!(code, 0, "{text}");
    stage.write(
        "repo/a.py",
        "def _one(x):\n    return x\n\n\ndef _two(x):\n    return x + 1\n",
    );
    let (code, text) = analyze(&["--baseline", "accepted.json"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("1 new finding against the baseline"),
        "{text}"
    );
    stage.write("repo/accepted.json", "{}");
    assert_eq!(analyze(&["--baseline", "accepted.json"]).0, 2);
    // What is no baseline is not written over.
    assert_eq!(analyze(&["--write-baseline", "accepted.json"]).0, 2);
    let kept = std::fs::read_to_string(stage.path("repo/accepted.json")).unwrap();
    assert_eq!(kept, "{}");
}
