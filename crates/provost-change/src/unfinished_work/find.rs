//! Finds the analysis that unfinished work began from, and gives it to the intent that continues
//! that work.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{BASELINE, BEFORE};
use crate::intent::Intent;
use crate::intent::fact::Continuation;
use crate::scope::{ChangeScope, Relation};
use crate::unfinished_work::{Past, first};
use provost_core::checkout::{CheckoutState, Moved};
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_lens::structure::budget::Strictness;

use crate::service::{ChangeError, Ports, wrong};
use provost_engine::ports::PortError;

/// The intent that began the work in a scope, and the state that it began from.
pub(crate) struct UnfinishedWork {
    first: Intent,
    before: Vec<u8>,
    baseline: Option<Vec<u8>>,
    /// The strictest of all intents that the work had.
    strictness: Strictness,
    /// Whether one of them was violated.
    was_violated: bool,
}

impl UnfinishedWork {
    pub(crate) fn continuation(&self) -> Continuation {
        Continuation {
            run_id: self.first.run_id.clone(),
            report_digest: self.first.report_digest.clone(),
            baseline_sha256: self.first.baseline_sha256.clone(),
            beginning: self.first.beginning(),
            strictness: self.strictness,
            was_violated: self.was_violated,
        }
    }

    /// Stores the state that the work began from with the evidence of `intent_id`.
    pub(crate) fn keep(&self, ports: &mut Ports<'_>, intent_id: &str) -> Result<(), PortError> {
        ports.evidence.put(intent_id, BEFORE, &self.before)?;
        match &self.baseline {
            Some(baseline) => ports.evidence.put(intent_id, BASELINE, baseline),
            None => Ok(()),
        }
    }
}

/// The unfinished work in `scope`; `None` if there is none.
pub(crate) fn find(
    ports: &mut Ports<'_>,
    root: &str,
    scope: &ChangeScope,
    now: &CheckoutState,
) -> Result<Option<UnfinishedWork>, ChangeError> {
    let intents = ports.registry.past()?;
    let Some(oldest) = oldest(ports, &intents, scope, now)? else {
        return Ok(None);
    };
    read(ports, root, oldest).map(Some)
}

/// `intent` with what later intents found out about the work in its scope: the strictest of them
/// counts, and so does a violation. An agent that comes back to an older intent, or takes one over,
/// cannot have accepted what was refused meanwhile.
pub(crate) fn with_later_findings(
    ports: &mut Ports<'_>,
    intent: Intent,
    now: &CheckoutState,
) -> Result<Intent, ChangeError> {
    let intents = ports.registry.past()?;
    let adds = |one: &Intent| {
        one.strictness > intent.strictness || (one.was_violated && !intent.was_violated)
    };
    if !intents.iter().any(adds) {
        return Ok(intent);
    }
    let Some(oldest) = oldest(ports, &intents, &intent.scope, now)? else {
        return Ok(intent);
    };
    Ok(Intent {
        strictness: intent.strictness.max(oldest.strictness),
        was_violated: intent.was_violated || oldest.was_violated,
        ..intent
    })
}

/// The oldest unfinished work of a scope.
struct Oldest {
    path: RawPath,
    first: Intent,
    /// The strictest of all intents that the work in the scope had.
    strictness: Strictness,
    /// Whether one of them was violated.
    was_violated: bool,
}

