//! Contracts that an agent writes or divides; planning runs none of them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{Outcome, Stage, until};

/// A plan that can be run here.
fn plan(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({
        "verdict": "PLAN", "summary": "one file", "objective": "make it good",
        "allow": ["src/a.txt"], "forbid": [], "accept": ["sh check.sh"],
        "forbidden_actions": ["touch other files"], "permit_oracle": [],
        "permit_governing": [], "net": [], "minutes": 5,
    });
    change(&mut value);
    value
}

/// A script that answers so.
fn says(answer: &Value) -> String {
    format!("cat > $PROVOST_RESULT <<'END'\n{answer}\nEND\n")
}

fn stage() -> Stage {
    let stage = Stage::new();
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    stage
}

fn ask(stage: &Stage, script: &str, words: &[&str]) -> Outcome {
    let planner = stage.agent(script);
    let words = [words, &["--agent-cmd", &planner, "--json"]].concat();
    stage.ask(&words)
}

fn planned(stage: &Stage, script: &str) -> Outcome {
    ask(stage, script, &["plan", "make it good"])
}

fn record(outcome: &Outcome, name: &str) -> PathBuf {
    Path::new(outcome.text("record")).join(name)
}

#[test]
fn a_plan_becomes_a_contract_that_can_be_run() {
    let stage = stage();
    let before = stage.surroundings();
    let file = stage.path("outside/plan.json");
    let words = ["plan", "make it good", "--out", &file.display().to_string()];
    let outcome = ask(&stage, &says(&plan(|_| ())), &words);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    let contract: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(contract["x_provost"]["author"], "agent:exec");
    assert_eq!(contract["allowed_paths"], json!(["src/a.txt"]));
    assert_eq!(contract["forbidden_actions"], json!(["touch other files"]));
    assert!(stage.runs().is_empty(), "nothing was run");

    // The record holds what was asked and what came back, and every byte of it counts.
    let id = outcome.text("plan_id").to_owned();
    for name in [
        "request.json",
        "answer.json",
        "contract.json",
        "verdict.json",
    ] {
        assert!(record(&outcome, name).is_file(), "{name}");
    }
    let request = fs::read_to_string(record(&outcome, "request.json")).unwrap();
    assert!(request.contains("make it good"), "{request}");
    assert_eq!(stage.ask(&["verify", &id, "--json"]).exit, 0);
    fs::write(record(&outcome, "answer.json"), "{}").unwrap();
    let verified = stage.ask(&["verify", &id, "--json"]);
    assert_eq!((verified.exit, verified.code()), (5, "EVIDENCE_ALTERED"));
    assert!(verified.text("reason").contains("answer.json"));

    fs::rename(&file, stage.path("plan.json")).unwrap();
    assert_eq!(before.differences(&stage.surroundings()), [""; 0]);
    let work = stage.agent("echo good > src/a.txt");
    let file = stage.path("plan.json").display().to_string();
    let asks = stage.ask(&["run", "-f", &file, "--agent-cmd", &work, "--json"]);
    assert_eq!(asks.code(), "APPROVAL_NEEDED", "{asks:?}");
    let ran = stage.ask(&["approve", asks.text("run_id"), "--go", "--json"]);
    assert_eq!(ran.code(), "OK", "{ran:?}");
}

/// What a planner finds around it, and what it cannot do.
const LOOK: &str = "
    test \"$(pwd)\" = /plan && test -z \"$(ls -A .)\" && test -z \"$(ls -A ~)\" || exit 11
    grep -q 'make it good' $PROVOST_REQUEST || exit 12
    grep -q answer_schema || exit 13
    test \"$(cat $PROVOST_TREE/src/a.txt)\" = base || exit 14
    echo x > $PROVOST_TREE/src/a.txt && exit 21
    echo x > $PROVOST_TREE/new && exit 22
    echo x > $PROVOST_REQUEST && exit 23
    cat @OUTSIDE@/secret @REPO@/src/a.txt && exit 24
";

#[test]
fn a_planner_has_the_tree_to_read_and_nothing_else() {
    for policy in ["", "[workspace]\nkind = \"overlay\"\n"] {
        let stage = Stage::new();
        let commands = "[commands]\nallow = [\"sh check.sh\"]\n";
        stage.commit(&[("provost.toml", &format!("{policy}{commands}"))]);
        let before = stage.surroundings();
        let outcome = planned(&stage, &format!("{LOOK}{}", says(&plan(|_| ()))));
        assert_eq!(outcome.code(), "OK", "{policy}: {outcome:?}");
        assert_eq!(before.differences(&stage.surroundings()), [""; 0]);
        stage.await_silence("planned");
    }
}

