//! What `provost analyze` says about a checkout.

use serde_json::Value;

use crate::desk::Desk;

const USED: &str = "def used(a):\n    return a\n\n\nused(1)\n";
const DEAD: &str = "def _forgotten(a):\n    return a\n";

fn json(desk: &Desk, words: &[&str]) -> Value {
    let said = desk.provost(words);
    assert_eq!(said.exit, 0, "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

fn paths(report: &Value) -> Vec<&str> {
    let files = report["files"].as_array().unwrap().iter();
    files.map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn a_checkout_is_analysed_as_it_is_on_disk() {
    let desk = Desk::new();
    desk.write("src/a.py", USED);
    desk.write("src/gone.py", USED);
    desk.write(".gitignore", "skipped.py\n");
    desk.git(&["add", "."]);
    desk.write("src/new.py", DEAD);
    desk.write("src/skipped.py", DEAD);
    std::fs::remove_file(desk.at("repository/src/gone.py")).unwrap();

    let report = json(&desk, &["analyze", "--json"]);
    assert_eq!(paths(&report), ["src/a.py", "src/new.py"]);
    assert_eq!(report["findings"][0]["id"], "dead_code:_forgotten");
    assert_eq!(report["languages"]["python"]["functions"], 2);
    let below = json(&desk, &["analyze", "src", "--json"]);
    assert_eq!(paths(&below), ["a.py", "new.py"]);
    assert_ne!(below["digest"], report["digest"]);

    let said = desk.provost(&["analyze"]);
    assert_eq!(said.exit, 0, "{said:?}");
    for words in [
        "2 of source code",
        "health ",
        "dead_code:_forgotten: nobody uses `_forgotten`",
    ] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }

    desk.write("src/a.py", &USED.replace("return a", "return 2"));
    let edited = json(&desk, &["analyze", "--json"]);
    assert_ne!(edited["digest"], report["digest"]);
    assert_eq!(edited["health"], report["health"]);
}

#[test]
fn findings_are_told_to_code_scanners() {
    let desk = Desk::new();
    desk.write("src/a b.py", DEAD);
    let document = json(&desk, &["analyze", "--sarif"]);
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
    let desk = Desk::new();
    let nothing = json(&desk, &["analyze", "--json"]);
    assert_eq!(
        (paths(&nothing), &nothing["health"]),
        (vec![], &Value::Null)
    );
    let said = desk.provost(&["analyze"]);
    assert!(said.out.contains("there is no source code"), "{said:?}");
    let said = desk.provost(&["analyze", "nowhere"]);
    assert_eq!(said.exit, 2, "{said:?}");
    let outside = desk.at("home").display().to_string();
    let said = desk.provost(&["analyze", &outside]);
    assert!(said.err.starts_with("error[NOT_A_REPOSITORY]"), "{said:?}");
    let page = desk.provost(&["explain", "structure"]);
    assert!(
        page.out.starts_with("# Structure of source code"),
        "{page:?}"
    );
}
