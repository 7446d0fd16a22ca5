//! A contract's requirements on tools, runtime, files and the end of a run are met, or refused
//! before the agent starts.

use serde_json::Value;

use super::*;
use crate::agent::Adapter;
use crate::agent::adapter::mcp::Server;
use crate::contract::document::{Artifact, RollbackStrategy};
use crate::run::effect::Effect;

/// A run with a contract that has `changes` at these places, by an agent of `adapter` that gets the
/// servers `pear` and `search`, if possible.
fn run(adapter: &str, changes: &[(&str, Value)]) -> Opened {
    let Fact::Opened(mut opened) = opened() else {
        unreachable!("it is the first fact");
    };
    opened.adapted = Adapter::named(adapter).and_then(Adapter::plain);
    if let Some(agent) = &mut opened.adapted {
        let servers = ["pear", "search"];
        agent.tools = servers
            .map(|name| (name.to_owned(), vec![name.to_owned()]))
            .into();
        agent.model = Some("m-1".to_owned());
        agent.server = (adapter == "mcp").then(|| {
            Box::new(Server {
                command: vec!["it".to_owned()],
                tool: "work".to_owned(),
                reply_tool: "go-on".to_owned(),
            })
        });
    }
    opened.artifacts = BTreeMap::from([("docs/a.md".to_owned(), sha256(b"a"))]);
    let mut document = serde_json::to_value(&opened.contract).unwrap();
    for (place, value) in changes {
        let (parent, name) = place.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    opened.contract = contract::from_value(&document).unwrap();
    opened.contract_sha256 = contract::digest(&opened.contract).unwrap();
    *opened
}

fn folded(opened: Opened) -> State {
    State::fold(&ledger(&[Fact::Opened(Box::new(opened))])).unwrap()
}

/// The findings of the policy gate: codes and places.
fn found(adapter: &str, changes: &[(&str, Value)]) -> Vec<String> {
    let verdict = folded(run(adapter, changes)).judge(Gate::Policy);
    let details = verdict.details.unwrap_or_default();
    let findings = details["findings"].as_array().cloned().unwrap_or_default();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let row = |row: Value| format!("{} {}", text(&row, "code"), text(&row, "path"));
    assert_eq!(verdict.allow, findings.is_empty());
    findings.into_iter().map(row).collect()
}

#[test]
fn an_agent_gets_exactly_the_servers_of_its_contract() {
    let set = |given: Value, permitted: Value| {
        [
            ("/mcp_tool_set", given),
            ("/tool_permissions/mcp_tools", permitted),
        ]
    };
    let refused = |place: &str| vec![format!("TOOL_REFUSED {place}")];
    let cases = [
        ("exec", set(json!(["none"]), json!([])), vec![]),
        ("codex", set(json!(["none"]), json!(["none"])), vec![]),
        ("codex", set(json!(["pear"]), json!(["pear"])), vec![]),
        (
            "mcp",
            set(json!(["pear"]), json!(["pear"])),
            refused("/mcp_tool_set/0"),
        ),
        (
            "exec",
            set(json!(["pear"]), json!(["pear"])),
            refused("/mcp_tool_set/0"),
        ),
        (
            "claude",
            set(json!(["apple"]), json!(["apple"])),
            refused("/mcp_tool_set/0"),
        ),
        (
            "claude",
            set(json!(["sampling"]), json!(["sampling"])),
            vec!["SAMPLING_REFUSED /mcp_tool_set/0".to_owned()],
        ),
        (
            "claude",
            set(json!(["pear", "none"]), json!(["pear"])),
            refused("/mcp_tool_set/1"),
        ),
        (
            "gemini",
            set(json!(["pear"]), json!([])),
            refused("/mcp_tool_set/0"),
        ),
        (
            "gemini",
            set(json!(["none"]), json!(["pear"])),
            refused("/tool_permissions/mcp_tools/0"),
        ),
        (
            "gemini",
            set(json!(["pear", "pear"]), json!(["pear"])),
            refused("/mcp_tool_set"),
        ),
    ];
    for (adapter, changes, want) in cases {
        assert_eq!(found(adapter, &changes), want, "{changes:?}");
    }
}

#[test]
fn the_gates_integrated_and_sampling_decide_by_name_where_servers_are_named() {
    let set = |names: &[&str]| {
        [
            ("/mcp_tool_set", json!(names)),
            ("/tool_permissions/mcp_tools", json!(names)),
        ]
    };
    for (names, gate) in [
        (&["none"][..], Gate::Policy),
        (&["pear"], Gate::Integrated),
        (&["sampling"], Gate::Sampling),
        (&["unknown"], Gate::Integrated),
        // What is about both is for the gate that lists everything.
        (&["unknown", "sampling"], Gate::Policy),
    ] {
        let state = folded(run("claude", &set(names)));
        assert_eq!(state.next(), Next::Judge(gate), "{names:?}");
    }
    let opened = || Fact::Opened(Box::new(run("claude", &set(&["pear"]))));
    let mut facts = vec![opened()];
    for (gate, next) in [
        (Gate::Integrated, Next::Judge(Gate::Sampling)),
        (Gate::Sampling, Next::Judge(Gate::Policy)),
        (Gate::Policy, Next::Do(Step::Lease)),
    ] {
        let verdict = State::fold(&ledger(&facts)).unwrap().judge(gate);
        assert!(verdict.allow, "{gate:?} {verdict:?}");
        facts.push(Fact::judged(Judgement { gate, verdict }));
        assert_eq!(
            State::fold(&ledger(&facts)).unwrap().next(),
            next,
            "{gate:?}"
        );
    }
    // A ledger from before these gates has the policy gate alone, and is judged as strictly.
    let policy = facts.pop().unwrap();
    let old = State::fold(&ledger(&[opened(), policy])).unwrap();
    assert_eq!(old.next(), Next::Do(Step::Lease));
    let refused = folded(run("claude", &set(&["unknown"])));
    assert!(!refused.judge(Gate::Policy).allow && !refused.judge(Gate::Integrated).allow);
}

#[test]
fn a_conversation_whose_home_is_gone_is_not_continued() {
    let thread = "/assigned_agent/codex_thread_id";
    for (name, want) in [("none", false), ("", false), ("t-1", true)] {
        let opened = run("codex", &[(thread, json!(name))]);
        let mut before = opened.clone();
        before.checks_thread = false;
        assert!(folded(before).judge(Gate::Policy).allow, "{name}");
        let verdict = folded(opened).judge(Gate::Policy);
        assert_eq!(!verdict.allow, want, "{name} {verdict:?}");
        assert_eq!(verdict.reason.contains("the home that holds it"), want);
    }
}

#[test]
fn a_search_needs_something_to_search_with() {
    let searcher = json!({ "role": "SEARCHER", "agent_id": "agent-searcher" });
    let own = ("/inputs/artifacts/0/name", json!("output_schema.searcher"));
    let given = [
        ("/mcp_tool_set", json!(["search"])),
        ("/tool_permissions/mcp_tools", json!(["search"])),
    ];
    for (place, value, lacking) in [
        ("/assigned_agent", searcher, "/assigned_agent/role"),
        ("/task_type", json!("SEARCH"), "/task_type"),
    ] {
        let mut changes = vec![(place, value)];
        if place == "/assigned_agent" {
            changes.push(own.clone());
        }
        let want = [format!("SEARCH_UNAVAILABLE {lacking}")];
        assert_eq!(found("codex", &changes), want);
        changes.extend(given.clone());
        assert_eq!(found("codex", &changes), [""; 0]);
    }
}

#[test]
fn the_runtime_is_what_the_contract_says_or_nothing_runs() {
    let options = |options: Value| [("/runtime_options", options)];
    let invalid = |place: &str| vec![format!("CONTRACT_INVALID {place}")];
    let runner = "/runtime_options/runner";
    let provider = "/runtime_options/provider";
    let first = "/runtime_options/execution/mcp_first";
    let cases = [
        ("codex", json!({ "runner": "codex" }), vec![]),
        ("codex", json!({ "runner": "app-server" }), invalid(runner)),
        ("mcp", json!({ "runner": "codex" }), invalid(runner)),
        ("claude", json!({ "runner": "claude" }), vec![]),
        ("claude", json!({ "runner": "codex" }), invalid(runner)),
        ("exec", json!({ "runner": "codex" }), invalid(runner)),
        ("codex", json!({ "runner": "agents" }), invalid(runner)),
        ("codex", json!({ "provider": "openai" }), vec![]),
        ("codex", json!({ "provider": "api.openai.com" }), vec![]),
        ("codex", json!({ "provider": "google" }), invalid(provider)),
        ("mcp", json!({ "execution": { "mcp_first": true } }), vec![]),
        (
            "codex",
            json!({ "execution": { "mcp_first": true } }),
            invalid(first),
        ),
        (
            "codex",
            json!({ "execution": { "mcp_first": false }, "strict_acceptance": true }),
            vec![],
        ),
    ];
    for (adapter, value, want) in cases {
        assert_eq!(found(adapter, &options(value.clone())), want, "{value}");
    }
}

#[test]
fn a_file_that_a_contract_refers_to_is_the_one_of_the_base() {
    let with = |uri: &str, text: &[u8]| {
        let Fact::Opened(opened) = opened() else {
            unreachable!("it is the first fact");
        };
        let mut artifacts = opened.contract.inputs.artifacts;
        artifacts.push(Artifact {
            name: "notes".to_owned(),
            uri: uri.to_owned(),
            sha256: sha256(text),
        });
        found("exec", &[("/inputs/artifacts", json!(artifacts))])
    };
    assert_eq!(with("docs/a.md", b"a"), [""; 0]);
    let place = "CONTRACT_INVALID /inputs/artifacts/1";
    assert_eq!(with("docs/a.md", b"b"), [format!("{place}/sha256")]);
    assert_eq!(with("docs/b.md", b"a"), [format!("{place}/uri")]);
    assert_eq!(with("../a.md", b"a"), [format!("{place}/uri")]);
}

#[test]
fn what_cannot_be_undone_as_the_contract_says_is_refused() {
    let strategy = |word: &str| found("exec", &[("/rollback/strategy", json!(word))]);
    for kept in ["worktree_drop", "git_reset_hard"] {
        assert_eq!(strategy(kept), [""; 0]);
    }
    let want = ["CONTRACT_INVALID /rollback/strategy"];
    assert_eq!(strategy("git_revert_commit"), want);
}

#[test]
fn an_audit_changes_nothing_and_publishes_nothing() {
    let audit = [
        ("/audit_only", json!(true)),
        ("/tool_permissions/filesystem", json!("read-only")),
    ];
    assert_eq!(found("exec", &audit), [""; 0]);
    let want = ["CONTRACT_INVALID /tool_permissions/filesystem"];
    assert_eq!(found("exec", &audit[1..]), want);
    for (paths, want) in [(&[][..], Code::Ok), (&["app/a"], Code::DiffRefused)] {
        let opened = Fact::Opened(Box::new(run("exec", &audit)));
        let facts = [&[opened][..], &captured(paths)].concat();
        let state = State::fold(&ledger(&facts)).unwrap();
        assert_eq!(state.judge(Gate::Diff).code, want);
    }
}

#[test]
fn after_a_reset_an_attempt_begins_at_the_base() {
    for (strategy, want) in [
        (RollbackStrategy::WorktreeDrop, "tree"),
        (RollbackStrategy::GitResetHard, "base tree"),
    ] {
        let mut state = folded(run("exec", &[]));
        state.opened.contract.rollback.strategy = strategy;
        let [_, Fact::Captured(capture)] = &captured(&["app/a"])[..] else {
            unreachable!("it is the second fact");
        };
        state.past.push(crate::run::fix::EarlierAttempt {
            attempt: 1,
            task_id: "task-0001".to_owned(),
            refusal: Verdict::deny(Code::AcceptanceFailed, "it fails"),
            gates: BTreeMap::new(),
            agent: None,
            captured: Some(capture.clone()),
            reviewed: None,
            tests: None,
        });
        let Ok(Effect::Workspace(order)) = state.effect(Step::Workspace) else {
            panic!("there is a contract");
        };
        assert_eq!(order.tree, oid(want), "{strategy:?}");
    }
}
