//! Tasks of the project, as a library so that the integration tests run the same code.

pub mod bench;
pub mod corpus;
pub mod dist;
pub mod escape;
pub mod fields;
pub mod lines;
mod product;
pub mod repository;
pub mod schemas;
pub mod soak;
pub mod tidy;
