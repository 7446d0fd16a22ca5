//! The problems of a contract, each with its place.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::wording::clipped;

/// The longest path and the longest text of a problem, in characters.
const LONGEST_WORDS: usize = 1000;

/// A place in the document that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// As a JSON pointer.
    pub path: String,
    pub code: Code,
    pub problem: String,
}

impl Problem {
    /// A problem at `path`, by the rule `code`. The text quotes the document, and is truncated
    /// because findings are sealed.
    pub(crate) fn new(code: Code, path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: clipped(path.into(), LONGEST_WORDS),
            code,
            problem: clipped(problem.into(), LONGEST_WORDS),
        }
    }
}

#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.0
            .push(Problem::new(Code::ContractInvalid, path, problem));
    }
}
