//! Writes SARIF 2.1.0 about the structure of source code, for code scanners and their viewers.
//!
//! A rule is a category of findings; a result is one finding, with all its places. The id of a
//! finding is its fingerprint, because it survives moves of the code.

use std::collections::BTreeSet;

use provost_engine::export::sarif::document::{
    ColumnKind, Level, Region, SarifLocation, SarifLog, SarifResult, SarifRule, SarifRun,
    SarifText, SarifTool,
};
use provost_lens::structure::health::Points;
use provost_lens::structure::{Category, Confidence, Finding, Report, Severity, Spot};
use serde::Serialize;

/// The log about the structure of a tree.
pub(super) type StructureSarif<'a> = SarifLog<TreeFacts<'a>, CategoryFacts, FindingFacts<'a>>;

#[derive(Serialize)]
pub(super) struct TreeFacts<'a> {
    report_digest: String,
    tree: &'a str,
    health: Option<Points>,
}

#[derive(Serialize)]
pub(super) struct CategoryFacts {
    properties: CategoryProperties,
}

#[derive(Serialize)]
struct CategoryProperties {
    decides: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FindingFacts<'a> {
    related_locations: Vec<SarifLocation>,
    partial_fingerprints: Fingerprint<'a>,
    properties: FindingProperties<'a>,
}

#[derive(Serialize)]
struct Fingerprint<'a> {
    #[serde(rename = "provostFinding/v1")]
    id: &'a str,
}

#[derive(Serialize)]
struct FindingProperties<'a> {
    confidence: Confidence,
    symbol: &'a str,
    value: u32,
    limit: u32,
    decides: bool,
}

/// The document about `report`, made by `version` of the program.
pub(super) fn render<'a>(report: &'a Report, version: &str) -> StructureSarif<'a> {
    let categories: BTreeSet<Category> = report.findings.iter().map(|one| one.category).collect();
    let categories: Vec<Category> = categories.into_iter().collect();
    let rules = categories.iter().map(|category| rule(*category)).collect();
    let findings = report.findings.iter();
    SarifLog::of(SarifRun {
        tool: SarifTool::new(version, rules),
        automation_details: None,
        invocations: None,
        column_kind: ColumnKind::UnicodeCodePoints,
        results: findings.map(|one| result(one, &categories)).collect(),
        properties: TreeFacts {
            report_digest: report.digest(),
            tree: &report.tree,
            health: report.health.as_ref().map(|health| health.points),
        },
    })
}

fn rule(category: Category) -> SarifRule<CategoryFacts> {
    SarifRule {
        id: id(category),
        name: category.word().to_owned(),
        short_description: SarifText {
            text: describe(category).to_owned(),
        },
        more: CategoryFacts {
            properties: CategoryProperties {
                decides: category.gates(),
            },
        },
    }
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

fn result<'a>(finding: &'a Finding, rules: &[Category]) -> SarifResult<FindingFacts<'a>> {
    let rule = rules.iter().position(|one| *one == finding.category);
    let level = match finding.severity {
        // A finding that is not certain enough to decide is only a note.
        _ if !finding.gates() => Level::Note,
        Severity::Info => Level::Note,
        Severity::Warning => Level::Warning,
        Severity::Critical => Level::Error,
    };
    // Viewers show one place first; the others belong to the same finding.
    let (first, others) = finding.places.split_at(finding.places.len().min(1));
    SarifResult {
        rule_id: id(finding.category),
        rule_index: rule.unwrap_or_default(),
        level,
        message: SarifText {
            text: finding.message.clone(),
        },
        locations: Some(first.iter().map(location).collect()),
        more: FindingFacts {
            related_locations: others.iter().map(location).collect(),
            partial_fingerprints: Fingerprint { id: &finding.id },
            properties: FindingProperties {
                confidence: finding.confidence,
                symbol: &finding.symbol,
                value: finding.value,
                limit: finding.limit,
                decides: finding.gates(),
            },
        },
    }
}

fn location(spot: &Spot) -> SarifLocation {
    let region = Region {
        start_line: spot.line.max(1),
        end_line: spot.end_line.max(1),
    };
    SarifLocation::file(spot.path.as_str()).at(region, &spot.symbol)
}
