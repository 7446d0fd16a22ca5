//! The real programs start children by the tools of the broker.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::offered::{LIST, listed, offered};
use super::stage::{AgentStage, Program, Way};
use crate::stage::Outcome;

/// The tools of the broker, as programs name them to their models.
const TOOLS: [&str; 5] = [
    "child_cancel",
    "child_list",
    "child_message",
    "child_start",
    "child_wait",
];

fn run(program: Program, turns: &Value, grant: &Value) -> Option<(AgentStage, Outcome)> {
    let stage = AgentStage::new(program, Way::Plain, turns, "")?;
    let mut contract = stage.contract();
    contract["inputs"]["spec"] = json!("PARENT makes it good");
    contract["required_outputs"] = json!([]);
    contract["timeout_retry"]["timeout_sec"] = json!(55);
    contract["x_provost"]["children"] = grant.clone();
    stage.inner.write("contract.json", &contract.to_string());
    let file = stage.inner.path("contract.json").display().to_string();
    let outcome = stage.run_with(&["-f", &file, "--credential", &stage.credential()]);
    Some((stage, outcome))
}

fn events(stage: &AgentStage, run: &str, kind: &str) -> Vec<Value> {
    let ledger = std::fs::read_to_string(stage.inner.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = events.filter(|event| event["event_type"] == kind);
    found.map(|event| event["payload"].clone()).collect()
}

fn codes(refused: &[Value]) -> Vec<&str> {
    let verdicts = refused.iter().map(|row| &row["verdict"]);
    verdicts.map(|it| it["code"].as_str().unwrap()).collect()
}

/// The tools of the broker that the agent with this objective was offered.
fn broker_tools(stage: &AgentStage, objective: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for request in stage.requests() {
        let text = request["request"].to_string();
        let Some((_, rest)) = text.split_once("# Objective") else {
            continue;
        };
        if rest.trim_start_matches(['\\', 'n']).starts_with(objective) {
            names.extend(offered(&request));
            names.extend(listed(&request));
        }
    }
    let own = |name: &String| {
        let (_, tool) = name.split_once("provost")?;
        Some(tool.trim_start_matches(['_', '.']).to_owned())
    };
    names.iter().filter_map(own).collect()
}

fn start(input: &Value) -> Value {
    json!({ "call": "child_start", "input": input })
}

/// Tokens that are enough for a few requests of every program.
const ENOUGH: u64 = 2_000_000;

#[test]
fn claude_starts_a_reader_and_a_writer_and_applies_the_patch() {
    a_reader_and_a_writer(Program::Claude);
}

#[test]
fn codex_starts_a_reader_and_a_writer_and_applies_the_patch() {
    a_reader_and_a_writer(Program::Codex);
}

/// The turns of the models of a parent, its writer and its reader.
fn script(program: Program) -> Value {
    let writer = json!({ "key": "writer", "task": "WRITER changes the file",
        "write": ["src/a.txt"], "budget": { "tokens": ENOUGH } });
    let reader = json!({ "key": "reader", "task": "READER looks at the file",
        "read_only": true, "budget": { "tokens": ENOUGH } });
    let with = |field: &str, value: Value| {
        let mut asked = writer.clone();
        asked["key"] = json!("refused");
        asked[field] = value;
        start(&asked)
    };
    let deeper = "/run/provost/self child start --key deeper --tokens 9 --write src/a.txt x; \
                  grep -q begun src/a.txt && echo good > src/a.txt";
    let mut parent = vec![
        json!({ "shell": "echo begun > src/a.txt" }),
        with("model", json!("m-9")),
        with("tools", json!(["WebFetch"])),
        with("budget", json!({ "tokens": ENOUGH * 10 })),
        start(&writer),
        start(&reader),
        with("key", json!("third")),
        json!({ "call": "child_wait", "input": { "child": "$CHILD1" } }),
        json!({ "call": "child_wait", "input": { "child": "$CHILD2" } }),
        json!({ "shell": "git apply /run/provost/children/*/patch.diff; \
                          cat /run/provost/children/*/said.txt; cat src/a.txt" }),
        json!({ "text": "done" }),
    ];
    if program == Program::Codex {
        parent.insert(0, json!({ "program": LIST }));
    }
    json!({
        "PARENT": parent,
        "WRITER": [{ "shell": deeper }, { "text": "written" }],
        "READER": [{ "shell": "echo bad > src/a.txt; cat src/a.txt" }, { "text": "read" }],
    })
}

fn a_reader_and_a_writer(program: Program) {
    let turns = script(program);
    let grant = json!({ "count": 2, "tokens": ENOUGH * 3, "seconds": 100 });
    let Some((stage, outcome)) = run(program, &turns, &grant) else {
        return;
    };
    let run_id = outcome.text("run_id").to_owned();
    let said = serde_json::to_string(&stage.events(&run_id)).unwrap();
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{program:?} {outcome:?} {said}"
    );
    let refused = events(&stage, &run_id, "CHILD_REFUSED");
    let want = [
        "PACKAGE_EXCEEDS_GRANT",
        "PACKAGE_EXCEEDS_GRANT",
        "CHILD_BUDGET_EXHAUSTED",
        "CHILDREN_EXHAUSTED",
    ];
    assert_eq!(codes(&refused), want, "{program:?} {said}");
    let starts = events(&stage, &run_id, "CHILD_STARTED");
    assert_eq!(starts.len(), 2, "{program:?} {starts:?}");
    for start in &starts {
        let manifest = &start["package_v1"]["strip_manifest"];
        let stripped = manifest["stripped_capability_ids"].to_string();
        assert!(stripped.contains("tool.child_start"), "{start}");
        let child = start["run_id"].as_str().unwrap();
        assert_eq!(stage.inner.verify(child).exit, 0, "{program:?} {child}");
    }
    let writer = starts[0]["run_id"].as_str().unwrap();
    let deeper = events(&stage, writer, "CHILD_REFUSED");
    assert_eq!(codes(&deeper), ["DEPTH_EXHAUSTED"], "{program:?}");
    let ends = events(&stage, &run_id, "CHILD_ENDED");
    assert!(
        ends.iter().all(|end| end["verdict"]["allow"] == true),
        "{program:?} {ends:?}"
    );
    // What the reader saw, as its model got it.
    let seen = stage.requests();
    let seen = seen.iter().map(|it| it["request"].to_string());
    let mut seen = seen.filter(|text| text.contains("READER looks"));
    assert!(
        seen.any(|text| text.contains("Read-only file system") && text.contains("begun")),
        "{program:?}"
    );
    assert_eq!(stage.inner.verify(&run_id).exit, 0, "{program:?}");
    let all: BTreeSet<String> = TOOLS.iter().map(ToString::to_string).collect();
    assert_eq!(broker_tools(&stage, "PARENT"), all, "{program:?}");
    assert_eq!(
        broker_tools(&stage, "READER"),
        BTreeSet::new(),
        "{program:?}"
    );
}

