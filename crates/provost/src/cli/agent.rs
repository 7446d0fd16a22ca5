//! `provost agent`: lists the known agents, and checks whether one of them works.

mod login_test;
mod trial;

use std::path::PathBuf;

use clap::Subcommand;
use provost_core::agent::provider::BaseUrl;
use provost_core::agent::{Adapted, Adapter, Agent as PolicyAgent, Budget};
use provost_core::gate::command;
use provost_core::policy::Policy;
use provost_engine::opening::Origin as _;
use provost_host::agent;
use provost_host::login::{self, LoginReport};
use provost_host::origin::GitOrigin;
use provost_host::proxy::gateway::{self, TestedVersions};
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::places::Places;
use crate::show::{Reader, one_line};

/// List the available agents, or try one.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum AgentCommand {
    /// List the agents for `--agent`, and which of their programs are installed.
    List,
    /// Have an agent do a small task in a temporary repository and report what works.
    Test(trial::Test),
}

pub(super) fn run(command: &AgentCommand, reader: Reader) -> Outcome {
    match command {
        AgentCommand::List => list(),
        AgentCommand::Test(test) if test.login => login_test::run(test, reader),
        AgentCommand::Test(test) => trial::run(test, reader),
    }
}

/// The policy at HEAD; the default policy outside of a repository.
pub(super) fn policy() -> Result<Policy, Failure> {
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

/// The agents that can be named.
#[derive(Serialize)]
struct Agents {
    agents: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    adapter: Adapter,
    #[serde(flatten)]
    settings: Option<Settings>,
    #[serde(flatten)]
    program: Program,
    /// The login that it would use.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<LoginReport>,
}

/// What the policy says about an agent with an adapter.
#[derive(Serialize)]
struct Settings {
    model: Option<BaseUrl>,
    budget: Budget,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Program {
    Missing {
        hint: String,
    },
    Command {
        command: Option<String>,
    },
    Installed {
        program: PathBuf,
        version: String,
        /// Set if its tools were tested with other versions.
        #[serde(skip_serializing_if = "Option::is_none")]
        untested: Option<String>,
    },
}

fn list() -> Outcome {
    let mut agents = policy()?.agents;
    for adapter in Adapter::programs() {
        let plain = adapter.plain().map(PolicyAgent::Adapted);
        if let Some(plain) = plain.filter(|_| !agents.contains_key(adapter.name())) {
            agents.insert(adapter.name().to_owned(), plain);
        }
    }
    let rows = agents.into_iter().map(|(name, agent)| row(name, &agent));
    let agents = rows.collect();
    Ok(Agents { agents }.into())
}

impl Answered for Agents {
    fn text(&self) -> String {
        let width = self.agents.iter().map(|row| row.name.len()).max();
        let width = width.unwrap_or(0);
        let line = |row: &Row| {
            let (name, adapter) = (one_line(&row.name), row.adapter.name());
            let program = match &row.program {
                Program::Missing { hint } => format!("not installed: {hint}"),
                Program::Command { command } => command.clone().unwrap_or_default(),
                Program::Installed {
                    program,
                    version,
                    untested,
                } => {
                    let note = untested.as_ref().map(|note| format!(" ({note})"));
                    let note = note.unwrap_or_default();
                    format!("{version}{note}, {}", program.display())
                }
            };
            let model = row.settings.as_ref().and_then(|it| it.model.as_ref());
            let model = model.map_or(String::new(), |at| format!(", model at {at}"));
            // A program that is not installed needs no login yet.
            let is_there = !matches!(row.program, Program::Missing { .. });
            let login = row.login.as_ref().filter(|_| is_there);
            let login = login.map_or(String::new(), |login| format!(", {}", login.text()));
            format!(
                "{name:width$}  {adapter:6}  {}{model}{}\n",
                one_line(&program),
                one_line(&login)
            )
        };
        self.agents.iter().map(line).collect()
    }
}

fn row(name: String, agent: &PolicyAgent) -> Row {
    let adapted = match agent {
        PolicyAgent::Command(argv) => {
            let command = Some(command::line(argv));
            return Row {
                name,
                adapter: Adapter::COMMAND,
                settings: None,
                program: Program::Command { command },
                login: None,
            };
        }
        PolicyAgent::Adapted(adapted) => &login::resolved(adapted),
    };
    let program = match agent::find(adapted) {
        Err(error) => Program::Missing {
            hint: error.hint.unwrap_or_default(),
        },
        Ok(None) => Program::Command {
            command: adapted.own_command().map(command::line),
        },
        Ok(Some(installed)) => {
            let version = version(&installed, adapted);
            Program::Installed {
                untested: tested_note(&version, adapted),
                version,
                program: installed.program,
            }
        }
    };
    Row {
        name,
        adapter: adapted.adapter,
        settings: Some(Settings {
            model: adapted.provider.as_ref().map(|it| it.base_url.clone()),
            budget: adapted.budget,
        }),
        program,
        login: LoginReport::of(adapted),
    }
}

/// What to know of a version whose tools were not tested; they may be refused.
pub(super) fn tested_note(version: &str, adapted: &Adapted) -> Option<String> {
    match gateway::tested(adapted.adapter.name(), version) {
        TestedVersions::Within => None,
        TestedVersions::Beyond(range) => Some(format!(
            "not tested, its tools are known of {range}; `model_tools` grants others"
        )),
        TestedVersions::Unknown => Some("its tools are known of other versions".to_owned()),
    }
}

/// The version of a program, or why it cannot be determined.
pub(super) fn version(installed: &agent::Installed, adapted: &Adapted) -> String {
    match installed.version(adapted) {
        Ok(version) => version,
        Err(error) => error.verdict().reason,
    }
}