#[test]
fn a_plan_that_breaks_a_rule_is_refused_by_its_place_and_sealed() {
    let cases: [(String, &str, &str); 8] = [
        (
            "echo let us begin".to_owned(),
            "PLAN_INVALID",
            "left no plan",
        ),
        (
            "echo prose > $PROVOST_RESULT".to_owned(),
            "PLAN_INVALID",
            "no JSON",
        ),
        (
            format!("{}exit 3\n", says(&plan(|_| ()))),
            "PLAN_INVALID",
            "status 3",
        ),
        (
            says(&plan(|it| it["allow"] = json!("src"))),
            "PLAN_INVALID",
            "`/allow`",
        ),
        (
            says(&plan(|it| it["verdict"] = json!("BLOCKED"))),
            "PLAN_REFUSED",
            "one file",
        ),
        (
            says(&plan(|it| it["allow"] = json!(["**"]))),
            "CONTRACT_INVALID",
            "/allowed_paths/0",
        ),
        (
            says(&plan(|it| it["allow"] = json!(["src"]))),
            "CONTRACT_INVALID",
            "/allowed_paths/0",
        ),
        (
            says(&plan(|it| it["accept"] = json!(["rm -rf /"]))),
            "CONTRACT_INVALID",
            "/acceptance_tests/0/cmd",
        ),
    ];
    let stage = stage();
    for (script, code, words) in cases {
        let outcome = planned(&stage, &script);
        assert_eq!(
            (outcome.exit, outcome.code()),
            (1, code),
            "{script}: {outcome:?}"
        );
        assert!(
            outcome.text("reason").contains(words),
            "{script}: {outcome:?}"
        );
        assert!(!record(&outcome, "contract.json").exists(), "{script}");
        let id = outcome.text("plan_id");
        assert_eq!(stage.ask(&["verify", id, "--json"]).exit, 0, "{script}");
    }
    assert!(stage.runs().is_empty());
}

#[test]
fn a_planner_that_dies_with_its_driver_leaves_nothing_that_the_next_does_not_remove() {
    let stage = stage();
    let planner = stage.agent("echo begun; sleep 1000");
    let words = ["plan", "make it good", "--agent-cmd", &planner, "--json"];
    let running = stage.spawn(stage.provost(&words));
    let plans = stage.path("repo/.provost/plans");
    until("the planner works", || {
        let records = fs::read_dir(&plans).into_iter().flatten();
        let mut logs = records.map(|it| fs::read(it.unwrap().path().join("stdout.log")));
        logs.any(|log| log.is_ok_and(|log| log.starts_with(b"begun")))
    });
    running.signal(Signal::KILL);
    running.wait();
    stage.await_silence("killed");
    assert_eq!(stage.workspaces().len(), 1);
    // What has no seal is no evidence.
    let left = fs::read_dir(&plans).unwrap().next().unwrap().unwrap();
    let id = left.file_name().into_string().unwrap();
    assert_ne!(stage.ask(&["verify", &id, "--json"]).exit, 0);
    let outcome = planned(&stage, &says(&plan(|_| ())));
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    assert!(stage.workspaces().is_empty(), "{:?}", stage.workspaces());
}

/// A contract over two directories, in a file of its own.
fn whole(stage: &Stage) -> String {
    let file = stage.path("outside/whole.json").display().to_string();
    let words = [
        "contract",
        "new",
        &file,
        "make it good",
        "--allow",
        "src/a.txt",
        "--allow",
        "src/b.txt",
        "--allow",
        "docs",
        "--accept",
        "sh check.sh",
    ];
    let made = stage.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    file
}

fn child(id: &str, allow: &[&str], change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({ "id": id, "objective": "make it good", "allow": allow,
        "accept": ["sh check.sh"], "drops": [], "net": [], "minutes": 20, "needs": [], "shares": [], "tools": [] });
    change(&mut value);
    value
}

fn divided(stage: &Stage, children: &[Value], words: &[&str]) -> Outcome {
    let answer = json!({ "verdict": "PLAN", "summary": "s", "children": children });
    let file = stage.path("outside/whole.json").display().to_string();
    ask(
        stage,
        &says(&answer),
        &[&["split", "-f", &file], words].concat(),
    )
}