#[test]
fn a_program_without_a_shell_starts_a_child_by_its_tools() {
    let reader = json!({ "key": "reader", "task": "READER looks", "read_only": true,
        "budget": { "tokens": ENOUGH } });
    let turns = json!({
        "PARENT": [
            start(&reader),
            { "call": "child_wait", "input": { "child": "$CHILD1" } },
            { "tool": "Write", "input": { "file_path": "src/a.txt", "content": "good\n" } },
            { "text": "done" },
        ],
        "READER": [{ "read": "src/a.txt" }, { "text": "it is bad" }],
    });
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    let mut contract = stage.contract();
    contract["inputs"]["spec"] = json!("PARENT makes it good");
    contract["required_outputs"] = json!([]);
    contract["tool_permissions"]["shell"] = json!("deny");
    contract["x_provost"]["children"] = json!({ "count": 1, "tokens": ENOUGH });
    stage.inner.write("contract.json", &contract.to_string());
    let file = stage.inner.path("contract.json").display().to_string();
    let outcome = stage.run_with(&["-f", &file, "--credential", &stage.credential()]);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let ends = events(&stage, outcome.text("run_id"), "CHILD_ENDED");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["verdict"]["allow"], true, "{ends:?}");
    let requests = serde_json::to_string(&stage.requests()).unwrap();
    assert!(!requests.contains("\"Bash\""), "{requests}");
}

#[test]
fn without_a_grant_no_tool_of_the_broker_is_offered() {
    let turns = json!([{ "shell": "echo good > src/a.txt" }, { "text": "done" }]);
    for program in [Program::Claude, Program::Codex] {
        let Some((stage, outcome)) = run(program, &turns, &json!({ "count": 0 })) else {
            return;
        };
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        assert_eq!(
            broker_tools(&stage, "PARENT"),
            BTreeSet::new(),
            "{program:?}"
        );
    }
}
