//! The rules of the fleet as pure functions: who may ask for a run, which run may write where, and
//! what may land.
//!
//! # Invariants
//!
//! - A ticket counts only if its key is listed at its base commit and at the tip of the target.
//! - Two runs that hold a lease never share a path, and no number is granted twice.
//! - A landing is decided from evidence; a missing, stale or foreign fact refuses it.
//! - No files, clock, environment, threads or randomness in this crate.

pub mod course;
pub mod fence;
pub mod landing;
pub mod scope_leases;
pub mod ticket;
