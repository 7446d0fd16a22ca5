//! Adds up what an analysis found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::graph::Graph;
use super::health::Dimension;
use super::{Category, Class, Confidence, Family, Finding, Function, Parse, SourceFile};
use crate::path::RepoPath;

/// The cyclomatic complexity up to which nothing is owed.
const EASY: u32 = 10;

/// The cognitive complexity up to which nothing is owed.
const READABLE: u32 = 15;

/// The number of other classes up to which nothing is owed.
const FEW_CLASSES: u32 = 5;

/// From here on a function is at high risk.
const RISKY: u32 = 20;

/// From here on a class uses too many others.
const MANY_CLASSES: u32 = 10;

/// From here on the methods of a class have too little to do with each other.
const LOOSE: u32 = 3;

/// The language that the compatible formula is about.
const PYTHON: &str = "python";

/// What is owed in each dimension.
pub type Debts = BTreeMap<Dimension, Debt>;

/// What is owed, and how much there is that could owe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    /// What is owed.
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
    /// Groups of functions or blocks that do the same; nearly the same does not count.
    pub clone_groups: u64,
    /// Functions and classes that nobody uses, as far as that is sure.
    pub dead_code: u64,
    /// Circles of imports.
    pub cycles: u64,
    /// The largest cyclomatic complexity.
    pub max_complexity: u32,
    /// The largest cognitive complexity.
    pub max_cognitive: u32,
    /// The deepest nesting.
    pub max_nesting: u32,
    /// The most other classes that a class uses.
    pub max_coupling: u32,
    /// The most parts that a class falls into.
    pub max_cohesion: u32,
    /// How many imports deep the deepest file stands on others.
    pub max_depth: u32,
    /// What is owed.
    pub debts: Debts,
    /// The sums behind the compatible formula.
    pub python: PythonSums,
}

/// Sums over the Python files alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonSums {
    pub files: u64,
    /// Files that could not be read.
    pub unread: u64,
    /// Groups of clones.
    pub clone_groups: u64,
    /// Cyclomatic complexity of functions.
    pub complexity: Spread,
    /// Coupling of classes.
    pub coupling: Spread,
    /// Cohesion of classes.
    pub cohesion: Spread,
    /// Symbols that nobody uses.
    pub dead: u64,
    /// Circles of imports.
    pub cycles: u64,
    /// The deepest file.
    pub depth_max: u64,
    /// Twice the mean depth, rounded up.
    pub depth_twice_mean: u64,
    /// The depth that 95 of 100 files do not exceed.
    pub depth_p95: u64,
}

/// How values are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    pub sum: u64,
    /// The largest.
    pub max: u64,
    /// How many are over the limit.
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

/// What sums take of a file of source code.
#[derive(Debug, Clone, Copy)]
pub struct FileSize<'a> {
    pub path: &'a RepoPath,
    /// Which language, by its name.
    pub language: &'a str,
    /// How many lines.
    pub lines: u32,
    /// How well it could be read.
    pub parse: Parse,
}

/// What sums take of a function.
#[derive(Debug, Clone, Copy)]
pub struct FunctionSize<'a> {
    pub path: &'a RepoPath,
    /// Its cyclomatic complexity.
    pub cyclomatic: u32,
    /// Its cognitive complexity.
    pub cognitive: u32,
    /// How deep branches lie in each other.
    pub nesting: u32,
}

impl SourceFile {
    /// What sums take of it.
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
    /// What sums take of it.
    pub fn size(&self) -> FunctionSize<'_> {
        FunctionSize {
            path: &self.path,
            cyclomatic: self.cyclomatic,
            cognitive: self.cognitive,
            nesting: self.nesting,
        }
    }
}

/// What sums are made of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub files: &'a [FileSize<'a>],
    /// The functions; those of one file stand together.
    pub functions: &'a [FunctionSize<'a>],
    pub classes: &'a [Class],
    /// The imports.
    pub graph: &'a Graph<'a>,
    pub findings: &'a [Finding],
}

impl Metrics {
    /// Adds up `parts`.
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

/// What a single function owes for its branches.
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

/// Two for each copy of what is there already, one for what is nearly one.
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
    // Functions of one file stand together, and are asked about once.
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
    // Counted from one, rounded up, as a rank.
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
