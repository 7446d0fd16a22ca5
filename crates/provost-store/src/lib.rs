//! Remembers: ledgers on files, the registry on SQLite.
//!
//! # Invariants
//!
//! - What `append` confirmed survives a crash.
//! - Readers never repair.
