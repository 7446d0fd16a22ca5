//! Writes the answer to a start.

use crate::analysis::run::short;
use crate::answer::Started;
use crate::conflict::Conflict;
use crate::hygiene::{AtStart, Overlap};
use crate::intent::{Intent, utc};
use crate::receipt::compose::inside;
use crate::request::StartRequest;
use crate::start::decide::StartStatus;
use provost_core::checkout::{DirtyFile, Snapshot};
use provost_core::path::RawPath;
use provost_lens::structure::blast::{Blast, MOST_CONTEXT, MOST_TRANSITIVE, artifact_id};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::finish::answer::budget_fields;
use crate::tools::answers::{Detail, raw, seen};

pub fn started(
    answer: &Started,
    request: &StartRequest,
    detail: Detail,
    root: &str,
    now: i64,
) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let intent = answer.intent.as_ref();
    let edit_allowed = intent.is_some_and(|intent| intent.edit_allowed);
    put("status", json!(answer.status.name()));
    put("intent_id", json!(intent.map(|intent| &intent.intent_id)));
    put("edit_allowed", json!(edit_allowed));
    put("workspace", workspace(answer, &request.root));
    if !answer.unread.is_empty() {
        put("unreadable_records", json!(answer.unread));
    }
    let message = if answer.next_step.is_empty() {
        "you may edit the files of the scope".to_owned()
    } else {
        answer.next_step.clone()
    };
    put("message", json!(message));
    if !edit_allowed {
        put("user_action_required", json!(true));
        put("next_step", json!(message));
    }
    let Some(intent) = intent else {
        put("root", json!(root));
        if !answer.drifted.is_empty() {
            put(
                "changed_since_analysis",
                raw(&request.root, answer.drifted.iter().take(20)),
            );
        }
        return Value::Object(fields);
    };
    put("run_id", json!(short(&intent.run_id)));
    if let Some(first) = &intent.carried {
        put(
            "work_in_progress",
            json!({
                "first_intent_id": first.intent_id,
                "run_id": short(&intent.run_id),
                "message": "these files have unfinished work, which is judged from the analysis it \
                            began from until it is committed, undone or accepted",
            }),
        );
    }
    if !answer.replaced.is_empty() {
        put("replaced", json!(answer.replaced));
    }
    if answer.replay {
        replay(intent, now, &mut put);
        return Value::Object(fields);
    }
    put(
        "dirty_snapshot",
        snapshot(intent.snapshot.as_ref(), &request.root, Detail::Summary),
    );
    if answer.status == StartStatus::Queued {
        let blocked = answer.conflicts.iter();
        put(
            "blocked_by",
            blocked.map(|one| blocked_by(one, &request.root)).collect(),
        );
        put("queue_position", json!(answer.position));
        put("before_run_pinned", json!(false));
        return Value::Object(fields);
    }
    declared(answer, intent, request, detail, &mut put);
    Value::Object(fields)
}

/// The answer to a start where git cannot read the checkout: then no agent may edit.
pub fn unseen_start(root: &str, why: &str) -> Value {
    let message = format!("the state of the checkout is not known, so no agent may edit: {why}");
    json!({
        "status": StartStatus::Blocked.name(),
        "intent_id": null,
        "edit_allowed": false,
        "root": root,
        "workspace": {
            "concurrent_intents": [], "workspace_relations": [], "queued_context": [],
            "total_agents": 0, "stale_count": 0,
        },
        "workspace_hygiene": unseen_hygiene(Some(why)),
        "dirty_snapshot": snapshot(None, "", Detail::Summary),
        "user_action_required": true,
        "message": message,
        "next_step": message,
    })
}

/// The answer to an analysis where git cannot read the checkout.
pub fn unseen_analysis(root: &str, why: &str) -> Value {
    json!({
        "run_id": null,
        "root": root,
        "git_available": false,
        "message": format!("change control is not available here: {why}"),
    })
}

