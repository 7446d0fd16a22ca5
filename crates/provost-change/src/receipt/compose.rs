//! Writes two documents: the receipt of a change (its verdict), and its trail (what it touched).

use serde_json::{Map, Value, json};

use crate::analysis::run::short;
use crate::finish::decide::{FinishStatus, ScopeCheck};
use crate::finish::verify::{self, Verified};
use crate::intent::{Intent, ScopeStatus, utc};
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::{RawPath, RepoPath};
use provost_lens::structure::budget::Strictness;
use provost_lens::structure::compare::Delta;
use provost_lens::structure::health::Points;

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

/// The summary of a receipt; it is no gate.
fn verdict(facts: &ReceiptFacts<'_>, decisions: &[Value]) -> &'static str {
    if facts.verified.status == verify::PatchStatus::Violated || !decisions.is_empty() {
        "needs_attention"
    } else if facts.check.status != ScopeStatus::Violated && facts.status.is_accepted() {
        "clean"
    } else {
        "incomplete"
    }
}

/// The receipt, without its digest.
pub fn compose(facts: &ReceiptFacts<'_>) -> Value {
    let verified = facts.verified;
    let delta = &verified.delta;
    let decisions = decisions(facts);
    json!({
        "receipt_version": VERSION,
        "verdict": verdict(facts, &decisions),
        "created_at_utc": utc(facts.at),
        "run_id": short(facts.run_id),
        "intent_id": facts.intent.intent_id,
        "provenance": {
            "before_run_id": facts.intent.run_id,
            "before_report_digest": facts.intent.report_digest,
            "after_run_id": facts.after_run_id,
            "workspace_digest": facts.workspace_digest,
            "head_tree": facts.tree,
            "agent_label": facts.intent.agent_label,
            "root": facts.intent.root,
        },
        "profile": verified.profile.word(),
        "scope": {
            "status": facts.check.status.name(),
            "allowed_files": inner(&facts.intent.root, &facts.intent.scope.allowed_files),
            "allowed_related": inner(&facts.intent.root, &facts.intent.scope.allowed_related),
            "changed_files": facts.check.actual.iter()
                .map(|path| inside(&facts.intent.root, &path.to_string())).collect::<Vec<_>>(),
            "unexpected_files": facts.check.unexpected,
            "forbidden_touched": facts.check.forbidden,
            "expanded_files": facts.check.expanded,
            "evidence_not_changed": facts.not_changed,
        },
        "blast_radius": { "radius_level": facts.intent.radius_level },
        "reviewed_evidence": { "review_text": facts.review },
        "patch_contract": {
            "status": facts.status.name(),
            "verification_status": verified.status.name(),
            "reason": verified.reason,
            "strictness": facts.strictness.word(),
            "contract_violations": verified.violations,
        },
        "structural_delta": structure(delta),
        "health": health(facts),
        "external_changes": facts.external.iter().take(SHOWN).collect::<Vec<_>>(),
        "human_decisions": decisions,
        "claims_not_made": [
            "that tests pass: nothing was run",
            "that the change does what it is meant to do",
            "that files outside of the evidence are unchanged, beyond what git shows",
        ],
    })
}

fn structure(delta: &Delta) -> Value {
    json!({
        "verdict": delta.verdict.word(),
        "regressions": delta.regressions.iter().map(|one| &one.id).collect::<Vec<_>>(),
        "improvements": delta.improvements.iter().map(|one| &one.id).collect::<Vec<_>>(),
        "moved": delta.moved,
        "health_delta": delta.health_delta.map(Points::number),
    })
}

/// How far the repository drifted from its baseline; the delta of the patch is in
/// `structural_delta`.
fn health(facts: &ReceiptFacts<'_>) -> Value {
    let (delta, baseline) = (&facts.verified.delta, facts.baseline_health);
    let drift = delta.health_after.zip(baseline);
    json!({
        "before": delta.health_before.map(Points::number),
        "after": delta.health_after.map(Points::number),
        "baseline": baseline.map(Points::number),
        "delta": drift.map(|(after, baseline)| after.minus(baseline).number()),
    })
}

/// What a person should decide about.
fn decisions(facts: &ReceiptFacts<'_>) -> Vec<Value> {
    let mut found = Vec::new();
    let mut add = |kind: &str, words: String| found.push(json!({ "kind": kind, "message": words }));
    if let Some(fell) = facts.verified.health_fell() {
        add(
            "health_regression",
            format!("the health changed by {}", fell.number()),
        );
    }
    if !facts.verified.violations.is_empty() {
        add("violations", facts.verified.violations.join(", "));
    }
    if !facts.not_changed.is_empty() {
        let count = facts.not_changed.len();
        add(
            "evidence_not_changed",
            format!("{count} paths of the evidence did not change"),
        );
    }
    found
}

/// The digest of a receipt or a trail.
pub fn digest(document: &Value) -> String {
    sha256(json::canonical(document).as_bytes())
}

/// The key under which the evidence about a run is found; a prefix of the id is enough.
pub fn by_run(run_id: &str) -> String {
    format!("run/{}", short(&run_id.trim().to_ascii_lowercase()))
}

/// Paths relative to the analysed root.
pub fn inner(root: &str, paths: &[RepoPath]) -> Vec<String> {
    paths
        .iter()
        .map(|path| inside(root, path.as_str()))
        .collect()
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

/// The trail of a change: what was declared and what was touched, with its digest.
pub fn trail(intent: &Intent, check: &ScopeCheck, verified: Option<&Verified>) -> Value {
    let list = |paths: &[RawPath]| -> Vec<String> {
        let text = |path: &RawPath| inside(&intent.root, &path.to_string());
        paths.iter().take(SHOWN).map(text).collect()
    };
    let declared = inner(&intent.root, &check.declared);
    let untouched = inner(&intent.root, &check.untouched);
    let mut trail = Map::new();
    let mut put = |name: &str, value: Value| trail.insert(name.to_owned(), value);
    put("schema_version", json!(VERSION));
    put("intent_id", json!(intent.intent_id));
    put("intent_description", json!(intent.intent));
    put("scope_check_status", json!(check.status.name()));
    put(
        "verification_status",
        json!(verified.map(|one| one.status.name())),
    );
    put(
        "declared_files",
        json!(declared.iter().take(SHOWN).collect::<Vec<_>>()),
    );
    put("changed_files", json!(list(&check.actual)));
    put("unexpected_files", json!(list(&check.unexpected)));
    put("forbidden_touched", json!(list(&check.forbidden)));
    put(
        "untouched_in_declared",
        json!(untouched.iter().take(SHOWN).collect::<Vec<_>>()),
    );
    put(
        "counts",
        json!({
            "declared": declared.len(),
            "changed": check.actual.len(),
            "unexpected": check.unexpected.len(),
            "forbidden_touched": check.forbidden.len(),
            "untouched_in_declared": untouched.len(),
        }),
    );
    put(
        "truncation",
        json!({
            "declared_files": declared.len() > SHOWN,
            "changed_files": check.actual.len() > SHOWN,
            "unexpected_files": check.unexpected.len() > SHOWN,
        }),
    );
    put(
        "evidence",
        json!({ "report_digest": intent.report_digest, "run_id": short(&intent.run_id) }),
    );
    put(
        "retrieval_policy",
        json!("kept with the evidence of the change; get_patch_trail reads it"),
    );
    let mut trail = Value::Object(trail);
    let value = digest(&trail);
    trail["patch_trail_digest"] = json!(value);
    trail
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
