//! Holds what a contract says about its runtime, and the files it refers to, against what there is.

use crate::agent::adapter::StreamForm;
use crate::agent::{Adapted, Adapter};
use crate::code::Code;
use crate::contract::Problem;
use crate::contract::check;
use crate::contract::document::{Document, Role};
use crate::contract::role::RunnerKind;
use crate::run::fact::Opened;

impl Opened {
    /// What `document` says of its runtime and its files, and is not so.
    pub(super) fn unlike(&self, document: &Document) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |code: Code, path: String, problem: String| {
            problems.push(Problem::new(code, path, problem));
        };
        let agent = self.adapted.as_ref();
        let name = agent.map_or(Adapter::COMMAND, |agent| agent.adapter).name();
        if let Some(options) = &document.runtime_options {
            if options.runner.is_some_and(|runner| !runs(agent, runner)) {
                let problem = format!("is not what runs the agent, which is `{name}`");
                add(
                    Code::ContractInvalid,
                    "/runtime_options/runner".to_owned(),
                    problem,
                );
            }
            let provider = options.provider.as_deref();
            if provider.is_some_and(|provider| !answers(agent, provider)) {
                let problem = "does not answer for the model of the agent".to_owned();
                add(
                    Code::ContractInvalid,
                    "/runtime_options/provider".to_owned(),
                    problem,
                );
            }
            let execution = options.execution.as_ref();
            let first = execution.and_then(|execution| execution.mcp_first) == Some(true);
            if first && agent.is_none_or(|agent| agent.server.is_none()) {
                let place = "/runtime_options/execution/mcp_first".to_owned();
                let problem = format!("needs an agent that is an MCP server, not `{name}`");
                add(Code::ContractInvalid, place, problem);
            }
        }
        let view = document.role_contract.as_ref();
        let model = view.and_then(|view| view.runtime_binding.model.as_deref());
        if model.is_some_and(|model| agent.and_then(|it| it.model.as_deref()) != Some(model)) {
            let place = "/role_contract/runtime_binding/model".to_owned();
            let problem = "is not the model of the agent".to_owned();
            add(Code::RoleContractDrift, place, problem);
        }
        let follows = view.map(|view| view.handoff.required_downstream_roles.as_slice());
        for (at, role) in follows.unwrap_or_default().iter().enumerate() {
            let why = match role {
                // The acceptance commands run in every run.
                Role::Test | Role::TestRunner => continue,
                Role::Reviewer if self.review.is_some() => continue,
                Role::Reviewer => "has to follow, and the run has no reviewer",
                _ => "cannot be promised: a reviewer and the commands follow a run, and no others",
            };
            let place = format!("/role_contract/handoff/required_downstream_roles/{at}");
            add(Code::RoleContractDrift, place, why.to_owned());
        }
        for problem in self.references.iter().flat_map(check::lost) {
            add(problem.code, problem.path, problem.problem);
        }
        self.unlike_files(document, &mut add);
        problems
    }

    /// Which files of the contract are not there, or are others.
    fn unlike_files(&self, document: &Document, add: &mut impl FnMut(Code, String, String)) {
        for (index, artifact) in document.inputs.artifacts.iter().enumerate() {
            let place = format!("/inputs/artifacts/{index}");
            if artifact.name.starts_with("output_schema") {
                continue;
            }
            match self.artifacts.get(&artifact.uri) {
                None => {
                    let problem = format!("(`{}`) is no file of the base commit", artifact.uri);
                    add(Code::ContractInvalid, format!("{place}/uri"), problem);
                }
                Some(digest) if !digest.eq_ignore_ascii_case(&artifact.sha256) => {
                    let problem = format!("does not match the file, which has {digest}");
                    add(Code::ContractInvalid, format!("{place}/sha256"), problem);
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether `runner` is what runs the agent.
fn runs(agent: Option<&Adapted>, runner: RunnerKind) -> bool {
    let Some(agent) = agent.filter(|agent| agent.own_command().is_none()) else {
        return false;
    };
    match runner {
        RunnerKind::AppServer | RunnerKind::AppServerOld => {
            agent.adapter.prints(agent) == StreamForm::CodexAppServer
        }
        RunnerKind::Agents | RunnerKind::Codex | RunnerKind::Claude => {
            agent.adapter.runner() == Some(runner)
        }
    }
}

/// Whether `provider` answers for the model: the makers of the program, or the host by its name.
fn answers(agent: Option<&Adapted>, provider: &str) -> bool {
    let Some(agent) = agent else { return false };
    let Some(place) = &agent.provider else {
        return false;
    };
    let vendor = agent.adapter.vendor();
    let own =
        place.is_makers_own(agent.adapter) && vendor.is_some_and(|vendor| vendor.name == provider);
    own || place.base_url.endpoint.host.to_string() == provider
}