/// The fields for an intent that did not have to wait.
fn declared(
    answer: &Started,
    intent: &Intent,
    request: &StartRequest,
    detail: Detail,
    put: &mut impl FnMut(&str, Value) -> Option<Value>,
) {
    put("dirty_scope_policy", json!(request.policy.name()));
    put("workspace_hygiene", hygiene(answer, &request.root));
    put("scope", declared_scope(intent));
    if let Some(blast) = &answer.blast {
        let kept = answer.blast_digest.as_deref();
        // A report that was not stored cannot be looked up later, so it is given in full.
        let shown = if kept.is_some() { detail } else { Detail::Full };
        let mut radius = blast_radius(blast, &intent.run_id, shown);
        radius["blast_artifact"] = kept.map_or(Value::Null, |digest| {
            json!({
                "blast_artifact_id": artifact_id(digest),
                "projection_digest": digest,
                "retrieval": "get_blast_artifact",
            })
        });
        put("blast_radius", radius);
        put("blast_radius_detail", json!(shown));
        put("requested_blast_radius_detail", json!(detail));
    }
    if let Some(budget) = &answer.budget {
        put("budget", budget_fields(budget));
    }
    put("expires_at_utc", json!(utc(intent.expires_at)));
    put(
        "lease_expires_at_utc",
        json!(utc(intent.lease_expires_at())),
    );
}

fn replay(intent: &Intent, now: i64, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    put("idempotent_replay", json!(true));
    put("scope_unchanged", json!(true));
    put("analysis_run_unchanged", json!(true));
    put("workspace_unchanged", json!(true));
    put(
        "lease_expires_at_utc",
        json!(utc(intent.lease_expires_at())),
    );
    put("renew_required", json!(now >= intent.lease_expires_at()));
    put("scope_digest", json!(intent.scope.digest()));
    put("workspace_state_digest", json!(intent.workspace_digest));
}

fn workspace(answer: &Started, root: &str) -> Value {
    let concurrent = |one: &Conflict| {
        let peer = &one.peer;
        let (severity, action) = peer.advice();
        json!({
            "intent_id": peer.intent_id,
            "agent_pid": peer.agent_pid,
            "agent_start_epoch": peer.agent_start_epoch,
            "agent_label": peer.agent_label,
            "intent": peer.intent,
            "ownership": peer.ownership.name(),
            "severity": severity,
            "recommended_action": action,
            "overlap_type": one.kind(),
            "hard_overlap": seen(root, &one.hard),
            "soft_overlap": seen(root, &one.soft),
            "declared_at_utc": utc(peer.declared_at),
            "expires_at_utc": utc(peer.expires_at),
        })
    };
    let waiting = |one: &Conflict| {
        json!({
            "intent_id": one.peer.intent_id,
            "overlapping_files": seen(root, &one.hard),
            "message": "waits for these files, and does not block this intent",
        })
    };
    let relation = |one: &crate::conflict::Exclusion| {
        json!({
            "intent_id": one.intent_id,
            "agent_label": one.agent_label,
            "relation": one.relation,
            "severity": "info",
            "paths": seen(root, &one.paths),
        })
    };
    json!({
        "concurrent_intents": answer.conflicts.iter().map(concurrent).collect::<Vec<_>>(),
        "workspace_relations": answer.exclusions.iter().map(relation).collect::<Vec<_>>(),
        "queued_context": answer.waiting.iter().map(waiting).collect::<Vec<_>>(),
        "total_agents": answer.total_agents,
        "stale_count": answer.stale_count,
    })
}

/// What an agent declared, relative to its analysed root.
pub(crate) fn declared_scope(intent: &Intent) -> Value {
    json!({
        "allowed_files": seen(&intent.root, &intent.scope.allowed_files),
        "allowed_related": seen(&intent.root, &intent.scope.allowed_related),
        "forbidden": seen("", &intent.scope.forbidden),
    })
}

/// An intent or run that blocks a queued intent.
pub(crate) fn blocked_by(one: &Conflict, root: &str) -> Value {
    json!({
        "intent_id": one.peer.intent_id,
        "agent_pid": one.peer.agent_pid,
        "agent_label": one.peer.agent_label,
        "ownership": one.peer.ownership.name(),
        "overlapping_files": seen(root, &one.files()),
    })
}

/// The dirty files at a start.
fn hygiene(answer: &Started, root: &str) -> Value {
    match (&answer.hygiene, &answer.blind) {
        (Some(found), _) => at_start(found, root, answer.continuing),
        (None, why) => unseen_hygiene(why.as_deref()),
    }
}

/// The dirty files where git cannot read the checkout.
fn unseen_hygiene(why: Option<&str>) -> Value {
    json!({
        "git_available": false, "blocks_edit": true, "reason": why, "foreign_dirty_overlaps": [],
    })
}

