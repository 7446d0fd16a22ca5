//! The answers about analyses, and about evidence that is looked up.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::run::{RunHead, short};
use crate::answer::Gated;
use crate::intent::utc;
use crate::payload::payload;
use provost_core::path::RepoPath;
use provost_lens::structure::blast::{Blast, artifact_id};
use provost_lens::structure::gates::Switches;
use provost_lens::structure::health::{Grade, Points};
use provost_lens::structure::{Finding, LanguageCount, Report};
use serde::Serialize;
use serde_json::Value;

use crate::receipt::compose::{PatchTrail, Receipt, ReceiptVerdict};
use crate::start::answer::BlastRadius;
use crate::tools::answers::{Detail, filled};
use crate::tools::arguments::{ArgumentError, ReceiptFormat};

/// The most findings that an answer about changed paths lists.
const MOST: usize = 200;

/// An analysis, and what the caller asked of it.
#[derive(Debug, Clone)]
pub struct Analysed {
    pub head: RunHead,
    pub report: Report,
    /// The root as the caller named it.
    pub root: String,
    /// The names of arguments that had no effect.
    pub ignored: Vec<String>,
    /// The paths whose findings the caller wants.
    pub changed: Option<BTreeSet<String>>,
}

payload! {
    /// A summary of an analysis.
    pub struct AnalysisPayload<'a>(found: &'a Analysed) {
        run_id: &'a str = found.head.short(),
        root: &'a str = &found.root,
        content_digest: &'a str = &found.report.tree,
        report_digest: &'a str = &found.head.report_digest,
        analyser: &'a str = &found.report.analyser,
        taken_at_utc: String = utc(found.head.taken_at),
        files: usize = found.report.files.len(),
        tree_files: u64 = found.report.tree_files,
        functions: usize = found.report.functions.len(),
        findings: usize = found.report.findings.len(),
        languages: &'a BTreeMap<String, LanguageCount> = &found.report.languages,
        health: Option<Points> = found.report.health.as_ref().map(|health| health.points),
        grade: Option<Grade> = found.report.health.as_ref().map(|health| health.grade),
        dirty_paths: usize = found.head.workspace.dirty.len(),
        baseline: Value = found.head.baseline.describe(&found.report),
    } optional {
        ignored_options: &'a [String] = filled(&found.ignored),
        changed: ChangedFindings<'a> =
            found.changed.as_ref().map(|paths| ChangedFindings::of(found, paths)),
    }
}

fn touching<'a>(report: &'a Report, paths: &BTreeSet<String>) -> Vec<&'a Finding> {
    let here = |one: &&Finding| one.paths().any(|path| paths.contains(path.as_str()));
    report.findings.iter().filter(here).collect()
}

payload! {
    /// The findings of an analysis in the changed paths.
    pub struct ChangedFindings<'a>(found: &'a Analysed, changed: &'a BTreeSet<String>) {
        paths: Vec<&'a str> = changed.iter().take(MOST).map(String::as_str).collect(),
        paths_count: usize = changed.len(),
        findings: Vec<FindingPayload<'a>> = touching(&found.report, changed).into_iter().take(MOST)
            .map(|one| FindingPayload::of(one, found.head.baseline.knows(one))).collect(),
        findings_count: usize = touching(&found.report, changed).len(),
        truncated: bool = touching(&found.report, changed).len() > MOST || changed.len() > MOST,
    }
}

payload! {
    pub struct FindingPayload<'a>(one: &'a Finding, is_known: bool) {
        id: &'a str = &one.id,
        category: &'static str = one.category.word(),
        gates: bool = one.gates(),
        novelty: &'static str = if is_known { "known" } else { "new" },
        paths: BTreeSet<&'a RepoPath> = one.paths().collect(),
        message: &'a str = &one.message,
    }
}

payload! {
    /// The result of comparing a run with limits.
    pub struct GatePayload<'a>(found: &'a Gated, switches: &'a Switches) {
        run_id: &'a str = short(&found.run_id),
        would_fail: bool = found.gate.would_fail,
        exit_code: u8 = found.gate.exit_code,
        reasons: &'a [String] = &found.gate.reasons,
        gates: &'a Switches = switches,
        baseline: &'a Value = &found.baseline,
    }
}

/// The fields that an answer about the reach of files always has.
const ALWAYS: &[&str] = &[
    "run_id",
    "origin",
    "unknown",
    "unknown_count",
    "depth",
    "radius_level",
];

/// How far files reach; of the lists only those that `include` names, if it names any.
pub fn blast(
    run_id: &str,
    blast: &Blast,
    include: Option<&[String]>,
) -> Result<Value, ArgumentError> {
    let radius = BlastRadius::of(blast, run_id, Detail::Summary);
    let mut value = serde_json::to_value(radius).unwrap_or_default();
    if let (Some(include), Value::Object(fields)) = (include, &mut value) {
        if let Some(name) = include.iter().find(|name| !fields.contains_key(*name)) {
            let name: String = name.chars().take(80).collect();
            return Err(ArgumentError(format!(
                "`include` names `{name}`, which is not a list of this answer"
            )));
        }
        fields.retain(|name, _| ALWAYS.contains(&name.as_str()) || include.contains(name));
    }
    Ok(value)
}

/// A document of evidence that a caller looked up.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Lookup<T, M> {
    Ok(T),
    NotFound(M),
}

payload! {
    /// The full blast report of a start.
    pub struct FoundBlast<'a>(document: &'a Value, digest: &'a str) {
        blast_artifact_id: String = artifact_id(digest),
        projection_digest: &'a str = digest,
        run_id: &'a Value = &document["run_id"],
        projection: &'a Value = document,
    }
}

payload! {
    pub struct UnknownBlast<'a>(asked: &'a str) {
        asked: &'a str = asked,
    }
}

/// A receipt that a caller looked up or asked for.
#[derive(Debug, Clone)]
pub struct ReceiptLookup {
    pub receipt: Option<Receipt>,
    /// The digest of the whole receipt.
    pub digest: String,
    pub format: ReceiptFormat,
    /// The sections that the caller does not want.
    pub omitted: Vec<&'static str>,
}

payload! {
    pub struct FoundReceipt<'a>(receipt: &'a Receipt, asked: &'a ReceiptLookup) {
        receipt_digest: &'a str = &asked.digest,
        run_id: &'a str = &receipt.run_id,
        verdict: ReceiptVerdict = receipt.verdict,
        format: ReceiptFormat = asked.format,
    } optional {
        content: String =
            (asked.format == ReceiptFormat::Markdown).then(|| receipt.markdown()),
        structured_receipt: &'a Receipt =
            (asked.format == ReceiptFormat::Structured).then_some(receipt),
        omitted_sections: &'a [&'static str] = filled(&asked.omitted),
    }
}

payload! {
    pub struct UnknownReceipt<'a>(digest: &'a str) {
        receipt_digest: &'a str = digest,
    }
}

payload! {
    pub struct FoundTrail<'a>(trail: &'a PatchTrail) {
        patch_trail: &'a PatchTrail = trail,
    }
}

payload! {
    pub struct UnknownTrail<'a>(digest: &'a str) {
        patch_trail_digest: &'a str = digest,
    }
}
