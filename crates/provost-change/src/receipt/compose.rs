//! Two documents: the receipt of a change (its verdict), and its trail (what it touched).

use serde::{Deserialize, Serialize};

use crate::analysis::run::short;
use crate::finish::decide::{FinishStatus, ScopeCheck, StopReason};
use crate::finish::verify::{PatchStatus, Verified};
use crate::intent::{Intent, ScopeStatus, utc};
use crate::payload::payload;
use crate::tools::answers::{Detail, raw, seen};
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::words;
use provost_lens::structure::budget::Strictness;
use provost_lens::structure::compare::{Delta, DeltaVerdict, Moved};
use provost_lens::structure::health::Points;
use provost_lens::structure::profile::Profile;

pub const VERSION: &str = "1";

/// The largest number of paths that a summary lists.
pub const SHOWN: usize = 50;

#[derive(Clone, Copy)]
pub struct ReceiptFacts<'a> {
    pub intent: &'a Intent,
    /// The analysis that the receipt is about: from after the change, where there is one.
    pub run_id: &'a str,
    pub after_run_id: Option<&'a str>,
    /// In milliseconds since 1970.
    pub at: i64,
    /// How the change ended.
    pub status: FinishStatus,
    pub check: &'a ScopeCheck,
    pub verified: &'a Verified,
    pub strictness: Strictness,
    /// Uncommitted changes that are not part of this change.
    pub external: &'a [&'a RawPath],
    /// Paths that the agent named and did not change.
    pub not_changed: &'a [RawPath],
    /// The digest of the checkout that was judged.
    pub workspace_digest: &'a str,
    /// The health of the baseline that the analysis from after trusts.
    pub baseline_health: Option<Points>,
    /// The tree of the commit in it.
    pub tree: Option<&'a str>,
    /// What the agent wrote about the change for people.
    pub review: Option<&'a str>,
}

words! {
    /// The summary of a receipt; it is no gate.
    #[derive(Deserialize)]
    pub enum ReceiptVerdict {
        Clean = "clean",
        NeedsAttention = "needs_attention",
        Incomplete = "incomplete",
    }
}

fn verdict(facts: &ReceiptFacts<'_>) -> ReceiptVerdict {
    let violated = facts.verified.status == PatchStatus::Violated;
    if violated || !decisions(facts).is_empty() {
        ReceiptVerdict::NeedsAttention
    } else if facts.check.status != ScopeStatus::Violated && facts.status.is_accepted() {
        ReceiptVerdict::Clean
    } else {
        ReceiptVerdict::Incomplete
    }
}

