//! Does things to the machine: boxes, git, capture, workspaces, processes.
//!
//! # Invariants
//!
//! - Nothing an agent wrote is believed or executed outside a box.
//! - `unsafe` appears only in the box.
