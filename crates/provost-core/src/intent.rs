//! Rules for agents that share a checkout: which agent may edit which files, and whether its change
//! holds.
//!
//! An agent declares which files it will touch, learns whether it may edit, edits, says what it
//! touched and gets a verdict. Four things are kept apart: the state of an intent, its owner and
//! whether that owner is alive, which dirty files lie in which scope, and the permission to edit,
//! which follows from the other three. Everything here is a function of the records, the state of
//! the checkout, the facts about the code and the time.
//!
//! The rules are described in `docs/change-control.md`.

pub mod answer;
pub mod claims;
pub mod conflict;
pub mod course;
pub mod finish;
pub mod guard;
pub mod hygiene;
pub mod queue;
pub mod receipt;
pub mod record;
pub mod recover;
pub mod request;
pub mod run;
pub mod scope;
pub mod start;
pub mod unfinished_work;
pub mod verify;
pub mod workspace;
