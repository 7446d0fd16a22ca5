//! The rules of a task board: owners, locks, and the steps that a task may take.
//!
//! # Invariants
//!
//! - A row takes only the steps that [`row::Status::may_become`] permits; a task that ended stays
//!   ended.
//! - Active locks of different tasks never share a path, however it is spelled.
//! - A batch of deltas is applied as a whole or not at all, and a delta counts once.
//! - Functions take the known facts and return a decision. The caller holds the lock of the board
//!   until the decision is stored.
//!
//! This module knows no payload: those are [`crate::operator`]'s. `docs/board.md` describes the board for users.

pub mod acceptance;
pub mod ask;
pub mod decide;
pub mod delta;
pub mod fact;
pub mod lock;
pub mod next;
pub mod reconcile;
pub mod row;
pub mod state;
pub mod transition;
pub mod watchdog;
pub mod worklog;
