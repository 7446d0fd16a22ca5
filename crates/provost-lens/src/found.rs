//! The functions and classes of a tree, with their places.

use crate::structure::{Category, Confidence, Family, Finding, Severity, Spot};
use provost_core::path::RepoPath;

use crate::facts::{ClassFact, FunctionFact};

/// A function or class with its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed<'a, T> {
    pub(crate) path: &'a RepoPath,
    /// Index of its language.
    pub(crate) language: usize,
    pub(crate) test: bool,
    pub(crate) fact: &'a T,
}

pub(crate) type Function<'a> = Placed<'a, FunctionFact<'a>>;
pub(crate) type Class<'a> = Placed<'a, ClassFact<'a>>;

impl Function<'_> {
    pub(crate) fn lines(&self) -> u32 {
        self.fact.end_line + 1 - self.fact.line.min(self.fact.end_line)
    }

    pub(crate) fn spot(&self) -> Spot {
        spot(
            self.path,
            &self.fact.name,
            self.fact.line,
            self.fact.end_line,
        )
    }
}

pub(crate) fn spot(path: &RepoPath, symbol: &str, line: u32, end_line: u32) -> Spot {
    Spot {
        path: path.clone(),
        symbol: symbol.to_owned(),
        line,
        end_line,
    }
}

/// A finding before it has a unique id.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The first part of its id: `clone:function`, `dead_code`.
    pub(crate) head: &'static str,
    /// The rest of its id.
    pub(crate) key: String,
    pub(crate) family: Family,
    pub(crate) category: Category,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    pub(crate) symbol: String,
    pub(crate) places: Vec<Spot>,
    pub(crate) value: u32,
    pub(crate) limit: u32,
    pub(crate) shape: String,
    pub(crate) message: String,
}

/// Findings with ids, sorted by id. Equal ones are numbered in the order of their places.
pub(crate) fn numbered(mut drafts: Vec<Draft>) -> Vec<Finding> {
    for draft in &mut drafts {
        draft.places.sort();
    }
    drafts.sort_by(|one, other| {
        let (left, right) = ((one.head, &one.key), (other.head, &other.key));
        left.cmp(&right).then_with(|| one.places.cmp(&other.places))
    });
    let mut last = String::new();
    let mut count = 0;
    let mut findings = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let base = format!("{}:{}", draft.head, draft.key);
        count = if base == last { count + 1 } else { 1 };
        let id = match count {
            1 => base.clone(),
            count => format!("{base}#{count}"),
        };
        last = base;
        findings.push(Finding {
            id,
            family: draft.family,
            category: draft.category,
            severity: draft.severity,
            confidence: draft.confidence,
            symbol: draft.symbol,
            places: draft.places,
            value: draft.value,
            limit: draft.limit,
            shape: draft.shape,
            message: draft.message,
        });
    }
    findings.sort_by(|one, other| one.id.cmp(&other.id));
    findings
}

/// A count as reports have it.
pub(crate) fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A hash as sixteen hexadecimal digits.
pub(crate) fn digits(hash: u64) -> String {
    provost_core::object::hex(&hash.to_be_bytes())
}
