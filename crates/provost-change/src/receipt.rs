//! The receipt of a change: the sealed document about its verdict.

pub mod compose;
pub(crate) mod markdown;
pub(crate) mod store;