payload! {
    /// The receipt, without its digest.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Receipt(facts: &ReceiptFacts<'_>) {
        receipt_version: String = VERSION.to_owned(),
        verdict: ReceiptVerdict = verdict(facts),
        created_at_utc: String = utc(facts.at),
        run_id: String = short(facts.run_id).to_owned(),
        intent_id: String = facts.intent.intent_id.clone(),
        provenance: Provenance = Provenance::of(facts),
        profile: Profile = facts.verified.profile,
        scope: ReceiptScope = ReceiptScope::of(facts),
        reviewed_evidence: ReviewedEvidence = ReviewedEvidence::of(facts.review),
        structural_delta: StructuralDelta = StructuralDelta::of(&facts.verified.delta),
        health: ReceiptHealth = ReceiptHealth::of(&facts.verified.delta, facts.baseline_health),
        external_changes: Vec<RawPath> =
            facts.external.iter().take(SHOWN).copied().cloned().collect(),
        human_decisions: Vec<HumanDecision> = decisions(facts),
        claims_not_made: Vec<String> = [
            "that tests pass: nothing was run",
            "that the change does what it is meant to do",
            "that files outside of the evidence are unchanged, beyond what git shows",
        ].map(str::to_owned).to_vec(),
    } optional {
        blast_radius: RadiusSummary = Some(RadiusSummary::of(&facts.intent.radius_level)),
        patch_contract: PatchContract = Some(PatchContract::of(facts)),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Provenance(facts: &ReceiptFacts<'_>) {
        before_run_id: String = facts.intent.run_id.clone(),
        before_report_digest: String = facts.intent.report_digest.clone(),
        after_run_id: Option<String> = facts.after_run_id.map(str::to_owned),
        workspace_digest: String = facts.workspace_digest.to_owned(),
        head_tree: Option<String> = facts.tree.map(str::to_owned),
        agent_label: String = facts.intent.agent_label.clone(),
        root: String = facts.intent.root.clone(),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReceiptScope(facts: &ReceiptFacts<'_>) {
        status: ScopeStatus = facts.check.status,
        allowed_files: Vec<String> =
            seen(&facts.intent.root, &facts.intent.scope.allowed_files),
        allowed_related: Vec<String> =
            seen(&facts.intent.root, &facts.intent.scope.allowed_related),
        changed_files: Vec<String> = raw(&facts.intent.root, &facts.check.actual),
        unexpected_files: Vec<RawPath> = facts.check.unexpected.clone(),
        forbidden_touched: Vec<RawPath> = facts.check.forbidden.clone(),
        expanded_files: Vec<RawPath> = facts.check.expanded.clone(),
        evidence_not_changed: Vec<RawPath> = facts.not_changed.to_vec(),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RadiusSummary(level: &str) {
        radius_level: String = level.to_owned(),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReviewedEvidence(review: Option<&str>) {
        review_text: Option<String> = review.map(str::to_owned),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PatchContract(facts: &ReceiptFacts<'_>) {
        status: FinishStatus = facts.status,
        verification_status: PatchStatus = facts.verified.status,
        reason: Option<StopReason> = facts.verified.reason,
        strictness: Strictness = facts.strictness,
        contract_violations: Vec<String> =
            facts.verified.violations.iter().map(|&one| one.to_owned()).collect(),
    }
}

payload! {
    #[derive(Deserialize)]
    pub struct StructuralDelta(delta: &Delta) {
        verdict: DeltaVerdict = delta.verdict,
        regressions: Vec<String> = delta.regressions.iter().map(|one| one.id.clone()).collect(),
        improvements: Vec<String> = delta.improvements.iter().map(|one| one.id.clone()).collect(),
        moved: Vec<Moved> = delta.moved.clone(),
        health_delta: Option<Points> = delta.health_delta,
    }
}

payload! {
    /// How far the repository drifted from its baseline; the delta of the patch is in
    /// `structural_delta`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReceiptHealth(patch: &Delta, accepted: Option<Points>) {
        before: Option<Points> = patch.health_before,
        after: Option<Points> = patch.health_after,
        baseline: Option<Points> = accepted,
        delta: Option<Points> =
            patch.health_after.zip(accepted).map(|(after, accepted)| after.minus(accepted)),
    }
}

payload! {
    /// What a person should decide about.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HumanDecision(kind: &str, message: String) {
        kind: String = kind.to_owned(),
        message: String = message,
    }
}

fn decisions(facts: &ReceiptFacts<'_>) -> Vec<HumanDecision> {
    let (verified, unchanged) = (facts.verified, facts.not_changed.len());
    let fell = verified.health_fell().map(|fell| {
        let message = format!("the health changed by {}", fell.number());
        HumanDecision::of("health_regression", message)
    });
    let violated = (!verified.violations.is_empty())
        .then(|| HumanDecision::of("violations", verified.violations.join(", ")));
    let unchanged = (unchanged > 0).then(|| {
        let message = format!("{unchanged} paths of the evidence did not change");
        HumanDecision::of("evidence_not_changed", message)
    });
    fell.into_iter().chain(violated).chain(unchanged).collect()
}

/// The digest of a receipt or a trail.
pub fn digest(document: &impl Serialize) -> String {
    let value = serde_json::to_value(document).unwrap_or_default();
    sha256(json::canonical(&value).as_bytes())
}

/// The key under which the evidence about a run is found; a prefix of the id is enough.
pub fn by_run(run_id: &str) -> String {
    format!("run/{}", short(&run_id.trim().to_ascii_lowercase()))
}

/// A path relative to the analysed root; a path outside of it begins with `..`.
pub fn inside(root: &str, path: &str) -> String {
    if root.is_empty() {
        return path.to_owned();
    }
    let below = path
        .strip_prefix(root)
        .and_then(|rest| rest.strip_prefix('/'));
    match below {
        Some(below) => below.to_owned(),
        None => "../".repeat(root.split('/').count()) + path,
    }
}

payload! {
    /// What was declared and what was touched.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PatchTrail(intent: &Intent, check: &ScopeCheck, verified: Option<&Verified>) {
        schema_version: String = VERSION.to_owned(),
        intent_id: String = intent.intent_id.clone(),
        intent_description: String = intent.intent.clone(),
        scope_check_status: ScopeStatus = check.status,
        verification_status: Option<PatchStatus> = verified.map(|one| one.status),
        counts: TrailCounts = TrailCounts::of(check),
        truncation: TrailTruncation = TrailTruncation::of(check),
        evidence: TrailEvidence = TrailEvidence::of(intent),
        retrieval_policy: String =
            "kept with the evidence of the change; get_patch_trail reads it".to_owned(),
    } optional {
        declared_files: Vec<String> = Some(seen(&intent.root, check.declared.iter().take(SHOWN))),
        changed_files: Vec<String> = Some(raw(&intent.root, check.actual.iter().take(SHOWN))),
        unexpected_files: Vec<String> =
            Some(raw(&intent.root, check.unexpected.iter().take(SHOWN))),
        forbidden_touched: Vec<String> =
            Some(raw(&intent.root, check.forbidden.iter().take(SHOWN))),
        untouched_in_declared: Vec<String> =
            Some(seen(&intent.root, check.untouched.iter().take(SHOWN))),
        patch_trail_digest: String = None,
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TrailCounts(check: &ScopeCheck) {
        declared: usize = check.declared.len(),
        changed: usize = check.actual.len(),
        unexpected: usize = check.unexpected.len(),
        forbidden_touched: usize = check.forbidden.len(),
        untouched_in_declared: usize = check.untouched.len(),
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TrailTruncation(check: &ScopeCheck) {
        declared_files: bool = check.declared.len() > SHOWN,
        changed_files: bool = check.actual.len() > SHOWN,
        unexpected_files: bool = check.unexpected.len() > SHOWN,
    }
}

payload! {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TrailEvidence(intent: &Intent) {
        report_digest: String = intent.report_digest.clone(),
        run_id: String = short(&intent.run_id).to_owned(),
    }
}

impl PatchTrail {
    /// The trail of a change, with its digest.
    pub fn sealed(intent: &Intent, check: &ScopeCheck, verified: Option<&Verified>) -> Self {
        let trail = Self::of(intent, check, verified);
        Self {
            patch_trail_digest: Some(digest(&trail)),
            ..trail
        }
    }

    /// The trail, with its lists only in full detail.
    #[must_use]
    pub fn shown(&self, detail: Detail) -> Self {
        let trail = self.clone();
        match detail {
            Detail::Full => trail,
            Detail::Summary | Detail::Normal => Self {
                declared_files: None,
                changed_files: None,
                unexpected_files: None,
                forbidden_touched: None,
                untouched_in_declared: None,
                ..trail
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_the_root_that_was_analysed() {
        let cases = [
            ("", "a/b", "a/b"),
            ("sub", "sub/a", "a"),
            ("sub", "subway/a", "../subway/a"),
            ("x/y", "x/z", "../../x/z"),
        ];
        for (root, path, want) in cases {
            assert_eq!(inside(root, path), want, "{path} from {root}");
        }
    }
}
