//! Computes how far a change of some files reaches.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::graph::Graph;
use super::{Family, Finding, Report};
use crate::structure::pattern::covers;
use provost_core::path::RepoPath;

/// The largest number of indirect dependents that are shown.
pub const MOST_TRANSITIVE: usize = 10;

/// The largest number of files that are shown to a reviewer.
pub const MOST_CONTEXT: usize = 20;

/// The number of dependents from which a change reaches far.
const FAR: usize = 5;

/// How far the imports are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    Direct,
    Transitive,
    /// Transitive if the level is high.
    #[default]
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No other file depends on it.
    Low,
    /// A few files depend on it.
    Medium,
    /// Many files depend on it.
    High,
}

/// The files that a change reaches. Lists are complete; the caller truncates them for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blast {
    /// The changed files of the tree.
    pub origin: Vec<RepoPath>,
    /// Names that no source file has.
    pub unknown: Vec<String>,
    pub radius_level: Level,
    /// Files that import one of them.
    pub direct_dependents: Vec<RepoPath>,
    /// Files that import those, and so on; `None` unless that was followed.
    pub transitive_dependents: Option<Vec<RepoPath>>,
    /// Files with code that is a clone of code in them.
    pub clone_cohort: Vec<RepoPath>,
    /// Files in an import cycle with them, themselves included.
    pub in_dependency_cycle: Vec<RepoPath>,
    /// Ids of the findings in them.
    pub structural_risk: Vec<String>,
}

impl Blast {
    /// The whole document, as it is stored with an intent that began from the analysis `run_id`.
    pub fn document(&self, run_id: &str) -> Value {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        document["run_id"] = json!(run_id);
        document
    }
}

/// The name under which such a document is requested, from its digest.
pub fn artifact_id(digest: &str) -> String {
    format!("blast-{}", digest.get(..16).unwrap_or(digest))
}

/// How far a change of `files` reaches: paths, directories or patterns.
pub fn radius(report: &Report, files: &[impl AsRef<str>], depth: Depth) -> Blast {
    let hit = |path: &RepoPath| {
        files
            .iter()
            .any(|file| covers(file.as_ref(), path.as_str()))
    };
    let known = report.files.iter().map(|file| &file.path);
    let origin: BTreeSet<&RepoPath> = known.filter(|path| hit(path)).collect();
    let named = |file: &&str| !origin.iter().any(|path| covers(file, path.as_str()));
    let unknown = files.iter().map(AsRef::as_ref).filter(named);
    let unknown = unknown.map(ToOwned::to_owned).collect();

    let mut importers: BTreeMap<&RepoPath, Vec<&RepoPath>> = BTreeMap::new();
    for import in &report.imports {
        importers.entry(&import.to).or_default().push(&import.from);
    }
    let direct = step(&importers, &origin, &origin);
    let mut cohort = BTreeSet::new();
    for finding in report
        .findings
        .iter()
        .filter(|one| one.family == Family::Clone)
    {
        if finding.paths().any(|path| origin.contains(path)) {
            cohort.extend(finding.paths().filter(|path| !origin.contains(path)));
        }
    }
    let level = match direct.union(&cohort).count() {
        0 => Level::Low,
        1..=FAR => Level::Medium,
        _ => Level::High,
    };
    let follow = match depth {
        Depth::Direct => false,
        Depth::Transitive => true,
        Depth::Auto => level == Level::High,
    };
    let graph = Graph::of(&report.imports);
    let circles = graph.cycles().into_iter();
    let circles = circles.filter(|cycle| cycle.iter().any(|path| origin.contains(path)));
    let circling: BTreeSet<&RepoPath> = circles.flatten().collect();
    let at_risk = |finding: &&Finding| finding.paths().any(|path| origin.contains(path));
    Blast {
        unknown,
        radius_level: level,
        transitive_dependents: follow.then(|| owned(&closure(&importers, &origin, &direct))),
        direct_dependents: owned(&direct),
        clone_cohort: owned(&cohort),
        in_dependency_cycle: owned(&circling),
        structural_risk: report
            .findings
            .iter()
            .filter(at_risk)
            .map(|finding| finding.id.clone())
            .collect(),
        origin: owned(&origin),
    }
}

type Importers<'a> = BTreeMap<&'a RepoPath, Vec<&'a RepoPath>>;

/// The files that import one of `these`, without those that are `known`.
fn step<'a>(
    importers: &Importers<'a>,
    these: &BTreeSet<&'a RepoPath>,
    known: &BTreeSet<&'a RepoPath>,
) -> BTreeSet<&'a RepoPath> {
    let all = these
        .iter()
        .filter_map(|path| importers.get(path))
        .flatten();
    all.copied().filter(|path| !known.contains(path)).collect()
}

/// The files that import one of `first`, directly or not, without those and without the origin.
fn closure<'a>(
    importers: &Importers<'a>,
    origin: &BTreeSet<&'a RepoPath>,
    first: &BTreeSet<&'a RepoPath>,
) -> BTreeSet<&'a RepoPath> {
    let mut known: BTreeSet<&RepoPath> = origin.union(first).copied().collect();
    let (mut edge, mut found) = (first.clone(), BTreeSet::new());
    while !edge.is_empty() {
        edge = step(importers, &edge, &known);
        known.extend(&edge);
        found.extend(&edge);
    }
    found
}

fn owned(paths: &BTreeSet<&RepoPath>) -> Vec<RepoPath> {
    paths.iter().copied().cloned().collect()
}
