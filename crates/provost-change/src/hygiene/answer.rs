//! What a finish answers about the dirty files of a checkout.

use crate::answer::Finished;
use crate::finish::decide::FinishStatus;
use crate::hygiene::{AtFinish, Attribution, Block, Class};
use crate::payload::payload;
use crate::receipt::compose::inside;
use crate::scope::Relation;
use provost_core::checkout::StartState;
use provost_core::path::RawPath;
use serde::Serialize;

use crate::finish::decide::StopReason;
use crate::start::answer::{DirtyCounts, ForeignOverlap, SnapshotPayload, overlaps};
use crate::tools::answers::{Detail, raw};

/// How many paths outside of a change an answer shows.
const SAMPLE: usize = 10;

/// The dirty files, as far as they were read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FinishHygiene<'a> {
    Unseen(UnseenFiles<'a>),
    Seen(Box<SeenFiles<'a>>),
}

impl<'a> FinishHygiene<'a> {
    pub(crate) fn of(done: &'a Finished, detail: Detail) -> Option<Self> {
        if let Some(why) = &done.blind {
            return Some(Self::Unseen(UnseenFiles::of(why)));
        }
        let found = done.hygiene.as_ref()?;
        Some(Self::Seen(Box::new(SeenFiles::of(done, found, detail))))
    }
}

payload! {
    /// Git cannot read the checkout.
    pub struct UnseenFiles<'a>(why: &'a str) {
        git_available: bool = false,
        blocks_finish: bool = true,
        finish_block_reason: StopReason = StopReason::GitUnavailable,
        reason: &'a str = why,
    }
}

/// Paths as the caller sees them; empty lists are left out, whatever the detail.
fn listed<'a>(
    done: &Finished,
    paths: impl IntoIterator<Item = &'a RawPath>,
) -> Option<Vec<String>> {
    let paths = raw(&done.intent.root, paths);
    (!paths.is_empty()).then_some(paths)
}

fn count(found: &AtFinish, class: Class) -> usize {
    found.of(|one| one == class).len()
}

payload! {
    pub struct SeenFiles<'a>(done: &'a Finished, found: &'a AtFinish, detail: Detail) {
        git_available: bool = true,
        counts: DirtyCounts = DirtyCounts {
            in_scope: found.dirty.len() - found.outside().len(),
            outside_scope: found.outside().len(),
            missing_evidence: count(found, Class::MissingEvidence),
            preexisting_unscoped: count(found, Class::Preexisting),
            new_unattributed_unscoped: count(found, Class::New),
            modified_unattributed_unscoped: count(found, Class::Modified),
            unknown_unattributed_unscoped: count(found, Class::Unknown),
            foreign_attributed_outside_scope: count(found, Class::ForeignAttributed),
        },
        foreign_dirty_overlaps: Vec<ForeignOverlap<'a>> =
            overlaps(&found.overlaps, &done.intent.root),
        dirty_snapshot: SnapshotPayload<'a> =
            SnapshotPayload::of(done.intent.snapshot.as_ref(), &done.intent.root, detail),
        dirty_snapshot_status: &'static str = match &done.intent.snapshot {
            Some(_) => "available",
            None => "missing_legacy_conservative",
        },
        workspace_dirty_summary: DirtySummary = DirtySummary::of(done, found),
        #[serde(flatten)]
        paths: Option<FilesByClass<'a>> =
            (detail == Detail::Full).then(|| FilesByClass::of(done, found)),
    } optional {
        unacknowledged_dirty_in_scope: Vec<String> =
            listed(done, found.of(|class| class == Class::MissingEvidence)),
        evidence_not_changed: Vec<String> = listed(done, &found.not_changed),
        blocks_finish: bool = found.block.map(|_| true),
        finish_block_reason: Block = found.block,
    }
}

payload! {
    pub struct DirtySummary(done: &Finished, found: &AtFinish) {
        git_available: bool = true,
        dirty_paths_count: usize = found.dirty.len(),
        dirty_paths_sample: Vec<String> =
            raw(&done.intent.root, found.dirty.iter().map(|one| &one.path).take(SAMPLE)),
        sample_truncated: bool = found.dirty.len() > SAMPLE,
    }
}

payload! {
    /// Every dirty path by its class, in full detail only.
    pub struct FilesByClass<'a>(done: &'a Finished, found: &'a AtFinish) {
    } optional {
        dirty_paths_in_scope: Vec<String> = listed(done, found.dirty.iter()
            .filter(|one| one.relation != Relation::Outside).map(|one| &one.path)),
        dirty_paths_outside_scope: Vec<String> = listed(done, found.outside()),
        own_unscoped_dirty: Vec<String> = listed(done, found.of(Class::is_unattributed)),
        unattributed_unscoped_dirty: Vec<String> = listed(done, found.of(Class::is_unattributed)),
        preexisting_unscoped_dirty: Vec<String> =
            listed(done, found.of(|one| one == Class::Preexisting)),
        new_unattributed_unscoped_dirty: Vec<String> =
            listed(done, found.of(|one| one == Class::New)),
        modified_unattributed_unscoped_dirty: Vec<String> =
            listed(done, found.of(|one| one == Class::Modified)),
        unknown_unattributed_unscoped_dirty: Vec<String> =
            listed(done, found.of(|one| one == Class::Unknown)),
        foreign_attributed_outside_scope: Vec<String> =
            listed(done, found.of(|one| one == Class::ForeignAttributed)),
        files_for_scope_check: Vec<String> = listed(done, &done.evidence),
        dirty_attribution: Vec<DirtyAttribution<'a>> = (!found.dirty.is_empty()).then(|| {
            let rows = found.dirty.iter();
            rows.map(|one| DirtyAttribution::of(one, found, &done.intent.root)).collect()
        }),
    }
}

payload! {
    pub struct DirtyAttribution<'a>(one: &'a Attribution, found: &AtFinish, root: &str) {
        path: String = inside(root, &one.path.to_string()),
        scope_relation: Relation = one.relation,
        evidence: bool = one.in_evidence,
        start_state: StartState = one.start,
        intent_attribution: Option<&'a str> = one.intent_id.as_deref(),
        classification: Class = one.class,
        blocking: bool =
            one.class == Class::MissingEvidence || found.staged.contains(&one.path),
    }
}

payload! {
    /// The changes outside of this one, if this one is accepted and there are others.
    pub struct ExternalChanges(outside: &[&RawPath], root: &str) {
        count: usize = outside.len(),
        sample: Vec<String> = raw(root, outside.iter().copied().take(SAMPLE)),
        truncated: bool = outside.len() > SAMPLE,
    }
}

impl ExternalChanges {
    pub(crate) fn beside(done: &Finished) -> Option<Self> {
        let outside = done.hygiene.as_ref()?.external();
        let shown = done.status == FinishStatus::AcceptedWithExternalChanges;
        (shown && !outside.is_empty()).then(|| Self::of(&outside, &done.intent.root))
    }
}
