//! Derives by version 1 what the model of Provost derived, for those who compare fingerprints.
//!
//! The package of version 1 says less: it has tools and a route, and nothing about files, programs,
//! networks and limits. A family of more than one generation has no such form.

use provost_core::children::PackageV1Record;
use provost_core::package::{
    self, Capability as OwnCapability, Handoff as OwnHandoff, Id, IdError,
};
use provost_core::package::{Kind, Refusal};
use serde_json::Value;

use super::capability::Capability;
use super::derive::{self, Request};
use super::document::Package;
use super::fingerprint::fingerprint;
use super::reference::{PolicyKind, PolicyRef};
use super::request::{ChildPolicy, Handoff, RoutePolicy, ToolPolicy};
use super::to_value;

/// The policy that the format calls `strip_recursive_defaults`, for children of the package with
/// this fingerprint.
pub fn default_policy(parent_fingerprint: &str) -> Result<Value, Refusal> {
    let policy = ChildPolicy::strip_recursive_defaults(parent_fingerprint.to_owned());
    let unusable = |error: IdError| Refusal::malformed("policy", error.to_string());
    to_value(&policy.map_err(unusable)?)
}

/// What version 1 derives for `child` of `parent`; `None` if that has no such form.
pub fn record(parent: &package::Package, child: &package::Package) -> Option<PackageV1Record> {
    // A child that starts children is more than that version can say.
    if parent.budget.levels > 1 || parent.parent.is_some() {
        return None;
    }
    let package = of(parent).ok()?;
    let parent_fingerprint = fingerprint(&package).ok()?;
    let kept: Vec<Id> = child
        .exercise
        .capabilities
        .iter()
        .map(|it| it.id.clone())
        .collect();
    let route = child.exercise.routes.iter().next();
    let route_policy = match route {
        Some(route) if route.model.as_str() != package.provider_route.model_id => {
            RoutePolicy::UseAllowedOverride {
                route_id: route.route.to_string(),
                model_id: route.model.to_string(),
            }
        }
        Some(_) | None => RoutePolicy::InheritParent,
    };
    let route_id = package.provider_route.route_id.clone();
    let policy = ChildPolicy::strip_recursive_defaults(parent_fingerprint.clone()).ok()?;
    let derived = derive::derive(&Request {
        parent: package,
        child_agent_id: child.agent.clone(),
        route_policy,
        handoff_policy: handed(&child.handoff),
        child_policy: policy.keeping(&kept, &route_id),
        tool_policy: ToolPolicy::CustomAllowlist {
            capability_ids: kept,
        },
    });
    let answer = derived.ok()?.render();
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(PackageV1Record {
        parent_fingerprint,
        child_fingerprint: text("child_fingerprint")?,
        strip_manifest: answer.get("strip_manifest")?.clone(),
        strip_manifest_content_hash: text("strip_manifest_content_hash")?,
    })
}

/// The package of version 1 that says what `package` exercises and delegates of tools and routes.
fn of(package: &package::Package) -> Result<Package, IdError> {
    let authority = &package.delegate;
    let capabilities = authority.capabilities.iter().map(tool);
    let route = package.exercise.routes.iter().next();
    let words = |id: Option<&Id>, usual: &str| id.map_or(usual.to_owned(), ToString::to_string);
    Package::plain(
        package.agent.clone(),
        words(route.map(|it| &it.route), "command"),
        words(route.map(|it| &it.model), "default"),
        capabilities.collect::<Result<_, _>>()?,
    )
}

/// A tool that the model sees. The format reserves all other kinds, so agents are tools, too.
fn tool(capability: &OwnCapability) -> Result<Capability, IdError> {
    Capability::host_tool(capability.id.clone(), Kind::Tool)
}

fn handed(handoff: &OwnHandoff) -> Handoff {
    let policy_ref = |id: &Id| PolicyRef {
        kind: PolicyKind::Context,
        id: id.clone(),
        version: None,
    };
    match handoff {
        OwnHandoff::None {} => Handoff::None,
        OwnHandoff::SummaryOnly {
            summary,
            max_tokens,
            policy,
        } => Handoff::SummaryOnly {
            summary_ref: summary.name.clone(),
            max_tokens: *max_tokens,
            policy_ref: policy_ref(policy),
        },
        OwnHandoff::SelectedRefs { refs, policy } => Handoff::SelectedRefs {
            refs: refs.iter().map(|one| one.name.clone()).collect(),
            policy_ref: policy_ref(policy),
        },
        OwnHandoff::FullHistory { policy, .. } => Handoff::FullHistoryWithPolicy {
            policy_ref: policy_ref(policy),
            projection_audit_required: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use provost_core::package::{Authority, Budget, Package as OwnPackage, Place, Route, Version};

    use super::*;

    fn id(text: &str) -> Id {
        Id::try_from(text.to_owned()).unwrap()
    }

    fn package(tools: &[&str], model: &str, levels: u32) -> OwnPackage {
        let tools = tools.iter();
        let tools = tools.map(|tool| OwnCapability::unknown(id(tool), Kind::Tool));
        let route = Route {
            route: id("claude"),
            model: id(model),
        };
        let authority = Authority {
            capabilities: tools.collect(),
            read: [Place::everything()].into_iter().collect(),
            routes: [route].into_iter().collect(),
            ..Authority::default()
        };
        OwnPackage {
            schema_version: Version,
            agent: id("claude"),
            parent: None,
            exercise: authority.clone(),
            delegate: authority,
            budget: Budget {
                levels,
                children: 2,
            },
            guards: std::iter::empty().collect(),
            handoff: OwnHandoff::default(),
        }
    }

    #[test]
    fn what_a_child_did_not_get_is_in_the_manifest_of_version_1() {
        let all = ["known", "tool.child_start", "tool.subagent_ask_parent"];
        let parent = package(&all, "m-1", 1);
        let record = record(&parent, &package(&["known"], "m-2", 0)).unwrap();
        let prefix = "sha256:runtime-package-canonical-v1:";
        assert!(record.parent_fingerprint.starts_with(prefix));
        assert!(record.child_fingerprint.starts_with(prefix));
        assert_ne!(record.parent_fingerprint, record.child_fingerprint);
        let manifest = &record.strip_manifest;
        assert_eq!(
            manifest["stripped_capability_ids"],
            serde_json::json!(all[1..])
        );
        assert_eq!(
            manifest["retained_capability_ids"],
            serde_json::json!(["known"])
        );
        assert_eq!(
            manifest["parent_package_fingerprint"],
            record.parent_fingerprint
        );
    }

    #[test]
    fn more_generations_have_no_form_of_version_1() {
        let child = package(&["known"], "m-1", 0);
        assert!(record(&package(&["known"], "m-1", 2), &child).is_none());
    }

    #[test]
    fn the_default_policy_is_that_of_the_document() {
        let policy = default_policy("sha256:x").unwrap();
        assert_eq!(policy["source_parent_package"], "sha256:x");
        assert_eq!(policy["inherit_provider_route"], "inherit_parent");
        assert_eq!(policy["strip_recursive_subagents"], true);
        assert_eq!(policy["strip_disallowed_tools"], true);
        assert_eq!(
            policy["child_lifecycle_bounds"]["id"],
            "policy.child.parent_owned"
        );
        assert_eq!(
            policy["parent_control_tool_ids"].as_array().unwrap().len(),
            5
        );
    }
}
