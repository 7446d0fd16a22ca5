//! Opens the seal: the signer and the statement.

use provost_evidence::verification::{self, Finding};

use super::read::{ATTESTATION, Bundle};
use crate::bundle::statement::RunStatement;

/// Opens the attestation, if there is one, and stores the result in `bundle`.
pub(super) fn open(bundle: &mut Bundle<'_>, problems: &mut Vec<Finding>) {
    let Some(bytes) = bundle.bytes(ATTESTATION) else {
        return;
    };
    let opened = verification::open(ATTESTATION, bytes, bundle.trusted, bundle.want_key);
    bundle.signer = opened.signer;
    problems.extend(opened.findings);
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
    let fits = |id: &provost_core::object::Oid| id.as_str().len() == digits;
    if !ids.into_iter().chain(&predicate.candidate_tree).all(fits) {
        let problem = "the statement names an object in another format than its own";
        findings.push(Finding::altered(ATTESTATION, problem));
    }
    findings
}
