//! What a contract says about the network, and what a run records of it.
//!
//! The proxy that enforces it is in `provost-sandbox`.

pub mod address;
pub mod credential;
pub mod endpoint;
pub mod field_name;
pub mod model_api;
pub mod model_traffic;
pub mod traffic;
