//! Reads and writes the payload formats that others fixed.
//!
//! Control packets, operator contracts and child packages are parsed into the core model here and
//! rendered out of it. Only the surfaces know this crate.

pub mod board;
pub mod child_package;
pub mod convert;
pub mod operator;
pub mod packet;
pub mod schema;
