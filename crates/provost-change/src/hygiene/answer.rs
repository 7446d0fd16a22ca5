//! Writes what is known about the dirty files of a checkout when a change finishes.

use crate::answer::Finished;
use crate::finish::decide::FinishStatus;
use crate::hygiene::{AtFinish, Attribution, Class};
use crate::receipt::compose::inside;
use crate::scope::Relation;
use provost_core::path::RawPath;
use serde_json::{Map, Value, json};

use crate::start::answer::{DirtyCounts, overlaps, snapshot};
use crate::tools::answers::{Detail, raw};

/// How many paths outside of a change an answer shows.
const SAMPLE: usize = 10;

/// The dirty files, as far as they were read.
pub(crate) fn after(done: &Finished, detail: Detail) -> Option<Value> {
    if let Some(why) = &done.blind {
        return Some(json!({
            "git_available": false,
            "blocks_finish": true,
            "finish_block_reason": "git_unavailable",
            "reason": why,
        }));
    }
    let found = done.hygiene.as_ref()?;
    let root = &done.intent.root;
    let mut fields = summary(done, found, detail);
    if detail == Detail::Full {
        paths(done, found, &mut fields);
        if !found.dirty.is_empty() {
            let rows = found.dirty.iter().map(|one| attribution(one, found, root));
            fields.insert("dirty_attribution".to_owned(), rows.collect());
        }
    }
    if let Some(block) = found.block {
        fields.insert("blocks_finish".to_owned(), json!(true));
        fields.insert("finish_block_reason".to_owned(), json!(block.name()));
    }
    Some(Value::Object(fields))
}

/// The changes outside of this one, if this one is accepted and there are others.
pub(crate) fn external(done: &Finished) -> Option<Value> {
    let outside = done.hygiene.as_ref()?.external();
    let shown = done.status == FinishStatus::AcceptedWithExternalChanges && !outside.is_empty();
    shown.then(|| {
        json!({
            "count": outside.len(),
            "sample": raw(&done.intent.root, outside.iter().copied().take(SAMPLE)),
            "truncated": outside.len() > SAMPLE,
        })
    })
}

fn list(fields: &mut Map<String, Value>, root: &str, name: &str, paths: &[&RawPath]) {
    // Empty lists are left out, whatever the detail.
    if !paths.is_empty() {
        fields.insert(name.to_owned(), raw(root, paths.iter().copied()));
    }
}

fn summary(done: &Finished, found: &AtFinish, detail: Detail) -> Map<String, Value> {
    let root = &done.intent.root;
    let count = |is: fn(Class) -> bool| found.of(is).len();
    let outside = found.outside().len();
    let all = found.dirty.iter().map(|one| &one.path);
    let status = match &done.intent.snapshot {
        Some(_) => "available",
        None => "missing_legacy_conservative",
    };
    let value = json!({
        "git_available": true,
        "counts": DirtyCounts {
            in_scope: found.dirty.len() - outside,
            outside_scope: outside,
            missing_evidence: count(|class| class == Class::MissingEvidence),
            preexisting_unscoped: count(|class| class == Class::Preexisting),
            new_unattributed_unscoped: count(|class| class == Class::New),
            modified_unattributed_unscoped: count(|class| class == Class::Modified),
            unknown_unattributed_unscoped: count(|class| class == Class::Unknown),
            foreign_attributed_outside_scope: count(|class| class == Class::ForeignAttributed),
        },
        "foreign_dirty_overlaps": overlaps(&found.overlaps, root),
        "dirty_snapshot": snapshot(done.intent.snapshot.as_ref(), root, detail),
        "dirty_snapshot_status": status,
        "workspace_dirty_summary": {
            "git_available": true,
            "dirty_paths_count": found.dirty.len(),
            "dirty_paths_sample": raw(root, all.take(SAMPLE)),
            "sample_truncated": found.dirty.len() > SAMPLE,
        },
    });
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let missing = found.of(|class| class == Class::MissingEvidence);
    list(&mut fields, root, "unacknowledged_dirty_in_scope", &missing);
    let unchanged: Vec<&RawPath> = found.not_changed.iter().collect();
    list(&mut fields, root, "evidence_not_changed", &unchanged);
    fields
}

fn paths(done: &Finished, found: &AtFinish, fields: &mut Map<String, Value>) {
    let root = &done.intent.root;
    let inside = found
        .dirty
        .iter()
        .filter(|one| one.relation != Relation::Outside);
    let inside: Vec<&RawPath> = inside.map(|one| &one.path).collect();
    let mut put = |name: &str, paths: &[&RawPath]| list(fields, root, name, paths);
    put("dirty_paths_in_scope", &inside);
    put("dirty_paths_outside_scope", &found.outside());
    put("own_unscoped_dirty", &found.of(Class::is_unattributed));
    put(
        "unattributed_unscoped_dirty",
        &found.of(Class::is_unattributed),
    );
    for class in [
        Class::Preexisting,
        Class::New,
        Class::Modified,
        Class::Unknown,
        Class::ForeignAttributed,
    ] {
        put(class.name(), &found.of(|one| one == class));
    }
    let evidence: Vec<&RawPath> = done.evidence.iter().collect();
    put("files_for_scope_check", &evidence);
}

fn attribution(one: &Attribution, found: &AtFinish, root: &str) -> Value {
    json!({
        "path": inside(root, &one.path.to_string()),
        "scope_relation": one.relation.name(),
        "evidence": one.in_evidence,
        "start_state": one.start.name(),
        "intent_attribution": one.intent_id,
        "classification": one.class.name(),
        "blocking": one.class == Class::MissingEvidence || found.staged.contains(&one.path),
    })
}
