//! The answer to a start, as its tool gives it.

use crate::analysis::run::short;
use crate::answer::{Started, Unread};
use crate::conflict::{Conflict, Exclusion, Peer};
use crate::hygiene::{AtStart, Overlap};
use crate::intent::{Intent, Ownership, State, utc};
use crate::next_step::Audience;
use crate::payload::payload;
use crate::receipt::compose::inside;
use crate::request::StartRequest;
use crate::start::decide::{DirtyPolicy, StartStatus};
use provost_core::checkout::{DirtyFile, Snapshot};
use provost_core::path::{RawPath, RepoPath};
use provost_lens::structure::blast::{Blast, Level, MOST_CONTEXT, MOST_TRANSITIVE, artifact_id};
use serde::Serialize;

use crate::finish::answer::BudgetPayload;
use crate::tools::answers::{Detail, filled, raw, seen};

/// The most moved paths that an answer lists.
pub(crate) const MOST_MOVED: usize = 20;

/// Which start an answer is about, and how much of it is shown.
#[derive(Debug, Clone, Copy)]
pub struct StartView<'a> {
    pub answer: &'a Started,
    pub request: &'a StartRequest,
    /// How much of the blast radius is shown.
    pub detail: Detail,
    /// The root as the caller named it.
    pub root: &'a str,
    /// In milliseconds since 1970.
    pub now: i64,
}

payload! {
    pub struct StartPayload<'a>(view: StartView<'a>) {
        status: StartStatus = view.answer.status,
        intent_id: Option<&'a str> = view.answer.intent.as_ref().map(|it| it.intent_id.as_str()),
        edit_allowed: bool = view.answer.edit_allowed(),
        workspace: OtherAgents<'a> = OtherAgents::of(view.answer, &view.request.root),
        message: String = view.answer.message(Audience::Tool),
        #[serde(flatten)]
        course: StartCourse<'a> = match &view.answer.intent {
            None => StartCourse::Undeclared(Box::new(Undeclared::of(view))),
            Some(intent) => StartCourse::Declared(Box::new(DeclaredIntent::of(view, intent))),
        },
    } optional {
        unreadable_records: &'a [Unread] = filled(&view.answer.unread),
        user_action_required: bool = (!view.answer.edit_allowed()).then_some(true),
        next_step: String =
            (!view.answer.edit_allowed()).then(|| view.answer.message(Audience::Tool)),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StartCourse<'a> {
    Undeclared(Box<Undeclared<'a>>),
    Declared(Box<DeclaredIntent<'a>>),
}

payload! {
    /// A start that declared nothing: an analysis is needed, or git cannot read the checkout.
    pub struct Undeclared<'a>(view: StartView<'a>) {
        root: &'a str = view.root,
    } optional {
        changed_since_analysis: Vec<String> = (!view.answer.drifted.is_empty())
            .then(|| raw(&view.request.root, view.answer.drifted.iter().take(MOST_MOVED))),
        workspace_hygiene: StartHygiene<'a> =
            view.answer.blind.clone().map(|why| StartHygiene::unseen(why, Some(Vec::new()))),
        dirty_snapshot: SnapshotPayload<'a> = view.answer.blind.as_ref().map(|_| {
            SnapshotPayload::of(None, "", Detail::Summary)
        }),
    }
}

payload! {
    pub struct DeclaredIntent<'a>(view: StartView<'a>, intent: &'a Intent) {
        run_id: &'a str = short(&intent.run_id),
        #[serde(flatten)]
        outcome: StartOutcome<'a> = match view.answer.status {
            _ if view.answer.replay => StartOutcome::Repeated(Repeated::of(intent, view.now)),
            StartStatus::Queued => StartOutcome::Waits(Waits::of(view, intent)),
            StartStatus::Active | StartStatus::Blocked | StartStatus::NeedsAnalysis => {
                StartOutcome::Decided(Box::new(Decided::of(view, intent)))
            }
        },
    } optional {
        work_in_progress: WorkInProgress<'a> =
            intent.carried.as_ref().map(|first| WorkInProgress::of(&first.intent_id, intent)),
        replaced: &'a [String] = filled(&view.answer.replaced),
    }
}

