//! The answer to a finish, and the answers about patches without a finish.

use crate::analysis::run::short;
use crate::answer::{Budget, Compared, Finished, Looked};
use crate::finish::claims::{ClaimViolation, ClaimWarning, ClaimsVerdict};
use crate::finish::decide::{FinishStatus, ScopeCheck, StopReason, stopped_at};
use crate::finish::verify::{PatchStatus, Verified};
use crate::intent::{Intent, ScopeStatus, State};
use crate::next_step::{Audience, NextStep};
use crate::payload::payload;
use provost_core::path::RepoPath;
use provost_lens::structure::baseline::triggers;
use provost_lens::structure::budget::{Budgets, Gate, Headroom, Standing, Strictness};
use provost_lens::structure::compare::{Delta, Worsened};
use provost_lens::structure::health::Points;
use provost_lens::structure::patch::Patch;
use provost_lens::structure::profile::Profile;
use provost_lens::structure::{Family, Finding, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hygiene::answer::{ExternalChanges, FinishHygiene};
use crate::receipt::compose::{PatchTrail, Receipt, ReceiptVerdict, StructuralDelta};
use crate::tools::answers::{raw, seen};
use crate::tools::arguments::Shown;

payload! {
    pub struct FinishPayload<'a>(done: &'a Finished, shown: Shown) {
        intent_id: &'a str = &done.intent.intent_id,
        status: FinishStatus = done.status,
        reason: Option<StopReason> = done.reason,
        message: String = done.message(Audience::Tool),
        user_action_required: bool = done.needs_person,
        intent_cleared: bool = done.cleared,
        scope_check: Option<ScopeCheckPayload<'a>> =
            done.check.as_ref().map(|check| ScopeCheckPayload::of(check, &done.intent)),
        verification: Option<JudgedPatch<'a>> =
            done.verified.as_ref().map(|found| finish_verification(done, found)),
        claims: Option<ClaimsPayload<'a>> = done.claims.as_ref().map(ClaimsPayload::of),
        receipt: Option<ReceiptPayload<'a>> =
            done.receipt.as_ref().map(|(receipt, digest)| ReceiptPayload::of(receipt, digest)),
    } optional {
        next_step: Option<String> = (!done.status.is_accepted()).then(|| next_step(done)),
        receipt_error: &'a str = done.receipt_error.as_deref(),
        patch_trail: PatchTrail = done.trail.as_ref().map(|trail| trail.shown(shown.trail)),
        workspace_hygiene_after: FinishHygiene<'a> = FinishHygiene::of(done, shown.hygiene),
        external_changes: ExternalChanges = ExternalChanges::beside(done),
        health_regression_advisory: HealthAdvisory = done.verified.as_ref()
            .and_then(Verified::health_fell).filter(|_| done.status.is_accepted())
            .map(HealthAdvisory::of),
        summary: FinishSummary = done.verified.as_ref().map(|it| FinishSummary::of(done, it)),
    }
}

fn next_step(done: &Finished) -> Option<String> {
    done.next_step
        .as_ref()
        .map(|step| step.text(Audience::Tool))
}

/// A judgement as the answer to a finish shows it.
fn finish_verification<'a>(done: &'a Finished, found: &'a Verified) -> JudgedPatch<'a> {
    let run = |run: &'a Option<(String, Report)>| {
        let (run_id, report) = run.as_ref()?;
        Some(RunHealth::of(
            run_id,
            report.health.as_ref().map(|health| health.points),
        ))
    };
    let runs = (run(&done.before), run(&done.after));
    let mut answer = JudgedPatch::of(found, done.strictness, runs);
    answer.intent_id = Some(&done.intent.intent_id);
    if let Some(asked) = done
        .offered
        .strictness
        .filter(|asked| *asked < done.strictness)
    {
        answer.message += &format!(
            "; the strictness `{}` has no effect: the start has `{}`, and a finish may only \
             tighten it",
            asked.word(),
            done.strictness.word(),
        );
    }
    answer.scope_check = Some(
        done.check
            .as_ref()
            .map(|check| ShownCheck::Status(check.status)),
    );
    answer.next_step = next_step(done).filter(|_| !done.status.is_accepted());
    answer
}

