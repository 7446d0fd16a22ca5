//! The answers about intents.

use crate::analysis::run::short;
use crate::answer::{IntentList, MAY_EDIT, Promoted, Recovered, Renewed, Swept, Unread};
use crate::conflict::Conflict;
use crate::finish::decide::StopReason;
use crate::hygiene::AtStart;
use crate::intent::{Intent, LEASE, Ownership, ScopeStatus, State, utc};
use crate::next_step::{Audience, NextStep};
use crate::payload::payload;
use crate::receipt::compose::RadiusSummary;
use crate::recover::decide::{Refusal, Reset};
use provost_core::lease::Lease;
use provost_core::path::{RawPath, RepoPath};
use serde::Serialize;

use crate::start::answer::{BlockedBy, DeclaredScope, MOST_MOVED, StartHygiene, blocked_by};
use crate::tools::answers::raw;

payload! {
    /// An intent, and whose it is.
    pub struct IntentPayload<'a>(intent: &'a Intent, whose: Ownership) {
        intent_id: &'a str = &intent.intent_id,
        status: State = intent.state,
        ownership: Ownership = whose,
        edit_allowed: bool = intent.may_edit(),
        #[serde(flatten)]
        agent: AgentName<'a> = AgentName::of(intent),
        session: Option<&'a str> = intent.owner.session(),
        run_id: &'a str = short(&intent.run_id),
        report_digest: &'a str = &intent.report_digest,
        intent: &'a str = &intent.intent,
        expected_effects: &'a [String] = &intent.expected_effects,
        root: &'a str = &intent.root,
        scope: DeclaredScope = DeclaredScope::of(intent),
        scope_digest: String = intent.scope.digest(),
        scope_check_status: Option<ScopeStatus> = intent.scope_status,
        blast_radius_summary: RadiusSummary = RadiusSummary::of(&intent.radius_level),
        declared_at_utc: String = utc(intent.declared_at),
        #[serde(flatten)]
        times: IntentTimes = IntentTimes::of(intent),
    }
}

payload! {
    #[expect(clippy::struct_field_names, reason = "the format names the fields")]
    pub struct AgentName<'a>(intent: &'a Intent) {
        agent_pid: u32 = intent.owner.pid,
        agent_start_epoch: i64 = intent.agent_start_epoch,
        agent_label: &'a str = &intent.agent_label,
    }
}

payload! {
    pub struct IntentTimes(intent: &Intent) {
        expires_at_utc: String = utc(intent.expires_at),
        ttl_seconds: u32 = intent.ttl_seconds,
        lease_renewed_at_utc: String = utc(intent.lease_renewed_at),
        lease_seconds: u32 = intent.lease_seconds,
        lease_expires_at_utc: String = utc(intent.lease_expires_at()),
    }
}

fn count(list: &IntentList, is: impl Fn(&Intent, Ownership) -> bool) -> usize {
    list.intents
        .iter()
        .filter(|(intent, whose)| is(intent, *whose))
        .count()
}

payload! {
    /// All intents, with what the caller can recover.
    pub struct IntentsPayload<'a>(list: &'a IntentList) {
        workspace_intents: Vec<IntentPayload<'a>> =
            list.intents.iter().map(|(intent, whose)| IntentPayload::of(intent, *whose)).collect(),
        total: usize = list.intents.len(),
        queued_count: usize = count(list, |intent, _| intent.state == State::Queued),
        orphaned_count: usize = count(list, |_, whose| whose == Ownership::Recoverable),
        stale_count: usize = count(list, |_, whose| {
            matches!(whose, Ownership::OwnStale | Ownership::ForeignStale)
        }),
        recovery_available: Vec<RecoveryOffer<'a>> = list.intents.iter()
            .filter(|(_, whose)| *whose == Ownership::Recoverable)
            .map(|(intent, _)| RecoveryOffer::of(intent, list.has_run)).collect(),
        launched_runs: Vec<LaunchedRun<'a>> = list.leases.iter().map(LaunchedRun::of).collect(),
        unreadable_records: &'a [Unread] = &list.unread,
    }
}

