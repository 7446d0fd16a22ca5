//! What helps a user to write a contract; nothing here decides about a run.

pub mod learn;
pub mod lint;
