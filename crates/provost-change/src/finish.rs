//! The end of a change: its edits are judged by scope, structure and claims.

pub(crate) mod answer;
pub mod claims;
pub mod decide;
pub(crate) mod perform;
pub(crate) mod record;
pub mod verify;
