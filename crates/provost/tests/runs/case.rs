//! Cases: one request is planned, divided, done, judged as a whole and landed by one commit.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{Outcome, Stage, until};

/// An agent that writes into the file it may write. Its first result breaks the whole if the
/// other part has one like it; a fix does not.
const AGENT: &str = r#"
    path=$(sed 's/.*"allowed_paths":\["\([^"]*\)".*/\1/' $PROVOST_CONTRACT)
    if grep -q 'What came of it so far' $PROVOST_CONTRACT
    then echo fixed > $path
    else echo raw > $path
    fi
"#;

/// Each part passes alone; both together do not until one of them is fixed.
const APART: &str = "! { grep -qs raw src/one.txt && grep -qs raw src/two.txt; }\n";

fn stage(check: &str) -> Stage {
    let stage = Stage::new();
    stage.commit(&[
        ("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n"),
        ("check.sh", check),
    ]);
    stage
}

/// A planner that writes a contract for two files, and divides it into one part for each.
fn planner(stage: &Stage, needs: &[&str]) -> String {
    let plan = json!({
        "verdict": "PLAN", "summary": "two files", "objective": "write both files",
        "allow": ["src/one.txt", "src/two.txt"], "forbid": [], "accept": ["sh check.sh"],
        "forbidden_actions": [], "permit_oracle": [], "permit_governing": [], "net": [],
        "minutes": 2,
    });
    let part = |id: &str, path: &str, needs: &[&str]| {
        json!({ "id": id, "objective": format!("write {path}"), "allow": [path],
            "accept": ["sh check.sh"], "drops": [], "net": [], "minutes": 2, "needs": needs, "shares": [], "tools": [] })
    };
    let split = json!({
        "verdict": "PLAN", "summary": "a part for each file",
        "children": [part("one", "src/one.txt", &[]), part("two", "src/two.txt", needs)],
    });
    let script = format!(
        "if grep -q '\"children\"' $PROVOST_REQUEST; then\n\
         cat > $PROVOST_RESULT <<'END'\n{split}\nEND\nelse\n\
         cat > $PROVOST_RESULT <<'END'\n{plan}\nEND\nfi\n"
    );
    stage.write("agent/planner.sh", &script);
    format!("sh {}", stage.path("agent/planner.sh").display())
}

/// The runs of a stage, without the directories of cases.
fn runs(stage: &Stage) -> usize {
    let runs = stage.runs().into_iter();
    runs.filter(|name| name.starts_with("run_")).count()
}

