//! The facts about fix attempts.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::contract::document::Document;
use crate::run::Gate;

/// Another attempt is to fix what a gate refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub gate: Gate,
    pub code: Code,
    /// When the attempt may start.
    pub not_before: String,
}

/// The contract of a fix attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    pub number: u32,
    pub contract: Document,
    /// SHA-256 of its canonical spelling.
    pub contract_sha256: String,
    /// Its file in the bundle.
    pub path: String,
}
