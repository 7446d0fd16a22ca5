//! Writes the answers about intents.

use crate::analysis::run::short;
use crate::answer::{IntentList, Promoted, Recovered, Renewed, Swept};
use crate::hygiene::AtStart;
use crate::intent::{Intent, LEASE, Ownership, State, utc};
use crate::recover::decide::{Refusal, Reset};
use provost_core::path::RawPath;
use serde_json::{Value, json};

use crate::start::answer::{at_start, blocked_by, declared_scope};
use crate::tools::answers::raw;

/// The most moved paths that an answer lists.
const MOST_MOVED: usize = 20;

/// An intent, and whose it is.
pub fn got(intent: &Intent, ownership: Ownership) -> Value {
    json!({
        "intent_id": intent.intent_id,
        "status": intent.state.name(),
        "ownership": ownership.name(),
        "edit_allowed": intent.may_edit(),
        "agent_pid": intent.owner.pid,
        "agent_start_epoch": intent.agent_start_epoch,
        "agent_label": intent.agent_label,
        "session": intent.owner.session(),
        "run_id": short(&intent.run_id),
        "report_digest": intent.report_digest,
        "intent": intent.intent,
        "expected_effects": intent.expected_effects,
        "root": intent.root,
        "scope": declared_scope(intent),
        "scope_digest": intent.scope.digest(),
        "scope_check_status": intent.scope_status.map(crate::intent::ScopeStatus::name),
        "blast_radius_summary": { "radius_level": intent.radius_level },
        "declared_at_utc": utc(intent.declared_at),
        "expires_at_utc": utc(intent.expires_at),
        "ttl_seconds": intent.ttl_seconds,
        "lease_renewed_at_utc": utc(intent.lease_renewed_at),
        "lease_seconds": intent.lease_seconds,
        "lease_expires_at_utc": utc(intent.lease_expires_at()),
    })
}

/// All intents, with what the caller can recover.
pub fn listed(listed: &IntentList) -> Value {
    let recoverable = listed
        .intents
        .iter()
        .filter(|(_, ownership)| *ownership == Ownership::Recoverable);
    let recovery = recoverable.clone().map(|(intent, _)| {
        json!({
            "intent_id": intent.intent_id,
            "run_id": short(&intent.run_id),
            "run_available": listed.has_run,
            "hint": if listed.has_run {
                "manage_change_intent(action=\"recover\") with a run of this session"
            } else {
                "analyse the repository, then manage_change_intent(action=\"recover\")"
            },
        })
    });
    let queued = listed
        .intents
        .iter()
        .filter(|(intent, _)| intent.state == State::Queued);
    let stale = listed
        .intents
        .iter()
        .filter(|(_, whose)| matches!(whose, Ownership::OwnStale | Ownership::ForeignStale));
    let intents = listed.intents.iter();
    let runs = listed.leases.iter().map(|lease| {
        json!({
            "run_id": lease.run_id,
            "paths": lease.scope.entries(),
            "expires_at_utc": utc(lease.expires_at),
        })
    });
    json!({
        "workspace_intents": intents.map(|(intent, whose)| got(intent, *whose)).collect::<Vec<_>>(),
        "total": listed.intents.len(),
        "queued_count": queued.count(),
        "orphaned_count": recoverable.count(),
        "stale_count": stale.count(),
        "recovery_available": recovery.collect::<Vec<_>>(),
        "launched_runs": runs.collect::<Vec<_>>(),
        "unreadable_records": listed.unread,
    })
}

/// The intents that were given back.
pub fn cleared(intent_ids: &[String]) -> Value {
    json!({
        "cleared": intent_ids.len(),
        "cleared_intent_ids": intent_ids,
        "workspace_cleared": true,
    })
}

