//! The `provost` command: surfaces and wiring.
//!
//! # Invariants
//!
//! - Surfaces contain no decisions: they parse, call the engine and the gates, and render.
//! - Data goes to stdout, everything else to stderr.

mod answer;
mod cli;
mod input;
mod show;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
