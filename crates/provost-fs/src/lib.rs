//! How files are written, compared and locked: one mechanism each, for every crate that has files.
//!
//! - [`atomic`] writes a file whole or not at all.
//! - [`stamp`] tells from stat data whether a file has changed.
//! - [`beneath`] opens files below a directory, never through a link.
//! - [`regular_file`] reads a regular file within a limit.
//! - [`remove`] removes a directory, whatever its content.
//! - [`lock`] holds a file lock that ends with its process.
//!
//! Nothing of ours is below this crate, so that the store, the host and the lens, which do not know
//! each other, share it.

pub mod atomic;
pub mod beneath;
pub mod lock;
pub mod regular_file;
pub mod remove;
pub mod stamp;
