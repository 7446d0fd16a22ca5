//! Who may write a path, and how a decision about it is said: codes, exits and verdicts.
//!
//! # Invariants
//!
//! - Values in, values out; `provost-core` offers these modules under its own name.
//! - Every code, exit status and protected name is listed here, once.

pub mod code;
pub mod exit;
pub mod lease;
pub mod protect;
pub mod scope;
pub mod testfile;
pub mod verdict;

use provost_evidence::{file_system_names, path};
