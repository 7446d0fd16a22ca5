//! The trees of cross-tests: base tests with the changed code, and changed tests with the base
//! code.

use serde::{Deserialize, Serialize};

use crate::object::Oid;
use crate::path::RawPath;

/// Two trees that each contain one half of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossTrees {
    /// The test files that the change touches.
    pub test_files: Vec<RawPath>,
    /// The candidate, with these files as in the base.
    pub old_tests: Oid,
    /// The base, with these files as in the candidate.
    pub new_tests: Oid,
}