payload! {
    pub struct RecoveryOffer<'a>(intent: &'a Intent, has_run: bool) {
        intent_id: &'a str = &intent.intent_id,
        run_id: &'a str = short(&intent.run_id),
        run_available: bool = has_run,
        hint: String = NextStep::Recover(has_run).text(Audience::Tool),
    }
}

payload! {
    pub struct LaunchedRun<'a>(lease: &'a Lease) {
        run_id: &'a str = &lease.run_id,
        paths: &'a [RepoPath] = lease.scope.entries(),
        expires_at_utc: String = utc(lease.expires_at),
    }
}

payload! {
    /// The intents that were given back.
    pub struct ClearedPayload<'a>(intent_ids: &'a [String]) {
        cleared: usize = intent_ids.len(),
        cleared_intent_ids: &'a [String] = intent_ids,
        workspace_cleared: bool = true,
    }
}

payload! {
    #[expect(clippy::struct_field_names, reason = "the format names the fields")]
    pub struct LeasePolicy(limits: [u32; 3]) {
        min_seconds: u32 = limits[0],
        default_seconds: u32 = limits[1],
        max_seconds: u32 = limits[2],
    }
}

payload! {
    pub struct RenewPayload<'a>(id: &'a str, answer: &'a Renewed) {
        intent_id: &'a str = id,
        lease_renewed: bool = matches!(answer, Renewed::Yes(_)),
        lease_policy: LeasePolicy = LeasePolicy::of(LEASE),
        #[serde(flatten)]
        outcome: RenewOutcome<'a> = match answer {
            Renewed::Yes(intent) => RenewOutcome::Renewed(RenewedIntent::of(intent)),
            Renewed::Conflict(others) => RenewOutcome::Conflict(RenewConflict::of(others)),
        },
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RenewOutcome<'a> {
    Renewed(RenewedIntent),
    Conflict(RenewConflict<'a>),
}

payload! {
    pub struct RenewedIntent(intent: &Intent) {
        status: State = intent.state,
        edit_allowed: bool = intent.may_edit(),
        #[serde(flatten)]
        times: IntentTimes = IntentTimes::of(intent),
    }
}

payload! {
    pub struct RenewConflict<'a>(others: &'a [Conflict]) {
        status: State = State::Expired,
        reason: &'static str = "conflict",
        blocked_by: Vec<BlockedBy<'a>> = blocked_by(others, ""),
        next_step: &'static str = "the time of this intent was over, and others work on its files \
                                   by now: wait for them, then renew again or start again",
    }
}

/// The advice to an agent that was let in after others committed.
pub const JUDGED_WITH_OTHERS: &str = "the checkout moved on since the analysis that you are judged \
                                      by, so what others did since counts as yours: to be judged \
                                      by your own work, clear this intent, analyse the repository \
                                      and start again";

/// Why an intent is not promoted yet.
pub const COME_FIRST: &str = "other intents hold these files, or come first in the queue";

