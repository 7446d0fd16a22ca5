//! Keeps the rules of a task board: who works on what, what is locked, and what may come next.
//!
//! # Invariants
//!
//! - A row goes only where [`row::Status::may_become`] lets it; a task that ended stays ended.
//! - Active locks of different tasks never share a path, however it is spelled.
//! - A batch of deltas is applied as a whole or not at all, and a delta counts once.
//! - Functions take what is known and say what follows; whoever keeps a board does what they say
//!   in one step that nobody else can interrupt.
//!
//! No payload format is known in here. `docs/board.md` tells the same to people.

pub mod acceptance;
pub mod decide;
pub mod delta;
pub mod fact;
pub mod lock;
pub mod next;
pub mod reconcile;
pub mod resource;
pub mod row;
pub mod state;
pub mod transition;
pub mod watchdog;
pub mod worklog;