/// How many dirty files are of which kind.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DirtyCounts {
    pub(crate) in_scope: usize,
    pub(crate) outside_scope: usize,
    pub(crate) missing_evidence: usize,
    pub(crate) preexisting_unscoped: usize,
    pub(crate) new_unattributed_unscoped: usize,
    pub(crate) modified_unattributed_unscoped: usize,
    pub(crate) unknown_unattributed_unscoped: usize,
    pub(crate) foreign_attributed_outside_scope: usize,
}

/// The dirty files where an agent wants to work.
pub(crate) fn at_start(found: &AtStart, root: &str, continuing: bool) -> Value {
    let mut value = json!({
        "git_available": true,
        "blocks_edit": found.blocks_edit(),
        "counts": DirtyCounts {
            in_scope: found.in_scope.len(),
            outside_scope: found.related.len(),
            ..DirtyCounts::default()
        },
        "foreign_dirty_overlaps": overlaps(&found.overlaps, root),
    });
    if found.blocks_edit() {
        value["dirty_in_scope_sample"] = raw(root, found.in_scope.iter().take(10));
    }
    if continuing {
        value["continuing_own_wip"] = json!(true);
    }
    value
}

/// Dirty files that other intents declared as well.
pub(crate) fn overlaps(overlaps: &[Overlap], root: &str) -> Value {
    let one = |one: &Overlap| {
        json!({
            "path": inside(root, &one.path.to_string()),
            "foreign_intent_id": one.intent_id,
            "foreign_persisted_status": one.state.name(),
            "foreign_ownership": one.ownership.name(),
            "foreign_agent_label": one.agent_label,
            "message": "another active agent has declared this file as well",
        })
    };
    overlaps.iter().map(one).collect()
}

/// What is known of the dirty files at a start.
pub(crate) fn snapshot(snapshot: Option<&Snapshot>, root: &str, detail: Detail) -> Value {
    let Some(snapshot) = snapshot else {
        return json!({ "git_available": false });
    };
    let dirty = &snapshot.workspace.dirty;
    let unread = dirty.values().filter(|file| file.disk.is_none()).count();
    let mut value = json!({
        "git_available": true,
        "captured_at_utc": utc(snapshot.captured_at),
        "paths_count": dirty.len(),
        "digest_status_counts": { "ok": dirty.len() - unread, "unavailable": unread },
    });
    if detail == Detail::Full {
        let file = |(path, file): (&RawPath, &DirtyFile)| {
            json!({
                "path": inside(root, &path.to_string()),
                "status": file.letters,
                "digest": file.disk,
                "digest_status": if file.disk.is_some() { "ok" } else { "unavailable" },
            })
        };
        value["paths"] = dirty.iter().map(file).collect();
    }
    value
}

/// How far a change reaches.
pub(crate) fn blast_radius(blast: &Blast, run_id: &str, detail: Detail) -> Value {
    let most = |most: usize| match detail {
        Detail::Summary | Detail::Normal => most,
        Detail::Full => usize::MAX,
    };
    let listed =
        |paths: &[provost_core::path::RepoPath], few: usize| seen("", paths.iter().take(most(few)));
    let context = &blast.clone_cohort;
    let mut value = json!({
        "run_id": short(run_id),
        "origin": seen("", &blast.origin),
        "unknown": blast.unknown.iter().take(most(MOST_CONTEXT)).collect::<Vec<_>>(),
        "unknown_count": blast.unknown.len(),
        "depth": if blast.transitive_dependents.is_some() { "transitive" } else { "direct" },
        "radius_level": blast.radius_level,
        "direct_dependents": listed(&blast.direct_dependents, MOST_CONTEXT),
        "transitive_dependents": listed(
            blast.transitive_dependents.as_deref().unwrap_or_default(), MOST_TRANSITIVE),
        "clone_cohort_members": listed(context, MOST_CONTEXT),
        "in_dependency_cycle": listed(&blast.in_dependency_cycle, MOST_CONTEXT),
        "structural_risk": blast.structural_risk.iter().take(most(MOST_CONTEXT)).collect::<Vec<_>>(),
        "do_not_touch": [],
        "do_not_touch_summary": { "count": 0 },
        "review_context": listed(context, MOST_CONTEXT),
        "review_context_summary": { "count": context.len() },
        "guardrails": ["edit only the files of the scope", "name every file you touched"],
        "blast_artifact": null,
    });
    if let Some(all) = &blast.transitive_dependents {
        value["transitive_summary"] = json!({
            "total": all.len(),
            "truncated": all.len() > most(MOST_TRANSITIVE),
        });
    }
    value
}
