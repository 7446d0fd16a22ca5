//! Controlled changes: agents that Provost did not start share a checkout.
//!
//! An agent declares which files it will touch, learns whether it may edit, edits, says what it
//! touched and gets a verdict. Four things are kept apart: the state of an intent, its owner and
//! whether that owner is alive, which dirty files lie in which scope, and the permission to edit,
//! which follows from the other three. Everything here is a function of the records, the state of
//! the checkout, the facts about the code and the time.
//!
//! A module holds one feature: `decide` is its rule, `perform` its use case, `answer` the payload
//! that an agent gets. The rules are described in `docs/change-control.md`.

pub mod analysis;
pub mod answer;
pub mod conflict;
pub mod event;
pub mod evidence;
pub mod finish;
pub mod hook;
pub mod hygiene;
pub mod intent;
pub mod manage;
pub mod next_step;
mod payload;
pub mod ports;
pub mod queue;
pub mod receipt;
pub mod recover;
pub mod request;
#[cfg(test)]
mod sample;
pub mod scope;
pub mod service;
pub mod start;
pub mod tools;
pub mod unfinished_work;
