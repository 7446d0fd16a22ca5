//! Facts about packages.
