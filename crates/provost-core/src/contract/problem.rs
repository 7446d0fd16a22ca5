//! What is wrong with a contract, place by place.

use serde::Serialize;

use crate::code::Code;
use crate::wording::clipped;

/// The longest place and the longest words of a problem, in characters.
const LONGEST_WORDS: usize = 1000;

/// A place in the document that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The place, as a JSON pointer.
    pub path: String,
    /// The rule.
    pub code: Code,
    /// What is wrong there.
    pub problem: String,
}

impl Problem {
    /// What is wrong at `path`, by the rule `code`. It quotes the document, and stays short all the
    /// same: findings are sealed.
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