#[test]
fn a_contract_is_divided_into_a_chain_and_paths_in_no_part_are_named() {
    let stage = stage();
    whole(&stage);
    let parts = [
        child("first", &["src/a.txt"], |_| ()),
        child("second", &["src/b.txt"], |it| {
            it["needs"] = json!(["first"]);
        }),
    ];
    let file = stage.path("outside/chain.json").display().to_string();
    let outcome = divided(&stage, &parts, &["--out", &file]);
    assert_eq!((outcome.exit, outcome.code()), (0, "OK"), "{outcome:?}");
    assert_eq!(outcome.json["gaps"], json!(["docs/readme.md"]));
    let chain: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(chain, outcome.json["chain"]);
    let second = &chain["nodes"][1];
    assert_eq!(second["needs"], json!(["first"]));
    assert_eq!(second["contract"]["x_provost"]["author"], "agent:exec");
    assert!(second["package"]["parent"].is_string());
    assert_eq!(second["package"]["exercise"]["write"], json!(["src/b.txt"]));
    assert!(stage.runs().is_empty(), "nothing was run");
    // What was written can be run as it is, once a person has agreed to each part.
    let work = stage.agent("grep -q good src/a.txt && echo x > src/b.txt || echo good > src/a.txt");
    for _ in &parts {
        let asks = stage.ask(&["chain", "-f", &file, "--agent-cmd", &work, "--json"]);
        assert_eq!((asks.exit, asks.code()), (3, "APPROVAL_NEEDED"), "{asks:?}");
        let run = stage.last_run().unwrap();
        let yes = stage.ask(&["approve", &run, "--json"]);
        assert_eq!(yes.exit, 0, "{yes:?}");
    }
    let ran = stage.ask(&["chain", "-f", &file, "--agent-cmd", &work, "--json"]);
    assert_eq!((ran.exit, ran.code()), (0, "OK"), "{ran:?}");
}

#[test]
fn a_part_that_exceeds_the_contract_is_refused_with_its_axis() {
    let stage = stage();
    whole(&stage);
    let beyond = "PACKAGE_EXCEEDS_GRANT";
    let one = |allow: &[&str], change: fn(&mut Value)| vec![child("one", allow, change)];
    let cases: [(Vec<Value>, &str, &str); 6] = [
        (one(&["check.sh"], |_| ()), beyond, "write: `check.sh`"),
        (
            one(&["src/a.txt"], |it| it["net"] = json!(["a.example:443"])),
            beyond,
            "network: `a.example:443`",
        ),
        (
            one(&["src/a.txt"], |it| it["minutes"] = json!(21)),
            beyond,
            "limits: 1260 seconds",
        ),
        (
            one(&["src/a.txt"], |it| it["accept"] = json!(["git status"])),
            beyond,
            "run: `git status`",
        ),
        (
            vec![
                child("one", &["src/a.txt"], |_| ()),
                child("two", &["src/a.txt"], |_| ()),
            ],
            "CHAIN_INVALID",
            "overlaps",
        ),
        (
            one(&["src/a.txt"], |it| it["needs"] = json!(["one"])),
            "CHAIN_INVALID",
            "circle",
        ),
    ];
    for (children, code, words) in cases {
        let outcome = divided(&stage, &children, &[]);
        assert_eq!((outcome.exit, outcome.code()), (1, code), "{outcome:?}");
        assert!(outcome.text("reason").contains(words), "{outcome:?}");
    }
}

#[test]
fn the_record_of_a_plan_is_swept_like_the_bundle_of_a_run() {
    let stage = stage();
    let outcome = planned(&stage, &says(&plan(|_| ())));
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    let sealed = record(&outcome, "");
    // A driver that died before the seal leaves nothing that can be continued.
    let lost = sealed.with_file_name("plan_20260101_000000_abcdef123456");
    fs::create_dir(&lost).unwrap();
    fs::copy(sealed.join("request.json"), lost.join("request.json")).unwrap();
    let unreadable = sealed.with_file_name("plan_20260101_000000_unreadable");
    fs::create_dir(&unreadable).unwrap();
    fs::write(unreadable.join("record.dsse.json"), "?").unwrap();
    let sweep = |words: &[&str]| {
        let swept = stage.ask(&[&["gc", "--json"], words].concat());
        assert_eq!(swept.exit, 0, "{swept:?}");
        [&sealed, &lost, &unreadable].map(|directory| directory.exists())
    };
    assert_eq!(sweep(&["--bundles", "--keep", "3"]), [true, true, true]);
    let hours = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
    fs::File::open(&lost).unwrap().set_modified(hours).unwrap();
    assert_eq!(sweep(&["--dry-run", "--bundles"]), [true, true, true]);
    assert_eq!(sweep(&[]), [true, false, true], "evidence stays");
    assert_eq!(stage.ask(&["verify", outcome.text("plan_id")]).exit, 0);
    let young = ["--bundles", "--older-than", "1h"];
    assert_eq!(sweep(&young), [true, false, true]);
    assert_eq!(sweep(&["--bundles"]), [false, false, true]);
}
