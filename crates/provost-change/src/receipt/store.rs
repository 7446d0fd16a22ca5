//! Stores the result of a finish: the receipt, the record of the chain, the signature.

use crate::analysis::run::RunHead;
use crate::answer::Finished;
use crate::event::IntentEvent;
use crate::evidence::{AFTER, RECEIPT, TRAIL};
use crate::receipt::compose::{self, Receipt, ReceiptFacts};
use crate::request::FinishRequest;
use provost_core::checkout::CheckoutState;
use serde_json::json;

use crate::service::{ChangeError, Ports, wrong};

/// Names and digests of the files that a record names.
pub(crate) type Kept = Vec<(&'static str, String)>;

/// Makes the receipt and stores it; gives the receipt with its digest, and the stored files.
pub(crate) fn store_receipt(
    ports: &mut Ports<'_>,
    request: &FinishRequest,
    after_run: Option<&RunHead>,
    done: &Finished,
) -> Result<((Receipt, String), Kept), ChangeError> {
    let (Some(check), Some(verified), Some(hygiene), Some(workspace)) =
        (&done.check, &done.verified, &done.hygiene, &done.workspace)
    else {
        return wrong("nothing was judged");
    };
    let intent = &done.intent;
    let after = done.after.as_ref().map(|(run_id, _)| run_id.as_str());
    let digest = workspace.digest();
    let receipt = Receipt::of(&ReceiptFacts {
        intent,
        run_id: after.unwrap_or(&intent.run_id),
        after_run_id: after,
        at: ports.clock.millis(),
        status: done.status,
        check,
        verified,
        strictness: done.strictness,
        external: &hygiene.external(),
        not_changed: &hygiene.not_changed,
        workspace_digest: &digest,
        baseline_health: after_run
            .and_then(|head| head.baseline.trusted())
            .and_then(|baseline| baseline.health),
        tree: workspace.tree.as_deref(),
        review: request.review.as_deref(),
    });
    let mut kept = vec![ports.keep(&intent.intent_id, RECEIPT, &receipt)?];
    let value = compose::digest(&receipt);
    if let Some(trail) = &done.trail {
        kept.push(ports.keep(&intent.intent_id, TRAIL, trail)?);
        if let Some(digest) = &trail.patch_trail_digest {
            ports.registry.keep_digest(digest, &intent.intent_id)?;
        }
    }
    let run = compose::by_run(after.unwrap_or(&intent.run_id));
    for key in [&value, &run] {
        ports.registry.keep_digest(key, &intent.intent_id)?;
    }
    Ok(((receipt, value), kept))
}

/// Appends the result to the chain, and stores the analysis `after` that the record names.
pub(crate) fn write_down(
    ports: &mut Ports<'_>,
    done: &Finished,
    after: Option<&RunHead>,
    files: &[(&'static str, String)],
) -> Result<(), ChangeError> {
    let receipt = done.receipt.as_ref().map(|(_, digest)| digest.as_str());
    let facts = json!({
        "status": done.status.name(),
        "reason": done.reason,
        "evidence": done.evidence,
        "scope_status": done.check.as_ref().map(|check| check.status.name()),
        "after_run_id": done.after.as_ref().map(|(run_id, _)| run_id),
        "workspace_digest": done.workspace.as_ref().map(CheckoutState::digest),
        "receipt_sha256": receipt,
    });
    let mut files: Kept = files.to_vec();
    if let Some(head) = after {
        let intent_id = &done.intent.intent_id;
        ports.evidence.put_report(intent_id, AFTER, head)?;
        files.push((AFTER, head.report_digest.clone()));
    }
    ports.note(IntentEvent::Judged, &done.intent, facts, &files)?;
    Ok(())
}
