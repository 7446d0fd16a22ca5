//! Which tools a model is offered: those of the program, and those of the servers of the contract.

use std::collections::BTreeSet;

use serde_json::json;

use super::offered::{LIST, listed, offered};
use super::stage::{AgentStage, Program, STARTS, Way};

/// Two servers that a contract may name.
const REGISTERED: &str = "[mcp.quince]\ncommand = \"python3 tools.py quince\"\n\
                          [mcp.plover]\ncommand = \"python3 tools.py plover\"\n";

/// Servers that the tree brings along, for each program.
const PROJECT: [(&str, &str); 4] = [
    (".mcp.json", OF_PROJECT),
    (
        ".claude/settings.json",
        r#"{"enableAllProjectMcpServers":true}"#,
    ),
    (".gemini/settings.json", OF_PROJECT),
    (
        ".codex/config.toml",
        "[mcp_servers.xyzzy]\ncommand = \"python3\"\nargs = [\"tools.py\", \"xyzzy\"]\n",
    ),
];

const OF_PROJECT: &str =
    r#"{"mcpServers":{"xyzzy":{"command":"python3","args":["tools.py","xyzzy"]}}}"#;

/// Servers that the person has for everything.
const USER: [(&str, &str); 3] = [
    (
        "home/.claude.json",
        r#"{"mcpServers":{"xyzzy-mine":{"command":"python3","args":["tools.py","xyzzy-mine"]}}}"#,
    ),
    (
        "home/.gemini/settings.json",
        r#"{"mcpServers":{"xyzzy-mine":{"command":"python3","args":["tools.py","xyzzy-mine"]}}}"#,
    ),
    (
        "home/.codex/config.toml",
        "[mcp_servers.xyzzy-mine]\ncommand = \"python3\"\nargs = [\"tools.py\", \"xyzzy-mine\"]\n",
    ),
];

/// Tools of a program that are about the servers it has.
const OWN: [&str; 3] = [
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "read_mcp_resource",
];

/// A stage with servers everywhere, whose model calls `quince_lookup` if it is `called`.
fn stage((program, more): (Program, &str), called: bool) -> Option<AgentStage> {
    let work = json!({ "shell": "echo good > src/a.txt" });
    let mut turns = vec![work, json!({ "text": "done" })];
    if called {
        turns.insert(0, json!({ "call": "quince_lookup" }));
    }
    if program == Program::Codex {
        // The tools of servers are not described, but a program can call them.
        turns.insert(0, json!({ "program": LIST }));
    }
    let stage = AgentStage::new(program, Way::Plain, &json!(turns), more)?;
    let policy = stage.inner.path("repo/provost.toml");
    let policy = std::fs::read_to_string(policy).unwrap() + REGISTERED;
    let mut files = vec![
        ("provost.toml", policy.as_str()),
        ("tools.py", include_str!("tools.py")),
    ];
    files.extend(PROJECT);
    stage.inner.commit(&files);
    for (name, text) in USER {
        stage.inner.write(name, text);
    }
    Some(stage)
}

/// A run under a contract that names these servers; the tools and texts that its model got.
fn run(start: (Program, &str), servers: &[&str]) -> Option<(BTreeSet<String>, String)> {
    let called = !servers.is_empty();
    let (program, _) = start;
    let stage = stage(start, called)?;
    let mut contract = stage.contract();
    contract["required_outputs"] = json!([]);
    contract["tool_permissions"]["mcp_tools"] = json!(servers);
    contract["mcp_tool_set"] = if called {
        json!(servers)
    } else {
        json!(["none"])
    };
    stage.inner.write("contract.json", &contract.to_string());
    let file = stage.inner.path("contract.json").display().to_string();
    let outcome = stage.run_with(&["-f", &file, "--credential", &stage.credential()]);
    assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
    let changed = &outcome.json["changed_files"];
    assert_eq!(
        *changed,
        json!(["src/a.txt"]),
        "{program:?}: a server began that the contract does not name"
    );
    let ledger = stage.inner.evidence(outcome.text("run_id"), "events.jsonl");
    let ledger = std::fs::read_to_string(ledger).unwrap();
    for gate in ["integrated", "sampling"] {
        let judged = ledger.contains(&format!("\"gate\":\"{gate}\""));
        assert_eq!(judged, called, "{program:?} {gate}");
    }
    assert_eq!(stage.inner.verify(outcome.text("run_id")).exit, 0);
    let requests = stage.requests();
    let mut names = BTreeSet::new();
    for request in &requests {
        let all = request.to_string();
        assert!(!all.contains("xyzzy"), "{program:?} gets: {all}");
        assert!(!all.contains("plover"), "{program:?} gets: {all}");
        names.extend(offered(request));
        names.extend(listed(request));
    }
    let last = requests.last().unwrap().to_string();
    Some((names, last))
}

#[test]
fn a_model_is_offered_the_tools_of_its_contract_and_no_others() {
    offers(&STARTS[2..]);
}

#[test]
fn a_model_of_codex_is_offered_the_tools_of_its_contract_and_no_others() {
    offers(&STARTS[..2]);
}

fn offers(starts: &[(Program, &str)]) {
    for start in starts.iter().copied() {
        let (program, _) = start;
        let Some((without, _)) = run(start, &[]) else {
            return;
        };
        let Some((with, last)) = run(start, &["quince"]) else {
            return;
        };
        assert!(
            !without.is_empty() && without.is_subset(&with),
            "{program:?}"
        );
        assert!(
            without.iter().all(|name| !name.contains("quince")),
            "{program:?}: {without:?}"
        );
        let mut more: Vec<&str> = with.difference(&without).map(String::as_str).collect();
        // Codex has tools of its own for what servers keep beside tools, once there is one.
        more.retain(|name| !OWN.contains(name));
        let ends = ["quince_lookup", "quince_store"];
        let fits = |(name, end): (&&str, &str)| name.ends_with(end);
        assert!(
            more.len() == ends.len() && more.iter().zip(ends).all(fits),
            "{program:?}: {more:?}"
        );
        assert!(
            last.contains("quince answers quince_lookup"),
            "{program:?} did not hear from it: {last}"
        );
    }
}