pub fn renewed(intent_id: &str, answer: &Renewed) -> Value {
    let [least, usual, most] = LEASE;
    let policy = json!({ "min_seconds": least, "default_seconds": usual, "max_seconds": most });
    match answer {
        Renewed::Yes(intent) => json!({
            "intent_id": intent_id,
            "lease_renewed": true,
            "status": intent.state.name(),
            "edit_allowed": intent.may_edit(),
            "lease_seconds": intent.lease_seconds,
            "lease_renewed_at_utc": utc(intent.lease_renewed_at),
            "lease_expires_at_utc": utc(intent.lease_expires_at()),
            "ttl_seconds": intent.ttl_seconds,
            "expires_at_utc": utc(intent.expires_at),
            "lease_policy": policy,
        }),
        Renewed::Conflict(others) => json!({
            "intent_id": intent_id,
            "lease_renewed": false,
            "status": State::Expired.name(),
            "reason": "conflict",
            "blocked_by": others.iter().map(|one| blocked_by(one, "")).collect::<Vec<_>>(),
            "next_step": "the time of this intent was over, and others work on its files by now: \
                          wait for them, then renew again or start again",
            "lease_policy": policy,
        }),
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

/// A promoted intent may edit.
fn let_in(intent: &Intent, dirty: &AtStart, moved: &[RawPath]) -> Value {
    let mut value = json!({
        "intent_id": intent.intent_id,
        "status": "active",
        "previous_status": State::Queued.name(),
        "edit_allowed": true,
        "run_id": short(&intent.run_id),
        "before_run_pinned": true,
        "workspace_hygiene": at_start(dirty, &intent.root, false),
        "lease_expires_at_utc": utc(intent.lease_expires_at()),
        "message": "you may edit the files of the scope",
    });
    if !moved.is_empty() {
        value["changed_since_analysis"] = raw(&intent.root, moved.iter().take(MOST_MOVED));
        value["next_step"] = json!(JUDGED_WITH_OTHERS);
    }
    value
}

pub fn promoted(answer: &Promoted) -> Value {
    match answer {
        Promoted::Active(intent, dirty, moved) => let_in(intent, dirty, moved),
        Promoted::Queued(intent, others, position) => json!({
            "intent_id": intent.intent_id,
            "status": "queued",
            "edit_allowed": false,
            "queue_position": position,
            "blocked_by": others.iter().map(|one| blocked_by(one, &intent.root)).collect::<Vec<_>>(),
            "blocking_count": others.len(),
            "next_step": "wait, then promote again",
            "message": COME_FIRST,
        }),
        Promoted::Blocked(intent, dirty, next_step) => json!({
            "intent_id": intent.intent_id,
            "status": "queued",
            "reason": "workspace_hygiene",
            "edit_allowed": false,
            "workspace_hygiene": match dirty {
                Some(dirty) => at_start(dirty, &intent.root, false),
                None => json!({ "git_available": false, "blocks_edit": true, "reason": next_step }),
            },
            "user_action_required": true,
            "next_step": next_step,
            "message": next_step,
        }),
        Promoted::RunEvicted(intent) => json!({
            "intent_id": intent.intent_id,
            "status": "unverified",
            "reason": "before_run_evicted",
            "edit_allowed": false,
            "next_step": "clear this intent, analyse the repository and start again",
            "message": ANALYSIS_GONE,
        }),
    }
}

pub fn recovered(intent_id: &str, answer: &Recovered, now: i64) -> Value {
    let owner = |intent: &Intent| {
        json!({
            "agent_pid": intent.owner.pid,
            "agent_start_epoch": intent.agent_start_epoch,
            "agent_label": intent.agent_label,
        })
    };
    match answer {
        Recovered::Yes {
            intent,
            previous,
            changed,
            held_by,
        } => {
            let mut value = json!({
                "action_taken": "recovered",
                "intent_id": intent.intent_id,
                "status": intent.state.name(),
                "edit_allowed": intent.edit_allowed,
                "run_id": short(&intent.run_id),
                "previous_owner": owner(previous),
                "new_owner": owner(intent),
                "recovered_at_utc": utc(now),
                "previous_workspace_record_removed": true,
                "changed_since_declaration": raw(&intent.root, changed),
            });
            if !held_by.is_empty() {
                let others = held_by.iter().map(|one| blocked_by(one, &intent.root));
                value["blocked_by"] = others.collect();
                value["next_step"] = json!(
                    "another agent works on these files, and cannot finish with the work that lies \
                     in them before you agree: do not edit; when it has given them back, renew \
                     this intent to edit, or clear it to leave the work to that agent"
                );
            }
            value
        }
        Recovered::No(refusal) => {
            let details = match refusal {
                Refusal::NotRecoverable(ownership) => json!({ "ownership": ownership.name() }),
                Refusal::Conflict(others) => json!({
                    "blocked_by": others.iter().map(|one| blocked_by(one, "")).collect::<Vec<_>>(),
                }),
                Refusal::NotFound | Refusal::AlreadyActive | Refusal::RunNotAvailable => json!({}),
            };
            json!({
                "action_taken": "recovery_rejected",
                "intent_id": intent_id,
                "reason": refusal.name(),
                "details": details,
            })
        }
    }
}

pub fn reset(intent_id: &str, answer: Option<&(Intent, Reset)>) -> Value {
    match answer {
        None => json!({
            "action_taken": "rejected",
            "intent_id": intent_id,
            "reason": "not_found",
        }),
        Some((intent, Reset::Renewed)) => json!({
            "action_taken": "reset",
            "intent_id": intent_id,
            "status": intent.state.name(),
            "ttl_seconds": intent.ttl_seconds,
            "expires_at_utc": utc(intent.expires_at),
        }),
        Some((_, Reset::Removed(state))) => json!({
            "action_taken": "removed",
            "intent_id": intent_id,
            "status": state.name(),
        }),
        Some((_, Reset::Rejected(ownership))) => json!({
            "action_taken": "rejected",
            "intent_id": intent_id,
            "ownership": ownership.name(),
            "hint": "its agent is alive: ask that agent, or a person, to give it back",
        }),
    }
}

/// The result of a clean-up, which also removed `reports` that no evidence refers to.
pub fn swept(swept: &Swept, reports: usize) -> Value {
    json!({
        "removed": swept.removed, "remaining": swept.remaining, "purged": swept.purged,
        "reports_removed": reports,
    })
}
