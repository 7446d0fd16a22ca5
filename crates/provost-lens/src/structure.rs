//! Describes the structure of source code, and what a change did to it.
//!
//! A [`Report`] is the result of an analysis of one tree: facts about files, functions and classes,
//! findings, the import graph and the health that follows from them. Everything else here is a rule
//! over reports: [`compare`](compare::compare) two of them, [`attribute`](attribute::attribute)
//! regressions to a scope, check one against a [`budget`], compute how far a change reaches
//! ([`blast`]), choose the checks that a patch needs ([`profile`]).
//!
//! # Invariants
//!
//! - A report is a function of the bytes of the tree, the settings and the version of the analyser,
//!   so its digest identifies them. It contains no path of the machine and no time.
//! - A file that could not be parsed is reported by [`SourceFile::parse`] and never becomes a
//!   finding that decides: a finding only gates if its confidence is high enough
//!   ([`Finding::gates`]).
//! - Ids of findings hold no path, so they survive moves; where two would be equal they are
//!   numbered.

pub mod attribute;
pub mod baseline;
pub mod blast;
pub mod budget;
pub mod compare;
pub mod gates;
pub mod graph;
pub mod health;
pub mod metrics;
pub mod patch;
pub mod pattern;
pub mod profile;
mod settings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use health::Health;
use metrics::Metrics;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RepoPath;

pub use settings::{BadSettings, Formula, Settings};

pub const REPORT_VERSION: &str = "1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub version: String,
    /// The analyser and its version; facts of different ones are not compared.
    pub analyser: String,
    pub settings: Settings,
    /// SHA-256 over path and content of every file of the tree, source code or not.
    pub tree: String,
    /// How many files the tree has, source code or not.
    pub tree_files: u64,
    /// By the name of the language.
    pub languages: BTreeMap<String, LanguageCount>,
    /// The files of source code, sorted by path.
    pub files: Vec<SourceFile>,
    /// Their functions, sorted by path and line.
    pub functions: Vec<Function>,
    /// Their classes, sorted by path and line.
    pub classes: Vec<Class>,
    /// Which file imports which, sorted.
    pub imports: Vec<Import>,
    /// Sorted by id.
    pub findings: Vec<Finding>,
    pub metrics: Metrics,
    /// `None` where there is no source code.
    pub health: Option<Health>,
}

impl Report {
    /// The identity of this report: equal for equal trees, settings and analysers.
    pub fn digest(&self) -> String {
        let identity = json!({
            "version": self.version,
            "analyser": self.analyser,
            "settings": self.settings.digest(),
            "tree": self.tree,
        });
        sha256(json::canonical(&identity).as_bytes())
    }

    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }
}

/// A report without its lists of files, functions, classes and imports, for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Files of every kind.
    pub tree_files: u64,
    pub source_files: u64,
    /// By the name of the language.
    pub languages: BTreeMap<String, LanguageCount>,
    /// Sorted by id.
    pub findings: Vec<Finding>,
    /// `None` where there is no source code.
    pub health: Option<Health>,
}