payload! {
    pub struct HealthAdvisory(fell: Points) {
        health_delta: Points = fell,
        message: &'static str = "the health of the code fell; that alone refuses nothing",
    }
}

payload! {
    pub struct ReceiptPayload<'a>(receipt: &'a Receipt, digest: &'a str) {
        run_id: &'a str = &receipt.run_id,
        format: &'static str = "markdown",
        receipt_version: &'a str = &receipt.receipt_version,
        verdict: ReceiptVerdict = receipt.verdict,
        receipt_digest: ReceiptDigest<'a> = ReceiptDigest::of(digest),
        receipt_retrieval: ReceiptRetrieval<'a> = ReceiptRetrieval::of(digest),
        content: String = receipt.markdown(),
    }
}

payload! {
    pub struct ReceiptDigest<'a>(digest: &'a str) {
        kind: &'static str = "receipt",
        algorithm: &'static str = "sha256",
        digest_version: &'static str = "1",
        value: &'a str = digest,
    }
}

payload! {
    pub struct ReceiptRetrieval<'a>(digest: &'a str) {
        tool: &'static str = "get_review_receipt",
        receipt_digest: &'a str = digest,
    }
}

payload! {
    pub struct ScopeCheckPayload<'a>(check: &'a ScopeCheck, intent: &'a Intent) {
        status: ScopeStatus = check.status,
        intent_id: &'a str = &intent.intent_id,
        declared_scope: Vec<String> = seen(&intent.root, &check.declared),
        actual_changed_files: Vec<String> = raw(&intent.root, &check.actual),
        unexpected_files: Vec<String> = raw(&intent.root, &check.unexpected),
        forbidden_touched: Vec<String> = raw(&intent.root, &check.forbidden),
        expanded_files: Vec<String> = raw(&intent.root, &check.expanded),
        untouched_in_declared: Vec<String> = seen(&intent.root, &check.untouched),
        required_action: &'static str = match check.status {
            ScopeStatus::Clean | ScopeStatus::Expanded => "none",
            ScopeStatus::Violated => "undo_or_redeclare",
        },
        message: &'static str = match check.status {
            ScopeStatus::Clean => "everything that was touched is declared",
            ScopeStatus::Expanded => {
                "everything that was touched is declared, some of it as related only"
            }
            ScopeStatus::Violated => {
                "something was touched that is not declared, or that is forbidden"
            }
        },
    }
}

payload! {
    pub struct FinishSummary(done: &Finished, found: &Verified) {
        status: PatchStatus = found.status,
        scope_status: Option<ScopeStatus> = done.check.as_ref().map(|check| check.status),
        verification_profile: Profile = found.profile,
        structural_verdict: &'static str = found.delta.verdict.word(),
        health_delta: Option<Points> = found.delta.health_delta,
        regressions: usize = found.delta.regressions.len(),
        worsened_symbols: usize = found.delta.worsened.len(),
        claims: &'static str = match (&done.claims, done.offered.claims) {
            (_, false) => "skipped_no_claims_text",
            (None, true) => "skipped_not_recommended",
            (Some(judged), true) if judged.is_valid() => "valid",
            (Some(_), true) => "violated",
        },
        review_note_present: bool = done.offered.review,
        receipt: &'static str = match (&done.receipt, &done.receipt_error) {
            (Some(_), _) => "created",
            (None, Some(_)) => "failed",
            (None, None) => "skipped",
        },
        intent_cleared: bool = done.cleared,
        workspace_dirty_paths: Option<usize> = done.workspace.as_ref().map(|it| it.dirty.len()),
        workspace_hygiene_blocked: bool = false,
    }
}

payload! {
    pub struct RunHealth<'a>(run_id: &'a str, health: Option<Points>) {
        run_id: &'a str = short(run_id),
        health: Option<Points> = health,
    }
}

/// A scope check in one word, or in whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ShownCheck<'a> {
    Status(ScopeStatus),
    Whole(ScopeCheckPayload<'a>),
}

