//! Writes the answer to a finish, and the answers about patches without a finish.

use crate::analysis::run::short;
use crate::answer::{Budget, Compared, Finished, Looked};
use crate::finish::claims::ClaimsVerdict;
use crate::finish::decide::{FinishStatus, ScopeCheck, Stop, conclude};
use crate::finish::verify::{self, Verified};
use crate::intent::{Intent, ScopeStatus, State};
use provost_lens::structure::baseline::triggers;
use provost_lens::structure::budget::{Gate, Strictness};
use provost_lens::structure::compare::Delta;
use provost_lens::structure::health::Points;
use provost_lens::structure::profile::Profile;
use provost_lens::structure::{Family, Finding, Report};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::hygiene::answer as hygiene;
use crate::receipt::markdown as receipt;
use crate::tools::answers::{Detail, raw, seen};
use crate::tools::arguments::Shown;

pub fn finished(done: &Finished, shown: Shown) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("intent_id", json!(done.intent.intent_id));
    put("status", json!(done.status.name()));
    put("reason", json!(done.reason));
    put("message", json!(message(done)));
    put("user_action_required", json!(done.needs_person));
    put("intent_cleared", json!(done.cleared));
    if !done.status.is_accepted() {
        put("next_step", json!(done.next_step));
    }
    let check = done.check.as_ref();
    put(
        "scope_check",
        check.map_or(Value::Null, |check| scope_check(check, &done.intent)),
    );
    let judged = done.verified.as_ref();
    put(
        "verification",
        judged.map_or(Value::Null, |found| verified(done, found)),
    );
    put("claims", done.claims.as_ref().map_or(Value::Null, claims));
    put(
        "receipt",
        done.receipt
            .as_ref()
            .map_or(Value::Null, |(document, digest)| {
                receipt_fields(document, digest)
            }),
    );
    if let Some(error) = &done.receipt_error {
        put("receipt_error", json!(error));
    }
    if let Some(trail) = &done.trail {
        put("patch_trail", patch_trail(trail, shown.trail));
    }
    if let Some(value) = hygiene::after(done, shown.hygiene) {
        put("workspace_hygiene_after", value);
    }
    if let Some(value) = hygiene::external(done) {
        put("external_changes", value);
    }
    if let Some(found) = &done.verified {
        if let Some(fell) = found.health_fell().filter(|_| done.status.is_accepted()) {
            put("health_regression_advisory", advisory(fell));
        }
        put("summary", summary(done, found));
    }
    Value::Object(fields)
}

/// A judgement as the answer to a finish shows it.
fn verified(done: &Finished, found: &Verified) -> Value {
    let run = |run: Option<&(String, Report)>| {
        let health = |report: &Report| report.health.as_ref().map(|health| health.points);
        run.map(|(run_id, report)| (run_id.clone(), health(report)))
    };
    let (before, after) = (run(done.before.as_ref()), run(done.after.as_ref()));
    let mut value = verification(found, done.strictness, before.as_ref(), after.as_ref());
    value["intent_id"] = json!(done.intent.intent_id);
    if let Some(asked) = done
        .offered
        .strictness
        .filter(|asked| *asked < done.strictness)
    {
        value["message"] = json!(format!(
            "{}; the strictness `{}` has no effect: the start has `{}`, and a finish may only \
             tighten it",
            verify_message(found),
            asked.word(),
            done.strictness.word(),
        ));
    }
    let check = done.check.as_ref();
    value["scope_check"] = json!(check.map(|check| check.status.name()));
    if let Some(next) = done
        .next_step
        .as_ref()
        .filter(|_| !done.status.is_accepted())
    {
        value["next_step"] = json!(next);
    }
    value
}

/// The result of a finish in one sentence.
pub fn message(done: &Finished) -> String {
    match (done.status, &done.next_step) {
        (FinishStatus::Accepted, _) => "the change is accepted".to_owned(),
        (FinishStatus::AcceptedWithExternalChanges, _) => {
            "the change is accepted; other changes are in the checkout".to_owned()
        }
        (_, Some(next)) => next.clone(),
        (_, None) => "the change breaks its contract; see verification".to_owned(),
    }
}

fn advisory(fell: Points) -> Value {
    json!({
        "health_delta": fell.number(),
        "message": "the health of the code fell; that alone refuses nothing",
    })
}

fn receipt_fields(document: &Value, digest: &str) -> Value {
    json!({
        "run_id": document["run_id"],
        "format": "markdown",
        "receipt_version": document["receipt_version"],
        "verdict": document["verdict"],
        "receipt_digest": {
            "kind": "receipt",
            "algorithm": "sha256",
            "digest_version": "1",
            "value": digest,
        },
        "receipt_retrieval": { "tool": "get_review_receipt", "receipt_digest": digest },
        "content": receipt::markdown(document),
    })
}

