//! Holds the rules of Provost: values in, values out.
//!
//! # Invariants
//!
//! - Text is parsed once, into types that can only hold good values.
//! - A gate is a pure function from facts to a [`verdict::Verdict`]; nothing missing, empty or
//!   unreadable is ever an allow.
//! - State is a fold over records; see [`run`].
//! - No files, clock, environment, threads or randomness in this crate.

pub mod change;
pub mod code;
pub mod exit;
pub mod json;
pub mod object;
pub mod path;
pub mod protect;
pub mod record;
pub mod scope;
pub mod verdict;
