//! Seals a record of a request that was refused before there was a run.
//!
//! # Invariants
//!
//! - Of the document only its digest and its length are stored: its content was not checked.
//! - The text of the refusal is short and contains no secret that can be recognised.

use crate::bundle::sealed::{RecordKind, RecordPredicate};
use crate::bundle::statement::SealedVerdict;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::record::Head;
use provost_core::run::Gate;
use provost_core::run::fact::{Fact, Judgement, Names};
use provost_core::secret;
use provost_core::user_secret::Secret;
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::{seal_record, time};
use crate::ports::{Bundle, Clock, PortError, Signer};

/// The file that holds the request and the refusal.
pub const REQUEST: &str = "request.json";
/// The longest text of a refusal, in bytes.
const LONGEST: usize = 2048;
/// The most entries of a list in a refusal.
const MOST: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The id that the run would have had.
    pub run_id: String,
    pub refused_at: String,
    /// SHA-256 of the document, as it was given.
    pub document_sha256: String,
    pub document_bytes: u64,
    pub verdict: Verdict,
}

pub struct Ports<'a> {
    pub bundle: &'a mut dyn Bundle,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
    /// Marks the record as this user's own.
    pub secret: &'a Secret,
}

/// The codes of what is wrong with the contract.
fn codes(verdict: &Verdict) -> Vec<Code> {
    let findings = verdict.findings();
    let code = |finding: &Value| finding["code"].as_str().and_then(Code::parse);
    // What has no code is for the policy gate.
    let all: Option<Vec<Code>> = findings.iter().map(code).collect();
    all.unwrap_or_default()
}

/// Stores that the request for the run `names`, given as `document`, was refused by `verdict`.
pub fn keep(
    ports: &mut Ports<'_>,
    names: &Names,
    document: &[u8],
    verdict: Verdict,
) -> Result<Refused, PortError> {
    let refused = Refused {
        run_id: names.run_id.clone(),
        refused_at: ports.clock.timestamp(),
        document_sha256: sha256(document),
        document_bytes: document.len() as u64,
        verdict: tame(verdict),
    };
    let fact = Fact::judged(Judgement {
        gate: Gate::about(&codes(&refused.verdict)),
        verdict: refused.verdict.clone(),
    });
    let event = fact.event(names, 1, refused.refused_at.clone());
    let record = Head::genesis().append_marked(event, Some(ports.secret));
    ports
        .bundle
        .put(LEDGER, (record.line() + "\n").as_bytes())?;
    let text = serde_json::to_vec_pretty(&refused);
    let text = text.map_err(|error| PortError::of(Code::Bug, error))?;
    ports.bundle.put(REQUEST, &text)?;
    let predicate = RecordPredicate {
        kind: RecordKind::Refused,
        id: names.run_id.clone(),
        verdict: SealedVerdict {
            allow: false,
            code: refused.verdict.code,
        },
        sealed_at: time(ports.clock)?,
    };
    seal_record(ports.bundle, ports.signer, predicate)?;
    Ok(refused)
}

/// The verdict with shortened text, and without anything that looks like a secret.
fn tame(verdict: Verdict) -> Verdict {
    let Verdict {
        code,
        reason,
        details,
        ..
    } = verdict;
    let tamed = Verdict::deny(code, short(&reason));
    match details {
        Some(details) => tamed.with(bounded(details)),
        None => tamed,
    }
}

fn short(text: &str) -> String {
    let clean = secret::redact(text);
    let end = clean.floor_char_boundary(LONGEST);
    match clean.get(..end) {
        Some(front) if end < clean.len() => format!("{front}…"),
        _ => clean.into_owned(),
    }
}

fn bounded(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(short(&text)),
        Value::Array(items) => items.into_iter().take(MOST).map(bounded).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().take(MOST);
            fields
                .map(|(name, value)| (short(&name), bounded(value)))
                .collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_short_and_holds_no_secret() {
        let long = format!("token=abcdef1234567890abcdef {}", "x".repeat(9000));
        let rows: Vec<Value> = (0..200).map(|_| json!({ "problem": long })).collect();
        let verdict = Verdict::deny(Code::InputInvalid, long.clone());
        let tamed = tame(verdict.with(json!({ "findings": rows })));
        let text = serde_json::to_string(&tamed).unwrap();
        assert!(!text.contains("abcdef1234567890abcdef"), "{text}");
        assert!(tamed.reason.len() < LONGEST + 8);
        let rows = tamed.details.unwrap();
        assert_eq!(rows["findings"].as_array().unwrap().len(), MOST);
    }
}
