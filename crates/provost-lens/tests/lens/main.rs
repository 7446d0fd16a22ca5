//! Analyses small trees with the real lens.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

mod bounds;
mod counts;
mod findings;
mod memory;
mod scene;
