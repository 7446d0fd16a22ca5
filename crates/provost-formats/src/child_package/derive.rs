//! Derives a child's package from its parent's, and lists what was left out.

use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::package::{Id, PackageAnswer, PackageResult, Refusal};
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{Agent, Package};
use super::fingerprint::{fingerprint, manifest};
use super::reference::{PolicyRef, Sidecar, SidecarRef};
use super::request::{ChildPolicy, Handoff, RoutePolicy, ToolPolicy};
use super::validate::validate;
use super::{hash, to_value};

/// The payload that asks for a child's package.
#[derive(JsonSchema)]
pub(super) struct Request {
    pub(super) parent: Package,
    pub(super) child_agent_id: Id,
    pub(super) route_policy: RoutePolicy,
    pub(super) handoff_policy: Handoff,
    pub(super) child_policy: ChildPolicy,
    pub(super) tool_policy: ToolPolicy,
}

/// What was removed; the hash covers the fields in this order.
#[derive(Serialize)]
struct StripManifest<'a> {
    parent_package_fingerprint: &'a str,
    child_agent_id: &'a Id,
    selected_provider_route_id: &'a str,
    handoff_policy_variant: &'static str,
    tool_policy: &'a ToolPolicy,
    recursive_subagent_strip: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stripped_capability_ids: Vec<Id>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retained_capability_ids: Vec<Id>,
    lifecycle_policy_ref: &'a PolicyRef,
    redaction_policy_ref: &'a PolicyRef,
}

pub(super) fn derive(request: &Request) -> Result<PackageAnswer, Refusal> {
    let Request {
        parent,
        child_policy: policy,
        ..
    } = request;
    validate(parent)?;
    request.handoff_policy.validate()?;
    if !policy.strip_recursive_subagents {
        let reason = "children may not start children, so those tools have to be stripped";
        return Err(Refusal::rule(Code::RecursionNotStripped, reason));
    }
    let parent_fingerprint = fingerprint(parent)?;
    if parent_fingerprint != policy.source_parent_package {
        let reason = format!("the parent's fingerprint is {parent_fingerprint}");
        return Err(Refusal::rule(Code::ParentFingerprintMismatch, reason));
    }
    let mut child = parent.clone();
    child.provider_route = request
        .route_policy
        .select(&parent.provider_route, policy)?;
    child.package_id = child_package_id(&request.child_agent_id, &parent_fingerprint)?;
    child.agent = Agent {
        agent_id: request.child_agent_id.clone(),
        name: request.child_agent_id.to_string(),
        default_behavior_refs: parent.agent.default_behavior_refs.clone(),
    };
    child.child_lifecycle.policy_ref = policy.child_lifecycle_bounds.clone();
    child.child_lifecycle.detach_policy_ref = policy.child_lifecycle_bounds.clone();
    let (stripped, retained) = strip(&mut child, request);

    let strip_manifest = StripManifest {
        parent_package_fingerprint: &parent_fingerprint,
        child_agent_id: &request.child_agent_id,
        selected_provider_route_id: &child.provider_route.route_id,
        handoff_policy_variant: request.handoff_policy.name(),
        tool_policy: &request.tool_policy,
        recursive_subagent_strip: true,
        stripped_capability_ids: stripped,
        retained_capability_ids: retained,
        lifecycle_policy_ref: &policy.child_lifecycle_bounds,
        redaction_policy_ref: &policy.redaction_policy_ref,
    };
    let manifest_hash = hash(&strip_manifest)?;
    child.sidecars.push(evidence(policy, &manifest_hash));
    child
        .policies
        .policy_refs
        .push(policy.redaction_policy_ref.clone());
    child.fingerprint_manifest = manifest(&child);
    let result = PackageResult::Derived {
        child_fingerprint: fingerprint(&child)?,
        package: to_value(&child)?,
        parent_fingerprint: parent_fingerprint.clone(),
    };
    let why = "it starts children, or the request's tool policy leaves it out";
    let stripped = strip_manifest.stripped_capability_ids.iter();
    let without = stripped.map(|id| (id.to_string(), why)).collect();
    let more = StripFacts {
        strip_manifest,
        strip_manifest_content_hash: manifest_hash,
    };
    let mut answer = PackageAnswer::new(result, &more);
    answer.without = without;
    Ok(answer)
}

#[derive(Serialize)]
struct StripFacts<'a> {
    strip_manifest: StripManifest<'a>,
    strip_manifest_content_hash: String,
}

/// Removes from `child` what it must not keep; gives what was removed and what stayed.
fn strip(child: &mut Package, request: &Request) -> (Vec<Id>, Vec<Id>) {
    let Request {
        child_policy: policy,
        tool_policy: tools,
        ..
    } = request;
    let (mut stripped, mut retained) = (Vec::new(), Vec::new());
    child.capabilities.retain(|capability| {
        let goes = policy.is_recursive(capability)
            || (policy.strip_disallowed_tools && !tools.retains(capability));
        let list = if goes { &mut stripped } else { &mut retained };
        list.push(capability.capability_id.clone());
        !goes
    });
    stripped.sort();
    retained.sort();
    (stripped, retained)
}

/// The sidecar that stands for the strip manifest in the child.
fn evidence(policy: &ChildPolicy, manifest_hash: &str) -> Sidecar {
    let own = SidecarRef {
        sidecar_id: "sidecar.subagent.child_package_strip_manifest".to_owned(),
        kind: "subagent_child_package_strip_manifest".to_owned(),
        version: "v1".to_owned(),
        content_hash: None,
    };
    Sidecar {
        sidecar_id: own.sidecar_id.clone(),
        kind: own.kind.clone(),
        version: own.version.clone(),
        refs: vec![own],
        policy_refs: vec![
            policy.child_lifecycle_bounds.clone(),
            policy.redaction_policy_ref.clone(),
        ],
        content_hash: manifest_hash.to_owned(),
        redacted_payload: None,
    }
}

/// The id of the child's package; a long agent id makes it invalid.
fn child_package_id(agent: &Id, parent_fingerprint: &str) -> Result<Id, Refusal> {
    let digest = sha256(parent_fingerprint.as_bytes());
    let suffix = digest.get(..16).unwrap_or(&digest);
    Id::try_from(format!("package.subagent.{agent}.{suffix}")).map_err(|error| {
        let reason = format!("the id of the child's package would be unusable: {error}");
        Refusal::rule(Code::ChildIdTooLong, reason)
    })
}