impl From<&Report> for Summary {
    fn from(report: &Report) -> Self {
        Self {
            tree_files: report.tree_files,
            source_files: report.files.len() as u64,
            languages: report.languages.clone(),
            findings: report.findings.clone(),
            health: report.health.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageCount {
    pub files: u64,
    pub lines: u64,
    pub functions: u64,
    /// Files that are not [`Parse::Clean`].
    pub unsound: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    pub path: RepoPath,
    /// SHA-256 of its bytes.
    pub digest: String,
    pub language: String,
    pub lines: u32,
    /// Whether it is test code, or vendored code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    pub parse: Parse,
}

/// How well a file could be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parse {
    Clean,
    /// With errors; the parts around them are known.
    Errors,
    /// Larger than the parser's limit; only its names are known.
    TooLarge,
    /// Parsing took more steps than permitted; only its names are known.
    TooHard,
    /// It is not UTF-8; only its names are known.
    NotText,
    /// It is so large that not even its names are known, or cannot be read at all.
    Unread,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Identifies it across moves, until its code changes.
    pub id: String,
    pub path: RepoPath,
    /// Its name, with the classes and functions around it.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    pub end_line: u32,
    pub statements: u32,
    /// One, plus one for each branch and each `and` and `or`.
    pub cyclomatic: u32,
    /// The same, but a branch counts more the deeper it is nested.
    pub cognitive: u32,
    /// The largest depth of nested branches.
    pub nesting: u32,
    /// A digest of its structure, without names and values.
    pub shape: String,
    /// A digest of every token.
    pub text: String,
    /// Whether a syntax error lies in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsound: bool,
    /// Whether it is test code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

/// One class, or the equivalent in another language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub path: RepoPath,
    /// Its name, with the classes and functions around it.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    pub end_line: u32,
    pub methods: u32,
    /// How many classes of this tree it uses.
    pub coupling: u32,
    /// Into how many unconnected parts its methods fall; `None` where that cannot be computed.
    pub cohesion: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Import {
    pub from: RepoPath,
    pub to: RepoPath,
    /// Whether it is imported only when needed, or only for its types: such an import makes no
    /// cycle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// A defect of the structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The same wherever its subject is moved to.
    pub id: String,
    pub family: Family,
    pub category: Category,
    pub severity: Severity,
    pub confidence: Confidence,
    pub symbol: String,
    /// Several for clones and cycles.
    pub places: Vec<Spot>,
    pub value: u32,
    /// The largest value that is no finding.
    pub limit: u32,
    /// A digest of the structure of its subject, without names; empty where it says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// A description for users.
    pub message: String,
}

impl Finding {
    /// Whether it may decide about a change: high enough confidence, and not of an advisory
    /// category.
    pub fn gates(&self) -> bool {
        self.confidence >= Confidence::Medium && self.category.gates()
    }

    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.places.iter().map(|spot| &spot.path)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    pub path: RepoPath,
    /// A function or a class; empty for the file itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// The first line, from 1.
    pub line: u32,
    pub end_line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Clone,
    /// Unused code.
    DeadCode,
    /// Parts that are too large or connected in the wrong way.
    Design,
    /// Shape, which is reported and never decides.
    Structural,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Functions that do the same.
    Function,
    /// Runs of statements that do the same.
    Block,
    /// Functions that do nearly the same.
    Near,
    UnusedFunction,
    UnusedClass,
    /// A function with too many branches.
    Complexity,
    /// A class that uses too many others.
    Coupling,
    /// A class whose methods have too little to do with each other.
    Cohesion,
    /// Files that import each other in a circle.
    DependencyCycle,
    /// A function that is hard to read.
    Cognitive,
    /// A function whose branches lie too deep in each other.
    Nesting,
    /// A function that is too long.
    Length,
}

impl Category {
    /// Whether findings of this category may decide about a change.
    pub fn gates(self) -> bool {
        match self {
            Self::Function
            | Self::Block
            | Self::UnusedFunction
            | Self::UnusedClass
            | Self::Complexity
            | Self::Coupling
            | Self::Cohesion
            | Self::DependencyCycle => true,
            Self::Near | Self::Cognitive | Self::Nesting | Self::Length => false,
        }
    }

    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Block => "block",
            Self::Near => "near",
            Self::UnusedFunction => "unused_function",
            Self::UnusedClass => "unused_class",
            Self::Complexity => "complexity",
            Self::Coupling => "coupling",
            Self::Cohesion => "cohesion",
            Self::DependencyCycle => "dependency_cycle",
            Self::Cognitive => "cognitive",
            Self::Nesting => "nesting",
            Self::Length => "length",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth fixing.
    Warning,
    /// Expensive to leave.
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Possibly wrong; it never decides.
    Low,
    /// Right unless the code does something unusual.
    Medium,
    High,
}

#[cfg(any(test, feature = "sample"))]
#[expect(clippy::unwrap_used, reason = "for tests, those of other crates too")]
pub mod sample;
#[cfg(test)]
mod tests;
