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
mod reference;
mod request;
#[cfg(test)]
mod tests;
mod validate;

use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::package::{Operation, Refusal, Stage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use capability::Capability;
pub use convert::convert;
use request::{DepthBudget, Handoff};

pub fn answer(operation: Operation, payload: &Value) -> Result<Value, Refusal> {
    match operation {
        Operation::Derive => derive::derive(&request(payload)?),
        Operation::Fingerprint => {
            let package = field(payload, "parent")?;
            Ok(json!({
                "ok": true,
                "fingerprint": fingerprint::fingerprint(&package)?,
                "canonical": fingerprint::canonical(&package)?,
                "round_trip": to_value(&package)?,
            }))
        }
        Operation::Handoff => {
            let handoff: Handoff = field(payload, "handoff_policy")?;
            handoff.validate()?;
            Ok(json!({
                "ok": true,
                "variant_name": handoff.name(),
                "policy_refs": to_value(&handoff.policy_refs())?,
                "selected_content_refs": handoff.content_refs(),
            }))
        }
        Operation::Depth => {
            let budget: DepthBudget = field(payload, "depth_budget")?;
            Ok(json!({ "ok": true, "child_budget": to_value(&budget.child()?)? }))
        }
    }
}

/// A refusal in this format: Provost's code, and the three words that its users sort errors by.
pub fn render(refusal: &Refusal) -> Value {
    let mut rendered = refusal.render();
    if refusal.stage == Stage::Contract {
        let (variant, kind, retry) = class(refusal.code);
        rendered["error"]["variant"] = variant.into();
        rendered["error"]["kind"] = kind.into();
        rendered["error"]["retry"] = retry.into();
    }
    rendered
}

fn class(code: Code) -> (&'static str, &'static str, &'static str) {
    let missing = (
        "MissingRequiredField",
        "InvalidPackage",
        "HostConfigurationNeeded",
    );
    let classified = ("Classified", "InvalidPackage", "HostConfigurationNeeded");
    let violation = (
        "ContractViolation",
        "InvalidStateTransition",
        "RepairNeeded",
    );
    match code {
        Code::ProviderRouteIdMissing
        | Code::ProviderModelIdMissing
        | Code::VisibleCapabilityWithoutExecutor
        | Code::RouteOverrideBlank => missing,
        Code::HookTimeoutZero
        | Code::HookRightNotAllowed
        | Code::HookNonblockingMutates
        | Code::HookFailOpenSecurity => classified,
        _ => violation,
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

fn field<T: DeserializeOwned + Serialize>(payload: &Value, name: &str) -> Result<T, Refusal> {
    let Some(value) = payload.get(name) else {
        return Err(Refusal::malformed(name, "is missing"));
    };
    let read: T =
        json::from_value(value).map_err(|error| Refusal::malformed(name, error.to_string()))?;
    match json::positional(value, &to_value(&read)?) {
        None => Ok(read),
        Some(at) => Err(Refusal::malformed(
            name,
            format!("`{at}` is a list; an object with names belongs there"),
        )),
    }
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
