//! Writes the result of a sealed run in formats that other tools read.
//!
//! # Invariants
//!
//! - Everything follows from the ledger and the logs that it names.
//! - What a format cannot express is left out, never bent until it fits.

mod cases;
pub mod junit;
pub mod pull_request;
pub mod sarif;
