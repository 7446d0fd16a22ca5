//! The gates: pure functions from facts to a [`Verdict`](crate::verdict::Verdict).

pub mod command;
pub mod diff;
pub mod proof;
