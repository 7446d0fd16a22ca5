//! Defines the sealed directory of a run (the bundle), and verifies it.
//!
//! # Invariants
//!
//! - A bundle is checked from its bytes alone: no repository, no store, no network.
//! - A signature is checked before what it signs is read.
//! - No file of a bundle is trusted to be well formed; one that is not becomes a finding.

pub mod after;
pub mod attempts;
pub mod compose;
pub mod layout;
pub mod replay;
pub mod report;
pub mod sealed;
pub mod statement;
pub mod verify;

pub use provost_evidence::{dsse, key};
