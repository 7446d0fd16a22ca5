//! Parses the command line and sends each command to its module.

mod boxed;
mod check;
mod demo;
mod doctor;
mod explain;
mod init;
mod key;
mod land;
mod package;
mod resume;
mod run;
mod runs;
mod salvage;
mod schema;
mod snapshot;
mod verify;

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
    /// Make a repository ready, and say how to begin.
    Init,
    /// Say whether this machine has what runs need.
    Doctor(doctor::Doctor),
    /// Watch agents work under contract, in a temporary repository.
    Demo(demo::Demo),
    /// Let an agent work under contract, and judge what it left.
    Run(Box<run::Run>),
    /// Say what goes on now.
    Status,
    /// List all runs.
    Runs,
    /// Show one run.
    Show(runs::Which),
    /// Print the records of one run.
    Log(runs::Log),
    /// Print the patch of one run.
    Diff(runs::Which),
    /// Put an accepted result on its branch.
    Land(land::Land),
    /// Bring runs to their end whose driver died.
    Resume(resume::Resume),
    /// Work that was kept although it did not land.
    #[command(subcommand)]
    Salvage(salvage::Salvage),
    /// Who holds which paths.
    #[command(subcommand)]
    Lease(salvage::Lease),
    /// Run any command behind the same walls as an agent.
    Box(boxed::Boxed),
    /// Judge something by the rules, without running anything.
    #[command(subcommand)]
    Check(check::Check),
    /// What an agent may do, and what its children may.
    #[command(subcommand)]
    Package(package::Package),
    /// Print the schema of a format, or list them.
    Schema(schema::Schema),
    /// Say what a code means and what to do.
    Explain(explain::Explain),
    /// Record the files of a git directory that steer git.
    Snapshot(snapshot::TakeSnapshot),
    /// Keep the key that seals runs, and the keys that are trusted.
    #[command(subcommand)]
    Key(key::Key),
    /// Say whether a bundle is intact, complete and authentic.
    Verify(verify::Verify),
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
            show::show(&dispatch(cli.command, reader), reader)
        }
        Err(error) if error.use_stderr() => refuse(&error),
        // `--help` and `--version` are answers.
        Err(error) => match error.print() {
            Ok(()) => Exit::Yes,
            Err(_) => Exit::Lacking,
        },
    }
}

fn dispatch(command: Command, reader: Reader) -> Outcome {
    match command {
        Command::Run(run) => run::run(&run, reader),
        Command::Init => init::run(),
        Command::Doctor(doctor) => Ok(doctor::run(&doctor)),
        Command::Demo(demo) => demo::run(&demo, reader),
        Command::Status => runs::status(),
        Command::Runs => runs::list(),
        Command::Show(which) => runs::show(&which),
        Command::Log(log) => runs::log(&log, reader),
        Command::Diff(which) => runs::diff(&which),
        Command::Land(land) => land::run(&land, reader),
        Command::Resume(resume) => resume::run(&resume, reader),
        Command::Salvage(salvage) => salvage::run(&salvage),
        Command::Lease(lease) => salvage::lease(&lease),
        Command::Box(boxed) => boxed::run(boxed),
        Command::Check(check) => check::run(check),
        Command::Package(package) => package::run(&package),
        Command::Schema(schema) => schema::run(&schema),
        Command::Explain(explain) => explain::run(&explain),
        Command::Snapshot(snapshot) => snapshot::run(&snapshot),
        Command::Key(key) => key::run(&key),
        Command::Verify(verify) => verify::run(&verify),
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
