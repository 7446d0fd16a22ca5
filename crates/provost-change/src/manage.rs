//! Requests about declared intents: get, list, renew, promote, check and clear.

pub(crate) mod answer;
pub(crate) mod perform;