payload! {
    pub struct WorkInProgress<'a>(first: &'a str, intent: &'a Intent) {
        first_intent_id: &'a str = first,
        run_id: &'a str = short(&intent.run_id),
        message: &'static str = "these files have unfinished work, which is judged from the \
                                 analysis it began from until it is committed, undone or accepted",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StartOutcome<'a> {
    Repeated(Repeated<'a>),
    Waits(Waits<'a>),
    Decided(Box<Decided<'a>>),
}

payload! {
    /// The answer to a request that an earlier one equals.
    pub struct Repeated<'a>(intent: &'a Intent, now: i64) {
        idempotent_replay: bool = true,
        scope_unchanged: bool = true,
        analysis_run_unchanged: bool = true,
        workspace_unchanged: bool = true,
        lease_expires_at_utc: String = utc(intent.lease_expires_at()),
        renew_required: bool = now >= intent.lease_expires_at(),
        scope_digest: String = intent.scope.digest(),
        workspace_state_digest: &'a str = &intent.workspace_digest,
    }
}

payload! {
    pub struct Waits<'a>(view: StartView<'a>, intent: &'a Intent) {
        dirty_snapshot: SnapshotPayload<'a> =
            SnapshotPayload::of(intent.snapshot.as_ref(), &view.request.root, Detail::Summary),
        blocked_by: Vec<BlockedBy<'a>> = blocked_by(&view.answer.conflicts, &view.request.root),
        queue_position: usize = view.answer.position,
        before_run_pinned: bool = false,
    }
}

payload! {
    /// An intent that did not have to wait.
    pub struct Decided<'a>(view: StartView<'a>, intent: &'a Intent) {
        dirty_snapshot: SnapshotPayload<'a> =
            SnapshotPayload::of(intent.snapshot.as_ref(), &view.request.root, Detail::Summary),
        dirty_scope_policy: DirtyPolicy = view.request.policy,
        workspace_hygiene: StartHygiene<'a> = match (&view.answer.hygiene, &view.answer.blind) {
            (Some(found), _) => {
                StartHygiene::of(found, &view.request.root, view.answer.continuing)
            }
            (None, why) => StartHygiene::unseen(why.clone().unwrap_or_default(), Some(Vec::new())),
        },
        scope: DeclaredScope = DeclaredScope::of(intent),
        expires_at_utc: String = utc(intent.expires_at),
        lease_expires_at_utc: String = utc(intent.lease_expires_at()),
        #[serde(flatten)]
        reach: Option<StartReach<'a>> =
            view.answer.blast.as_ref().map(|blast| StartReach::of(view, blast, &intent.run_id)),
    } optional {
        budget: BudgetPayload<'a> = view.answer.budget.as_ref().map(BudgetPayload::of),
    }
}

payload! {
    pub struct StartReach<'a>(view: StartView<'a>, blast: &'a Blast, run_id: &'a str) {
        blast_radius: BlastRadius<'a> = BlastRadius {
            blast_artifact: view.answer.blast_digest.as_deref().map(StoredBlast::of),
            ..BlastRadius::of(blast, run_id, shown(view))
        },
        blast_radius_detail: Detail = shown(view),
        requested_blast_radius_detail: Detail = view.detail,
    }
}

/// A report that was not stored cannot be looked up later, so it is given in full.
fn shown(view: StartView<'_>) -> Detail {
    match view.answer.blast_digest {
        Some(_) => view.detail,
        None => Detail::Full,
    }
}

payload! {
    pub struct StoredBlast<'a>(digest: &'a str) {
        blast_artifact_id: String = artifact_id(digest),
        projection_digest: &'a str = digest,
        retrieval: &'static str = "get_blast_artifact",
    }
}

payload! {
    /// The other agents, as a start sees them.
    pub struct OtherAgents<'a>(answer: &'a Started, root: &str) {
        concurrent_intents: Vec<ConcurrentIntent<'a>> =
            answer.conflicts.iter().map(|one| ConcurrentIntent::of(one, root)).collect(),
        workspace_relations: Vec<ScopeRelation<'a>> =
            answer.exclusions.iter().map(|one| ScopeRelation::of(one, root)).collect(),
        queued_context: Vec<WaitingIntent<'a>> =
            answer.waiting.iter().map(|one| WaitingIntent::of(one, root)).collect(),
        total_agents: usize = answer.total_agents,
        stale_count: usize = answer.stale_count,
    }
}

payload! {
    pub struct PeerName<'a>(peer: &'a Peer) {
        intent_id: &'a str = &peer.intent_id,
        agent_pid: u32 = peer.agent_pid,
        agent_label: &'a str = &peer.agent_label,
        ownership: Ownership = peer.ownership,
    }
}

