//! `provost agent`: lists the known agents, and checks whether one of them works.

mod trial;

use clap::Subcommand;
use provost_core::agent::{Adapted, Adapter, Agent as PolicyAgent};
use provost_core::gate::command;
use provost_core::policy::Policy;
use provost_engine::opening::Origin as _;
use provost_host::agent;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::origin::GitOrigin;
use crate::places::Places;
use crate::show::{Reader, neutralise};

/// List the available agents, or try one.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Agent {
    /// List the agents that can be named with `--agent`, and what is installed of them.
    List,
    /// Have an agent do a small task in a temporary repository and report what works.
    Test(trial::Test),
}

pub(super) fn run(command: &Agent, reader: Reader) -> Outcome {
    match command {
        Agent::List => list(),
        Agent::Test(test) => trial::run(test, reader),
    }
}

/// The policy at HEAD; the default policy outside of a repository.
fn policy() -> Result<Policy, Failure> {
    let Ok(place) = Places::around(std::path::Path::new(".")) else {
        return Ok(Policy::default());
    };
    let origin = GitOrigin(&place.repo);
    // A repository without a commit has no policy yet.
    let Ok(head) = origin.resolve("HEAD") else {
        return Ok(Policy::default());
    };
    let tree = origin.tree(&head)?;
    Ok(origin.policy(&tree)?)
}

fn list() -> Outcome {
    let mut agents = policy()?.agents;
    for adapter in Adapter::NAMED {
        let plain = adapter.plain().map(PolicyAgent::Adapted);
        if let Some(plain) = plain.filter(|_| !agents.contains_key(adapter.name())) {
            agents.insert(adapter.name().to_owned(), plain);
        }
    }
    let rows: Vec<Value> = agents
        .iter()
        .map(|(name, agent)| row(name, agent))
        .collect();
    let width = agents.keys().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in &rows {
        let word = |field: &str| row[field].as_str().map(neutralise).unwrap_or_default();
        text += &format!("{:width$}  {:6}  ", word("name"), word("adapter"));
        text += &match (&row["command"], &row["program"]) {
            (Value::String(line), _) => neutralise(line),
            (_, Value::String(program)) => format!("{}, {program}", word("version")),
            _ => format!("not installed: {}", word("hint")),
        };
        text += &row["model"]
            .as_str()
            .map_or(String::new(), |at| format!(", model at {at}"));
        text += "\n";
    }
    Ok(Answer::data(json!({ "agents": rows }), text))
}

fn row(name: &str, agent: &PolicyAgent) -> Value {
    let adapted = match agent {
        PolicyAgent::Command(argv) => {
            let line = command::line(argv);
            return json!({ "name": name, "adapter": Adapter::Exec, "command": line });
        }
        PolicyAgent::Adapted(adapted) => adapted,
    };
    let mut row = json!({
        "name": name,
        "adapter": adapted.adapter,
        "model": adapted.provider.as_ref().map(|provider| &provider.base_url),
        "budget": adapted.budget,
    });
    match agent::find(adapted) {
        Err(error) => row["hint"] = json!(error.hint.unwrap_or_default()),
        Ok(None) => row["command"] = json!(adapted.own_command().map(command::line)),
        Ok(Some(installed)) => {
            row["program"] = json!(installed.program);
            row["version"] = json!(version(&installed, adapted));
        }
    }
    row
}

/// The version of a program, or why it cannot be determined.
fn version(installed: &agent::Installed, adapted: &Adapted) -> String {
    match installed.version(adapted) {
        Ok(version) => version,
        Err(error) => error.verdict().reason,
    }
}
