//! What the control room knows of the user's repositories, apart from its pages.
//!
//! `index` lists runs and cases without reading their ledgers again, `row_cache` keeps the rows of
//! sealed runs on disk, `registered` has the repositories, `commands` records what pages ask for and
//! starts what drives a run.
//!
//! # Invariants
//!
//! - A row is computed from the ledger; a kept one counts only as long as the stamps of its files
//!   are the same.
//! - What is kept on disk is outside of every repository, and decides about nothing but pages.
//! - Each look at a repository has a limit; what it did not reach is reported, and read by the next.

mod branches;
pub mod changes;
pub mod commands;
pub mod index;
mod live;
mod open_ledger;
pub mod registered;
mod row;
mod row_cache;
pub mod running;
