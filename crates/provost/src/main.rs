//! The `provost` command: surfaces and wiring.
//!
//! # Invariants
//!
//! - Surfaces contain no decisions: they parse, call the engine and the gates, and render.
//! - Data goes to stdout, everything else to stderr.

mod cli;
#[cfg(feature = "formats")]
mod packet_directory;

use std::process::ExitCode;

use provost_surface::{
    answer, approval_text, broker_client, change, child_tools, frame, history, input, lens, look,
    mcp, missing_text, notify, output, parts, permit, person_signing, places, progress, report,
    session, show, stores, times, trace, traffic, user_consent,
};

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