payload! {
    pub struct ConcurrentIntent<'a>(one: &'a Conflict, root: &str) {
        #[serde(flatten)]
        peer: PeerName<'a> = PeerName::of(&one.peer),
        agent_start_epoch: i64 = one.peer.agent_start_epoch,
        intent: &'a str = &one.peer.intent,
        severity: &'static str = one.peer.advice().0,
        recommended_action: &'static str = one.peer.advice().1,
        overlap_type: &'static str = one.kind(),
        hard_overlap: Vec<String> = seen(root, &one.hard),
        soft_overlap: Vec<String> = seen(root, &one.soft),
        declared_at_utc: String = utc(one.peer.declared_at),
        expires_at_utc: String = utc(one.peer.expires_at),
    }
}

payload! {
    pub struct WaitingIntent<'a>(one: &'a Conflict, root: &str) {
        intent_id: &'a str = &one.peer.intent_id,
        overlapping_files: Vec<String> = seen(root, &one.hard),
        message: &'static str = "waits for these files, and does not block this intent",
    }
}

payload! {
    pub struct ScopeRelation<'a>(one: &'a Exclusion, root: &str) {
        intent_id: &'a str = &one.intent_id,
        agent_label: &'a str = &one.agent_label,
        relation: &'static str = one.relation,
        severity: &'static str = "info",
        paths: Vec<String> = seen(root, &one.paths),
    }
}

payload! {
    /// An intent or run that blocks another intent.
    pub struct BlockedBy<'a>(one: &'a Conflict, root: &str) {
        #[serde(flatten)]
        peer: PeerName<'a> = PeerName::of(&one.peer),
        overlapping_files: Vec<String> = seen(root, &one.files()),
    }
}

pub(crate) fn blocked_by<'a>(others: &'a [Conflict], root: &str) -> Vec<BlockedBy<'a>> {
    others.iter().map(|one| BlockedBy::of(one, root)).collect()
}

payload! {
    /// What an agent declared, relative to its analysed root.
    pub struct DeclaredScope(intent: &Intent) {
        allowed_files: Vec<String> = seen(&intent.root, &intent.scope.allowed_files),
        allowed_related: Vec<String> = seen(&intent.root, &intent.scope.allowed_related),
        forbidden: Vec<String> = seen("", &intent.scope.forbidden),
    }
}

/// How many dirty files are of which kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DirtyCounts {
    pub(crate) in_scope: usize,
    pub(crate) outside_scope: usize,
    pub(crate) missing_evidence: usize,
    pub(crate) preexisting_unscoped: usize,
    pub(crate) new_unattributed_unscoped: usize,
    pub(crate) modified_unattributed_unscoped: usize,
    pub(crate) unknown_unattributed_unscoped: usize,
    pub(crate) foreign_attributed_outside_scope: usize,
}

payload! {
    /// The dirty files where an agent wants to work.
    pub struct StartHygiene<'a>(found: &'a AtStart, root: &str, continuing: bool) {
        git_available: bool = true,
        blocks_edit: bool = found.blocks_edit(),
    } optional {
        reason: String = None,
        counts: DirtyCounts = Some(DirtyCounts {
            in_scope: found.in_scope.len(),
            outside_scope: found.related.len(),
            ..DirtyCounts::default()
        }),
        foreign_dirty_overlaps: Vec<ForeignOverlap<'a>> = Some(overlaps(&found.overlaps, root)),
        dirty_in_scope_sample: Vec<String> =
            found.blocks_edit().then(|| raw(root, found.in_scope.iter().take(10))),
        continuing_own_wip: bool = continuing.then_some(true),
    }
}

impl<'a> StartHygiene<'a> {
    /// Git cannot read the checkout.
    pub(crate) fn unseen(why: String, overlaps: Option<Vec<ForeignOverlap<'a>>>) -> Self {
        Self {
            git_available: false,
            blocks_edit: true,
            reason: Some(why),
            counts: None,
            foreign_dirty_overlaps: overlaps,
            dirty_in_scope_sample: None,
            continuing_own_wip: None,
        }
    }
}

payload! {
    /// A dirty file that another intent declared as well.
    pub struct ForeignOverlap<'a>(one: &'a Overlap, root: &str) {
        path: String = inside(root, &one.path.to_string()),
        foreign_intent_id: &'a str = &one.intent_id,
        foreign_persisted_status: State = one.state,
        foreign_ownership: Ownership = one.ownership,
        foreign_agent_label: &'a str = &one.agent_label,
        message: &'static str = "another active agent has declared this file as well",
    }
}

