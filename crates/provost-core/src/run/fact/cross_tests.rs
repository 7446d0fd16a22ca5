//! The trees that tell what the tests are worth: old tests with new code, and the other way round.

use serde::{Deserialize, Serialize};

use crate::object::Oid;
use crate::path::RawPath;

/// Two trees in which only one half of a change was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossTrees {
    /// The test files that the change touches.
    pub test_files: Vec<RawPath>,
    /// The candidate, with these files as the base has them.
    pub old_tests: Oid,
    /// The base, with these files as the candidate has them.
    pub new_tests: Oid,
}
