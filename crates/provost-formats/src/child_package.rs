//! Child packages, version 1: what a child agent may do, taken from what its parent may do.
//!
//! The format, its checks and its hashes are fixed by others and kept to the byte, holes included:
//! `read_only` removes nothing, because a capability does not say what it does. The model without
//! those holes is [`provost_core::package`]; [`convert()`] reads this format into it. See
//! `docs/PACKAGES.md`.
//!
//! # Invariants
//!
//! - Any payload gives an answer or a [`Refusal`] with a code.
//! - A list where an object belongs is refused, although the reference reader accepts it.

#![expect(
    clippy::struct_field_names,
    reason = "the names of fields are the format's"
)]

mod capability;
mod convert;
mod derive;
mod document;
mod fingerprint;
mod hook;
mod isolation;
mod output;
mod record;
mod reference;
mod request;
#[cfg(test)]
mod tests;
mod validate;

use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::package::{
    Id, Operation, PackageAnswer, PackageResult, Refusal, RefusalClass, Stage, member,
};
use provost_core::schema::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use capability::Capability;
pub use convert::convert;
use document::Package;
pub use record::{default_policy, record};
use reference::PolicyRef;
use request::{DepthBudget, Handoff};

/// The package as a document; every reader of the format ignores unknown fields.
pub const FORMAT: Format = Format::foreign_and_open::<Package>("child_package.v1");

/// The payload that asks for a child's package.
pub const REQUEST_FORMAT: Format =
    Format::foreign_and_open::<derive::Request>("child_package_request.v1");

pub fn answer(operation: Operation, payload: &Value) -> Result<PackageAnswer, Refusal> {
    match operation {
        Operation::Derive => derive::derive(&request(payload)?),
        Operation::Fingerprint => {
            let package = field(payload, "parent")?;
            let result = PackageResult::Fingerprint {
                fingerprint: fingerprint::fingerprint(&package)?,
                canonical: fingerprint::canonical(&package)?,
            };
            let round_trip = &package;
            Ok(PackageAnswer::new(result, &RoundTrip { round_trip }))
        }
        Operation::Handoff => {
            let handoff: Handoff = field(payload, "handoff_policy")?;
            handoff.validate()?;
            let variant_name = handoff.name();
            let more = HandoffRefs {
                policy_refs: handoff.policy_refs(),
                selected_content_refs: handoff.content_refs(),
            };
            Ok(PackageAnswer::new(
                PackageResult::Handoff { variant_name },
                &more,
            ))
        }
        Operation::Depth => {
            let budget: DepthBudget = field(payload, "depth_budget")?;
            let child_budget = to_value(&budget.child()?)?;
            let result = PackageResult::Depth { child_budget };
            Ok(PackageAnswer::new(result, &NothingMore {}))
        }
    }
}

/// The fingerprint of the package `value`.
pub fn fingerprint_of(value: &Value) -> Result<String, Refusal> {
    let package = member(&Value::from_iter([("parent", value.clone())]), "parent")?;
    fingerprint::fingerprint(&package)
}

/// The package as it was read.
#[derive(Serialize)]
struct RoundTrip<'a> {
    round_trip: &'a Package,
}

#[derive(Serialize)]
struct HandoffRefs<'a> {
    policy_refs: Vec<&'a PolicyRef>,
    selected_content_refs: Vec<&'a Id>,
}

#[derive(Serialize)]
struct NothingMore {}

/// A refusal in this format: Provost's code, and the three words that its users sort errors by.
pub fn render(refusal: &Refusal) -> Value {
    let is_rule = refusal.stage == Stage::Contract;
    refusal.render(is_rule.then(|| class(refusal.code)))
}

fn class(code: Code) -> RefusalClass {
    let (variant, kind, retry) = match code {
        Code::ProviderRouteIdMissing
        | Code::ProviderModelIdMissing
        | Code::VisibleCapabilityWithoutExecutor
        | Code::RouteOverrideBlank => (
            "MissingRequiredField",
            "InvalidPackage",
            "HostConfigurationNeeded",
        ),
        Code::HookTimeoutZero
        | Code::HookRightNotAllowed
        | Code::HookNonblockingMutates
        | Code::HookFailOpenSecurity => ("Classified", "InvalidPackage", "HostConfigurationNeeded"),
        _ => (
            "ContractViolation",
            "InvalidStateTransition",
            "RepairNeeded",
        ),
    };
    RefusalClass {
        variant,
        kind,
        retry,
    }
}

fn request(payload: &Value) -> Result<derive::Request, Refusal> {
    Ok(derive::Request {
        parent: field(payload, "parent")?,
        child_agent_id: field(payload, "child_agent_id")?,
        route_policy: field(payload, "route_policy")?,
        handoff_policy: field(payload, "handoff_policy")?,
        child_policy: field(payload, "child_policy")?,
        tool_policy: field(payload, "tool_policy")?,
    })
}

/// Reads a member of the payload; in this format a refusal names the member, not the field in it.
fn field<T: DeserializeOwned + Serialize>(payload: &Value, name: &str) -> Result<T, Refusal> {
    member(payload, name).map_err(|refusal| match &refusal.field {
        Some(field) if field != name => {
            let place = match field.strip_prefix(name) {
                Some(pointer) if pointer.starts_with('/') => format!("`{pointer}`"),
                _ => format!("`{field}`:"),
            };
            Refusal::malformed(name, format!("{place} {}", refusal.reason))
        }
        _ => refusal,
    })
}

/// `sha256:` and the digest of `value` as JSON, fields in the order they are declared.
fn hash<T: Serialize>(value: &T) -> Result<String, Refusal> {
    let text = serde_json::to_string(value)
        .map_err(|error| Refusal::rule(Code::Bug, error.to_string()))?;
    Ok(format!("sha256:{}", sha256(text.as_bytes())))
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|error| Refusal::rule(Code::Bug, error.to_string()))
}
