//! Parses the command line and sends each command to its module.

mod check;
mod explain;

use std::panic;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use provost_core::code::Code;
use provost_core::exit::Exit;

use crate::answer::{Failure, Outcome};
use crate::show::{self, Reader};

/// Puts coding agents under contract.
#[derive(Parser)]
#[command(name = "provost", version, arg_required_else_help = true)]
struct Cli {
    /// Print the answer as one JSON object.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge something by the rules, without running anything.
    #[command(subcommand)]
    Check(check::Check),
    /// Say what a code means and what to do.
    Explain(explain::Explain),
}

/// Runs the command that argv names.
pub(crate) fn main() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        show::tell(&format!("error[BUG]: {panic}\nhint: provost explain BUG"));
    }));
    let exit = panic::catch_unwind(run).unwrap_or(Exit::Bug);
    ExitCode::from(u8::from(exit))
}

fn run() -> Exit {
    match Cli::try_parse() {
        Ok(cli) => {
            let reader = if cli.json {
                Reader::Program
            } else {
                Reader::Person
            };
            show::show(&dispatch(cli.command), reader)
        }
        Err(error) if error.use_stderr() => refuse(&error),
        // `--help` and `--version` are answers.
        Err(error) => match error.print() {
            Ok(()) => Exit::Yes,
            Err(_) => Exit::Lacking,
        },
    }
}

fn dispatch(command: Command) -> Outcome {
    match command {
        Command::Check(check) => check::run(check),
        Command::Explain(explain) => explain::run(&explain),
    }
}

/// A command line that clap refused.
fn refuse(error: &clap::Error) -> Exit {
    let wants_json = std::env::args_os()
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    if !wants_json {
        let _ = error.print();
        return Exit::Usage;
    }
    let text = error.render().to_string();
    let reason = text.trim().trim_start_matches("error: ").to_owned();
    show::show(
        &Err(Failure::new(Code::UsageError, reason)),
        Reader::Program,
    )
}
