//! Adds up what an analysis found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::health::Dimension;
use super::{Category, Class, Confidence, Family, Finding, Function, Parse, SourceFile};
use provost_core::path::RepoPath;

/// The cyclomatic complexity up to which there is no debt.
const EASY: u32 = 10;

/// The cognitive complexity up to which there is no debt.
const READABLE: u32 = 15;

/// The number of other classes up to which there is no debt.
const FEW_CLASSES: u32 = 5;

/// From here on a function is at high risk.
const RISKY: u32 = 20;

/// From here on a class uses too many others.
const MANY_CLASSES: u32 = 10;

/// From here on the methods of a class have too little to do with each other.
const LOOSE: u32 = 3;

/// The language that the compatible formula is about.
const PYTHON: &str = "python";

pub type Debts = BTreeMap<Dimension, Debt>;

/// A debt, and the size of what it is measured over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    pub debt: u64,
    /// Functions, classes or files.
    pub size: u64,
}

/// Sums over a whole report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Lines of source code, with comments and empty ones.
    pub lines: u64,
    pub functions: u64,
    pub classes: u64,
    /// Groups of equal functions or blocks; near clones do not count.
    pub clone_groups: u64,
    /// Unused functions and classes, as far as that is certain.
    pub dead_code: u64,
    /// Import cycles.
    pub cycles: u64,
    pub max_complexity: u32,
    pub max_cognitive: u32,
    pub max_nesting: u32,
    /// The largest number of other classes that a class uses.
    pub max_coupling: u32,
    /// The largest number of parts that a class falls into.
    pub max_cohesion: u32,
    /// The longest chain of imports below a file.
    pub max_depth: u32,
    pub debts: Debts,
    /// The sums for [`compat`](super::health::compat).
    pub python: PythonSums,
}

/// Sums over the Python files alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonSums {
    pub files: u64,
    pub unread: u64,
    pub clone_groups: u64,
    pub complexity: Spread,
    pub coupling: Spread,
    pub cohesion: Spread,
    /// Unused symbols.
    pub dead: u64,
    /// Import cycles.
    pub cycles: u64,
    /// The longest chain of imports.
    pub depth_max: u64,
    /// Twice the mean depth, rounded up.
    pub depth_twice_mean: u64,
    /// The depth that 95 of 100 files do not exceed.
    pub depth_p95: u64,
}

/// The distribution of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub count: u64,
    pub sum: u64,
    pub max: u64,
    pub high: u64,
}

impl Spread {
    fn of(values: impl Iterator<Item = u32>, limit: u32) -> Self {
        let mut spread = Self::default();
        for value in values {
            spread.count += 1;
            spread.sum += u64::from(value);
            spread.max = spread.max.max(u64::from(value));
            spread.high += u64::from(value > limit);
        }
        spread
    }
}

/// The part of a source file that the sums need.
#[derive(Debug, Clone, Copy)]
pub struct FileSize<'a> {
    pub path: &'a RepoPath,
    pub language: &'a str,
    pub lines: u32,
    pub parse: Parse,
}

/// The part of a function that the sums need.
#[derive(Debug, Clone, Copy)]
pub struct FunctionSize<'a> {
    pub path: &'a RepoPath,
    pub cyclomatic: u32,
    pub cognitive: u32,
    pub nesting: u32,
}

impl SourceFile {
    pub fn size(&self) -> FileSize<'_> {
        FileSize {
            path: &self.path,
            language: &self.language,
            lines: self.lines,
            parse: self.parse,
        }
    }
}

impl Function {
    pub fn size(&self) -> FunctionSize<'_> {
        FunctionSize {
            path: &self.path,
            cyclomatic: self.cyclomatic,
            cognitive: self.cognitive,
            nesting: self.nesting,
        }
    }
}

/// The input of the sums.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub files: &'a [FileSize<'a>],
    /// Functions of one file are adjacent.
    pub functions: &'a [FunctionSize<'a>],
    pub classes: &'a [Class],
    pub graph: &'a Graph<'a>,
    pub findings: &'a [Finding],
}

impl Metrics {
    pub fn of(parts: &Parts<'_>) -> Self {
        let depths = parts.graph.depths();
        let most = |values: &mut dyn Iterator<Item = u32>| values.max().unwrap_or(0);
        let functions = || parts.functions.iter();
        let classes = || parts.classes.iter();
        Self {
            lines: parts.files.iter().map(|file| u64::from(file.lines)).sum(),
            functions: parts.functions.len() as u64,
            classes: parts.classes.len() as u64,
            clone_groups: count(parts.findings, is_clone),
            dead_code: count(parts.findings, is_dead),
            cycles: count(parts.findings, is_cycle),
            max_complexity: most(&mut functions().map(|function| function.cyclomatic)),
            max_cognitive: most(&mut functions().map(|function| function.cognitive)),
            max_nesting: most(&mut functions().map(|function| function.nesting)),
            max_coupling: most(&mut classes().map(|class| class.coupling)),
            max_cohesion: most(&mut classes().filter_map(|class| class.cohesion)),
            max_depth: most(&mut depths.values().copied()),
            debts: debts(parts),
            python: python(parts, &depths),
        }
    }
}

fn count<'a>(findings: impl IntoIterator<Item = &'a Finding>, is: fn(&Finding) -> bool) -> u64 {
    findings.into_iter().filter(|finding| is(finding)).count() as u64
}

