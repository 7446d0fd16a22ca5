//! Recovery: an agent takes over the intent of a dead one, and expired intents are closed.

pub mod decide;
pub(crate) mod perform;
