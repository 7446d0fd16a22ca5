//! Writes the results of checks and finishes into the registry's record of an intent.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::IntentEvent;
use crate::intent::{Intent, ScopeStatus};
use crate::scope::Relation;
use provost_core::checkout::CheckoutState;
use provost_core::path::RawPath;

use crate::ports::IntentEntry;
use crate::service::{ChangeError, Ports};

/// Stores the paths outside of its scope that an agent reports; they count from the declaration.
pub(crate) fn name(
    ports: &mut Ports<'_>,
    intent: &Intent,
    evidence: &BTreeSet<RawPath>,
) -> Result<Intent, ChangeError> {
    let outside = |path: &&RawPath| {
        intent.scope.relation(path) == Relation::Outside && !intent.named.contains(*path)
    };
    let new: Vec<RawPath> = evidence.iter().filter(outside).cloned().collect();
    if new.is_empty() {
        return Ok(intent.clone());
    }
    write(ports, intent, None, |own| {
        own.named.extend(new.iter().cloned());
    })
}

/// Stores the files that a finish accepted.
pub(crate) fn accept(
    ports: &mut Ports<'_>,
    intent: &Intent,
    workspace: &CheckoutState,
) -> Result<Intent, ChangeError> {
    let declared = |path: &RawPath| intent.scope.relation(path) != Relation::Outside;
    let dirty = workspace.dirty.iter();
    let dirty = dirty.filter(|(path, _)| declared(path));
    let accepted: BTreeMap<RawPath, Option<String>> = dirty
        .map(|(path, dirty)| (path.clone(), dirty.disk.clone()))
        .collect();
    write(ports, intent, None, |own| {
        own.accepted = Some(accepted.clone());
    })
}

/// Stores that an analysis from after an edit showed a violation.
pub(crate) fn violate(ports: &mut Ports<'_>, intent: &Intent) -> Result<Intent, ChangeError> {
    write(ports, intent, None, |own| own.was_violated = true)
}

/// Changes the record of an open intent in one turn; gives the changed record.
fn write(
    ports: &mut Ports<'_>,
    intent: &Intent,
    what: Option<IntentEvent>,
    change: impl Fn(&mut Intent),
) -> Result<Intent, ChangeError> {
    let mut kept = intent.clone();
    ports.registry.turn(Some(&intent.intent_id), &mut |known| {
        let mut found = known.intents.iter();
        let Some(own) = found.find(|one| {
            one.intent_id == intent.intent_id && one.owner == intent.owner && one.state.is_open()
        }) else {
            return Vec::new();
        };
        kept = own.clone();
        change(&mut kept);
        vec![IntentEntry {
            intent: kept.clone(),
            what,
        }]
    })?;
    Ok(kept)
}

/// Stores the result of a scope check in the record; the state of the intent stays the same.
pub(crate) fn remember(
    ports: &mut Ports<'_>,
    intent: &Intent,
    status: ScopeStatus,
) -> Result<Intent, ChangeError> {
    let now = ports.clock.millis();
    write(ports, intent, Some(IntentEvent::Checked), |own| {
        own.scope_status = Some(status);
        own.lease_renewed_at = own.lease_renewed_at.max(now);
    })
}