pub(crate) fn overlaps<'a>(overlaps: &'a [Overlap], root: &str) -> Vec<ForeignOverlap<'a>> {
    overlaps
        .iter()
        .map(|one| ForeignOverlap::of(one, root))
        .collect()
}

payload! {
    /// What is known of the dirty files at a start.
    pub struct SnapshotPayload<'a>(snapshot: Option<&'a Snapshot>, root: &str, detail: Detail) {
        git_available: bool = snapshot.is_some(),
    } optional {
        captured_at_utc: String = snapshot.map(|it| utc(it.captured_at)),
        paths_count: usize = snapshot.map(|it| it.workspace.dirty.len()),
        digest_status_counts: DigestCounts = snapshot.map(DigestCounts::of),
        paths: Vec<SnapshotFile<'a>> = snapshot.filter(|_| detail == Detail::Full).map(|it| {
            let dirty = it.workspace.dirty.iter();
            dirty.map(|(path, file)| SnapshotFile::of(path, file, root)).collect()
        }),
    }
}

payload! {
    pub struct DigestCounts(snapshot: &Snapshot) {
        ok: usize = snapshot.workspace.dirty.values().filter(|it| it.disk.is_some()).count(),
        unavailable: usize = snapshot.workspace.dirty.values().filter(|it| it.disk.is_none()).count(),
    }
}

payload! {
    pub struct SnapshotFile<'a>(path: &RawPath, file: &'a DirtyFile, root: &str) {
        path: String = inside(root, &path.to_string()),
        status: &'a str = &file.letters,
        digest: Option<&'a str> = file.disk.as_deref(),
        digest_status: &'static str = if file.disk.is_some() { "ok" } else { "unavailable" },
    }
}

payload! {
    pub struct Count(count: usize) {
        count: usize = count,
    }
}

payload! {
    pub struct TransitiveSummary(total: usize, most: usize) {
        total: usize = total,
        truncated: bool = total > most,
    }
}

/// How many entries of a list with at most `few` entries are shown.
fn most(detail: Detail, few: usize) -> usize {
    match detail {
        Detail::Summary | Detail::Normal => few,
        Detail::Full => usize::MAX,
    }
}

fn context(paths: &[RepoPath], detail: Detail) -> Vec<String> {
    seen("", paths.iter().take(most(detail, MOST_CONTEXT)))
}

fn first(entries: &[String], detail: Detail) -> &[String] {
    &entries[..entries.len().min(most(detail, MOST_CONTEXT))]
}

payload! {
    /// How far a change reaches.
    pub struct BlastRadius<'a>(blast: &'a Blast, run_id: &'a str, detail: Detail) {
        run_id: &'a str = short(run_id),
        origin: Vec<String> = seen("", &blast.origin),
        unknown: &'a [String] = first(&blast.unknown, detail),
        unknown_count: usize = blast.unknown.len(),
        depth: &'static str = match blast.transitive_dependents {
            Some(_) => "transitive",
            None => "direct",
        },
        radius_level: Level = blast.radius_level,
        direct_dependents: Vec<String> = context(&blast.direct_dependents, detail),
        transitive_dependents: Vec<String> = seen("", blast.transitive_dependents.iter().flatten()
            .take(most(detail, MOST_TRANSITIVE))),
        clone_cohort_members: Vec<String> = context(&blast.clone_cohort, detail),
        in_dependency_cycle: Vec<String> = context(&blast.in_dependency_cycle, detail),
        structural_risk: &'a [String] = first(&blast.structural_risk, detail),
        do_not_touch: [(); 0] = [],
        do_not_touch_summary: Count = Count::of(0),
        review_context: Vec<String> = context(&blast.clone_cohort, detail),
        review_context_summary: Count = Count::of(blast.clone_cohort.len()),
        guardrails: [&'static str; 2] =
            ["edit only the files of the scope", "name every file you touched"],
        blast_artifact: Option<StoredBlast<'a>> = None,
    } optional {
        transitive_summary: TransitiveSummary = blast.transitive_dependents.as_ref()
            .map(|all| TransitiveSummary::of(all.len(), most(detail, MOST_TRANSITIVE))),
    }
}

payload! {
    /// An analysis where git cannot read the checkout.
    pub struct UnseenAnalysis<'a>(root: &'a str, why: &'a str) {
        run_id: Option<&'a str> = None,
        root: &'a str = root,
        git_available: bool = false,
        message: String = format!("change control is not available here: {why}"),
    }
}
