//! Reads a package of version 1 into Provost's own model.

use std::collections::BTreeSet;

use provost_core::code::Code;
use provost_core::package::{
    Authority, Budget, Capability, Handoff, Id, Package, Refusal, Route, Set, Version,
};
use serde_json::Value;

use super::document;
use super::field;
use super::validate::validate;

/// Reads the package under `parent` of `payload`.
///
/// Version 1 says nothing about effects, so every capability counts as the strongest. It does not
/// separate what may be done from what may be delegated, so both are the same. It has no files,
/// programs, hosts, secrets and limits, so those axes are empty. One child may be started, and it
/// may start none.
pub fn convert(payload: &Value) -> Result<Package, Refusal> {
    let package: document::Package = field(payload, "parent")?;
    validate(&package)?;
    let capability =
        |one: &super::Capability| Capability::unknown(one.capability_id.clone(), one.kind);
    let route = Route {
        route: id(
            "parent.provider_route.route_id",
            &package.provider_route.route_id,
        )?,
        model: id(
            "parent.provider_route.model_id",
            &package.provider_route.model_id,
        )?,
    };
    let sinks = package
        .output_sinks
        .iter()
        .map(|sink| id("parent.output_sinks", &sink.sink_id));
    let guards = package
        .hooks
        .iter()
        .map(|hook| id("parent.hooks", &hook.hook_id));
    let authority = Authority {
        capabilities: package.capabilities.iter().map(capability).collect(),
        routes: Set::from_iter([route]),
        sinks: distinct("sink", sinks)?,
        ..Authority::default()
    };
    distinct(
        "capability",
        package
            .capabilities
            .iter()
            .map(|one| Ok(one.capability_id.clone())),
    )?;
    Ok(Package {
        schema_version: Version,
        agent: package.agent.agent_id.clone(),
        parent: None,
        exercise: authority.clone(),
        delegate: authority,
        budget: Budget {
            levels: 1,
            children: 1,
        },
        guards: distinct("hook", guards)?,
        handoff: Handoff::default(),
    })
}

fn id(field: &str, text: &str) -> Result<Id, Refusal> {
    Id::try_from(text.to_owned()).map_err(|error| Refusal::malformed(field, error.to_string()))
}

/// The ids as a set; an error if one of them is repeated.
fn distinct(
    what: &str,
    ids: impl Iterator<Item = Result<Id, Refusal>>,
) -> Result<Set<Id>, Refusal> {
    let mut seen = BTreeSet::new();
    for id in ids {
        if let Some(twin) = seen.replace(id?) {
            let reason = format!("the {what} `{twin}` is there twice");
            return Err(Refusal::rule(Code::PackageDuplicate, reason));
        }
    }
    Ok(seen.into_iter().collect())
}
