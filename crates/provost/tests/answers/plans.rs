//! Planners, parts of contracts, and chains of them.

use std::fs;

use serde_json::{Value, json};

use crate::stage;
use provost_testkit::stage::Stage;

/// An agent that writes into the file it may write.
const WORK: &str = r#"
    path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    echo done >> $path
"#;

fn says(answer: &Value) -> String {
    format!("cat > $PROVOST_RESULT <<'END'\n{answer}\nEND\n")
}

fn contract(stage: &Stage, paths: &[&str]) -> Value {
    let file = stage.path("outside/made.json").display().to_string();
    let mut words = vec!["contract", "new", &file, "Do it", "--timeout", "60s"];
    words.extend(["--accept", "sh check.sh"]);
    words.extend(paths.iter().flat_map(|path| ["--allow", path]));
    let made = stage.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    let contract = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    contract
}

#[test]
fn a_plan_is_written_or_refused() {
    let Some(stage) = stage() else { return };
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    let answer = json!({
        "verdict": "PLAN", "summary": "one file", "objective": "make it good",
        "allow": ["src/a.txt"], "forbid": [], "accept": ["sh check.sh"],
        "forbidden_actions": ["touch other files"], "permit_oracle": [],
        "permit_governing": [], "net": [], "minutes": 5,
    });
    let mut transcript = stage.transcript();
    let planner = stage.agent(&says(&answer));
    transcript.plain(&["plan", "make it good", "--agent-cmd", &planner]);
    transcript.json(&["plan", "make it good", "--agent-cmd", &planner]);
    let planner = stage.agent("echo prose > $PROVOST_RESULT");
    transcript.plain(&["plan", "make it good", "--agent-cmd", &planner]);
    transcript.json(&["plan", "make it good", "--agent-cmd", &planner]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_chain_is_accepted_part_by_part_and_as_a_whole() {
    let Some(stage) = stage() else { return };
    stage.commit(&[
        ("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n"),
        (
            "check.sh",
            "test ! -e src/one.txt || test ! -e src/two.txt\n",
        ),
    ]);
    let (one, two) = ("src/one.txt", "src/two.txt");
    let nodes = |second: &str| {
        json!([
            { "id": "one", "contract": contract(&stage, &[one]) },
            { "id": "two", "contract": contract(&stage, &[second]) },
        ])
    };
    let agent = stage.agent(WORK);
    let file = stage.path("chain.json").display().to_string();
    let words = ["chain", "-f", &file, "--agent-cmd", &agent, "--jobs", "1"];
    let mut transcript = stage.transcript();
    let document = json!({ "schema_version": 1, "nodes": nodes("src/three.txt") });
    stage.write("chain.json", &document.to_string());
    transcript.plain(&words);
    transcript.json(&words);
    let parent = contract(&stage, &[one, two]);
    let document = json!({ "schema_version": 1, "parent": parent, "nodes": nodes(two) });
    stage.write("chain.json", &document.to_string());
    transcript.plain(&words);
    transcript.json(&words);
    transcript.plain(&["land", "last"]);
    stage.write("chain.json", "{}");
    transcript.plain(&words);
    insta::assert_snapshot!(transcript.text());
}