/// The first event of a run.
fn opened(stage: &Stage, run: &str) -> Value {
    let text = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

fn call(stage: &Stage, agent: &str, needs: &[&str], more: &[&str]) -> Outcome {
    let planner = planner(stage, needs);
    let agent = stage.agent(agent);
    let words = ["case", "write both files", "--planner-cmd", &planner];
    let words = [
        &words[..],
        &["--agent-cmd", &agent, "--no-review", "--json"],
        more,
    ]
    .concat();
    stage.ask(&words)
}

/// The command line that approves the question of `outcome` and continues.
fn approve(stage: &Stage, outcome: &Outcome) -> Outcome {
    let id = outcome.text("case_id").to_owned();
    let digest = outcome.json["question"]["digest"].as_str().unwrap();
    stage.ask(&["approve", &id, "--digest", digest, "--go", "--json"])
}

fn part_runs(outcome: &Outcome) -> Vec<String> {
    let parts = outcome.json["parts"].as_array().unwrap().iter();
    let runs = parts.flat_map(|part| part["runs"].as_array().unwrap());
    runs.map(|run| run["run_id"].as_str().unwrap().to_owned())
        .collect()
}

/// The directory of a case has the files of all its parts and fixes, byte by byte.
fn assert_files_of_parts(stage: &Stage, id: &str, runs: &[String]) {
    for run in runs {
        let read = |of: &str, name: &str| {
            let path = stage.evidence(of, name);
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let contract: Value = serde_json::from_slice(&read(run, "contract.json")).unwrap();
        let task = contract["task_id"].as_str().unwrap();
        for (copy, name) in [
            (
                format!("tasks/{task}/contract.json"),
                "contract.json".to_owned(),
            ),
            (
                format!("reviews/{run}.json"),
                "reports/review_report.json".to_owned(),
            ),
            (
                format!("results/{task}/result.json"),
                "reports/task_result.json".to_owned(),
            ),
            (
                format!("results/{task}/patch.diff"),
                "patch.diff".to_owned(),
            ),
            (
                format!("patches/{task}.1.diff"),
                format!("patches/{task}.1.diff"),
            ),
        ] {
            assert_eq!(read(id, &copy), read(run, &name), "{copy}");
        }
    }
}

#[test]
fn a_whole_that_fails_although_its_parts_pass_is_fixed_and_lands_by_one_commit() {
    let stage = stage(APART);
    let before = stage.surroundings();
    let asked = call(&stage, AGENT, &[], &[]);
    assert_eq!(asked.exit, 3, "{asked:?}");
    assert_eq!(runs(&stage), 0, "nothing begins before the approval");
    let id = asked.text("case_id").to_owned();
    let wrong = stage.ask(&["approve", &id, "--digest", "0", "--go", "--json"]);
    assert_eq!(wrong.code(), "NOTHING_TO_APPROVE", "{wrong:?}");

    let done = approve(&stage, &asked);
    assert_eq!(done.exit, 0, "{done:?}");
    let runs = part_runs(&done);
    assert_eq!(runs.len(), 3, "two parts and one fix: {done:?}");
    for run in &runs {
        assert_eq!(opened(&stage, run)["trace_id"], done.json["trace_id"]);
        let landed = stage.ask(&["land", run, "--json"]);
        assert_eq!((landed.exit, landed.code()), (1, "CHAIN_NOT_ACCEPTED"));
        let again = stage.ask(&["retry", run, "--json"]);
        assert_eq!(again.code(), "CHAIN_NOT_ACCEPTED", "{again:?}");
    }
    stage.assert_clean(&before, "case");

    let head = stage.git(&["rev-parse", "HEAD"]);
    let shown = stage.ask(&["show", &id]);
    let short = format!("case_{}", provost_engine::query::short_id(&id));
    assert!(
        shown.says(&format!("next: provost land {short}\n")),
        "{shown:?}"
    );
    // The digits are enough where no run has them.
    let digits = provost_engine::query::short_id(&id);
    assert_eq!(stage.ask(&["show", digits]).out(), shown.out());
    let landed = stage.ask(&["land", &short, "--json"]);
    assert_eq!(landed.exit, 0, "{landed:?}");
    assert_eq!(stage.git(&["rev-parse", "HEAD^"]), head, "one commit");
    let files = ["one", "two"]
        .map(|name| fs::read_to_string(stage.path(&format!("repo/src/{name}.txt"))).unwrap());
    assert!(files.contains(&"fixed\n".to_owned()), "{files:?}");
    let again = stage.ask(&["land", &id, "--json"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(stage.git(&["rev-parse", "HEAD^"]), head, "still one commit");
    let verified = stage.ask(&["verify", &id, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    assert_files_of_parts(&stage, &id, &runs);
    let listed = stage.ask(&["case", "list", "--json"]);
    assert_eq!(listed.json[0]["status"], "LANDED", "{listed:?}");
}

#[test]
fn a_case_without_a_reviewer_or_with_a_rejection_does_nothing() {
    let stage = stage(APART);
    let planner = planner(&stage, &[]);
    let agent = stage.agent(AGENT);
    let words = [
        "case",
        "x",
        "--planner-cmd",
        &planner,
        "--agent-cmd",
        &agent,
        "--json",
    ];
    let refused = stage.ask(&words);
    assert_eq!(
        (refused.exit, refused.code()),
        (2, "USAGE_ERROR"),
        "{refused:?}"
    );
    let asked = call(&stage, AGENT, &[], &[]);
    let widened = asked.json["question"].to_string();
    assert!(widened.contains("no reviewer"), "{widened}");
    let id = asked.text("case_id").to_owned();
    let rejected = stage.ask(&["reject", &id, "--reason", "not now", "--json"]);
    assert_eq!(rejected.exit, 0, "{rejected:?}");
    assert_eq!(rejected.json["verdict"]["code"], "APPROVAL_REJECTED");
    assert_eq!(runs(&stage), 0);
    let landed = stage.ask(&["land", &id, "--json"]);
    assert_eq!(landed.code(), "NOT_ACCEPTED", "{landed:?}");
}

#[test]
fn a_case_whose_driver_is_killed_is_resumed_with_the_same_result() {
    let stage = stage("test ! -e src/bad\n");
    let slow = format!("test -e $HOME/x || sleep 1\n{AGENT}");
    let asked = call(&stage, &slow, &["one"], &[]);
    let id = asked.text("case_id").to_owned();
    let digest = asked.json["question"]["digest"].as_str().unwrap();
    let words = ["approve", &id, "--digest", digest, "--go", "--json"];
    let running = stage.spawn(stage.provost(&words));
    until("a part begins", || runs(&stage) > 0);
    running.signal(Signal::KILL);
    running.wait();
    let resumed = stage.ask(&["resume", &id, "--json"]);
    assert_eq!(resumed.exit, 0, "{resumed:?}");
    let parts: Vec<Value> = resumed.json["parts"].as_array().unwrap().clone();
    assert!(
        parts
            .iter()
            .all(|part| part["runs"].as_array().unwrap().len() == 1)
    );
    let merged = &resumed.json["integration"]["merged"];
    assert_eq!(merged[1]["paths"], json!(["src/two.txt"]), "{merged}");
    let verified = stage.ask(&["verify", &id, "--json"]);
    assert_eq!(verified.exit, 0, "{verified:?}");
    let ledger = stage.path(&format!("repo/.provost/runs/{id}/events.jsonl"));
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(
        &ledger,
        text.replacen("write both files", "write other files", 1),
    )
    .unwrap();
    let landed = stage.ask(&["land", &id, "--json"]);
    assert_ne!(landed.exit, 0, "{landed:?}");
}

#[test]
fn a_case_that_waits_is_cancelled_at_once_and_a_wrong_name_begins_none() {
    let stage = stage(APART);
    let asked = call(&stage, AGENT, &[], &[]);
    let id = asked.text("case_id").to_owned();
    let shown = stage.ask(&["status"]);
    assert!(shown.says("WAITING"), "{shown:?}");
    assert_eq!(stage.ask(&["verify", &id, "--json"]).exit, 3);
    let plans = || {
        fs::read_dir(stage.path("repo/.provost/plans"))
            .unwrap()
            .count()
    };
    let before = plans();
    let cancelled = stage.ask(&["cancel", &id, "--json"]);
    assert_eq!(cancelled.exit, 0, "{cancelled:?}");
    assert_eq!(cancelled.json["verdict"]["code"], "CANCELLED");
    assert_eq!((plans(), runs(&stage)), (before, 0), "nothing was started");
    let cases = || {
        stage
            .ask(&["case", "list", "--json"])
            .json
            .as_array()
            .unwrap()
            .len()
    };
    let words = ["case", "x", "--agent", "missing", "--no-review", "--json"];
    let refused = stage.ask(&words);
    assert_eq!(
        (refused.exit, refused.code()),
        (2, "NOT_FOUND"),
        "{refused:?}"
    );
    assert_eq!(cases(), 1, "no case was begun");
    let transcript = stage.ask(&["log", "--agent", &id, "--json"]);
    assert_eq!(transcript.code(), "USAGE_ERROR", "{transcript:?}");
}

#[test]
fn a_refused_part_is_tried_again_by_its_case() {
    let stage = stage("test ! -e src/bad\n");
    let lazy = "test -e /nonexistent && true\n";
    let asked = call(&stage, lazy, &[], &[]);
    let id = asked.text("case_id").to_owned();
    let refused = approve(&stage, &asked);
    assert_eq!(
        refused.json["verdict"]["code"], "AGENT_FAILED",
        "{refused:?}"
    );
    let again = stage.ask(&["resume", &id, "--json"]);
    assert_eq!(again.exit, 1, "a refusal stays: {again:?}");
    // The agent is the same script; only what it does has changed.
    stage.agent(AGENT);
    let tried = stage.ask(&["retry", &id, "--json"]);
    assert_eq!(tried.exit, 0, "{tried:?}");
    let patch = stage.ask(&["diff", &id]);
    assert!(patch.says("src/two.txt"), "{patch:?}");
}
