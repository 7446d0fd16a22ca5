//! Checks a contract as a document, before anybody thinks of running it.
//!
//! Shape and meaning are both checked, and everything is listed: a finding has a place, a code and
//! words. Whether this machine could run the contract is another question; see
//! [`super::resolve`].

use serde::Serialize;
use serde_json::{Value, json};

use super::document::{Agent, Document, Filesystem, Network, Role, Shell};
use super::role::RoleContract;
use super::{Problem, Problems, is_segment, limits, paths, permit, tests};
use crate::code::Code;
use crate::gate::command::{CommandPolicy, Trust};
use crate::json as text;
use crate::object::sha256;
use crate::path::RepoPath;
use crate::roster::{self, ApprovalPolicy, Sandbox};
use crate::schema::{self, validate::validate};
use crate::verdict::Verdict;

/// What a contract must never ask for.
const FULL_ACCESS: &str = "danger-full-access";

/// Where a contract could ask for it.
const FILESYSTEM: [&str; 2] = [
    "/tool_permissions/filesystem",
    "/role_contract/tool_permissions/filesystem",
];

/// Something in a contract that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The place, as a JSON pointer.
    pub path: String,
    /// The rule.
    pub code: Code,
    /// What is wrong there.
    pub problem: String,
}

/// Judges `value` as a contract.
pub fn judge(value: &Value, policy: &CommandPolicy) -> Verdict {
    let findings = check(value, policy);
    let Some(first) = findings.first() else {
        return Verdict::allow("the contract keeps every rule");
    };
    let reason = match findings.len() {
        1 => format!("`{}` {}", first.path, first.problem),
        count => format!(
            "{count} rules are broken; `{}` {}",
            first.path, first.problem
        ),
    };
    Verdict::deny(Code::ContractInvalid, reason).with(json!({ "findings": findings }))
}

/// Everything in `value` that breaks a rule of contracts.
///
/// What rests on a part that cannot be read is not checked; the part itself is a finding.
pub fn check(value: &Value, policy: &CommandPolicy) -> Vec<Finding> {
    let mut findings = Findings::default();
    for path in FILESYSTEM {
        if value
            .pointer(path)
            .is_some_and(|asked| asked == FULL_ACCESS)
        {
            let problem = format!("`{FULL_ACCESS}` is never granted by a contract");
            findings.add(Code::PrivilegeExceeded, path, problem);
        }
    }
    let told: Vec<String> = findings.0.iter().map(|one| one.path.clone()).collect();
    let mut shape = validate(&schema::TASK_CONTRACT.schema(), value);
    shape.retain(|problem| !told.contains(&problem.path));
    findings.extend(Code::InputInvalid, shape);
    if let Ok(document) = text::from_value::<Document>(value.clone()) {
        meaning(&document, policy, &mut findings);
    }
    findings.0
}

fn meaning(document: &Document, policy: &CommandPolicy, findings: &mut Findings) {
    if !is_segment(&document.task_id) {
        let problem = "may hold letters, digits, `.`, `_` and `-`, at most 128";
        findings.add(Code::ContractInvalid, "/task_id", problem);
    }
    let baseline = &document.rollback.baseline_ref;
    if baseline.is_empty() || baseline.starts_with('-') {
        findings.add(
            Code::ContractInvalid,
            "/rollback/baseline_ref",
            "is not a revision",
        );
    }
    let mut problems = Problems::default();
    limits(document, &mut problems);
    // Below 1 and above 10 are matters of shape, and told already.
    let told: Vec<String> = findings.0.iter().map(|one| one.path.clone()).collect();
    problems.0.retain(|problem| !told.contains(&problem.path));
    findings.extend(Code::ContractInvalid, problems.0);
    scopes(document, findings);
    commands(document, policy, findings);
    for (path, agent) in [
        ("/owner_agent", &document.owner_agent),
        ("/assigned_agent", &document.assigned_agent),
    ] {
        known(path, agent, findings);
    }
    output_schema(document, findings);
    privilege(document, findings);
    if let Some(view) = &document.role_contract {
        drift(document, view, findings);
    }
}

fn scopes(document: &Document, findings: &mut Findings) {
    let mut problems = Problems::default();
    paths("/allowed_paths", &document.allowed_paths, &mut problems);
    let extension = document.x_provost.clone().unwrap_or_default();
    paths("/x_provost/forbid", &extension.forbid, &mut problems);
    permit(&extension.permit.unwrap_or_default(), &mut problems);
    findings.extend(Code::ScopeInvalid, problems.0);
}

fn commands(document: &Document, policy: &CommandPolicy, findings: &mut Findings) {
    let mut problems = Problems::default();
    tests(document, policy, Trust::FromFile, &mut problems);
    for problem in problems.0 {
        let code = if problem.path.ends_with("/cmd") {
            Code::CommandRefused
        } else {
            Code::ContractInvalid
        };
        findings.extend(code, vec![problem]);
    }
}

fn known(path: &str, agent: &Agent, findings: &mut Findings) {
    if !roster::knows(&agent.agent_id, agent.role) {
        let problem = format!("`{}` is not in the registry in that role", agent.agent_id);
        findings.add(Code::AgentUnknown, path, problem);
    }
}