pub fn patch_trail(trail: &Value, detail: Detail) -> Value {
    let mut trail = trail.clone();
    if let (Detail::Summary | Detail::Normal, Some(fields)) = (detail, trail.as_object_mut()) {
        for list in [
            "declared_files",
            "changed_files",
            "unexpected_files",
            "forbidden_touched",
            "untouched_in_declared",
        ] {
            fields.remove(list);
        }
    }
    trail
}

pub fn scope_check(check: &ScopeCheck, intent: &Intent) -> Value {
    let root = &intent.root;
    let (action, message) = match check.status {
        ScopeStatus::Clean => ("none", "everything that was touched is declared"),
        ScopeStatus::Expanded => (
            "none",
            "everything that was touched is declared, some of it as related only",
        ),
        ScopeStatus::Violated => (
            "undo_or_redeclare",
            "something was touched that is not declared, or that is forbidden",
        ),
    };
    json!({
        "status": check.status.name(),
        "intent_id": intent.intent_id,
        "declared_scope": seen(root, &check.declared),
        "actual_changed_files": raw(root, &check.actual),
        "unexpected_files": raw(root, &check.unexpected),
        "forbidden_touched": raw(root, &check.forbidden),
        "expanded_files": raw(root, &check.expanded),
        "untouched_in_declared": seen(root, &check.untouched),
        "required_action": action,
        "message": message,
    })
}

fn summary(done: &Finished, found: &Verified) -> Value {
    let claims = match (&done.claims, done.offered.claims) {
        (_, false) => "skipped_no_claims_text",
        (None, true) => "skipped_not_recommended",
        (Some(judged), true) if judged.is_valid() => "valid",
        (Some(_), true) => "violated",
    };
    let receipt = match (&done.receipt, &done.receipt_error) {
        (Some(_), _) => "created",
        (None, Some(_)) => "failed",
        (None, None) => "skipped",
    };
    let check = done.check.as_ref();
    json!({
        "status": found.status.name(),
        "scope_status": check.map(|check| check.status.name()),
        "verification_profile": found.profile.word(),
        "structural_verdict": found.delta.verdict.word(),
        "health_delta": found.delta.health_delta.map(Points::number),
        "regressions": found.delta.regressions.len(),
        "worsened_symbols": found.delta.worsened.len(),
        "claims": claims,
        "review_note_present": done.offered.review,
        "receipt": receipt,
        "intent_cleared": done.cleared,
        "workspace_dirty_paths": done.workspace.as_ref().map(|workspace| workspace.dirty.len()),
        "workspace_hygiene_blocked": false,
    })
}

/// A run and its health.
type Run = (String, Option<Points>);

fn run(run_id: &str, health: Option<Points>) -> Value {
    json!({ "run_id": short(run_id), "health": health.map(Points::number) })
}

fn verification(
    found: &Verified,
    strictness: Strictness,
    before: Option<&Run>,
    after: Option<&Run>,
) -> Value {
    let structural = found.delta.comparable;
    let checks = ["scope", "forbidden", "state_artifacts"];
    let deeper = ["structural_delta", "gates", "regressions"];
    let (performed, not_applicable) = if structural {
        (checks.iter().chain(&deeper).collect::<Vec<_>>(), Vec::new())
    } else {
        (checks.iter().collect(), deeper.iter().collect::<Vec<_>>())
    };
    let recommended = structural
        && matches!(
            found.status,
            verify::PatchStatus::Accepted | verify::PatchStatus::AcceptedWithExternalChanges
        );
    let delta = &found.delta;
    let gate = |pick: fn(&(Gate, Gate)) -> &Gate| found.gates.as_ref().map(pick);
    let fell = found
        .gates
        .as_ref()
        .is_some_and(|(before, after)| !before.would_fail && after.would_fail);
    let abuse = triggers(&found.violations);
    let mut value = json!({
        "mode": "verify",
        "status": found.status.name(),
        "reason": found.reason,
        "before": before.map(|(run_id, health)| run(run_id, *health)),
        "after": after.map(|(run_id, health)| run(run_id, *health)),
        "strictness": strictness.word(),
        "structural_delta": delta_fields(delta),
        "intent_regressions": found.intent_regressions,
        "external_regressions": found.external_regressions,
        "worsened": delta.worsened,
        "intent_worsened": found.intent_worsened,
        "external_worsened": found.external_worsened,
        "before_gate": gate(|(before, _)| before),
        "gate_preview": gate(|(_, after)| after),
        "gate_worsened": fell,
        "intent_caused_gate_failure": found.caused_gate_failure,
        "baseline_abuse": { "detected": !abuse.is_empty(), "triggers": abuse },
        "contract_violations": found.violations,
        "blocking_violations": found.blocking,
        "verification_profile": found.profile.word(),
        "profile_reason": "by the paths that were touched",
        "python_source_touched": found.profile == Profile::PythonStructural,
        "after_run_required": found.profile.after_run_required()
            || found.reason == Some("no_after_run"),
        "checks_performed": performed,
        "checks_not_applicable": not_applicable,
        "claim_validation_recommended": recommended,
        "message": verify_message(found),
    });
    if !delta.parse_worsened.is_empty() {
        value["limitations"] = json!([{
            "kind": "parse_worsened",
            "paths": delta.parse_worsened,
            "message": "these files could be read better before; that alone refuses nothing",
        }]);
    }
    if let Some(fell) = found.health_fell().filter(|_| recommended) {
        value["health_regression_advisory"] = advisory(fell);
    }
    value
}

