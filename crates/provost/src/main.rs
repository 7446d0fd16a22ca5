//! The `provost` command: surfaces and wiring.
//!
//! # Invariants
//!
//! - Surfaces contain no decisions: they parse, call the engine and the gates, and render.
//! - Data goes to stdout, everything else to stderr.

mod answer;
mod approval_text;
mod change;
mod cli;
mod frame;
mod history;
mod input;
mod lens;
mod look;
mod mcp;
mod missing_text;
mod notify;
mod output;
#[cfg(feature = "formats")]
mod packet_directory;
mod parts;
mod permit;
mod places;
mod progress;
mod refusal_text;
mod report;
mod session;
mod show;
mod stores;
mod text_width;
mod times;
mod trace;
mod traffic;
mod user_consent;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The sandbox launcher is a re-exec of this program; it must not start a thread before that.
    provost_host::sandbox::main_if_launcher();
    if cli::hook::agent_hooks::is_asked() {
        return cli::hook::agent_hooks::answer();
    }
    #[cfg(feature = "failpoints")]
    let _deaths = fail::FailScenario::setup();
    cli::main()
}
