//! Writes the answers about analyses, and about evidence that is looked up.

use std::collections::BTreeSet;

use crate::analysis::run::{RunHead, short};
use crate::answer::Gated;
use crate::intent::utc;
use provost_lens::structure::blast::{Blast, artifact_id};
use provost_lens::structure::gates::Switches;
use provost_lens::structure::{Finding, Report};
use serde_json::{Map, Value, json};

use crate::receipt::markdown as receipt;
use crate::start::answer::blast_radius;
use crate::tools::answers::Detail;
use crate::tools::arguments::{ArgumentError, ReceiptFormat};

/// The most findings that an answer about changed paths lists.
const MOST: usize = 200;

/// A summary of an analysis.
pub fn analysed(head: &RunHead, report: &Report, root: &str, ignored: &[String]) -> Value {
    let mut value = json!({
        "run_id": head.short(),
        "root": root,
        "content_digest": report.tree,
        "report_digest": head.report_digest,
        "analyser": report.analyser,
        "taken_at_utc": utc(head.taken_at),
        "files": report.files.len(),
        "tree_files": report.tree_files,
        "functions": report.functions.len(),
        "findings": report.findings.len(),
        "languages": report.languages,
        "health": report.health.as_ref().map(|health| health.points.number()),
        "grade": report.health.as_ref().map(|health| &health.grade),
        "dirty_paths": head.workspace.dirty.len(),
        "baseline": head.baseline.describe(report),
    });
    if !ignored.is_empty() {
        value["ignored_options"] = json!(ignored);
    }
    value
}

/// The findings of an analysis in the changed paths.
pub fn in_changed(head: &RunHead, report: &Report, paths: &BTreeSet<String>) -> Value {
    let here = |one: &&Finding| one.paths().any(|path| paths.contains(path.as_str()));
    let one = |one: &Finding| {
        let novelty = if head.baseline.knows(one) {
            "known"
        } else {
            "new"
        };
        json!({
            "id": one.id, "category": one.category.word(), "gates": one.gates(),
            "novelty": novelty, "paths": one.paths().collect::<BTreeSet<_>>(),
            "message": one.message,
        })
    };
    let found: Vec<&Finding> = report.findings.iter().filter(here).collect();
    json!({
        "paths": paths.iter().take(MOST).collect::<Vec<_>>(),
        "paths_count": paths.len(),
        "findings": found.iter().take(MOST).map(|finding| one(finding)).collect::<Vec<_>>(),
        "findings_count": found.len(),
        "truncated": found.len() > MOST || paths.len() > MOST,
    })
}

/// The result of comparing a run with limits.
pub fn gated(found: &Gated, switches: &Switches) -> Value {
    json!({
        "run_id": short(&found.run_id),
        "would_fail": found.gate.would_fail,
        "exit_code": found.gate.exit_code,
        "reasons": found.gate.reasons,
        "gates": switches,
        "baseline": found.baseline,
    })
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
    let value = blast_radius(blast, run_id, Detail::Summary);
    let (Some(include), Value::Object(fields)) = (include, &value) else {
        return Ok(value);
    };
    if let Some(name) = include.iter().find(|name| !fields.contains_key(*name)) {
        let name: String = name.chars().take(80).collect();
        return Err(ArgumentError(format!(
            "`include` names `{name}`, which is no part of this"
        )));
    }
    let kept = fields
        .iter()
        .filter(|(name, _)| ALWAYS.contains(&name.as_str()) || include.contains(name));
    let kept: Map<String, Value> = kept
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect();
    Ok(Value::Object(kept))
}

/// The full blast report of a start.
pub fn found_blast(document: Option<&Value>, digest: &str, asked: &str) -> Value {
    match document {
        None => json!({ "status": "not_found", "asked": asked }),
        Some(document) => json!({
            "status": "ok",
            "blast_artifact_id": artifact_id(digest),
            "projection_digest": digest,
            "run_id": document["run_id"],
            "projection": document,
        }),
    }
}

pub fn found_receipt(document: Option<&Value>, digest: &str, format: ReceiptFormat) -> Value {
    match document {
        None => json!({ "status": "not_found", "receipt_digest": digest }),
        Some(document) => {
            let mut value = json!({
                "status": "ok",
                "receipt_digest": digest,
                "run_id": document["run_id"],
                "verdict": document["verdict"],
                "format": format,
            });
            if format == ReceiptFormat::Markdown {
                value["content"] = json!(receipt::markdown(document));
            } else {
                value["structured_receipt"] = document.clone();
            }
            value
        }
    }
}

pub fn found_trail(trail: Option<&Value>, digest: &str) -> Value {
    match trail {
        None => json!({ "status": "not_found", "patch_trail_digest": digest }),
        Some(trail) => json!({
            "status": "ok",
            "patch_trail": crate::tools::answers::patch_trail(trail, Detail::Full),
        }),
    }
}
