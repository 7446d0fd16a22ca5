//! The `provost` command: surfaces and wiring.
//!
//! # Invariants
//!
//! - Surfaces contain no decisions: they parse, call the engine and the gates, and render.
//! - Data goes to stdout, everything else to stderr.

mod agreed;
mod answer;
mod change;
mod cli;
mod consent;
mod folder;
mod history;
mod input;
mod kept;
mod lens;
mod mcp;
#[cfg(feature = "failpoints")]
mod mortal;
mod origin;
mod output;
mod parts;
mod place;
mod progress;
mod report;
mod session;
mod show;
mod tail;
mod times;
mod traffic;
mod wishes;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The box launcher is a re-exec of this program; it must not start a thread before that.
    provost_host::boxes::main_if_launcher();
    if cli::hook::agent::is_asked() {
        return cli::hook::agent::answer();
    }
    #[cfg(feature = "failpoints")]
    let _deaths = fail::FailScenario::setup();
    cli::main()
}