/// The checks that every patch gets, and those that need two comparable analyses.
const CHECKS: [&str; 6] = [
    "scope",
    "forbidden",
    "state_artifacts",
    "structural_delta",
    "gates",
    "regressions",
];

payload! {
    pub struct JudgedPatch<'a>(
        found: &'a Verified,
        strictness: Strictness,
        runs: (Option<RunHealth<'a>>, Option<RunHealth<'a>>),
    ) {
        mode: &'static str = "verify",
        status: PatchStatus = found.status,
        reason: Option<StopReason> = found.reason,
        before: Option<RunHealth<'a>> = runs.0,
        after: Option<RunHealth<'a>> = runs.1,
        strictness: Strictness = strictness,
        structural_delta: DeltaPayload = DeltaPayload::of(&found.delta),
        intent_regressions: &'a [String] = &found.intent_regressions,
        external_regressions: &'a [String] = &found.external_regressions,
        worsened: &'a [Worsened] = &found.delta.worsened,
        intent_worsened: usize = found.intent_worsened,
        external_worsened: usize = found.external_worsened,
        before_gate: Option<&'a Gate> = found.gates.as_ref().map(|(before, _)| before),
        gate_preview: Option<&'a Gate> = found.gates.as_ref().map(|(_, after)| after),
        gate_worsened: bool = found.gates.as_ref()
            .is_some_and(|(before, after)| !before.would_fail && after.would_fail),
        intent_caused_gate_failure: bool = found.caused_gate_failure,
        baseline_abuse: BaselineAbuse = BaselineAbuse::of(triggers(&found.violations)),
        contract_violations: &'a [&'static str] = &found.violations,
        blocking_violations: &'a [&'static str] = &found.blocking,
        verification_profile: Profile = found.profile,
        profile_reason: &'static str = "by the paths that were touched",
        python_source_touched: bool = found.profile == Profile::PythonStructural,
        after_run_required: bool = found.profile.after_run_required()
            || found.reason == Some(StopReason::NoAfterRun),
        checks_performed: &'static [&'static str] =
            if found.delta.comparable { &CHECKS } else { &CHECKS[..3] },
        checks_not_applicable: &'static [&'static str] =
            if found.delta.comparable { &[] } else { &CHECKS[3..] },
        claim_validation_recommended: bool = found.recommends_claims(),
        message: String = match found.status {
            PatchStatus::Accepted => "nothing of this change is worse than the contract allows",
            PatchStatus::AcceptedWithExternalChanges => {
                "nothing of this change is worse; something else is"
            }
            PatchStatus::Unverified => "the change is not verified yet",
            PatchStatus::Violated => "the change breaks its contract",
        }.to_owned(),
    } optional {
        limitations: [ParseLimitation<'a>; 1] = (!found.delta.parse_worsened.is_empty())
            .then(|| [ParseLimitation::of(&found.delta.parse_worsened)]),
        health_regression_advisory: HealthAdvisory = found.health_fell()
            .filter(|_| found.recommends_claims()).map(HealthAdvisory::of),
        intent_id: &'a str = None,
        scope_check: Option<ShownCheck<'a>> = None,
        next_step: String = None,
    }
}

payload! {
    pub struct BaselineAbuse(triggers: Vec<&'static str>) {
        detected: bool = !triggers.is_empty(),
        triggers: Vec<&'static str> = triggers,
    }
}

payload! {
    pub struct ParseLimitation<'a>(paths: &'a [RepoPath]) {
        kind: &'static str = "parse_worsened",
        paths: &'a [RepoPath] = paths,
        message: &'static str =
            "these files could be read better before; that alone refuses nothing",
    }
}

payload! {
    pub struct DeltaPayload(delta: &Delta) {
        #[serde(flatten)]
        structure: StructuralDelta = StructuralDelta::of(delta),
        debt_delta: Option<Points> = delta.debt_delta,
    }
}

