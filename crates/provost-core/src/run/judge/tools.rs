//! Decides before the agent starts which tools it is given: exactly those of its contract.
//!
//! The gates `integrated` and `sampling` say this by name where a contract names servers. The policy
//! gate decides it too, so a ledger from before these gates is judged as strictly.
//!
//! # Invariants
//!
//! - A tool is a server that `provost.toml` of the base commit names. Nothing else is started.
//! - An agent whose adapter cannot limit its tools gets no contract that names some.

use std::collections::BTreeSet;

use crate::agent::Adapted;
use crate::agent::adapter::mcp::{NONE, SAMPLING};
use crate::code::Code;
use crate::contract::Problem;
use crate::contract::document::{Document, Role, TaskType};
use crate::run::fact::Opened;
use crate::run::{Gate, State};
use crate::verdict::Verdict;

/// The server that a search needs.
const SEARCH: &str = "search";

/// Where a contract names what its agent is given, and what it may be given.
const GIVEN: &str = "/mcp_tool_set";
const PERMITTED: &str = "/tool_permissions/mcp_tools";

const THREAD: &str = "/assigned_agent/codex_thread_id";

const SHELL: &str = "/tool_permissions/shell";

impl Opened {
    /// What `document` names and the agent of this run cannot be given.
    pub(super) fn ungiven(&self, document: &Document) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |code: Code, path: String, problem: String| {
            problems.push(Problem::new(code, path, problem));
        };
        let (given, permitted) = (&document.mcp_tool_set, &document.tool_permissions.mcp_tools);
        for (path, names) in [(GIVEN, given), (PERMITTED, permitted)] {
            for (at, name) in names.iter().enumerate() {
                let place = format!("{path}/{at}");
                let refused = |why: String| format!("(`{}`) {why}", name.escape_debug());
                if name == NONE {
                    if names.len() > 1 {
                        let why = "stands beside others".to_owned();
                        add(Code::ToolRefused, place, refused(why));
                    }
                } else if path == PERMITTED {
                    if !given.contains(name) {
                        let why = format!("is permitted and not given by `{GIVEN}`");
                        add(Code::ToolRefused, place, refused(why));
                    }
                } else if name == SAMPLING {
                    let why = "is never granted: no server may ask the model of its client";
                    add(Code::SamplingRefused, place, refused(why.to_owned()));
                } else if let Some(why) = lack(self.adapted.as_ref(), name) {
                    add(Code::ToolRefused, place, refused(why));
                } else if !permitted.contains(name) {
                    let why = format!("is not permitted by `{PERMITTED}`");
                    add(Code::ToolRefused, place, refused(why));
                } else if !self.additions.permits_tool(&document.assigned_agent, name) {
                    let why =
                        "is not among the tools that the registry has for the agent".to_owned();
                    add(Code::ToolRefused, place, refused(why));
                }
            }
            let different: BTreeSet<&String> = names.iter().collect();
            if different.len() < names.len() {
                add(
                    Code::ToolRefused,
                    path.to_owned(),
                    "names one twice".to_owned(),
                );
            }
        }
        if let Some(place) = searches(document)
            && !document.mcp_tool_set.iter().any(|name| name == SEARCH)
            && !reaches(document)
        {
            let problem = format!(
                "is for a search, and neither `{GIVEN}` names a server `{SEARCH}` nor \
                 `/x_provost/net` a place to look"
            );
            add(Code::SearchUnavailable, place.to_owned(), problem);
        }
        let adapter = self.adapted.as_ref().map(|it| it.adapter);
        let kept = adapter
            .unwrap_or_default()
            .keeps(document.tool_permissions.shell);
        if let Err(why) = kept
            && self.work.is_none()
        {
            add(Code::ContractInvalid, SHELL.to_owned(), why.to_owned());
        }
        let thread = document.assigned_agent.codex_thread_id.as_deref();
        if self.checks_thread && thread.is_some_and(|thread| !matches!(thread, "" | NONE)) {
            let why = "names a conversation, and the home that holds it does not exist: a run \
                       begins with a new home, which is removed with the run; `none` starts a new \
                       conversation, and the attempts of the run continue it";
            add(Code::ContractInvalid, THREAD.to_owned(), why.to_owned());
        }
        problems
    }
}

impl Gate {
    /// The gate that refuses a contract with these codes: a special one if all are about it.
    pub fn about(codes: &[Code]) -> Self {
        let all = |one: Code| codes.iter().all(|code| *code == one);
        match codes {
            [] => Self::Policy,
            _ if all(Code::SamplingRefused) => Self::Sampling,
            _ if all(Code::ToolRefused) => Self::Integrated,
            _ => Self::Policy,
        }
    }
}

impl State {
    /// The gate that judges a contract next, before any work.
    pub(in crate::run) fn first_gate(&self) -> Gate {
        match &self.contract {
            Err(problems) => {
                let codes: Vec<Code> = problems.iter().map(|it| it.code).collect();
                Gate::about(&codes)
            }
            Ok(contract) if given(&contract.document).next().is_some() => {
                let gates = [Gate::Integrated, Gate::Sampling];
                let open = gates
                    .into_iter()
                    .find(|gate| !self.gates.contains_key(gate));
                open.unwrap_or(Gate::Policy)
            }
            Ok(_) => Gate::Policy,
        }
    }
}

/// The servers that a contract gives its agent.
fn given(document: &Document) -> impl Iterator<Item = &String> {
    document.mcp_tool_set.iter().filter(|name| *name != NONE)
}

/// The verdict on a contract whose servers are all known and permitted.
pub(super) fn judge_integrated(document: &Document) -> Verdict {
    let names: Vec<&str> = given(document).map(String::as_str).collect();
    Verdict::allow(format!(
        "every server that the contract names is in provost.toml and permitted: {}",
        names.join(", ")
    ))
}

/// Why an agent cannot be given the server `name`.
fn lack(agent: Option<&Adapted>, name: &str) -> Option<String> {
    let Some(agent) = agent.filter(|agent| agent.own_command().is_none()) else {
        return Some("cannot be given to a command, which is started as it is".to_owned());
    };
    if agent.tools.contains_key(name) {
        return None;
    }
    Some("is no server under `[mcp]` in provost.toml of the base commit".to_owned())
}

/// Whether the contract names places that its agent may reach through the proxy.
fn reaches(document: &Document) -> bool {
    let extension = document.x_provost.as_ref();
    extension.is_some_and(|extension| !extension.net.is_empty())
}

/// Where a contract says that it is for a search.
fn searches(document: &Document) -> Option<&'static str> {
    match (document.assigned_agent.role, document.task_type) {
        (Role::Searcher | Role::Researcher, _) => Some("/assigned_agent/role"),
        (_, Some(TaskType::Search)) => Some("/task_type"),
        _ => None,
    }
}
