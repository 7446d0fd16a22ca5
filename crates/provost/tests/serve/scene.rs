//! A repository with something on every page.

use provost_testkit::stage::{Ask, Stage};
use serde_json::json;

/// What the pages show.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    /// Waits for an approval.
    pub(crate) waiting: String,
    pub(crate) refused: String,
    pub(crate) accepted: String,
    /// Waits for an approval.
    pub(crate) case: String,
}

pub(crate) fn scene() -> Option<Scene> {
    let (stage, waiting) = crate::waiting()?;
    let run = |script: &str| {
        let outcome = stage.run(script, &Ask::default());
        outcome.text("run_id").to_owned()
    };
    let refused = run("echo good > src/a.txt; echo x > docs/readme.md");
    let accepted = run("echo good > src/a.txt; echo '<b>done</b>'");
    let case = case(&stage);
    Some(Scene {
        stage,
        waiting,
        refused,
        accepted,
        case,
    })
}

/// A case of two parts that waits for an approval.
fn case(stage: &Stage) -> String {
    let plan = json!({
        "verdict": "PLAN", "summary": "two files", "objective": "write both files",
        "allow": ["src/one.txt", "src/two.txt"], "forbid": [], "accept": ["sh check.sh"],
        "forbidden_actions": [], "permit_oracle": [], "permit_governing": [], "net": [],
        "minutes": 2,
    });
    let part = |id: &str| {
        let path = format!("src/{id}.txt");
        json!({ "id": id, "objective": format!("write {path}"), "allow": [path],
            "accept": ["sh check.sh"], "drops": [], "net": [], "minutes": 2, "needs": [],
            "shares": [], "tools": [] })
    };
    let split = json!({
        "verdict": "PLAN", "summary": "a part for each file",
        "children": [part("one"), part("two")],
    });
    let script = format!(
        "if grep -q '\"children\"' $PROVOST_REQUEST; then\n\
         cat > $PROVOST_RESULT <<'END'\n{split}\nEND\nelse\n\
         cat > $PROVOST_RESULT <<'END'\n{plan}\nEND\nfi\n"
    );
    stage.write("agent/planner.sh", &script);
    let planner = format!("sh {}", stage.path("agent/planner.sh").display());
    let agent = stage.agent("echo good > src/one.txt; echo good > src/a.txt");
    let words = ["case", "write both files", "--planner-cmd", &planner];
    let more = ["--agent-cmd", &agent, "--no-review", "--json"];
    let outcome = stage.ask(&[&words[..], &more].concat());
    assert_eq!(outcome.exit, 3, "{outcome:?}");
    outcome.text("case_id").to_owned()
}
