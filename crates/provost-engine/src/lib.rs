//! Drives runs: asks the core for the next step, carries it out through ports, records both.
//!
//! # Invariants
//!
//! - State is a fold over the ledger; nothing else is remembered.
//! - An intent is on disk before its effect starts.
//! - This crate reaches the machine only through its ports.

pub mod acceptance_cache;
pub mod after;
pub mod binding;
pub mod bundle;
pub mod case;
pub mod chain;
pub mod drive;
pub mod land;
pub mod opening;
pub mod plan;
pub mod ports;
pub mod query;
pub mod refused;
pub mod release;
pub mod replay;
pub mod retention;
mod seal;
#[cfg(feature = "sim")]
pub mod sim;
mod target;

pub use provost_report::{contract, dependencies, export, runner_output, why};