/// Why an intent cannot be promoted any more.
pub const ANALYSIS_GONE: &str = "the analysis that this intent began from is gone";

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PromotePayload<'a> {
    Active(PromotedIntent<'a>),
    Queued(StillQueued<'a>),
    Blocked(PromotionBlocked<'a>),
    RunEvicted(RunEvicted<'a>),
}

impl<'a> PromotePayload<'a> {
    pub fn of(answer: &'a Promoted) -> Self {
        match answer {
            Promoted::Active(intent, dirty, moved) => {
                Self::Active(PromotedIntent::of(intent, dirty, moved))
            }
            Promoted::Queued(intent, others, position) => {
                Self::Queued(StillQueued::of(intent, others, *position))
            }
            Promoted::Blocked(intent, dirty, step) => {
                let words = step.text(Audience::Tool);
                Self::Blocked(PromotionBlocked::of(intent, dirty.as_ref(), words))
            }
            Promoted::RunEvicted(intent) => Self::RunEvicted(RunEvicted::of(intent)),
        }
    }
}

payload! {
    /// A promoted intent may edit.
    pub struct PromotedIntent<'a>(intent: &'a Intent, dirty: &'a AtStart, moved: &'a [RawPath]) {
        intent_id: &'a str = &intent.intent_id,
        status: State = State::Active,
        previous_status: State = State::Queued,
        edit_allowed: bool = true,
        run_id: &'a str = short(&intent.run_id),
        before_run_pinned: bool = true,
        workspace_hygiene: StartHygiene<'a> = StartHygiene::of(dirty, &intent.root, false),
        lease_expires_at_utc: String = utc(intent.lease_expires_at()),
        message: &'static str = MAY_EDIT,
    } optional {
        changed_since_analysis: Vec<String> = (!moved.is_empty())
            .then(|| raw(&intent.root, moved.iter().take(MOST_MOVED))),
        next_step: &'static str = (!moved.is_empty()).then_some(JUDGED_WITH_OTHERS),
    }
}

payload! {
    pub struct StillQueued<'a>(intent: &'a Intent, others: &'a [Conflict], position: usize) {
        intent_id: &'a str = &intent.intent_id,
        status: State = State::Queued,
        edit_allowed: bool = false,
        queue_position: usize = position,
        blocked_by: Vec<BlockedBy<'a>> = blocked_by(others, &intent.root),
        blocking_count: usize = others.len(),
        next_step: &'static str = "wait, then promote again",
        message: &'static str = COME_FIRST,
    }
}

payload! {
    pub struct PromotionBlocked<'a>(
        intent: &'a Intent, dirty: Option<&'a AtStart>, words: String,
    ) {
        intent_id: &'a str = &intent.intent_id,
        status: State = State::Queued,
        reason: StopReason = StopReason::WorkspaceHygiene,
        edit_allowed: bool = false,
        workspace_hygiene: StartHygiene<'a> = match dirty {
            Some(dirty) => StartHygiene::of(dirty, &intent.root, false),
            None => StartHygiene::unseen(words.clone(), None),
        },
        user_action_required: bool = true,
        next_step: String = words.clone(),
        message: String = words,
    }
}

payload! {
    pub struct RunEvicted<'a>(intent: &'a Intent) {
        intent_id: &'a str = &intent.intent_id,
        status: &'static str = "unverified",
        reason: &'static str = "before_run_evicted",
        edit_allowed: bool = false,
        next_step: &'static str = "clear this intent, analyse the repository and start again",
        message: &'static str = ANALYSIS_GONE,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RecoverPayload<'a> {
    Recovered(Box<RecoveredIntent<'a>>),
    Rejected(RecoveryRejected<'a>),
}

impl<'a> RecoverPayload<'a> {
    pub fn of(intent_id: &'a str, answer: &'a Recovered, now: i64) -> Self {
        match answer {
            Recovered::Yes {
                intent,
                previous,
                changed,
                held_by,
            } => {
                let found = RecoveredIntent::of(previous, intent, changed, held_by, now);
                Self::Recovered(Box::new(found))
            }
            Recovered::No(refusal) => {
                let details = RecoveryDetails::of(refusal);
                let id = Some(intent_id);
                Self::Rejected(RecoveryRejected::of(id, refusal.name(), details))
            }
        }
    }

    /// A request without what a recovery needs.
    pub fn incomplete(missing: &'static str) -> Self {
        Self::Rejected(RecoveryRejected::of(
            None,
            missing,
            RecoveryDetails::default(),
        ))
    }
}

payload! {
    pub struct RecoveredIntent<'a>(
        previous: &'a Intent,
        intent: &'a Intent,
        changed: &'a [RawPath],
        held_by: &'a [Conflict],
        now: i64,
    ) {
        action_taken: &'static str = "recovered",
        intent_id: &'a str = &intent.intent_id,
        status: State = intent.state,
        edit_allowed: bool = intent.edit_allowed,
        run_id: &'a str = short(&intent.run_id),
        previous_owner: AgentName<'a> = AgentName::of(previous),
        new_owner: AgentName<'a> = AgentName::of(intent),
        recovered_at_utc: String = utc(now),
        previous_workspace_record_removed: bool = true,
        changed_since_declaration: Vec<String> = raw(&intent.root, changed),
    } optional {
        blocked_by: Vec<BlockedBy<'a>> =
            (!held_by.is_empty()).then(|| blocked_by(held_by, &intent.root)),
        next_step: &'static str = (!held_by.is_empty()).then_some(
            "another agent works on these files, and cannot finish with the work that lies in \
             them before you agree: do not edit; when it has given them back, renew this intent \
             to edit, or clear it to leave the work to that agent",
        ),
    }
}

payload! {
    pub struct RecoveryRejected<'a>(
        id: Option<&'a str>, reason: &'static str, details: RecoveryDetails<'a>,
    ) {
        action_taken: &'static str = "recovery_rejected",
        reason: &'static str = reason,
        details: RecoveryDetails<'a> = details,
    } optional {
        intent_id: &'a str = id,
    }
}

