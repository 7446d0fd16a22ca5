//! Opens the seal: the signer and the statement.

use super::ledger::words;
use super::read::{ATTESTATION, Bundle};
use super::report::{Finding, Signer};
use crate::bundle::dsse::{Envelope, OpenError};
use crate::bundle::key::PublicKey;
use crate::bundle::statement::RunStatement;

/// Opens the attestation, if there is one, and stores the result in `bundle`.
pub(super) fn open(bundle: &mut Bundle<'_>, problems: &mut Vec<Finding>) {
    let Some(bytes) = bundle.bytes(ATTESTATION) else {
        return;
    };
    let envelope = match Envelope::parse(bytes) {
        Ok(envelope) => envelope,
        Err(error) => return problems.push(Finding::unsigned(ATTESTATION, words(&error))),
    };
    let opened = examine(&envelope, bundle.trusted, bundle.want_key);
    bundle.envelope = Some(envelope);
    bundle.signer = opened.signer;
    problems.extend(opened.finding);
    if let Some(payload) = opened.payload {
        match RunStatement::parse(&payload) {
            Ok(statement) => bundle.statement = Some(statement),
            Err(error) => {
                let problem = format!("the statement does not parse: {error}");
                problems.push(Finding::altered(ATTESTATION, problem));
            }
        }
    }
}

/// The result of opening an envelope.
pub struct Examined {
    pub signer: Signer,
    /// The signed bytes, unless a signature is wrong. With an unknown key they are only a claim.
    pub payload: Option<Vec<u8>>,
    pub finding: Option<Finding>,
}

/// Opens `envelope` with the caller's keys, of which only `want_key` is accepted if it is given.
pub fn examine(
    envelope: &Envelope,
    trusted: &[PublicKey],
    want_key: Option<&PublicKey>,
) -> Examined {
    let keys: Vec<PublicKey> = want_key.into_iter().chain(trusted).copied().collect();
    let refused = |signer, payload, problem: String| Examined {
        signer,
        payload,
        finding: Some(Finding::unsigned(ATTESTATION, problem)),
    };
    match envelope.open(&keys) {
        Ok(opened) if want_key.is_some_and(|key| *key != opened.key) => {
            let problem = format!(
                "is signed by another key than the one asked for: {}",
                opened.key
            );
            refused(Signer::Another(opened.key), Some(opened.payload), problem)
        }
        Ok(opened) => {
            let misnamed =
                || Finding::altered(ATTESTATION, "names another key than the one that signed");
            Examined {
                finding: (!opened.hint_fits).then(misnamed),
                signer: Signer::Trusted(opened.key),
                payload: Some(opened.payload),
            }
        }
        Err(OpenError::UnknownKey { keyid }) => {
            let problem = format!("is signed by a key that is not trusted here: {keyid}");
            let payload = envelope.unverified_payload().ok();
            refused(Signer::Unknown(keyid), payload, problem)
        }
        Err(error) => refused(Signer::Unsigned, None, words(&error)),
    }
}

/// The attestation exists and can be read; opening it already checked its content.
pub(super) fn signature(bundle: &Bundle<'_>) -> Vec<Finding> {
    match bundle.file(ATTESTATION) {
        None => vec![Finding::unsigned(
            ATTESTATION,
            "is missing: this run is not signed",
        )],
        Some(Err(problem)) => vec![Finding::unsigned(ATTESTATION, problem)],
        Some(Ok(_)) => Vec::new(),
    }
}

/// The envelope has the canonical spelling, so that a change of any byte is detected.
pub(super) fn spelling(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(envelope), Some(bytes)) = (&bundle.envelope, bundle.bytes(ATTESTATION)) else {
        return Vec::new();
    };
    if envelope.render().as_bytes() == bytes {
        return Vec::new();
    }
    vec![Finding::altered(ATTESTATION, "is not in canonical form")]
}

/// The subject of the statement is the tree its predicate names, in the format it names.
pub(super) fn statement_fits_itself(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(statement) = &bundle.statement else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let predicate = &statement.predicate;
    if predicate.clone().state() != *statement {
        let problem = "the statement is about something else than its predicate";
        findings.push(Finding::altered(ATTESTATION, problem));
    }
    let digits = predicate.object_format.width() * 2;
    let ids = [&predicate.base_commit, &predicate.base_tree];
    let fits = |id: &crate::object::Oid| id.as_str().len() == digits;
    if !ids.into_iter().chain(&predicate.candidate_tree).all(fits) {
        let problem = "the statement names an object in another format than its own";
        findings.push(Finding::altered(ATTESTATION, problem));
    }
    findings
}
