//! Writes a receipt as Markdown.

use provost_core::foreign_text::one_line;

use crate::receipt::compose::Receipt;
use provost_lens::structure::health::Points;

impl Receipt {
    pub fn markdown(&self) -> String {
        let points = |points: Option<Points>| match points {
            Some(points) => points.number().to_string(),
            None => "none".to_owned(),
        };
        let health = &self.health;
        let contract = self.patch_contract.as_ref();
        let mut page = String::from("# Review receipt\n\n");
        let mut row = |name: &str, value: &str| page += &format!("- {name}: {}\n", one_line(value));
        row("verdict", self.verdict.name());
        row("intent", &self.intent_id);
        row("analysis before", &self.provenance.before_run_id);
        let after = self.provenance.after_run_id.as_deref();
        row("analysis after", after.unwrap_or("none"));
        row("profile", self.profile.word());
        row("contract", contract.map_or("none", |it| it.status.name()));
        row("structure", self.structural_delta.verdict.word());
        let course = format!("{} → {}", points(health.before), points(health.after));
        row("health", &course);
        row("health against the baseline", &points(health.delta));
        let external = self.external_changes.iter().map(ToString::to_string);
        let decisions = self.human_decisions.iter().map(|one| one.message.clone());
        for (heading, list) in [
            ("Changed files", &self.scope.changed_files),
            ("New findings", &self.structural_delta.regressions),
            (
                "Findings that are gone",
                &self.structural_delta.improvements,
            ),
            ("Other changes in the checkout", &external.collect()),
            ("For a person to decide", &decisions.collect()),
            ("Not claimed", &self.claims_not_made),
        ] {
            if !list.is_empty() {
                page += &format!("\n## {heading}\n\n");
            }
            for entry in list {
                page += &format!("- {}\n", one_line(entry));
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_reads_as_a_page_and_no_name_adds_a_line() {
        let receipt: Receipt = provost_core::json::from_value(json!({
            "receipt_version": "1", "verdict": "clean", "created_at_utc": "", "run_id": "",
            "intent_id": "01\n- verdict: forged",
            "provenance": {
                "before_run_id": "b", "before_report_digest": "", "after_run_id": null,
                "workspace_digest": "", "head_tree": null, "agent_label": "", "root": "",
            },
            "profile": "python_structural",
            "scope": {
                "status": "clean", "allowed_files": [], "allowed_related": [],
                "changed_files": ["a.py"], "unexpected_files": [], "forbidden_touched": [],
                "expanded_files": [], "evidence_not_changed": [],
            },
            "reviewed_evidence": { "review_text": null },
            "structural_delta": {
                "verdict": "stable", "regressions": [], "improvements": [], "moved": [],
                "health_delta": -2,
            },
            "health": { "before": 90, "after": 88, "baseline": 89, "delta": -1 },
            "external_changes": [], "human_decisions": [], "claims_not_made": [],
        }))
        .unwrap();
        let page = receipt.markdown();
        assert!(
            page.contains("- verdict: clean\n- intent: 01\\n- verdict: forged\n"),
            "{page}"
        );
        assert!(page.contains("- contract: none\n"), "{page}");
        assert!(
            page.contains(
                "- health: 90 → 88\n- health against the baseline: -1\n\n## Changed files"
            ),
            "{page}"
        );
    }
}
