//! The start of a change: an agent declares its scope and learns whether it may edit.

pub(crate) mod answer;
pub mod decide;
pub(crate) mod perform;
