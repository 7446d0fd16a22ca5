//! Writes SARIF 2.1.0 about a run, as code scanners and their viewers read it.
//!
//! A rule is a code of Provost, with its page as help. A result is one refusal. It has a location
//! if it is about a file of the repository.

use provost_core::code::Code;
use provost_core::run::State;
use serde_json::{Value, json};

use crate::why::{Refusal, Row, Why};

pub const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The document about a finished run, and the reasons for its verdict.
pub fn render(state: &State, why: &Why) -> Value {
    let mut codes: Vec<Code> = why.refusals.iter().map(|refusal| refusal.code).collect();
    if !why.network.is_empty() {
        codes.push(Code::NetworkRefused);
    }
    codes.sort_unstable();
    codes.dedup();
    let rule = |code: Code| {
        codes
            .iter()
            .position(|one| *one == code)
            .unwrap_or_default()
    };
    let mut results = Vec::new();
    for refusal in &why.refusals {
        let results_of = refusal.rows.iter();
        results.extend(results_of.map(|row| result(refusal, row, rule(refusal.code))));
    }
    // No gate refuses a run because of a network request that was refused.
    let network = Refusal {
        by: "network".to_owned(),
        code: Code::NetworkRefused,
        reason: String::new(),
        rows: Vec::new(),
    };
    for row in &why.network {
        let mut noted = result(&network, row, rule(Code::NetworkRefused));
        noted["level"] = json!("note");
        results.push(noted);
    }
    let accepted = why.verdict.as_ref().is_some_and(|verdict| verdict.allow);
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "provost",
                "version": state.opened.version,
                "semanticVersion": state.opened.version,
                "rules": codes.iter().map(|code| described(*code)).collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": format!("provost/{}", state.names.run_id) },
            "invocations": [{
                "executionSuccessful": true,
                "startTimeUtc": state.began,
                "endTimeUtc": state.latest,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "accepted": accepted,
                "base_commit": state.opened.base_commit,
                "tree": state.captured.as_ref().map(|captured| &captured.tree),
                "contract_sha256": state.opened.contract_sha256,
            },
        }],
    })
}

fn described(code: Code) -> Value {
    let page = code.page();
    let summary = page.lines().nth(2).unwrap_or_default();
    json!({
        "id": code,
        "name": code,
        "shortDescription": { "text": summary },
        "fullDescription": { "text": summary },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": "error" },
    })
}

fn result(refusal: &Refusal, row: &Row, rule: usize) -> Value {
    let about = row.about.as_deref().unwrap_or_default();
    let text = match about {
        "" => row.problem.clone(),
        about => format!("`{about}` {}", row.problem),
    };
    let mut result = json!({
        "ruleId": refusal.code,
        "ruleIndex": rule,
        "level": "error",
        "kind": "fail",
        "message": { "text": text },
        "properties": {
            "by": refusal.by,
            "rule": row.rule,
            "contract": row.contract,
            "widening": row.widening,
        },
    });
    let about_files = [Code::DiffRefused, Code::SecretInPatch, Code::TreeChanged];
    if about_files.contains(&refusal.code) && !about.is_empty() {
        result["locations"] = json!([{ "physicalLocation": {
            "artifactLocation": { "uri": uri(about), "uriBaseId": "%SRCROOT%" },
        } }]);
    }
    result
}

/// A path as a relative reference.
pub fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let mut text = String::new();
    for byte in path.bytes() {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_that_leads_nowhere_else() {
        assert_eq!(uri("src/größe 1.txt"), "src/gr%C3%B6%C3%9Fe%201.txt");
        assert_eq!(uri("a:b?c#d"), "a%3Ab%3Fc%23d");
    }
}
