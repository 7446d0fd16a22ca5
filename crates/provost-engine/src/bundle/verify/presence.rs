//! Looks for missing files, and for files that were not sealed.

use super::Finding;
use super::read::{
    BASELINE, Bundle, CHANGED, CONTRACT, DRIVER_LOCK, EVIDENCE_REPORT, LEDGER, MANIFEST, PACK,
    PATCH, REVIEW_REPORT, TASK_RESULT, TEST_REPORT, WORK_REPORT,
};
use provost_core::bundle::layout::{
    BESIDE, CHANGED_COPY, META, PATCH_COPY, TEST_COMMANDS, TEST_ERRORS, TEST_OUTPUT, TRACE,
    WORKED_IN, is_later,
};
use provost_core::bundle::report::EvidenceStatus;
use provost_core::json;
use provost_core::lease::Owner;
use provost_core::object::sha256;
use provost_core::path::RepoPath;
use provost_core::run::fact::Opened;

/// Files of every sealed run, however it ended. A check of its own looks for the attestation.
pub(in crate::bundle) const REQUIRED: [&str; 8] = [
    CONTRACT,
    MANIFEST,
    LEDGER,
    PATCH,
    CHANGED,
    REVIEW_REPORT,
    TEST_REPORT,
    EVIDENCE_REPORT,
];

/// The expected files with the same name in every format.
const EXPECTED: [&str; 10] = [
    META,
    TASK_RESULT,
    WORK_REPORT,
    BASELINE,
    PATCH_COPY,
    CHANGED_COPY,
    TEST_COMMANDS,
    TEST_OUTPUT,
    TEST_ERRORS,
    TRACE,
];

/// Files that the run `opened` has unless its evidence report lists them as missing. A run without
/// an agent has no workspace that is kept.
pub(in crate::bundle) fn expected_of(
    opened: Option<&Opened>,
) -> impl Iterator<Item = &'static str> + use<> {
    let format = opened.map(|opened| opened.format).unwrap_or_default();
    let has_agent = opened.is_none_or(|opened| opened.work.is_none());
    let expected = EXPECTED.into_iter().chain([format.selftest()]);
    expected.chain(has_agent.then_some(WORKED_IN))
}

/// The largest lock of a driver, in bytes.
const LARGEST_LOCK: usize = 1024;

/// Whether the manifest names the file, so that another check reports it as missing.
fn is_named(bundle: &Bundle<'_>, name: &str) -> bool {
    let manifest = bundle.manifest.as_ref();
    manifest.is_some_and(|manifest| manifest.evidence_hashes.contains_key(name))
}

/// Every required file exists.
pub(super) fn required(bundle: &Bundle<'_>) -> Vec<Finding> {
    let has_candidate = bundle
        .predicate()
        .is_some_and(|predicate| predicate.candidate_tree.is_some());
    let has_objects = has_candidate && !bundle.course.withheld.names;
    REQUIRED
        .into_iter()
        .chain(has_objects.then_some(PACK))
        .filter(|name| !is_named(bundle, name))
        .filter_map(|name| match bundle.file(name) {
            None => Some(Finding::incomplete(name, "is missing")),
            Some(Err(problem)) => Some(Finding::incomplete(name, problem)),
            Some(Ok(_)) => None,
        })
        .collect()
}

/// Every expected file exists, or the evidence report lists it as missing.
pub(super) fn expected(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(report) = &bundle.reports.evidence else {
        return Vec::new();
    };
    if bundle.course.newer.is_some() {
        // The files of that format are unknown.
        return Vec::new();
    }
    let owned_up = |name: &str| report.missing.iter().any(|missing| missing == name);
    expected_of(bundle.course.end().map(|state| &state.opened))
        .filter(|name| bundle.file(name).is_none() && !owned_up(name) && !is_named(bundle, name))
        .map(|name| {
            Finding::incomplete(name, "is missing, and the evidence report does not say so")
        })
        .collect()
}

/// The file of every child is there, and says what the ledger says.
pub(super) fn children(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(state) = bundle.course.end() else {
        return Vec::new();
    };
    let composed = crate::seal::children::files(state).unwrap_or_default();
    let differs = |(name, bytes): (String, Vec<u8>)| match bundle.file(&name) {
        Some(Ok(file)) if file.sha256 == sha256(&bytes) => None,
        Some(Ok(_)) => Some(Finding::altered(&name, "is not what the ledger says")),
        Some(Err(_)) | None if is_named(bundle, &name) => None,
        Some(Err(problem)) => Some(Finding::incomplete(&name, problem)),
        None => Some(Finding::incomplete(&name, "is missing")),
    };
    composed.into_iter().filter_map(differs).collect()
}

/// Every existing file was sealed.
pub(super) fn unnamed(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(manifest) = &bundle.manifest else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (name, file) in &bundle.files {
        let Ok(path) = RepoPath::try_from(name) else {
            let problem = file
                .as_ref()
                .err()
                .map_or("has a name no evidence has", String::as_str);
            findings.push(Finding::incomplete(name, problem));
            continue;
        };
        if BESIDE.contains(&path.as_str()) || is_later(path.as_str()) {
            continue;
        }
        if !manifest.evidence_hashes.contains_key(path.as_str()) {
            let what = match file {
                Ok(_) => "is not named in the manifest".to_owned(),
                Err(problem) => format!("is not named in the manifest, and {problem}"),
            };
            findings.push(Finding::incomplete(name, what));
        }
    }
    findings
}

/// The lock of the driver is empty or names a process, and holds nothing else.
pub(super) fn lock(bundle: &Bundle<'_>) -> Vec<Finding> {
    let problem = match bundle.file(DRIVER_LOCK) {
        None => return Vec::new(),
        Some(Err(problem)) => problem.as_str(),
        Some(Ok(file)) if file.bytes.is_empty() || is_owner(&file.bytes) => return Vec::new(),
        Some(Ok(_)) => "holds something else than the name of a process",
    };
    vec![Finding::incomplete(DRIVER_LOCK, problem)]
}

/// Whether `bytes` are a process in the canonical spelling of the lock.
fn is_owner(bytes: &[u8]) -> bool {
    let owner: Option<Owner> = (bytes.len() <= LARGEST_LOCK)
        .then(|| json::parse_as(bytes).ok())
        .flatten();
    owner
        .and_then(|owner| serde_json::to_string(&owner).ok())
        .is_some_and(|line| bytes == format!("{line}\n").as_bytes())
}

/// The evidence report is correct.
pub(super) fn evidence_report(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(report) = &bundle.reports.evidence else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for name in &report.missing {
        if bundle.file(name).is_some() {
            let problem = format!("says that `{name}` is missing, and it is there");
            findings.push(Finding::altered(EVIDENCE_REPORT, problem));
        }
    }
    let essential = |name: &String| REQUIRED.contains(&name.as_str()) || name == TASK_RESULT;
    if report.status == EvidenceStatus::Ok && report.missing.iter().any(essential) {
        let problem = "says `ok` although something essential is missing";
        findings.push(Finding::altered(EVIDENCE_REPORT, problem));
    }
    findings
}