payload! {
    #[derive(Default)]
    pub struct RecoveryDetails<'a>(refusal: &'a Refusal) {
    } optional {
        ownership: Ownership = match refusal {
            Refusal::NotRecoverable(whose) => Some(*whose),
            Refusal::Conflict(_) | Refusal::NotFound | Refusal::AlreadyActive
            | Refusal::RunNotAvailable => None,
        },
        blocked_by: Vec<BlockedBy<'a>> = match refusal {
            Refusal::Conflict(others) => Some(blocked_by(others, "")),
            Refusal::NotRecoverable(_) | Refusal::NotFound | Refusal::AlreadyActive
            | Refusal::RunNotAvailable => None,
        },
    }
}

payload! {
    pub struct ResetPayload<'a>(id: &'a str, answer: Option<&'a (Intent, Reset)>) {
        intent_id: &'a str = id,
        action_taken: &'static str = match answer {
            None | Some((_, Reset::Rejected(_))) => "rejected",
            Some((_, Reset::Renewed)) => "reset",
            Some((_, Reset::Removed(_))) => "removed",
        },
    } optional {
        reason: &'static str = answer.is_none().then_some("not_found"),
        status: State = match answer {
            Some((intent, Reset::Renewed)) => Some(intent.state),
            Some((_, Reset::Removed(state))) => Some(*state),
            Some((_, Reset::Rejected(_))) | None => None,
        },
        ttl_seconds: u32 = begun_anew(answer).map(|intent| intent.ttl_seconds),
        expires_at_utc: String = begun_anew(answer).map(|intent| utc(intent.expires_at)),
        ownership: Ownership = rejected(answer),
        hint: &'static str = rejected(answer)
            .map(|_| "its agent is alive: ask that agent, or a person, to give it back"),
    }
}

fn begun_anew(answer: Option<&(Intent, Reset)>) -> Option<&Intent> {
    match answer {
        Some((intent, Reset::Renewed)) => Some(intent),
        Some((_, Reset::Removed(_) | Reset::Rejected(_))) | None => None,
    }
}

fn rejected(answer: Option<&(Intent, Reset)>) -> Option<Ownership> {
    match answer {
        Some((_, Reset::Rejected(whose))) => Some(*whose),
        Some((_, Reset::Removed(_) | Reset::Renewed)) | None => None,
    }
}

payload! {
    /// The result of a clean-up, which also removed `reports` that no evidence refers to.
    pub struct SweptPayload(swept: &Swept, reports: usize) {
        removed: usize = swept.removed,
        remaining: usize = swept.remaining,
        purged: usize = swept.purged,
        reports_removed: usize = reports,
    }
}

payload! {
    pub struct ForgottenPayload(runs: usize, intents: usize) {
        cleared_runs: usize = runs,
        cleared_intents: usize = intents,
    }
}
