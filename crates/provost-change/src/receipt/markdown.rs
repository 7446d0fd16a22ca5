//! Writes a receipt as Markdown.

use provost_core::foreign_text::one_line;
use serde_json::Value;

pub fn markdown(receipt: &Value) -> String {
    let text = |pointer: &str| match receipt.pointer(pointer) {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => one_line(text),
        Some(other) => other.to_string(),
    };
    let mut page = String::from("# Review receipt\n\n");
    let mut row = |name: &str, value: String| page += &format!("- {name}: {value}\n");
    row("verdict", text("/verdict"));
    row("intent", text("/intent_id"));
    row("analysis before", text("/provenance/before_run_id"));
    row("analysis after", text("/provenance/after_run_id"));
    row("profile", text("/profile"));
    row("contract", text("/patch_contract/status"));
    row("structure", text("/structural_delta/verdict"));
    row(
        "health",
        format!("{} → {}", text("/health/before"), text("/health/after")),
    );
    row("health against the baseline", text("/health/delta"));
    for (heading, pointer) in [
        ("Changed files", "/scope/changed_files"),
        ("New findings", "/structural_delta/regressions"),
        ("Findings that are gone", "/structural_delta/improvements"),
        ("Other changes in the checkout", "/external_changes"),
        ("For a person to decide", "/human_decisions"),
        ("Not claimed", "/claims_not_made"),
    ] {
        let list = receipt.pointer(pointer).and_then(Value::as_array);
        let Some(list) = list.filter(|list| !list.is_empty()) else {
            continue;
        };
        page += &format!("\n## {heading}\n\n");
        for entry in list {
            let line = match (entry.as_str(), entry["message"].as_str()) {
                (Some(text), _) | (None, Some(text)) => one_line(text),
                (None, None) => entry.to_string(),
            };
            page += &format!("- {line}\n");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_reads_as_a_page_and_no_name_adds_a_line() {
        let page = markdown(&json!({
            "verdict": "clean",
            "intent_id": "01\n- verdict: forged",
            "scope": { "changed_files": ["a.py"] },
            "health": { "before": 90, "after": 88, "delta": -1 },
        }));
        assert!(
            page.contains("- verdict: clean\n- intent: 01\\n- verdict: forged\n"),
            "{page}"
        );
        assert!(
            page.contains(
                "- health: 90 → 88\n- health against the baseline: -1\n\n## Changed files"
            ),
            "{page}"
        );
    }
}
