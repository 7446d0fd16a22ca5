//! Does things to the machine: boxes, git, capture, workspaces, processes.
//!
//! # Invariants
//!
//! - Nothing an agent wrote is believed or executed outside a box.
//! - `unsafe` appears only in the box.

pub mod agent;
pub mod boxes;
pub mod bundle;
pub mod cache;
pub mod capture;
pub mod clock;
pub mod foreign;
pub mod git;
pub mod hooks;
pub mod ids;
pub mod inspect;
pub mod inventory;
pub mod keys;
pub mod machine;
pub mod own;
pub mod owner;
pub mod proxy;
pub mod shared;
pub mod snapshot;
pub mod trial;
pub mod workspace;

mod beneath;
mod process;
