//! Reads and writes the payload formats that others fixed.
//!
//! Control packets, operator contracts, child packages and change-control payloads are parsed
//! into the core model here and rendered out of it. Only the surfaces know this crate.

pub mod agent_hook;
pub mod board;
pub mod change;
pub mod child_package;
pub mod convert;
pub mod operator;
pub mod packet;
pub mod schema;
