//! Evidence, without the rules of runs: events in a hash chain, signed statements, git objects, and
//! directories of files that a statement seals.
//!
//! This crate compares evidence with its seal and its chain. What a bundle must hold, and whether a
//! decision follows from it, is decided by `provost-core`.
//!
//! # Invariants
//!
//! - A signature is checked before what it signs is read.
//! - Text is read within limits and has one meaning: no key twice, no unknown depth.
//! - No files, clock, environment, threads or randomness, and no other crate of Provost.

pub mod change;
pub mod dsse;
pub mod file_system_names;
pub mod files;
pub mod foreign_text;
pub mod json;
pub mod key;
pub mod object;
pub mod pack;
pub mod path;
pub mod person_key;
pub mod record;
pub mod seal;
pub mod secret;
pub mod statement;
pub mod time;
pub mod tree;
pub mod user_secret;
pub mod verification;
mod word_enum;
pub mod wording;