/// A judgement without a finish.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LookPayload<'a> {
    Refused(NotJudged<'a>),
    Judged(Box<JudgedPatch<'a>>),
}

payload! {
    /// An intent that may not edit is not judged.
    pub struct NotJudged<'a>(intent: Option<&'a Intent>, to: Audience) {
        mode: &'static str = "verify",
        status: FinishStatus = not_judged(intent).0,
        reason: StopReason = not_judged(intent).1,
        intent_id: Option<&'a str> = intent.map(|intent| intent.intent_id.as_str()),
        next_step: String = NextStep::After(not_judged(intent).1).text(to),
    }
}

fn not_judged(intent: Option<&Intent>) -> (FinishStatus, StopReason) {
    stopped_at(intent.map_or(State::Refused, |intent| intent.state))
}

impl<'a> LookPayload<'a> {
    pub fn of(found: &'a Looked, to: Audience) -> Self {
        let Some(verified) = &found.verified else {
            return Self::Refused(NotJudged::of(found.intent.as_ref(), to));
        };
        let run = |run: &'a Option<(String, Option<Points>)>| {
            run.as_ref()
                .map(|(run_id, health)| RunHealth::of(run_id, *health))
        };
        let runs = (run(&found.before), run(&found.after));
        let mut answer = JudgedPatch::of(verified, found.strictness, runs);
        if let Some(intent) = &found.intent {
            answer.intent_id = Some(&intent.intent_id);
            let check = found.check.as_ref();
            let whole = |check| ShownCheck::Whole(ScopeCheckPayload::of(check, intent));
            answer.scope_check = Some(check.map(whole));
        }
        answer.next_step = verified
            .reason
            .map(|reason| NextStep::After(reason).text(to));
        Self::Judged(Box::new(answer))
    }
}

payload! {
    pub struct ClaimsPayload<'a>(judged: &'a ClaimsVerdict) {
        valid: bool = judged.is_valid(),
        citations_found: usize = judged.citations.len(),
        violations: &'a [ClaimViolation] = &judged.violations,
        warnings: &'a [ClaimWarning] = &judged.warnings,
        validated_citations: &'a [String] = &judged.known,
    }
}

payload! {
    pub struct BudgetPayload<'a>(budget: &'a Budget) {
        mode: &'static str = "budget",
        strictness: Strictness = budget.strictness,
        budgets: &'a Budgets = &budget.budgets,
        current_state: &'a Standing = &budget.standing,
        headroom: &'a Headroom = &budget.headroom,
        gate_preview: &'a Gate = &budget.gate,
        message: &'static str = "advice about what may become worse; it permits nothing",
    }
}

payload! {
    /// A budget, and the intent that it is for.
    pub struct RunBudget<'a>(run_id: &'a str, budget: &'a Budget, intent: Option<&'a Intent>) {
        #[serde(flatten)]
        budget: BudgetPayload<'a> = BudgetPayload::of(budget),
        run_id: &'a str = short(run_id),
    } optional {
        intent_id: &'a str = intent.map(|intent| intent.intent_id.as_str()),
        intent_status: State = intent.map(|intent| intent.state),
        edit_allowed: bool = intent.map(Intent::may_edit),
    }
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

    fn ids(self, findings: &[Finding]) -> Vec<String> {
        let found = findings.iter().filter(|finding| self.has(finding));
        found.map(|finding| finding.id.clone()).collect()
    }
}

payload! {
    pub struct ComparedRuns<'a>(found: &'a Compared, focus: Focus) {
        #[serde(flatten)]
        delta: DeltaPayload = DeltaPayload {
            structure: StructuralDelta {
                regressions: focus.ids(&found.delta.regressions),
                improvements: focus.ids(&found.delta.improvements),
                ..StructuralDelta::of(&found.delta)
            },
            debt_delta: found.delta.debt_delta,
        },
        comparable: bool = found.delta.comparable,
        before: RunHealth<'a> = RunHealth::of(&found.before.run_id, found.delta.health_before),
        after: RunHealth<'a> = RunHealth::of(&found.after.run_id, found.delta.health_after),
        advisories: Vec<String> = focus.ids(&found.delta.advisories),
        worsened: &'a [Worsened] = &found.delta.worsened,
        patch: Option<&'a Patch> = found.delta.patch.as_ref(),
    }
}
