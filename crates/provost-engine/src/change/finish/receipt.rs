//! Keeps what a finish came to: the receipt, the record of the chain, the signature.

use provost_core::intent::answer::Finished;
use provost_core::intent::course::Happening;
use provost_core::intent::finish::Status;
use provost_core::intent::receipt::{self, Facts};
use provost_core::intent::record::Intent;
use provost_core::intent::request::FinishRequest;
use provost_core::intent::workspace::Workspace;
use serde_json::{Value, json};

use super::super::look::statement;
use super::super::{ChangeError, Ports, bytes, wrong};

/// Makes the receipt and keeps it.
pub(super) fn seal(
    ports: &mut Ports<'_>,
    request: &FinishRequest,
    done: &Finished,
) -> Result<(Value, String), ChangeError> {
    let (Some(check), Some(verified), Some(hygiene), Some(workspace)) =
        (&done.check, &done.verified, &done.hygiene, &done.workspace)
    else {
        return wrong("nothing was judged");
    };
    let intent = &done.intent;
    let after = done.after.as_ref().map(|(run_id, _)| run_id.as_str());
    let digest = workspace.digest();
    let receipt = receipt::compose(&Facts {
        intent,
        run_id: after.unwrap_or(&intent.run_id),
        after_run_id: after,
        at: ports.clock.millis(),
        status: done.status,
        check,
        verified,
        strictness: request.strictness,
        external: &hygiene.outside(),
        not_changed: &hygiene.not_changed,
        workspace_digest: &digest,
        tree: workspace.tree.as_deref(),
        review: request.review.as_deref(),
    });
    let value = receipt::digest(&receipt);
    ports
        .chronicle
        .put(&intent.intent_id, "receipt.json", &bytes(&receipt))?;
    if let Some(trail) = &done.trail {
        ports
            .chronicle
            .put(&intent.intent_id, "trail.json", &bytes(trail))?;
        if let Some(digest) = trail["patch_trail_digest"].as_str() {
            ports.registry.keep_digest(digest, &intent.intent_id)?;
        }
    }
    ports.registry.keep_digest(&value, &intent.intent_id)?;
    Ok((receipt, value))
}

/// Writes into the chain what was found.
pub(super) fn write_down(ports: &mut Ports<'_>, done: &Finished) -> Result<(), ChangeError> {
    let id = &done.intent.intent_id;
    let receipt = done.receipt.as_ref().map(|(_, digest)| digest.as_str());
    let facts = json!({
        "status": done.status.name(),
        "reason": done.reason,
        "evidence": done.evidence,
        "scope_status": done.check.as_ref().map(|check| check.status.name()),
        "after_run_id": done.after.as_ref().map(|(run_id, _)| run_id),
        "workspace_digest": done.workspace.as_ref().map(Workspace::digest),
        "receipt_sha256": receipt,
    });
    ports.note(Happening::Judged, id, facts)?;
    Ok(())
}

/// Signs what a change came to, with the end of its chain.
pub(super) fn attest(
    ports: &mut Ports<'_>,
    intent: &Intent,
    status: Status,
    digest: &str,
) -> Result<(), ChangeError> {
    let (next, hash) = ports.chronicle.head(&intent.intent_id)?;
    let statement = statement(intent, digest, status, next, &hash);
    let envelope = ports.signer.sign(&bytes(&statement))?;
    ports
        .chronicle
        .put(&intent.intent_id, "attestation.dsse.json", &envelope)?;
    Ok(())
}
