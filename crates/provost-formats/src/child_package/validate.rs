//! Checks a package before anything is derived from it. The first failure is the answer.

use provost_core::code::Code;
use provost_core::package::Refusal;

use super::capability::Capability;
use super::document::Package;
use super::reference::PolicyKind;

/// The only version of the format.
const SCHEMA_VERSION: u16 = 1;

/// Checks `package`, in the order that the format fixes.
pub(super) fn validate(package: &Package) -> Result<(), Refusal> {
    if package.schema_version != SCHEMA_VERSION {
        let reason = format!("schema version {} is not known", package.schema_version);
        return Err(Refusal::rule(Code::SchemaVersionUnsupported, reason));
    }
    let route = &package.provider_route;
    if route.route_id.is_empty() {
        let reason = "`provider_route.route_id` is empty";
        return Err(Refusal::rule(Code::ProviderRouteIdMissing, reason));
    }
    if route.model_id.is_empty() {
        let reason = "`provider_route.model_id` is empty";
        return Err(Refusal::rule(Code::ProviderModelIdMissing, reason));
    }
    package.capabilities.iter().try_for_each(capability)?;
    for contract in &package.output_contracts {
        if !contract.schema_fingerprint.starts_with("sha256:") {
            let reason = format!("the schema of `{}` has no sha256", contract.schema_id);
            return Err(Refusal::rule(Code::OutputContractHashPrefix, reason));
        }
    }
    hooks(package)?;
    for isolation in &package.isolation_requirements {
        if isolation.schema_version != SCHEMA_VERSION {
            let reason = format!(
                "isolation requirement `{}` has schema version {}",
                isolation.requirement_ref, isolation.schema_version
            );
            return Err(Refusal::rule(Code::IsolationSchemaVersion, reason));
        }
    }
    Ok(())
}

fn capability(capability: &Capability) -> Result<(), Refusal> {
    let refuse = |code, what: &str| {
        let reason = format!("capability `{}` {what}", capability.capability_id);
        Err(Refusal::rule(code, reason))
    };
    if capability.is_reserved() {
        if capability.is_active() {
            let what = "is of a kind kept for later and is active";
            return refuse(Code::ReservedCapabilityActive, what);
        }
        if capability.is_projected() {
            let what = "is of a kind kept for later and is shown to the model";
            return refuse(Code::ReservedCapabilityProjected, what);
        }
        if capability.executor_ref.is_some() {
            let what = "is of a kind kept for later and has an executor";
            return refuse(Code::ReservedCapabilityExecutable, what);
        }
    }
    if capability.is_visible() {
        if capability.executor_ref.is_none() {
            let what = "is visible and has no executor";
            return refuse(Code::VisibleCapabilityWithoutExecutor, what);
        }
        if capability.policy_ref.kind == PolicyKind::Host {
            let what = "is visible under a policy of the host";
            return refuse(Code::VisibleCapabilityHostPolicy, what);
        }
    }
    Ok(())
}

fn hooks(package: &Package) -> Result<(), Refusal> {
    for hook in &package.hooks {
        hook.validate()?;
    }
    for hook in &package.hooks {
        let id = hook.sidecar_id();
        let Some(found) = package.sidecars.iter().find(|one| one.sidecar_id == id) else {
            let reason = format!("hook `{}` has no sidecar `{id}`", hook.hook_id);
            return Err(Refusal::rule(Code::HookSidecarMissing, reason));
        };
        let mut found = found.clone();
        found.sort();
        if found != hook.sidecar()? {
            let reason = format!(
                "the sidecar `{id}` is not the one of hook `{}`",
                hook.hook_id
            );
            return Err(Refusal::rule(Code::HookSidecarMismatch, reason));
        }
    }
    Ok(())
}
