//! Composes the sealed directory of a run (the bundle), verifies it and judges it again.
//!
//! # Invariants
//!
//! - A bundle is checked from its bytes alone: no repository, no store, no network.
//! - A signature is checked before what it signs is read.
//! - No file of a bundle is trusted to be well formed; one that is not becomes a finding.

pub mod after;
pub mod attempts;
pub mod compose;
pub mod file_kinds;
pub mod formats;
pub mod granted;
pub mod replay;
pub mod sealed;
pub mod statement;
pub mod verify;
