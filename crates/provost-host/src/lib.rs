//! Everything that touches the machine: sandboxes, git, capture, workspaces, processes.
//!
//! # Invariants
//!
//! - Nothing an agent wrote is trusted or executed outside a sandbox.
//! - `unsafe` appears only in the sandbox.

pub mod agent;
pub mod bundle;
pub mod cache;
pub mod capture;
pub mod clock;
pub mod git;
pub mod hooks;
pub mod ids;
pub mod inspect;
pub mod inventory;
pub mod keys;
pub mod machine;
pub mod packet_commands;
pub mod process_owner;
pub mod proxy;
pub mod sandbox;
pub mod shared_checkout;
pub mod snapshot;
pub mod untrusted_files;
pub mod user_state;
pub mod workspace;

pub mod beneath;
mod process;
