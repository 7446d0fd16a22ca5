//! Compares two reports: what is new, what is gone, what only moved, what became worse.
//!
//! A finding of the second report equals one of the first if it has the same id; or else the same
//! name in the same file (its code changed); or else the same code under another name. Any other
//! finding is new. A group of clones that grew is new too, for the copy that was added.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::health::{self, Health, Points};
use super::patch::{self, Patch};
use super::{Class, Family, Finding, Formula, Function, Report, SourceFile};
use provost_core::path::RepoPath;

/// The largest number of symbols that are listed as worse; the worst are listed.
pub const MOST_WORSENED: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Whether the reports can be compared: equal settings, equal analysers.
    pub comparable: bool,
    pub verdict: DeltaVerdict,
    /// New findings that may decide.
    pub regressions: Vec<Finding>,
    /// Findings that are gone and could have decided.
    pub improvements: Vec<Finding>,
    /// New findings that are only reported: too little confidence, or an advisory category.
    pub advisories: Vec<Finding>,
    /// Findings that moved or were renamed.
    pub moved: Vec<Moved>,
    /// Symbols whose numbers became worse, the worst first.
    pub worsened: Vec<Worsened>,
    /// Files that were parsed better before.
    pub parse_worsened: Vec<RepoPath>,
    pub health_before: Option<Points>,
    pub health_after: Option<Points>,
    /// `health_after` minus `health_before`.
    pub health_delta: Option<Points>,
    /// The same with both trees measured on the size of the first, so that only debt moves it.
    pub debt_delta: Option<Points>,
    /// The health of the touched functions alone.
    pub patch: Option<Patch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaVerdict {
    /// Something is better, nothing is worse.
    Improved,
    /// Nothing is better or worse.
    Stable,
    /// Something is worse, nothing is better.
    Regressed,
    /// Something is better and something is worse.
    Mixed,
    Incomparable,
    /// There was nothing to compare.
    NotApplicable,
}

impl DeltaVerdict {
    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Stable => "stable",
            Self::Regressed => "regressed",
            Self::Mixed => "mixed",
            Self::Incomparable => "incomparable",
            Self::NotApplicable => "not_applicable",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub before: String,
    pub after: String,
    pub from: Vec<RepoPath>,
    pub to: Vec<RepoPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Worsened {
    pub path: RepoPath,
    pub symbol: String,
    pub metric: Metric,
    pub before: u32,
    pub after: u32,
}

/// A number of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Branches of a function.
    Complexity,
    /// Classes that a class uses.
    Coupling,
    /// Parts that a class falls into.
    Cohesion,
}

impl Metric {
    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complexity => "complexity",
            Self::Coupling => "coupling",
            Self::Cohesion => "cohesion",
        }
    }
}

/// The caller makes sure that both reports are about the same root.
pub fn compare(before: &Report, after: &Report) -> Delta {
    let same_means = before.settings.digest() == after.settings.digest()
        && before.analyser == after.analyser
        && before.version == after.version;
    if !same_means {
        return empty(DeltaVerdict::Incomparable);
    }
    let mut delta = empty(DeltaVerdict::Stable);
    delta.comparable = true;
    findings(before, after, &mut delta);
    delta.worsened = worsened(before, after);
    delta.parse_worsened = parse_worsened(&before.files, &after.files);
    let points = |report: &Report| report.health.as_ref().map(|health| health.points);
    (delta.health_before, delta.health_after) = (points(before), points(after));
    let both = delta.health_before.zip(delta.health_after);
    delta.health_delta = both.map(|(old, new)| new.minus(old));
    delta.debt_delta = same_size(before, after).map(|(old, new)| new.points.minus(old.points));
    delta.patch = Some(patch::score(before, after));
    delta.verdict = verdict(&delta);
    delta
}

/// The result for a change whose structure is not compared.
pub fn not_applicable() -> Delta {
    empty(DeltaVerdict::NotApplicable)
}

fn empty(verdict: DeltaVerdict) -> Delta {
    Delta {
        comparable: false,
        verdict,
        regressions: Vec::new(),
        improvements: Vec::new(),
        advisories: Vec::new(),
        moved: Vec::new(),
        worsened: Vec::new(),
        parse_worsened: Vec::new(),
        health_before: None,
        health_after: None,
        health_delta: None,
        debt_delta: None,
        patch: None,
    }
}

