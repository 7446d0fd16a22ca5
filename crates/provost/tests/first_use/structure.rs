//! What `provost analyze` says about a checkout.

use serde_json::Value;

use provost_testkit::stage::Stage;

use crate::stage::{Person as _, stage};

const USED: &str = "def used(a):\n    return a\n\n\nused(1)\n";
const DEAD: &str = "def _forgotten(a):\n    return a\n";

fn json(stage: &Stage, words: &[&str]) -> Value {
    let said = stage.typed(words);
    assert_eq!(said.exit, 0, "{said:?}");
    serde_json::from_str(said.out()).unwrap()
}

fn paths(report: &Value) -> Vec<&str> {
    let files = report["files"].as_array().unwrap().iter();
    files.map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn a_checkout_is_analysed_as_it_is_on_disk() {
    let stage = stage();
    stage.write("repo/src/a.py", USED);
    stage.write("repo/src/gone.py", USED);
    stage.write("repo/.gitignore", "skipped.py\n");
    stage.git(&["add", "."]);
    stage.write("repo/src/new.py", DEAD);
    stage.write("repo/src/skipped.py", DEAD);
    std::fs::remove_file(stage.path("repo/src/gone.py")).unwrap();

    let report = json(&stage, &["analyze", "--json"]);
    assert_eq!(paths(&report), ["src/a.py", "src/new.py"]);
    assert_eq!(report["findings"][0]["id"], "dead_code:_forgotten");
    assert_eq!(report["languages"]["python"]["functions"], 2);
    let below = json(&stage, &["analyze", "src", "--json"]);
    assert_eq!(paths(&below), ["a.py", "new.py"]);
    assert_ne!(below["digest"], report["digest"]);

    let said = stage.typed(&["analyze"]);
    assert_eq!(said.exit, 0, "{said:?}");
    for words in [
        "2 of source code",
        "health ",
        "dead_code:_forgotten: `_forgotten` is never used",
    ] {
        assert!(said.out().contains(words), "{words}: {said:?}");
    }

    stage.write("repo/src/a.py", &USED.replace("return a", "return 2"));
    let edited = json(&stage, &["analyze", "--json"]);
    assert_ne!(edited["digest"], report["digest"]);
    assert_eq!(edited["health"], report["health"]);
}

#[test]
fn findings_are_exported_to_code_scanners() {
    let stage = stage();
    stage.write("repo/src/a b.py", DEAD);
    let document = json(&stage, &["analyze", "--sarif"]);
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let result = &run["results"][0];
    let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/a%20b.py");
    assert_eq!(place["region"]["startLine"], 1);
    assert_eq!(result["level"], "warning");
}

#[test]
fn what_cannot_be_analysed_is_said() {
    let stage = stage();
    let nothing = json(&stage, &["analyze", "--json"]);
    assert_eq!(
        (paths(&nothing), &nothing["health"]),
        (vec![], &Value::Null)
    );
    let said = stage.typed(&["analyze"]);
    assert!(said.out().contains("there is no source code"), "{said:?}");
    let said = stage.typed(&["analyze", "nowhere"]);
    assert_eq!(said.exit, 2, "{said:?}");
    let outside = stage.path("home").display().to_string();
    let said = stage.typed(&["analyze", &outside]);
    assert!(
        said.stderr.starts_with("error[NOT_A_REPOSITORY]"),
        "{said:?}"
    );
    let page = stage.typed(&["explain", "structure"]);
    assert!(
        page.out().starts_with("# Structure of source code"),
        "{page:?}"
    );
}
