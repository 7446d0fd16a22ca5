//! The meaning of the fields of a contract, and the rules that follow from it.

use super::{Findings, Rules, spelled};
use crate::agent_registry::{ApprovalPolicy, Sandbox};
use crate::approval;
use crate::code::Code;
use crate::contract::additions::{Additions, is_shipped};
use crate::contract::document::{Agent, Document, Filesystem, Network, Shell};
use crate::contract::output::Output;
use crate::contract::{self, Problems, bounds, paths, permit, shares, tests};
use crate::path::is_segment;
use crate::scope;

/// Directories that usually hold so much that naming them says little.
const BROAD: [&str; 2] = ["src", "docs"];

/// The rules about `document` that depend on one field each.
pub(super) fn judge(
    document: &Document,
    rules: &Rules<'_>,
    additions: &Additions,
    findings: &mut Findings,
) {
    if !is_segment(&document.task_id) {
        let problem = "may hold letters, digits, `.`, `_` and `-`, at most 128";
        findings.add(Code::ContractInvalid, "/task_id", problem);
    }
    if document.inputs.spec.trim().is_empty() {
        let problem = "is empty: say what is to be done";
        findings.add(Code::ContractInvalid, "/inputs/spec", problem);
    }
    let baseline = &document.rollback.baseline_ref;
    if baseline.is_empty() || baseline.starts_with('-') {
        let problem = "is not a revision";
        findings.add(Code::ContractInvalid, "/rollback/baseline_ref", problem);
    }
    let mut problems = Problems::default();
    bounds(document, &mut problems);
    for problem in problems.0 {
        findings.add(Code::ContractInvalid, problem.path, problem.problem);
    }
    scopes(document, findings);
    commands(document, rules, findings);
    for (path, agent) in [
        ("/owner_agent", &document.owner_agent),
        ("/assigned_agent", &document.assigned_agent),
    ] {
        known(path, agent, additions, findings);
    }
    for path in broad(document) {
        if by_agent(document, additions) {
            let problem = "is broad, and an agent wrote the contract: name what the task needs";
            findings.add(Code::PrivilegeExceeded, path, problem);
        }
    }
}

/// The places of paths that are so broad that a person should know.
pub(super) fn broad(document: &Document) -> Vec<String> {
    let is_broad = |entry: &String| {
        let path = scope::parse_entry(entry);
        path.is_ok_and(|path| BROAD.contains(&path.as_str()))
    };
    let entries = document.allowed_paths.iter().enumerate();
    entries
        .filter(|(_, entry)| is_broad(entry))
        .map(|(at, _)| format!("/allowed_paths/{at}"))
        .collect()
}

fn by_agent(document: &Document, additions: &Additions) -> bool {
    let extension = document.x_provost.as_ref();
    let author = extension.and_then(|extension| extension.author.as_deref());
    author.is_some_and(|author| approval::is_agent(author) || additions.names(author))
}

fn scopes(document: &Document, findings: &mut Findings) {
    let mut problems = Problems::default();
    paths("/allowed_paths", &document.allowed_paths, &mut problems);
    let extension = document.x_provost.clone().unwrap_or_default();
    paths("/x_provost/forbid", &extension.forbid, &mut problems);
    shares::shared(document, &mut problems);
    permit(&extension.permit.unwrap_or_default(), &mut problems);
    for problem in problems.0 {
        findings.add(Code::ScopeInvalid, problem.path, problem.problem);
    }
}

pub(super) fn shares(document: &Document, findings: &mut Findings) {
    let mut problems = Problems::default();
    shares::outside_of_scope(document, &mut problems);
    for problem in problems.0 {
        findings.add(Code::ScopeInvalid, problem.path, problem.problem);
    }
}

fn commands(document: &Document, rules: &Rules<'_>, findings: &mut Findings) {
    let mut problems = Problems::default();
    tests(document, rules.policy, rules.trust, &mut problems);
    for problem in problems.0 {
        let code = if problem.path.ends_with("/cmd") {
            Code::CommandRefused
        } else {
            Code::ContractInvalid
        };
        findings.add(code, problem.path, problem.problem);
    }
}

fn known(path: &str, agent: &Agent, additions: &Additions, findings: &mut Findings) {
    if !additions.knows(agent) {
        let problem = format!("`{}` is not on the roster in that role", agent.agent_id);
        findings.add(Code::AgentUnknown, path, problem);
    }
}

