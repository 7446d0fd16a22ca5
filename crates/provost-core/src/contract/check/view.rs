//! The resolved view of a role, which must agree with the contract, and the files it refers to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FILESYSTEM, Findings};
use crate::code::Code;
use crate::contract::Problem;
use crate::contract::additions::Additions;
use crate::contract::document::Document;
use crate::contract::role::RoleContract;
use crate::json as text;
use crate::path::RepoPath;

/// The largest size in bytes of a file that a role refers to.
pub const LARGEST_REFERENCE: usize = 256 * 1024;

/// Reads a file of the repository, up to one byte more than [`LARGEST_REFERENCE`]; `None` if it
/// cannot be read.
pub type ReadFile<'a> = &'a dyn Fn(&RepoPath) -> Option<Vec<u8>>;

/// The fields of the resolved view of a role, and the fields of the contract that they must equal.
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

/// The resolved view of a role must agree with the contract.
pub(super) fn drift(document: &Document, readable: &dyn Fn(&str) -> bool, findings: &mut Findings) {
    let Some(view) = &document.role_contract else {
        return;
    };
    let contract = serde_json::to_value(document).unwrap_or_default();
    let role = serde_json::to_value(view).unwrap_or_default();
    let read = |from: &Value, at: &str| match from.pointer(at) {
        // The spelling of older documents.
        Some(Value::String(runner)) if runner == "app_server" => json!("app-server"),
        // An empty list equals a missing one.
        Some(Value::Array(list)) if list.is_empty() => Value::Null,
        found => found.cloned().unwrap_or_default(),
    };
    for (seen, place) in SAME {
        let (is, want) = (read(&role, seen), read(&contract, place));
        if is != want && readable(place) {
            let problem = format!("is {is}, and `{place}` is {want}");
            findings.add(
                Code::RoleContractDrift,
                format!("/role_contract{seen}"),
                problem,
            );
        }
    }
    for (name, reference) in references_of(view) {
        if let Err(problem) = split(name, reference) {
            let path = format!("/role_contract/{name}");
            findings.add(Code::RoleContractDrift, path, problem);
        }
    }
}

/// The resolved view of a role must agree with what the registry of the repository says about it,
/// and with itself.
pub(super) fn terms(document: &Document, additions: &Additions, findings: &mut Findings) {
    let Some(view) = &document.role_contract else {
        return;
    };
    let handoff = &view.handoff;
    let mut drift = |place: &str, problem: String| {
        let path = format!("/role_contract{place}");
        findings.add(Code::RoleContractDrift, path, problem);
    };
    if !handoff.eligible && !handoff.required_downstream_roles.is_empty() {
        let problem = "names roles that follow, and `eligible` lets the role pass on no work";
        drift("/handoff/required_downstream_roles", problem.to_owned());
    }
    let Some(terms) = &additions.terms else {
        return;
    };
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let rows = [
        ("/purpose", json!(view.purpose), text(&terms.purpose)),
        (
            "/system_prompt_ref",
            json!(view.system_prompt_ref),
            text(&terms.system_prompt_ref),
        ),
        (
            "/skills_bundle_ref",
            json!(view.skills_bundle_ref),
            text(&terms.skills_bundle_ref),
        ),
        (
            "/mcp_bundle_ref",
            json!(view.mcp_bundle_ref),
            text(&terms.mcp_bundle_ref),
        ),
        (
            "/handoff/eligible",
            json!(handoff.eligible),
            terms.handoff_eligible.map(Value::Bool),
        ),
        (
            "/handoff/required_downstream_roles",
            json!(handoff.required_downstream_roles),
            terms.required_downstream_roles.as_ref().map(|it| json!(it)),
        ),
        (
            "/fail_closed_conditions",
            json!(view.fail_closed_conditions),
            terms.fail_closed_conditions.as_ref().map(|it| json!(it)),
        ),
    ];
    for (place, is, want) in rows {
        if let Some(want) = want.filter(|want| *want != is) {
            let problem = format!("is {is}, and the registry of the repository says {want}");
            drift(place, problem);
        }
    }
}

