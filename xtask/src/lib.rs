//! Tasks of the project, as a library so that the integration tests run the same code.

pub mod bench;
pub mod corpus;
pub mod dist;
pub mod escape;
pub mod fields;
pub mod lines;
mod mcp_client;
mod product;
pub mod repository;
pub mod schemas;
pub mod soak;
pub mod tidy;

/// Why a task could not be done; all that is done with it is to show it.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

pub type Result<T = (), E = TaskError> = std::result::Result<T, E>;