fn is_clone(finding: &Finding) -> bool {
    finding.family == Family::Clone && finding.gates()
}

fn is_dead(finding: &Finding) -> bool {
    finding.family == Family::DeadCode && finding.gates()
}

fn is_cycle(finding: &Finding) -> bool {
    finding.category == Category::DependencyCycle && finding.gates()
}

/// The debt of a single function for its branches.
pub(super) fn branches_owed(cyclomatic: u32, cognitive: u32) -> u64 {
    let branches = cyclomatic.saturating_sub(EASY);
    let reading = cognitive.saturating_sub(READABLE) / 2;
    u64::from(branches) + u64::from(reading)
}

fn debts(parts: &Parts<'_>) -> Debts {
    let functions = parts.functions.len() as u64;
    let classes = parts.classes.len() as u64;
    let files = parts.files.len() as u64;
    let cohesive: Vec<u32> = parts
        .classes
        .iter()
        .filter_map(|class| class.cohesion)
        .collect();
    let found = |owed: fn(&Finding) -> u64| parts.findings.iter().map(owed).sum::<u64>();
    let branches = |one: &FunctionSize<'_>| branches_owed(one.cyclomatic, one.cognitive);
    let unsound = |file: &&FileSize<'_>| file.parse != Parse::Clean;
    let loose = |parts: &u32| u64::from(parts.saturating_sub(1));
    let uses = |class: &Class| u64::from(class.coupling.saturating_sub(FEW_CLASSES));
    let of = |debt: u64, size: u64| Debt { debt, size };
    Debts::from([
        (Dimension::Clones, of(found(copies_owed), functions)),
        (
            Dimension::Complexity,
            of(parts.functions.iter().map(branches).sum(), functions),
        ),
        (
            Dimension::Cohesion,
            of(cohesive.iter().map(loose).sum(), cohesive.len() as u64),
        ),
        (
            Dimension::Coupling,
            of(parts.classes.iter().map(uses).sum(), classes),
        ),
        (
            Dimension::DeadCode,
            of(found(unused_owed), functions + classes),
        ),
        (Dimension::Dependencies, of(found(circles_owed), files)),
        (
            Dimension::Coverage,
            of(parts.files.iter().filter(unsound).count() as u64, files),
        ),
    ])
}

/// Two for each copy, one for each near copy.
fn copies_owed(finding: &Finding) -> u64 {
    let extra = u64::from(finding.value.saturating_sub(1));
    match finding.category {
        Category::Near if finding.confidence >= Confidence::Medium => extra,
        _ if is_clone(finding) => 2 * extra,
        _ => 0,
    }
}

pub(super) fn unused_owed(finding: &Finding) -> u64 {
    match finding.confidence {
        _ if finding.family != Family::DeadCode => 0,
        Confidence::High => 2,
        Confidence::Medium => 1,
        Confidence::Low => 0,
    }
}

fn circles_owed(finding: &Finding) -> u64 {
    u64::from(is_cycle(finding)) * u64::from(finding.value)
}

fn python(parts: &Parts<'_>, depths: &BTreeMap<&RepoPath, u32>) -> PythonSums {
    let python = |file: &&FileSize<'_>| file.language == PYTHON;
    let mut files: Vec<&FileSize<'_>> = parts.files.iter().filter(python).collect();
    if files.is_empty() {
        return PythonSums::default();
    }
    files.sort_unstable_by(|one, other| one.path.cmp(other.path));
    let is = |path: &RepoPath| {
        let found = files.binary_search_by(|file| file.path.cmp(path));
        found.is_ok()
    };
    let about = |finding: &&Finding| finding.paths().any(is);
    let findings: Vec<&Finding> = parts.findings.iter().filter(about).collect();
    let count = |of: fn(&Finding) -> bool| count(findings.iter().copied(), of);
    // Functions of one file are adjacent, so its language is looked up once.
    let of_files = parts.functions.chunk_by(|one, next| one.path == next.path);
    let functions = of_files
        .filter(|all| all.first().is_some_and(|one| is(one.path)))
        .flatten();
    let of_files = parts.classes.chunk_by(|one, next| one.path == next.path);
    let classes: Vec<&Class> = of_files
        .filter(|all| all.first().is_some_and(|one| is(&one.path)))
        .flatten()
        .collect();
    let classes = || classes.iter();
    let mut depths: Vec<u64> = depths
        .iter()
        .filter(|(path, _)| is(path))
        .map(|(_, depth)| u64::from(*depth))
        .collect();
    depths.sort_unstable();
    let sum: u64 = depths.iter().sum();
    let deep = depths.len() as u64;
    // A rank from one, rounded up.
    let rank = (depths.len() * 95).div_ceil(100).max(1) - 1;
    PythonSums {
        files: files.len() as u64,
        unread: files
            .iter()
            .filter(|file| file.parse > Parse::Errors)
            .count() as u64,
        clone_groups: count(is_clone),
        complexity: Spread::of(functions.map(|one| one.cyclomatic), RISKY),
        coupling: Spread::of(classes().map(|one| one.coupling), MANY_CLASSES),
        cohesion: Spread::of(classes().filter_map(|one| one.cohesion), LOOSE),
        dead: count(is_dead),
        cycles: count(is_cycle),
        depth_max: depths.last().copied().unwrap_or(0),
        depth_twice_mean: (2 * sum).div_ceil(deep.max(1)),
        depth_p95: depths.get(rank).copied().unwrap_or(0),
    }
}