fn verdict(delta: &Delta) -> DeltaVerdict {
    let change = delta.health_delta.unwrap_or_default();
    let worse = !delta.regressions.is_empty() || change.is_negative();
    let better = !delta.improvements.is_empty() || !(change.is_negative() || change.is_zero());
    match (worse, better) {
        (true, true) => DeltaVerdict::Mixed,
        (true, false) => DeltaVerdict::Regressed,
        (false, true) => DeltaVerdict::Improved,
        (false, false) => DeltaVerdict::Stable,
    }
}

/// The health of both trees on the size of the first.
fn same_size(before: &Report, after: &Report) -> Option<(Health, Health)> {
    match before.settings.profile {
        Formula::Standard => health::pair(&before.metrics.debts, &after.metrics.debts),
        Formula::Compat => Some((before.health.clone()?, after.health.clone()?)),
    }
}

/// Pairs of findings that are equal, collected step by step.
struct Pairing<'a> {
    before: Vec<&'a Finding>,
    after: Vec<&'a Finding>,
    /// For each finding of the second report, its position in the first.
    found: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl<'a> Pairing<'a> {
    fn new(before: &'a Report, after: &'a Report) -> Self {
        let before: Vec<&Finding> = before.findings.iter().collect();
        let after: Vec<&Finding> = after.findings.iter().collect();
        Self {
            found: vec![None; after.len()],
            taken: vec![false; before.len()],
            before,
            after,
        }
    }

    /// Pairs findings that have a key in common, and the same category.
    fn by(&mut self, keys: impl Fn(&Finding) -> Vec<String>) {
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, finding) in self.before.iter().enumerate() {
            if !self.taken[at] {
                for key in keys(finding) {
                    known.entry(key).or_default().push(at);
                }
            }
        }
        for (at, finding) in self.after.iter().enumerate() {
            if self.found[at].is_some() {
                continue;
            }
            let same = |other: &&usize| {
                !self.taken[**other] && self.before[**other].category == finding.category
            };
            let candidates = keys(finding);
            let hit = candidates
                .iter()
                .filter_map(|key| known.get(key))
                .find_map(|list| list.iter().find(same));
            if let Some(other) = hit.copied() {
                self.found[at] = Some(other);
                self.taken[other] = true;
            }
        }
    }

    /// Pairs groups that have at least two members in common.
    fn by_members(&mut self) {
        let mut known: BTreeMap<(&RepoPath, &str), Vec<usize>> = BTreeMap::new();
        for (at, finding) in self.before.iter().enumerate() {
            if !self.taken[at] && finding.places.len() > 1 {
                for spot in &finding.places {
                    let members = known.entry((&spot.path, &spot.symbol)).or_default();
                    members.push(at);
                }
            }
        }
        for (at, finding) in self.after.iter().enumerate() {
            if self.found[at].is_some() || finding.places.len() < 2 {
                continue;
            }
            let mut hits: BTreeMap<usize, usize> = BTreeMap::new();
            for spot in &finding.places {
                for other in known
                    .get(&(&spot.path, spot.symbol.as_str()))
                    .into_iter()
                    .flatten()
                {
                    let free = !self.taken[*other];
                    if free && self.before[*other].category == finding.category {
                        *hits.entry(*other).or_default() += 1;
                    }
                }
            }
            let best = hits.into_iter().filter(|(_, count)| *count > 1);
            if let Some((other, _)) = best.max_by_key(|(at, count)| (*count, usize::MAX - at)) {
                self.found[at] = Some(other);
                self.taken[other] = true;
            }
        }
    }
}