fn oldest(
    ports: &Ports<'_>,
    intents: &[Intent],
    scope: &ChangeScope,
    now: &CheckoutState,
) -> Result<Option<Oldest>, ChangeError> {
    let declared = |path: &&RawPath| scope.relation(path) != Relation::Outside;
    let dirty: Vec<&RawPath> = now.dirty.keys().filter(declared).collect();
    if dirty.is_empty() {
        return Ok(None);
    }
    let moved = moved(ports, intents, now)?;
    let is_moved = |since: &Moved| dirty.iter().any(|path| since.contains_key(*path));
    let before = if moved.values().any(is_moved) {
        ports.checkout.trees()?
    } else {
        BTreeSet::new()
    };
    let past: Vec<Past<'_>> = intents
        .iter()
        .map(|intent| Past {
            intent,
            moved: &moved[&tree(intent)],
            descends: tree(intent).is_some_and(|tree| before.contains(tree)),
        })
        .collect();
    let found = dirty
        .into_iter()
        .filter_map(|path| Some((path, first(path, now, &past)?)));
    let found: Vec<(&RawPath, &Intent)> = found.collect();
    let oldest = found
        .iter()
        .min_by_key(|(_, intent)| intent.beginning().declared_at);
    let Some((path, first)) = oldest else {
        return Ok(None);
    };
    let beginnings: Vec<_> = found.iter().map(|(_, one)| one.beginning()).collect();
    let same = |one: &&Intent| beginnings.contains(&one.beginning());
    let mut oldest = Oldest {
        path: (*path).clone(),
        first: Intent::clone(first),
        strictness: first.strictness,
        was_violated: first.was_violated,
    };
    for one in intents.iter().filter(same) {
        oldest.strictness = oldest.strictness.max(one.strictness);
        oldest.was_violated |= one.was_violated;
    }
    Ok(Some(oldest))
}

fn tree(intent: &Intent) -> Option<&str> {
    let start = intent.snapshot.as_ref()?;
    start.workspace.tree.as_deref()
}

/// The paths that were committed since each tree that an intent began from.
fn moved<'a>(
    ports: &Ports<'_>,
    intents: &'a [Intent],
    now: &CheckoutState,
) -> Result<BTreeMap<Option<&'a str>, Moved>, ChangeError> {
    let mut all = BTreeMap::new();
    for intent in intents {
        let tree = tree(intent);
        if let Entry::Vacant(place) = all.entry(tree) {
            let since = match intent.snapshot {
                Some(_) => ports.checkout.moved(tree, now.tree.as_deref())?,
                None => Moved::new(),
            };
            place.insert(since);
        }
    }
    Ok(all)
}

/// Reads the state that the work began from.
fn read(ports: &Ports<'_>, root: &str, oldest: Oldest) -> Result<UnfinishedWork, ChangeError> {
    let Oldest { path, first, .. } = &oldest;
    let id = &first.intent_id;
    if first.root != root {
        let top = if first.root.is_empty() {
            "."
        } else {
            &first.root
        };
        return wrong(format!(
            "`{path}` has unfinished work of the intent `{id}`, which was analysed with the root \
             `{top}`: analyse and start with that root, or commit or undo the work first"
        ));
    }
    let Some(before) = report(ports, first)? else {
        return wrong(format!(
            "`{path}` has unfinished work of the intent `{id}`, and the analysis that it began from \
             cannot be read: commit or undo the work, then start again"
        ));
    };
    let baseline = match &first.baseline_sha256 {
        None => None,
        Some(digest) => {
            let kept = ports.evidence.get(id, BASELINE)?;
            let kept = kept.filter(|kept| sha256(kept) == *digest);
            Some(kept.ok_or_else(|| crate::service::altered("the baseline from before"))?)
        }
    };
    Ok(UnfinishedWork {
        before,
        baseline,
        strictness: oldest.strictness,
        was_violated: oldest.was_violated,
        first: oldest.first,
    })
}

/// The analysis that an intent began from: from its evidence, or from the runs of this session.
fn report(ports: &Ports<'_>, intent: &Intent) -> Result<Option<Vec<u8>>, ChangeError> {
    let fits = |bytes: &Vec<u8>| sha256(bytes) == intent.report_digest;
    let kept = ports.evidence.get(&intent.intent_id, BEFORE)?;
    if let Some(kept) = kept.filter(fits) {
        return Ok(Some(kept));
    }
    let heads = ports.analyses.heads()?;
    let same = heads
        .iter()
        .find(|head| head.report_digest == intent.report_digest);
    let Some(head) = same else { return Ok(None) };
    let report = serde_json::to_value(ports.analyses.report(head)?).unwrap_or_default();
    Ok(Some(crate::service::bytes(&report)).filter(fits))
}
