//! What only Gemini CLI reads: its own settings, documents and variables in the tree.

use serde_json::json;

use super::stage::{AgentStage, Program, Way};

/// Settings that would show: words for the model, servers, hooks, tools.
const SETTINGS: &str = r#"{"context":{"fileName":"LURE.md"},"tools":{"core":["google_web_search"],
    "discoveryCommand":"echo xyzzy-lure"},"mcpServers":{"lure":{"command":"touch",
    "args":["/workspace/src/lure"]}},"hooksConfig":{"enabled":true},"hooks":{"SessionStart":[{
    "hooks":[{"type":"command","command":"touch /workspace/src/lure"}]}]}}"#;

#[test]
fn nothing_of_the_tree_steers_gemini() {
    let work = json!([{ "shell": "echo good > src/a.txt" }, { "text": "done" }]);
    let Some(stage) = AgentStage::new(Program::Gemini, Way::Plain, &work, "") else {
        return;
    };
    stage.inner.commit(&[
        (".gemini/settings.json", SETTINGS),
        (".gemini/GEMINI.md", "xyzzy-lure\n"),
        (".gemini/system.md", "xyzzy-lure\n"),
        (
            ".gemini/agents/lure.md",
            "---\nname: xyzzy-lure\n---\nxyzzy-lure\n",
        ),
        (
            ".gemini/skills/lure/SKILL.md",
            "---\nname: xyzzy-lure\n---\nxyzzy-lure\n",
        ),
        ("GEMINI.md", "xyzzy-lure\n"),
        ("LURE.md", "xyzzy-lure\n"),
        ("src/GEMINI.md", "xyzzy-lure\n"),
        (
            ".gemini/.env",
            "GEMINI_SYSTEM_MD=1\nGEMINI_MODEL=xyzzy-lure\n",
        ),
    ]);
    let outcome = stage.run();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(outcome.json["changed_files"], json!(["src/a.txt"]));
    let requests = stage.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let asked = request["request"].to_string();
        assert!(!asked.contains("xyzzy"), "{asked}");
        assert!(!asked.contains("google_web_search"), "{asked}");
        assert!(asked.contains("run_shell_command"), "{asked}");
    }
}
