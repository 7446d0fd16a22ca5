//! Says what a sealed run came to in formats that other tools read.
//!
//! # Invariants
//!
//! - Everything follows from the ledger and the logs that it names; nothing is looked up elsewhere.
//! - What a format has no word for is left out, never bent until it fits.

mod cases;
pub mod junit;
pub mod packet;
pub mod sarif;