/// The output of a role is bound to one schema, by name, path and digest.
pub(super) fn output_schema(document: &Document, additions: &Additions, findings: &mut Findings) {
    let role = document.assigned_agent.role;
    let own = format!("output_schema.{}", spelled(role).to_lowercase());
    let wanted = Output::of(role);
    let place = wanted.place();
    let mut bound = false;
    for (index, artifact) in document.inputs.artifacts.iter().enumerate() {
        let path = format!("/inputs/artifacts/{index}");
        let is_schema = artifact.name.starts_with("output_schema");
        if is_schema && artifact.name != "output_schema" && artifact.name != own {
            let problem = format!("is neither `output_schema` nor `{own}`");
            findings.add(Code::OutputSchemaUnbound, format!("{path}/name"), problem);
        }
        if !is_schema {
            continue;
        }
        bound = true;
        let flawed = additions
            .flaws
            .iter()
            .any(|flaw| flaw.path.starts_with(&path));
        if flawed || is_shipped(artifact, wanted) || additions.names_schema(artifact) {
            continue;
        }
        if artifact.uri == place {
            let problem = "is not the digest of that schema";
            findings.add(Code::OutputSchemaUnbound, format!("{path}/sha256"), problem);
        } else {
            let problem = format!(
                "is neither `{place}`, the schema of the role, nor a schema below `schemas/` of \
                 the base commit"
            );
            findings.add(Code::OutputSchemaUnbound, format!("{path}/uri"), problem);
        }
    }
    if !bound {
        let problem = format!("binds no output schema (name `output_schema`, uri `{place}`)");
        findings.add(Code::OutputSchemaUnbound, "/inputs/artifacts", problem);
    }
}

/// A contract gives a role at most what the registry gives it.
pub(super) fn privilege(document: &Document, additions: &Additions, findings: &mut Findings) {
    let asked = &document.tool_permissions;
    let role = document.assigned_agent.role;
    let Some(most) = additions.most(&document.assigned_agent) else {
        return findings.add(Code::AgentUnknown, "/assigned_agent/role", "has no agent");
    };
    let writes = asked.filesystem == Filesystem::WorkspaceWrite;
    if writes && most.sandbox == Sandbox::ReadOnly {
        let problem = format!("is more than {} may have: read-only", spelled(role));
        findings.add(Code::PrivilegeExceeded, super::FILESYSTEM[0], problem);
    }
    let shell = |shell: Shell| match shell {
        // In this order more happens without a person.
        Shell::Deny => 0,
        Shell::Untrusted => 1,
        Shell::OnRequest => 2,
        Shell::Never => 3,
    };
    let allowed = match most.approval_policy {
        ApprovalPolicy::Never => Shell::Never,
        ApprovalPolicy::Untrusted => Shell::Untrusted,
        ApprovalPolicy::OnRequest => Shell::OnRequest,
    };
    if shell(asked.shell) > shell(allowed) {
        let problem = format!(
            "is more than {} may have: {}",
            spelled(role),
            spelled(allowed)
        );
        findings.add(Code::PrivilegeExceeded, "/tool_permissions/shell", problem);
    }
    let network = |network: Network| match network {
        // A person grants every place.
        Network::Deny | Network::OnRequest => 0,
        Network::Allow => 1,
    };
    // Hosts that are named one by one are a grant of their own.
    let named = document
        .x_provost
        .as_ref()
        .is_some_and(|extension| !extension.net.is_empty());
    if !named && network(asked.network) > network(most.network) {
        let most = spelled(most.network);
        let problem = format!("is more than {} may have: {most}", spelled(role));
        findings.add(
            Code::PrivilegeExceeded,
            "/tool_permissions/network",
            problem,
        );
    }
}

/// Network access needs a list of hosts.
pub(super) fn hosts(document: &Document, findings: &mut Findings) {
    let mut problems = Problems::default();
    contract::network(document, &mut problems);
    for problem in problems.0 {
        let code = if problem.path.starts_with("/tool_permissions") {
            Code::PrivilegeExceeded
        } else {
            Code::ContractInvalid
        };
        findings.add(code, problem.path, problem.problem);
    }
}
