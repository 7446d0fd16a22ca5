//! The fingerprint: what is hashed, in which order and spelling.

use provost_core::json;
use provost_core::object::sha256;
use provost_core::package::Refusal;
use serde::Serialize;
use serde_json::Value;

use super::document::{Excluded, FingerprintManifest, Included, Package, ReservedFeature};
use super::reference::{PolicyRef, Sidecar};
use super::validate::validate;
use super::{Capability, to_value};

/// The prefix of every fingerprint, which names the algorithm.
const ALGORITHM: &str = "sha256:runtime-package-canonical-v1";

const INCLUDED: [Included; 10] = [
    Included::Agent,
    Included::ProviderRoute,
    Included::OutputContracts,
    Included::OutputSinks,
    Included::Capabilities,
    Included::Sidecars,
    Included::IsolationRequirements,
    Included::Catalogs,
    Included::ChildLifecycle,
    Included::Policies,
];

const EXCLUDED: [Excluded; 6] = [
    Excluded::RunIds,
    Excluded::EventIds,
    Excluded::Timestamps,
    Excluded::AdapterHealth,
    Excluded::TemporaryPaths,
    Excluded::TelemetrySinkHealth,
];

/// The reason that the format gives for every capability of a reserved kind. It is hashed, so the
/// text is fixed.
const RESERVED_REASON: &str = "owner workstream has not supplied sidecar, fingerprint, event, \
                               journal, and acceptance-test evidence";

/// What is hashed.
#[derive(Serialize)]
struct SnapshotPreimage {
    algorithm: &'static str,
    canonical_schema_version: u16,
    snapshot: Value,
}

/// The fingerprint of `package`, which must be valid.
pub(super) fn fingerprint(package: &Package) -> Result<String, Refusal> {
    validate(package)?;
    let preimage = to_value(&SnapshotPreimage {
        algorithm: ALGORITHM,
        canonical_schema_version: 1,
        snapshot: canonical(package)?,
    })?;
    let digest = sha256(json::canonical(&preimage).as_bytes());
    Ok(format!("{ALGORITHM}:{digest}"))
}

/// The package as it is hashed: sets sorted, the manifest computed, without hooks (their sidecars
/// stand for them) and without what belongs to one run.
pub(super) fn canonical(package: &Package) -> Result<Value, Refusal> {
    let mut package = package.clone();
    package.fingerprint_manifest = manifest(&package);
    package
        .agent
        .default_behavior_refs
        .sort_by_key(PolicyRef::key);
    package.policies.policy_refs.sort_by_key(PolicyRef::key);
    package
        .output_contracts
        .sort_by(|one, other| one.schema_id.cmp(&other.schema_id));
    package
        .output_sinks
        .sort_by(|one, other| one.sink_id.cmp(&other.sink_id));
    package.capabilities.iter_mut().for_each(Capability::sort);
    package
        .capabilities
        .sort_by(|one, other| one.capability_id.cmp(&other.capability_id));
    package.sidecars.iter_mut().for_each(Sidecar::sort);
    package
        .sidecars
        .sort_by(|one, other| one.sidecar_id.cmp(&other.sidecar_id));
    package
        .isolation_requirements
        .sort_by(|one, other| one.requirement_ref.cmp(&other.requirement_ref));
    for catalog in &mut package.catalogs {
        catalog.candidates.sort();
    }
    package
        .catalogs
        .sort_by(|one, other| one.catalog_id.cmp(&other.catalog_id));
    let mut value = to_value(&package)?;
    if let Value::Object(members) = &mut value {
        members.remove("hooks");
        members.remove("volatile");
    }
    Ok(value)
}

/// What the fingerprint covers. Of the stored manifest only the readiness profile counts.
pub(super) fn manifest(package: &Package) -> FingerprintManifest {
    let reserved = |capability: &Capability| ReservedFeature {
        capability_id: capability.capability_id.clone(),
        kind: capability.kind,
        owner_role: capability.readiness.owner_role.clone(),
        status: "reserved_inactive".to_owned(),
        reason: RESERVED_REASON.to_owned(),
    };
    let mut reserved: Vec<ReservedFeature> = package
        .capabilities
        .iter()
        .filter(|capability| capability.is_reserved())
        .map(reserved)
        .collect();
    reserved.sort_by(|one, other| one.capability_id.cmp(&other.capability_id));
    FingerprintManifest {
        algorithm: ALGORITHM.to_owned(),
        canonical_schema_version: 1,
        readiness_profile: package.fingerprint_manifest.readiness_profile,
        included_groups: INCLUDED.to_vec(),
        excluded_groups: EXCLUDED.to_vec(),
        reserved_feature_status: reserved,
    }
}
