//! Adds the results of checks and finishes to the events of an intent.

use std::collections::BTreeSet;

use crate::intent::fact::IntentFact;
use crate::intent::{Intent, ScopeStatus};
use crate::scope::Relation;
use provost_core::checkout::CheckoutState;
use provost_core::path::RawPath;

use crate::service::{ChangeError, Ports};

/// Stores the paths outside of its scope that an agent reports; they count from the declaration.
pub(crate) fn record_undeclared_paths(
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
    write(ports, intent, &IntentFact::Named { paths: new })
}

/// Stores the files that a finish accepted.
pub(crate) fn record_accepted_files(
    ports: &mut Ports<'_>,
    intent: &Intent,
    workspace: &CheckoutState,
) -> Result<Intent, ChangeError> {
    let declared = |path: &RawPath| intent.scope.relation(path) != Relation::Outside;
    let dirty = workspace.dirty.iter();
    let dirty = dirty.filter(|(path, _)| declared(path));
    let files = dirty.map(|(path, dirty)| (path.clone(), dirty.disk.clone()));
    let files = files.collect();
    write(ports, intent, &IntentFact::Accepted { files })
}

/// Stores that an analysis from after an edit showed a violation.
pub(crate) fn record_violation(
    ports: &mut Ports<'_>,
    intent: &Intent,
) -> Result<Intent, ChangeError> {
    write(ports, intent, &IntentFact::Violated)
}

/// Adds an event to an open intent; gives the intent after it.
fn write(ports: &mut Ports<'_>, intent: &Intent, fact: &IntentFact) -> Result<Intent, ChangeError> {
    let mut kept = intent.clone();
    ports.registry.turn(Some(&intent.intent_id), &mut |known| {
        let mut found = known.intents.iter();
        let Some(own) = found.find(|one| {
            one.intent_id == intent.intent_id && one.owner == intent.owner && one.state.is_open()
        }) else {
            return Vec::new();
        };
        let (after, entry) = own.change(fact.clone());
        kept = after;
        vec![entry]
    })?;
    Ok(kept)
}

/// Stores the result of a scope check; the state of the intent stays the same.
pub(crate) fn record_scope_check(
    ports: &mut Ports<'_>,
    intent: &Intent,
    status: ScopeStatus,
) -> Result<Intent, ChangeError> {
    let at = ports.clock.millis();
    write(ports, intent, &IntentFact::Checked { status, at })
}
