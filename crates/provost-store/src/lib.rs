//! Persistent state: ledgers in files, the registry in SQLite.
//!
//! # Invariants
//!
//! - What `append` confirmed survives a crash.
//! - Readers never repair.
//! - No bytes on disk make this crate panic, and every wait has a limit.

pub mod board;
pub mod bundle;
pub mod changes;
pub mod driven;
mod error;
mod file;
pub mod ledger;
pub mod lock;
pub mod registry;

pub use error::StoreError;
pub use file::remote_file_system;
