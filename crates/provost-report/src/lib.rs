//! Reads what a run left behind: counts tests, explains refusals, finds missing dependencies, and
//! exports runs for other programs.
//!
//! # Invariants
//!
//! - Everything is computed from events, contracts and recorded output.
//! - `provost-engine` offers these modules under its own name.

pub mod contract;
pub mod dependencies;
pub mod export;
pub mod runner_output;
pub mod why;

#[cfg(test)]
mod tests {
    pub(crate) mod sample_runs;
}
