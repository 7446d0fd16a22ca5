//! Says what source code is made of, and what a change did to that.
//!
//! A [`Report`] is what an analysis of one tree found: facts about files, functions and classes,
//! findings, the import graph and the health that follows from them. Everything else here is a
//! rule over reports: [`compare`](compare::compare) two of them, [`attribute`](attribute::attribute)
//! what became worse to a scope, hold one against a [`budget`], ask how far a change reaches
//! ([`blast`]), say which checks a patch needs ([`profile`]).
//!
//! # Invariants
//!
//! - A report is a function of the bytes of the tree, the settings and the version of the analyser,
//!   so its digest is theirs. No path of the machine and no time is in it.
//! - What could not be parsed is told by [`SourceFile::parse`] and never becomes a finding that
//!   decides: a finding only gates if it is sure enough ([`Finding::gates`]).
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

use crate::json;
use crate::object::sha256;
use crate::path::RepoPath;
use health::Health;
use metrics::Metrics;

pub use settings::{BadSettings, Formula, Settings};

/// The version of the shape of a report.
pub const REPORT_VERSION: &str = "1";

/// What an analysis of one tree found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this shape.
    pub version: String,
    /// The analyser and its version; facts of different ones are not compared.
    pub analyser: String,
    /// What it was told.
    pub settings: Settings,
    /// SHA-256 over path and content of every file of the tree, source code or not.
    pub tree: String,
    /// How many files of the tree that is, source code or not.
    pub tree_files: u64,
    /// How much there is of each language, by its name.
    pub languages: BTreeMap<String, LanguageCount>,
    /// The files of source code, sorted by path.
    pub files: Vec<SourceFile>,
    /// Their functions, sorted by path and line.
    pub functions: Vec<Function>,
    /// Their classes, sorted by path and line.
    pub classes: Vec<Class>,
    /// Which file imports which, sorted.
    pub imports: Vec<Import>,
    /// What was found, sorted by id.
    pub findings: Vec<Finding>,
    /// Sums over all of it.
    pub metrics: Metrics,
    /// What follows from the sums; nothing where there is no source code.
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

/// What a person is told of a report: everything but the lists of what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many files the tree has, of whatever kind.
    pub tree_files: u64,
    /// How many of them are source code.
    pub source_files: u64,
    /// How much there is of each language, by its name.
    pub languages: BTreeMap<String, LanguageCount>,
    /// What was found, sorted by id.
    pub findings: Vec<Finding>,
    /// What follows from the sums; nothing where there is no source code.
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

/// How much there is of one language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageCount {
    pub files: u64,
    pub lines: u64,
    pub functions: u64,
    /// Files that are not [`Parse::Clean`].
    pub unsound: u64,
}

/// One file of source code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    pub path: RepoPath,
    /// SHA-256 of its bytes.
    pub digest: String,
    /// Which language, by its name.
    pub language: String,
    /// How many lines.
    pub lines: u32,
    /// Whether it is test code, or code of others that was copied in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// How well it could be read.
    pub parse: Parse,
}

/// How well a file could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parse {
    /// Without an error.
    Clean,
    /// With errors; the parts around them are known.
    Errors,
    /// It is larger than is parsed; only its names are known.
    TooLarge,
    /// Parsing took more steps than are allowed; only its names are known.
    TooHard,
    /// It is not UTF-8; only its names are known.
    NotText,
    /// It is so large that not even its names are known, or cannot be read at all.
    Unread,
}

/// One function, method or closure with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Names it wherever it is moved to, until its code changes.
    pub id: String,
    pub path: RepoPath,
    /// Its name, with the classes and functions around it.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line.
    pub end_line: u32,
    /// How many statements it has.
    pub statements: u32,
    /// One, and one more for each branch and each `and` and `or`.
    pub cyclomatic: u32,
    /// The same, but a branch counts more the deeper it lies.
    pub cognitive: u32,
    /// How deep branches lie in each other.
    pub nesting: u32,
    /// What it does, whatever its names and values are.
    pub shape: String,
    /// Every token of it.
    pub text: String,
    /// Whether a syntax error lies in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsound: bool,
    /// Whether it is test code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
}

/// One class, or whatever a language has instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub path: RepoPath,
    /// Its name, with the classes and functions around it.
    pub name: String,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line.
    pub end_line: u32,
    /// How many methods it has.
    pub methods: u32,
    /// How many classes of this tree it uses.
    pub coupling: u32,
    /// In how many parts that share nothing its methods fall; nothing where that cannot be said.
    pub cohesion: Option<u32>,
}

/// One file imports another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Import {
    pub from: RepoPath,
    pub to: RepoPath,
    /// Whether it is imported only when it is needed, or only for its types: no circle comes of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// Something that a person would rather not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name, the same wherever its subject is moved to.
    pub id: String,
    /// What it is about.
    pub family: Family,
    /// Which of the family.
    pub category: Category,
    /// How bad it is.
    pub severity: Severity,
    /// How sure we are.
    pub confidence: Confidence,
    /// The name of its subject.
    pub symbol: String,
    /// Where; several for clones and cycles.
    pub places: Vec<Spot>,
    /// What was measured.
    pub value: u32,
    /// The most that is fine.
    pub limit: u32,
    /// What its subject does, whatever it is called; empty where that says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
    /// The same in words.
    pub message: String,
}

impl Finding {
    /// Whether it may decide about a change: sure enough, and of a category that is not only told.
    pub fn gates(&self) -> bool {
        self.confidence >= Confidence::Medium && self.category.gates()
    }

    /// The files it is about.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.places.iter().map(|spot| &spot.path)
    }
}

/// One place that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// The file.
    pub path: RepoPath,
    /// What is there: a function or a class; empty for the file itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// The first line, from 1.
    pub line: u32,
    /// The last line.
    pub end_line: u32,
}

/// What findings are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// The same code twice.
    Clone,
    /// Code that nobody uses.
    DeadCode,
    /// Parts that are too large or hang together in the wrong way.
    Design,
    /// Shape, which is told and never decides.
    Structural,
}

/// What exactly a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Functions that do the same.
    Function,
    /// Runs of statements that do the same.
    Block,
    /// Functions that do nearly the same.
    Near,
    /// A function that nobody uses.
    UnusedFunction,
    /// A class that nobody uses.
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

    /// Its word, as JSON has it.
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

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth fixing.
    Warning,
    /// Dear to leave.
    Critical,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// It may well be wrong; it never decides.
    Low,
    /// Right unless the code does something unusual.
    Medium,
    /// Right.
    High,
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
