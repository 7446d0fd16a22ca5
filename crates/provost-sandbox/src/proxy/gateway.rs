//! The model gateway: reads requests to models, decides about them, and keeps budgets.
//!
//! # Invariants
//!
//! - A request has one reading, or it is refused: JSON without repeated keys, within limits, whose
//!   known fields have their types and their spelling.
//! - One field of a request may be changed, its output limit, and only to a lower number. All other
//!   bytes are forwarded as they came.
//! - When a request is forwarded, what was settled and what is reserved together are within the
//!   budget; see [`budget`].

pub mod budget;
pub mod events;
mod number_field;
pub mod request;
pub mod request_log;
mod rules;
pub mod spend_book;
mod table;

pub use number_field::with_output_limit;
pub(super) use rules::Grants;
pub(super) use table::{ModelRow, Prices, UNKNOWN_OUTPUT, table};
pub use table::{TestedVersions, tested};