fn verify_message(found: &Verified) -> &'static str {
    match found.status {
        verify::PatchStatus::Accepted => "nothing of this change is worse than the contract allows",
        verify::PatchStatus::AcceptedWithExternalChanges => {
            "nothing of this change is worse; something else is"
        }
        verify::PatchStatus::Unverified => "the change is not verified yet",
        verify::PatchStatus::Violated => "the change breaks its contract",
    }
}

fn delta_fields(delta: &Delta) -> Value {
    let ids = |findings: &[Finding]| -> Vec<String> {
        findings.iter().map(|finding| finding.id.clone()).collect()
    };
    json!({
        "verdict": delta.verdict.word(),
        "regressions": ids(&delta.regressions),
        "improvements": ids(&delta.improvements),
        "moved": delta.moved,
        "health_delta": delta.health_delta.map(Points::number),
        "debt_delta": delta.debt_delta.map(Points::number),
    })
}

/// The answer to a judgement without a finish.
pub fn looked(found: &Looked) -> Value {
    let Some(verified) = &found.verified else {
        let state = found.intent.as_ref().map_or(State::Refused, |it| it.state);
        let stop = Stop::without_permission(state);
        let (status, reason) = conclude(stop);
        return json!({
            "mode": "verify",
            "status": status.name(),
            "reason": reason,
            "intent_id": found.intent.as_ref().map(|intent| &intent.intent_id),
            "next_step": stop.permission_advice(),
        });
    };
    let (before, after) = (found.before.as_ref(), found.after.as_ref());
    let mut value = verification(verified, found.strictness, before, after);
    if let Some(intent) = &found.intent {
        value["intent_id"] = json!(intent.intent_id);
        value["scope_check"] = found
            .check
            .as_ref()
            .map_or(Value::Null, |check| scope_check(check, intent));
    }
    if let Some(next) = verified.reason.and_then(verify::advice) {
        value["next_step"] = json!(next);
    }
    value
}

/// The answer about claims.
pub fn claims(judged: &ClaimsVerdict) -> Value {
    json!({
        "valid": judged.is_valid(),
        "citations_found": judged.citations.len(),
        "violations": judged.violations,
        "warnings": judged.warnings,
        "validated_citations": judged.known,
    })
}

pub(crate) fn budget_fields(budget: &Budget) -> Value {
    json!({
        "mode": "budget",
        "strictness": budget.strictness.word(),
        "budgets": budget.budgets,
        "current_state": budget.standing,
        "headroom": budget.headroom,
        "gate_preview": budget.gate,
        "message": "advice about what may become worse; it permits nothing",
    })
}

/// A budget, and the intent that it is for.
pub fn budget(run_id: &str, budget: &Budget, intent: Option<&Intent>) -> Value {
    let mut value = budget_fields(budget);
    value["run_id"] = json!(short(run_id));
    if let Some(intent) = intent {
        value["intent_id"] = json!(intent.intent_id);
        value["intent_status"] = json!(intent.state.name());
        value["edit_allowed"] = json!(intent.may_edit());
    }
    value
}

/// Which findings a comparison is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Focus {
    #[default]
    All,
    /// Duplicated code.
    Clones,
    /// The shape of functions.
    Structural,
    /// Metrics, and unused code.
    Metrics,
}

impl Focus {
    fn has(self, finding: &Finding) -> bool {
        match (self, finding.family) {
            (Self::All, _)
            | (Self::Clones, Family::Clone)
            | (Self::Structural, Family::Structural)
            | (Self::Metrics, Family::Design | Family::DeadCode) => true,
            (Self::Clones | Self::Structural | Self::Metrics, _) => false,
        }
    }
}

pub fn compared(found: &Compared, focus: Focus) -> Value {
    let mut found = found.clone();
    for findings in [&mut found.delta.regressions, &mut found.delta.improvements] {
        findings.retain(|finding| focus.has(finding));
    }
    found.delta.advisories.retain(|finding| focus.has(finding));
    let mut value = delta_fields(&found.delta);
    value["comparable"] = json!(found.delta.comparable);
    value["before"] = run(&found.before.run_id, found.delta.health_before);
    value["after"] = run(&found.after.run_id, found.delta.health_after);
    value["advisories"] = found
        .delta
        .advisories
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    value["worsened"] = json!(found.delta.worsened);
    value["patch"] = json!(found.delta.patch);
    value
}
