//! Writes SARIF 2.1.0 about the structure of source code, for code scanners and their viewers.
//!
//! A rule is a category of findings; a result is one finding, with all its places. The id of a
//! finding is its fingerprint, because it survives moves of the code.

use std::collections::BTreeSet;

use provost_lens::structure::{Category, Finding, Report, Severity, Spot};
use serde_json::{Value, json};

use provost_engine::export::sarif::{SCHEMA, uri};

/// The document about `report`, made by `version` of the program.
pub(super) fn render(report: &Report, version: &str) -> Value {
    let categories: BTreeSet<Category> = report.findings.iter().map(|one| one.category).collect();
    let rules: Vec<Category> = categories.into_iter().collect();
    let results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| result(finding, &rules))
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "provost",
                "version": version,
                "semanticVersion": version,
                "rules": rules.iter().map(|category| rule(*category)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "report_digest": report.digest(),
                "tree": report.tree,
                "health": report.health.as_ref().map(|health| health.points),
            },
        }],
    })
}

fn rule(category: Category) -> Value {
    json!({
        "id": id(category),
        "name": category.word(),
        "shortDescription": { "text": describe(category) },
        "properties": { "decides": category.gates() },
    })
}

fn id(category: Category) -> String {
    format!("structure/{}", category.word())
}

fn describe(category: Category) -> &'static str {
    match category {
        Category::Function => "Functions that do the same",
        Category::Block => "Runs of statements that do the same",
        Category::Near => "Functions that do nearly the same",
        Category::UnusedFunction => "A function that is not used",
        Category::UnusedClass => "A class that is not used",
        Category::Complexity => "A function with too many branches",
        Category::Coupling => "A class that uses too many others",
        Category::Cohesion => "A class whose methods have too little to do with each other",
        Category::DependencyCycle => "Files that import each other in a circle",
        Category::Cognitive => "A function that is hard to read",
        Category::Nesting => "A function whose branches lie too deep in each other",
        Category::Length => "A function that is too long",
    }
}

fn result(finding: &Finding, rules: &[Category]) -> Value {
    let rule = rules.iter().position(|one| *one == finding.category);
    let level = match finding.severity {
        // A finding that is not certain enough to decide is only a note.
        _ if !finding.gates() => "note",
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Critical => "error",
    };
    // Viewers show one place first; the others belong to the same finding.
    let (first, others) = finding.places.split_at(finding.places.len().min(1));
    json!({
        "ruleId": id(finding.category),
        "ruleIndex": rule.unwrap_or_default(),
        "level": level,
        "message": { "text": finding.message },
        "locations": first.iter().map(location).collect::<Vec<_>>(),
        "relatedLocations": others.iter().map(location).collect::<Vec<_>>(),
        "partialFingerprints": { "provostFinding/v1": finding.id },
        "properties": {
            "confidence": finding.confidence,
            "symbol": finding.symbol,
            "value": finding.value,
            "limit": finding.limit,
            "decides": finding.gates(),
        },
    })
}

fn location(spot: &Spot) -> Value {
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(spot.path.as_str()), "uriBaseId": "%SRCROOT%" },
            "region": { "startLine": spot.line.max(1), "endLine": spot.end_line.max(1) },
        },
        "logicalLocations": [{ "fullyQualifiedName": spot.symbol }],
    })
}
