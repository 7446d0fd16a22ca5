//! The sealed directory of a run (the bundle): its layout and the reports in it.
//!
//! `provost_engine::bundle` composes the reports and verifies the directory.

pub mod layout;
pub mod report;

pub use provost_evidence::{dsse, files, key, seal, statement, verification};
