//! Which tools the programs offer their models: none that acts at the provider, and no agents of
//! their own. Every program runs with the model that it chooses itself, unless a test says which.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::stage::{APP_SERVER, AgentStage, Program, STARTS, Way};
use crate::stage::Outcome;

/// The names of all tools that a request offers: those in groups, those that stand among the
/// messages, and those that a tool which runs programs describes.
pub(super) fn offered(request: &Value) -> BTreeSet<String> {
    fn collect(prefix: &str, tools: &Value, names: &mut BTreeSet<String>) {
        for tool in tools.as_array().into_iter().flatten() {
            let name = tool["name"].as_str().or(tool["type"].as_str());
            // Gemini has the tools of its server as fields of an object.
            let fields = || tool.as_object().into_iter().flat_map(|it| it.keys());
            let name = name.map_or_else(|| fields().cloned().collect(), str::to_owned);
            let name = format!("{prefix}{name}");
            let groups = [&tool["tools"], &tool["functionDeclarations"]];
            if groups.iter().all(|group| group.is_null()) {
                names.insert(name.clone());
            }
            let described = tool["description"].as_str().unwrap_or_default();
            let inner = described
                .lines()
                .filter_map(|line| line.strip_prefix("### `"));
            names.extend(inner.map(|rest| rest.trim_end_matches('`').to_owned()));
            collect(&format!("{name}."), &tool["tools"], names);
            collect("", &tool["functionDeclarations"], names);
        }
    }
    let mut names = BTreeSet::new();
    let request = &request["request"];
    collect("", &request["tools"], &mut names);
    for item in request["input"].as_array().into_iter().flatten() {
        collect("", &item["tools"], &mut names);
    }
    names
}

/// The program that lists everything which programs of Codex can call.
pub(super) const LIST: &str = "ALL_TOOLS.map(tool => '@tool@' + tool.name).join(' ')";

/// The output of that program, as the model gets it.
pub(super) fn listed(request: &Value) -> BTreeSet<String> {
    let text = request["request"]["input"].to_string();
    let name = |rest: &str| {
        let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    // The program itself stands there too, and names nothing.
    let names = text.split("@tool@").skip(1).map(name);
    names.filter(|name| !name.is_empty()).collect()
}

/// Everything that a program may offer: what acts inside the sandbox and nowhere else.
fn known(program: Program) -> &'static [&'static str] {
    match program {
        Program::Codex => &[
            "apply_patch",
            "clock.sleep",
            "clock__curr_time",
            "create_goal",
            "exec_command",
            "functions.exec",
            "functions.request_user_input",
            "functions.request_user_input_async",
            "functions.wait",
            "get_goal",
            "list_mcp_resource_templates",
            "list_mcp_resources",
            "read_mcp_resource",
            "request_user_input",
            "update_goal",
            "view_image",
            "write_stdin",
        ],
        Program::Claude => &[
            "Bash",
            "DeferredToolPlaceholder",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "StructuredOutput",
            "TodoWrite",
            "Write",
        ],
        Program::Gemini => &[
            "glob",
            "grep_search",
            "list_directory",
            "read_file",
            "read_many_files",
            "replace",
            "run_shell_command",
            "write_file",
            "write_todos",
        ],
    }
}

/// Names that stand nowhere in a request, not even in words for the model.
const NOWHERE: [&str; 17] = [
    "collaboration.",
    "spawn_agent",
    "followup_task",
    "send_message",
    "wait_agent",
    "list_agents",
    "interrupt_agent",
    "multi_agent",
    "web_search",
    "code_interpreter",
    "WebSearch",
    "WebFetch",
    "ListAgents",
    "SendMessage",
    "ToolSearch",
    "googleSearch",
    "codebase_investigator",
];

/// Checks every request that the model got.
pub(super) fn check(stage: &AgentStage, least: usize) {
    let program = stage.program;
    let requests = stage.requests();
    assert!(requests.len() >= least, "{program:?}: {}", requests.len());
    for request in &requests {
        let model = &request["request"]["model"];
        for name in offered(request) {
            let fine = known(program).contains(&name.as_str());
            assert!(fine, "{program:?} with {model} is offered {name}");
        }
        let text = request["request"].to_string();
        for name in NOWHERE {
            assert!(
                !text.contains(name),
                "{program:?} with {model} is offered {name}"
            );
        }
    }
}

fn work(program: Program, more: &str) -> Option<(AgentStage, Outcome)> {
    let turns = json!([{ "shell": "echo good > src/a.txt" }, { "text": "done" }]);
    let stage = AgentStage::new(program, Way::Plain, &turns, more)?;
    let outcome = stage.run();
    assert_eq!(outcome.code(), "OK", "{program:?} {more} {outcome:?}");
    Some((stage, outcome))
}

#[test]
fn no_program_offers_agents_of_its_own_or_what_acts_at_its_provider() {
    for (program, more) in STARTS {
        let Some((stage, _)) = work(program, more) else {
            return;
        };
        check(&stage, 2);
    }
}

#[test]
fn codex_offers_no_agents_whatever_its_model_is() {
    for model in [
        "m-1",
        "gpt-5.5",
        "gpt-5.6-terra",
        "gpt-6-astra",
        "codex-auto-review",
    ] {
        let Some((stage, _)) = work(Program::Codex, &format!("model = \"{model}\"")) else {
            return;
        };
        assert_eq!(stage.requests()[0]["request"]["model"], model);
        check(&stage, 2);
    }
}

#[test]
fn other_models_of_claude_and_gemini_are_offered_no_agents_either() {
    let models = [
        (Program::Claude, "haiku"),
        (Program::Claude, "sonnet"),
        (Program::Gemini, "gemini-2.5-pro"),
        (Program::Gemini, "gemini-3-pro-preview"),
    ];
    for (program, model) in models {
        let Some((stage, _)) = work(program, &format!("model = \"{model}\"")) else {
            return;
        };
        check(&stage, 2);
    }
}

#[test]
fn what_a_model_can_call_inside_a_program_of_codex_is_what_it_is_offered() {
    let turns = json!([
        { "program": LIST },
        { "shell": "echo good > src/a.txt" },
        { "text": "done" },
    ]);
    for more in ["", APP_SERVER] {
        let Some(stage) = AgentStage::new(Program::Codex, Way::Plain, &turns, more) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
        check(&stage, 3);
        let names = listed(&stage.requests()[1]);
        assert!(names.len() > 5, "it lists its tools: {names:?}");
        for name in names {
            let fine = known(Program::Codex).contains(&name.as_str());
            assert!(fine, "a program can call {name}");
        }
    }
}
