//! Reads every file of a bundle once, and parses every document in it.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::replay::Course;
use super::{Files, Finding, Pins, Signer, seal, words};
use crate::bundle::statement::{RunPredicate, RunStatement};
use provost_core::bundle::key::PublicKey;
pub(super) use provost_core::bundle::layout::{AFTER, ATTESTATION, DRIVER_LOCK, LEDGER, MANIFEST};
pub(super) use provost_core::bundle::layout::{
    BASELINE, CHANGED, CONTRACT, EVIDENCE_REPORT, PACK, PATCH, REVIEW_REPORT, TASK_RESULT,
    TEST_REPORT, WORK_REPORT,
};
use provost_core::bundle::report::{
    EvidenceReport, ReviewReport, RunManifest, TaskResult, TestReport, WorkReport,
};
use provost_core::contract::document::Document;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::record::{self, Chain, Head};

/// The files whose bytes are kept; of all others only the digest is needed.
const DOCUMENTS: [&str; 14] = [
    CONTRACT,
    MANIFEST,
    LEDGER,
    AFTER,
    ATTESTATION,
    DRIVER_LOCK,
    CHANGED,
    BASELINE,
    PACK,
    TASK_RESULT,
    WORK_REPORT,
    REVIEW_REPORT,
    TEST_REPORT,
    EVIDENCE_REPORT,
];

#[derive(Debug)]
pub struct File {
    /// SHA-256 of its bytes.
    pub sha256: String,
    pub size: u64,
    /// Its bytes, if a check needs them; otherwise empty.
    pub bytes: Vec<u8>,
}

/// The reports that exist and parse.
#[derive(Debug, Default)]
pub struct Reports {
    pub task_result: Option<TaskResult>,
    pub work: Option<WorkReport>,
    pub review: Option<ReviewReport>,
    pub test: Option<TestReport>,
    pub evidence: Option<EvidenceReport>,
}

/// A bundle, read once; a document that is missing or does not parse is `None` and a finding.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// Every file, or the reason why it cannot be read.
    pub files: BTreeMap<RawPath, Result<File, String>>,
    pub signer: Signer,
    /// The statement; only if its signature is valid or its key is unknown.
    pub statement: Option<RunStatement>,
    pub manifest: Option<RunManifest>,
    pub ledger: Option<Chain>,
    /// The replayed ledger.
    pub course: Course,
    pub contract: Option<Document>,
    pub reports: Reports,
    pub trusted: &'a [PublicKey],
    /// The known ends of the chains, from elsewhere.
    pub pins: &'a Pins,
    /// The only key that is accepted.
    pub want_key: Option<&'a PublicKey>,
}

impl<'a> Bundle<'a> {
    pub(super) fn read(
        files: &dyn Files,
        trusted: &'a [PublicKey],
        pins: &'a Pins,
        want_key: Option<&'a PublicKey>,
    ) -> (Self, Vec<Finding>) {
        let mut bundle = Self {
            files: hash_all(files),
            signer: Signer::Unsigned,
            statement: None,
            manifest: None,
            ledger: None,
            course: Course::default(),
            contract: None,
            reports: Reports::default(),
            trusted,
            pins,
            want_key,
        };
        let mut problems = Vec::new();
        seal::open(&mut bundle, &mut problems);
        if let Some(bytes) = bundle.bytes(LEDGER) {
            match record::read(bytes, Head::genesis()) {
                Ok(chain) => bundle.ledger = Some(chain),
                Err(error) => problems.push(Finding::altered(LEDGER, words(&error))),
            }
        }
        bundle.course = Course::of(bundle.ledger.as_ref());
        bundle.manifest = bundle.document(MANIFEST, &mut problems);
        bundle.contract = bundle.document(CONTRACT, &mut problems);
        bundle.reports = Reports {
            task_result: bundle.document(TASK_RESULT, &mut problems),
            work: bundle.document(WORK_REPORT, &mut problems),
            review: bundle.document(REVIEW_REPORT, &mut problems),
            test: bundle.document(TEST_REPORT, &mut problems),
            evidence: bundle.document(EVIDENCE_REPORT, &mut problems),
        };
        (bundle, problems)
    }

    /// The file `name`, if it exists.
    pub fn file(&self, name: &str) -> Option<&Result<File, String>> {
        self.files.get(&RawPath::new(name))
    }

    /// The bytes of the document `name`, if it can be read.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let file = self.file(name)?.as_ref().ok()?;
        Some(&file.bytes)
    }

    pub fn predicate(&self) -> Option<&RunPredicate> {
        Some(&self.statement.as_ref()?.predicate)
    }

    /// The run id, from the first document that names it.
    pub(super) fn run_id(&self) -> Option<String> {
        let sealed = self.predicate().map(|predicate| &predicate.run_id);
        let stated = self.manifest.as_ref().map(|manifest| &manifest.run_id);
        let first = self.ledger.as_ref().and_then(|chain| chain.records.first());
        let recorded = first.map(|record| &record.event.run_id);
        sealed.or(stated).or(recorded).cloned()
    }

    fn document<T: DeserializeOwned>(&self, name: &str, out: &mut Vec<Finding>) -> Option<T> {
        match json::parse_as(self.bytes(name)?) {
            Ok(document) => Some(document),
            Err(error) => {
                out.push(Finding::altered(name, format!("does not parse: {error}")));
                None
            }
        }
    }
}

fn hash_all(files: &dyn Files) -> BTreeMap<RawPath, Result<File, String>> {
    let keep = |name: &RawPath| {
        DOCUMENTS
            .iter()
            .any(|document| document.as_bytes() == name.as_bytes())
    };
    let one = |name: RawPath| {
        let file = files.read(&name).map(|bytes| File {
            sha256: sha256(&bytes),
            size: bytes.len() as u64,
            bytes: if keep(&name) { bytes } else { Vec::new() },
        });
        (name, file)
    };
    files.names().into_iter().map(one).collect()
}