fn findings(before: &Report, after: &Report, delta: &mut Delta) {
    let mut pairs = Pairing::new(before, after);
    let paths = |finding: &Finding, what: &str| -> Vec<String> {
        let keyed = |path: &RepoPath| format!("{path}\0{what}");
        finding.paths().map(keyed).collect()
    };
    pairs.by(|finding| paths(finding, base_id(&finding.id)));
    pairs.by(|finding| vec![base_id(&finding.id).to_owned()]);
    pairs.by_members();
    pairs.by(|finding| match finding.places.len() {
        1 => paths(finding, &finding.symbol),
        _ => Vec::new(),
    });
    pairs.by(|finding| match finding.shape.as_str() {
        "" => Vec::new(),
        shape => vec![shape.to_owned()],
    });
    for (at, finding) in pairs.after.iter().enumerate() {
        let Some(old) = pairs.found[at].map(|other| pairs.before[other]) else {
            let list = if finding.gates() {
                &mut delta.regressions
            } else {
                &mut delta.advisories
            };
            list.push((*finding).clone());
            continue;
        };
        let grew = finding.family == Family::Clone && finding.value > old.value;
        let surer = finding.gates() && !old.gates();
        if finding.gates() && (grew || surer) {
            delta.regressions.push((*finding).clone());
        }
        let places =
            |finding: &Finding| -> BTreeSet<RepoPath> { finding.paths().cloned().collect() };
        let (from, to) = (places(old), places(finding));
        if from != to || old.symbol != finding.symbol {
            delta.moved.push(Moved {
                before: old.id.clone(),
                after: finding.id.clone(),
                from: from.into_iter().collect(),
                to: to.into_iter().collect(),
            });
        }
    }
    let gone = pairs.before.iter().zip(&pairs.taken);
    let gone = gone.filter(|(finding, taken)| !**taken && finding.gates());
    delta.improvements = gone.map(|(finding, _)| (*finding).clone()).collect();
}

/// An id without the number that distinguishes equal ones.
fn base_id(id: &str) -> &str {
    id.rsplit_once('#').map_or(id, |(base, _)| base)
}

/// Items by path and name, in the order of the file where a name occurs twice.
pub(super) fn by_name<'a, T>(
    items: &'a [T],
    name: impl Fn(&'a T) -> (&'a RepoPath, &'a str),
) -> BTreeMap<(&'a RepoPath, &'a str, usize), &'a T> {
    let mut seen: BTreeMap<(&RepoPath, &str), usize> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for item in items {
        let (path, symbol) = name(item);
        let count = seen.entry((path, symbol)).or_default();
        found.insert((path, symbol, *count), item);
        *count += 1;
    }
    found
}

fn worsened(before: &Report, after: &Report) -> Vec<Worsened> {
    let mut list = Vec::new();
    let mut note = |path: &RepoPath, symbol: &str, metric: Metric, before: u32, after: u32| {
        if after > before {
            list.push(Worsened {
                path: path.clone(),
                symbol: symbol.to_owned(),
                metric,
                before,
                after,
            });
        }
    };
    let old = by_name(&before.functions, |one: &Function| {
        (&one.path, one.name.as_str())
    });
    for (key, new) in by_name(&after.functions, |one: &Function| {
        (&one.path, one.name.as_str())
    }) {
        if let Some(old) = old.get(&key) {
            note(
                key.0,
                key.1,
                Metric::Complexity,
                old.cyclomatic,
                new.cyclomatic,
            );
        }
    }
    let old = by_name(&before.classes, |one: &Class| {
        (&one.path, one.name.as_str())
    });
    for (key, new) in by_name(&after.classes, |one: &Class| (&one.path, one.name.as_str())) {
        if let Some(old) = old.get(&key) {
            note(key.0, key.1, Metric::Coupling, old.coupling, new.coupling);
            if let (Some(old), Some(new)) = (old.cohesion, new.cohesion) {
                note(key.0, key.1, Metric::Cohesion, old, new);
            }
        }
    }
    list.sort_by_key(|one| (std::cmp::Reverse(one.after - one.before), one.clone()));
    list.truncate(MOST_WORSENED);
    list
}

fn parse_worsened(before: &[SourceFile], after: &[SourceFile]) -> Vec<RepoPath> {
    let known: BTreeMap<&RepoPath, &SourceFile> =
        before.iter().map(|file| (&file.path, file)).collect();
    let worse = |file: &&SourceFile| {
        known
            .get(&file.path)
            .is_some_and(|old| file.parse > old.parse)
    };
    after
        .iter()
        .filter(worse)
        .map(|file| file.path.clone())
        .collect()
}