/// The references of a role that are not `null`.
fn references_of(view: &RoleContract) -> Vec<(&'static str, &str)> {
    let all = [
        (PROMPT, &view.system_prompt_ref),
        (SKILLS, &view.skills_bundle_ref),
        (TOOLS, &view.mcp_bundle_ref),
    ];
    all.into_iter()
        .filter_map(|(name, reference)| Some((name, reference.as_deref()?)))
        .collect()
}

const PROMPT: &str = "system_prompt_ref";
const SKILLS: &str = "skills_bundle_ref";
const TOOLS: &str = "mcp_bundle_ref";

/// The file of a reference, and the part of it that is meant; only bundles have parts.
fn split<'a>(name: &str, reference: &'a str) -> Result<(RepoPath, Option<&'a str>), &'static str> {
    let (file, part) = match reference.split_once('#') {
        Some((file, part)) if matches!(name, SKILLS | TOOLS) => (file, Some(part)),
        _ => (reference, None),
    };
    match RepoPath::try_from(file) {
        Ok(path) if !file.contains('#') => Ok((path, part)),
        _ => Err("is not a file inside the repository"),
    }
}

/// The result of a reference of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Referred {
    /// A file, and the names in the bundle that it holds.
    Found(Vec<String>),
    /// Why the reference cannot be used.
    Lost(String),
}

/// The references of the resolved view of a role, by the name of the field.
pub fn refer(document: &Document, read: ReadFile<'_>) -> BTreeMap<String, Referred> {
    let view = document.role_contract.iter();
    let one = |(name, reference): (&'static str, &str)| {
        // The rules of the contract report an invalid reference already.
        let (path, part) = split(name, reference).ok()?;
        let found = resolve(&path, part, name != PROMPT, read);
        Some((
            name.to_owned(),
            found.map_or_else(Referred::Lost, Referred::Found),
        ))
    };
    view.flat_map(references_of).filter_map(one).collect()
}

/// The problems of the references of a role.
pub fn lost(referred: &BTreeMap<String, Referred>) -> Vec<Problem> {
    let problem = |(name, found): (&String, &Referred)| match found {
        Referred::Found(_) => None,
        Referred::Lost(why) => {
            let place = format!("/role_contract/{name}");
            Some(Problem::new(Code::RoleContractDrift, place, why.clone()))
        }
    };
    referred.iter().filter_map(problem).collect()
}

/// The references of the resolved view of a role that cannot be used.
pub fn references(document: &Document, read: ReadFile<'_>) -> Vec<Problem> {
    lost(&refer(document, read))
}

/// The names that a reference leads to; a bundle has names, a prompt has none.
fn resolve(
    path: &RepoPath,
    part: Option<&str>,
    is_bundle: bool,
    read: ReadFile<'_>,
) -> Result<Vec<String>, String> {
    let bytes = read(path).ok_or_else(|| format!("there is no file `{path}`"))?;
    if bytes.len() > LARGEST_REFERENCE {
        return Err(format!("`{path}` has more than {LARGEST_REFERENCE} bytes"));
    }
    if !is_bundle {
        return Ok(Vec::new());
    }
    let bundle = text::parse(&bytes).map_err(|error| format!("`{path}`: {error}"))?;
    let found = match part {
        None => Some(&bundle),
        Some(part) if part.starts_with('/') => bundle.pointer(part),
        Some(part) => bundle.get(part),
    };
    let name = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    match (found.and_then(Value::as_array), part) {
        (Some(list), _) if !list.is_empty() => Ok(list.iter().map(name).collect()),
        (_, Some(part)) => Err(format!(
            "`{path}` has no list `{part}` that names something"
        )),
        (_, None) => Err(format!("`{path}` is no list that names something")),
    }
}
