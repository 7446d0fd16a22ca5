//! How projects get their dependencies in sandboxes without network.
//!
//! [`mod@recipes`] has the `[[prepare]]` steps of every ecosystem, [`missing`] finds in what a failed
//! command printed which of them is not there.
//!
//! # Invariants
//!
//! - What is proposed follows from the table and from names of the project's own files. Text that a
//!   command printed never adds a command or a place of the network to a proposal.

pub mod missing;
mod python;
pub mod recipes;

pub use missing::{Advice, Lack, advice, lack};
pub use recipes::{Ecosystem, PrepareRow, ProjectFiles, recipes};