/// The output of a role is bound to one schema, by name, place and digest.
fn output_schema(document: &Document, findings: &mut Findings) {
    let role = document.assigned_agent.role;
    let own = format!("output_schema.{}", spelled(role).to_lowercase());
    let wanted = match role {
        Role::Reviewer => "review_report.v1",
        Role::TestRunner | Role::Test => "test_report.v1",
        _ => "agent_task_result.v1",
    };
    let place = format!("schemas/{wanted}.json");
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
        let digest = schema::find(wanted).map(|format| sha256(format.text().as_bytes()));
        if artifact.uri != place {
            let problem = format!("is not `{place}`, the schema of the role");
            findings.add(Code::OutputSchemaUnbound, format!("{path}/uri"), problem);
        } else if !digest.is_some_and(|digest| artifact.sha256.eq_ignore_ascii_case(&digest)) {
            let problem = "is not the digest of that schema";
            findings.add(Code::OutputSchemaUnbound, format!("{path}/sha256"), problem);
        }
    }
    if !bound {
        let problem = format!("binds no output schema (name `output_schema`, uri `{place}`)");
        findings.add(Code::OutputSchemaUnbound, "/inputs/artifacts", problem);
    }
}

/// A contract gives a role at most what the registry gives it.
fn privilege(document: &Document, findings: &mut Findings) {
    let asked = &document.tool_permissions;
    let role = document.assigned_agent.role;
    let Some(most) = roster::defaults(role) else {
        return findings.add(Code::AgentUnknown, "/assigned_agent/role", "has no agent");
    };
    let writes = asked.filesystem == Filesystem::WorkspaceWrite;
    if writes && most.sandbox == Sandbox::ReadOnly {
        let problem = format!("is more than {} may have: read-only", spelled(role));
        findings.add(Code::PrivilegeExceeded, FILESYSTEM[0], problem);
    }
    let shell = |shell: Shell| match shell {
        Shell::Deny => 0,
        Shell::Never => 1,
        Shell::Untrusted => 2,
        Shell::OnRequest => 3,
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
        Network::Deny => 0,
        Network::OnRequest => 1,
        Network::Allow => 2,
    };
    if network(asked.network) > network(most.network) {
        let most = spelled(most.network);
        let problem = format!("is more than {} may have: {most}", spelled(role));
        findings.add(
            Code::PrivilegeExceeded,
            "/tool_permissions/network",
            problem,
        );
    }
    let hosts = document.x_provost.as_ref().map(|extension| &extension.net);
    if asked.network == Network::Allow && hosts.is_none_or(Vec::is_empty) {
        let problem = "`allow` names no hosts; list them in `x_provost.net`";
        findings.add(
            Code::PrivilegeExceeded,
            "/tool_permissions/network",
            problem,
        );
    }
}

/// What the resolved view of a role says, and what in the contract it must equal.
const SAME: [(&str, &str); 10] = [
    ("/identity/role", "/assigned_agent/role"),
    ("/identity/agent_id", "/assigned_agent/agent_id"),
    ("/tool_permissions/filesystem", FILESYSTEM[0]),
    ("/tool_permissions/shell", "/tool_permissions/shell"),
    ("/tool_permissions/network", "/tool_permissions/network"),
    ("/resolved_mcp_tool_set", "/mcp_tool_set"),
    ("/runtime_binding/runner", "/runtime_options/runner"),
    ("/runtime_binding/provider", "/runtime_options/provider"),
    ("/handoff/chain_roles", "/handoff_chain/roles"),
    ("/handoff/max_handoffs", "/handoff_chain/max_handoffs"),
];

/// The resolved view of a role must say what the contract says.
fn drift(document: &Document, view: &RoleContract, findings: &mut Findings) {
    let contract = serde_json::to_value(document).unwrap_or_default();
    let role = serde_json::to_value(view).unwrap_or_default();
    let read = |from: &Value, at: &str| match from.pointer(at) {
        // Older documents write it so.
        Some(Value::String(runner)) if runner == "app_server" => json!("app-server"),
        // A list that names nothing is a list that is not there.
        Some(Value::Array(list)) if list.is_empty() => Value::Null,
        found => found.cloned().unwrap_or_default(),
    };
    for (seen, place) in SAME {
        let (is, want) = (read(&role, seen), read(&contract, place));
        if is != want {
            let problem = format!("is {is}, and `{place}` is {want}");
            findings.add(
                Code::RoleContractDrift,
                format!("/role_contract{seen}"),
                problem,
            );
        }
    }
    let refs = [
        ("system_prompt_ref", &view.system_prompt_ref),
        ("skills_bundle_ref", &view.skills_bundle_ref),
        ("mcp_bundle_ref", &view.mcp_bundle_ref),
    ];
    for (name, reference) in refs {
        let Some(reference) = reference else { continue };
        // Only the two bundles have parts that can be named.
        let file = match reference.split_once('#') {
            Some((file, _)) if name != "system_prompt_ref" => file,
            _ => reference,
        };
        if RepoPath::try_from(file).is_err() || file.contains('#') {
            let problem = "is not a file inside the repository";
            findings.add(
                Code::RoleContractDrift,
                format!("/role_contract/{name}"),
                problem,
            );
        }
    }
}

/// A value as its format writes it.
fn spelled(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, code: Code, path: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Finding {
            path: path.into(),
            code,
            problem: problem.into(),
        });
    }

    fn extend(&mut self, code: Code, problems: Vec<Problem>) {
        for Problem { path, problem } in problems {
            self.add(code, path, problem);
        }
    }
}
