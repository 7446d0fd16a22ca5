//! Parses the command line and sends each command to its module.

mod agent;
mod agent_answer;
mod analyze;
mod approve;
mod ask;
mod cancel;
mod case;
mod chain;
mod change;
mod check;
mod child;
mod completions;
mod contract;
#[cfg(feature = "formats")]
mod convert;
mod demo;
mod doctor;
mod explain;
mod export;
mod gc;
mod help;
pub(crate) mod hook;
mod init;
mod key;
mod land;
mod lease;
mod limits;
mod log;
mod net;
mod package;
#[cfg(feature = "formats")]
mod packet;
mod plan;
mod prepare;
mod replay;
mod resume;
mod retry;
mod run;
mod runs;
mod salvage;
mod sandbox;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod snapshot;
mod spend;
mod status;
#[cfg(test)]
mod tests;
mod verify;
mod why;

use std::panic;
use std::process::{self, ExitCode};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
#[cfg(feature = "formats")]
use provost_board as board;
use provost_core::code::Code;
use provost_core::duration;
use provost_core::exit::Exit;

use crate::answer::{Failure, Outcome};
use crate::look::Look;
use crate::notify::Notified;
use crate::show::{self, Reader};

/// Puts coding agents under contract: sandbox, gates, evidence.
#[derive(Parser)]
#[command(name = "provost", version, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
struct Cli {
    /// Print the answer as JSON on stdout, for programs.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    #[command(flatten)]
    look: Look,

    #[command(flatten)]
    notified: Notified,

    #[command(subcommand)]
    command: Command,
}

// Only the command that is called is described in full: every start would pay for all of them.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Set up this repository and show how to start.
    Init(init::Init),
    /// Check that this machine has what runs need.
    Doctor(doctor::Doctor),
    /// Prepare dependencies for sandboxes that have no network.
    Prepare(prepare::Prepare),
    /// Watch agents work under contract in a temporary repository.
    Demo(demo::Demo),
    /// Run an agent under contract and judge the result.
    Run(Box<run::Run>),
    /// Judge a branch or commit that any agent or person made; no agent is started.
    Judge(Box<run::judge::Judge>),
    /// Have an agent write a contract for a request; nothing is run.
    Plan(plan::Plan),
    /// Have an agent split a contract into smaller ones; nothing is run.
    Split(plan::Split),
    /// Have a request planned, divided, done, judged as a whole and ready to land.
    Case(Box<case::Case>),
    /// Run several contracts, some of which start from the results of others.
    Chain(chain::Run),
    /// Show active and interrupted runs, and who is changing this checkout.
    Status(status::Status),
    /// List all runs, newest first.
    Runs,
    /// Show what your agents spent, as the proxy counted it.
    Spend(spend::Spend),
    /// Show one run: its verdict, what changed, where the evidence is.
    Show(runs::Which),
    /// Print the events of one run, or follow an active one.
    #[command(after_help = "With --json each line is one event, as the ledger holds it.")]
    Log(log::Log),
    /// Print the patch of one run.
    Diff(runs::Which),
    /// Show what was refused, by which line of the contract, and what would permit it.
    Why(why::Asked),
    /// Measure the structure of source code and list findings.
    Analyze(analyze::Analyze),
    /// Land accepted results on their target branches.
    Land(land::Land),
    /// Make a control packet from measured results.
    #[cfg(feature = "formats")]
    #[command(subcommand)]
    Packet(packet::Packet),
    /// Resume runs whose driver died.
    Resume(resume::Resume),
    /// Cancel a run, whichever process drives it.
    Cancel(cancel::Ended),
    /// Start agents of your own and wait for them, inside a sandbox that grants them.
    #[command(subcommand)]
    Child(child::Child),
    /// Ask a person for more than the contract gives, inside a sandbox that permits it.
    #[command(subcommand)]
    Ask(ask::Ask),
    /// Retry a run that is over, or judge its work again.
    Retry(Box<retry::Retry>),
    /// Approve a run that asks for more than the policy permits by itself.
    Approve(approve::Approve),
    /// Reject a run that asks for more than it should get.
    Reject(approve::Reject),
    /// List or restore work that was kept although it did not land.
    #[command(subcommand)]
    Salvage(salvage::Salvage),
    /// Remove refs, branches and caches that are no longer needed.
    Gc(gc::Gc),
    /// List which runs hold which paths, or take a lease away.
    #[command(subcommand)]
    Lease(lease::Lease),
    /// List the available agents, or try one.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Keep a board of tasks, locks and logs for a planner and its workers.
    #[cfg(feature = "formats")]
    #[command(subcommand)]
    Board(board::Board),
    /// Make controlled changes in a checkout that several agents share.
    Change(change::Change),
    /// Serve the tools for controlled changes over MCP, on standard input and output.
    Mcp,
    /// Run any command in the same sandbox as an agent.
    #[command(name = "sandbox", alias = "box")]
    Sandbox(sandbox::SandboxCommand),
    /// Enter the sandbox of a run's acceptance commands.
    Shell(shell::Shell),
    /// Check contracts, scopes, diffs and payloads against the rules; nothing is run.
    #[command(subcommand)]
    Check(check::Check),
    /// Derive and check the packages of agents and their children.
    #[command(subcommand)]
    Package(package::Package),
    /// Convert a task from one format to another.
    #[cfg(feature = "formats")]
    Convert(convert::Convert),
    /// Print the JSON Schema of a format, or list all schemas.
    Schema(schema::Schema),
    /// Explain a code and its remedy, or print a page of the documentation.
    Explain(explain::Explain),
    /// Record the files of a workspace, or the files of a git directory that control git.
    Snapshot(snapshot::TakeSnapshot),
    /// Write and lint contracts, or learn one from a past run.
    #[command(subcommand)]
    Contract(contract::Contract),
    /// Manage hooks that hold commits, pushes and agents' edits to what was agreed.
    #[command(subcommand)]
    Hook(hook::Hook),
    /// Show and command your runs in a browser, on this machine only.
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    /// Manage the key that seals your runs, your person key, and the keys you trust.
    #[command(subcommand)]
    Key(key::Key),
    /// Check that a bundle is intact, complete and authentic.
    Verify(verify::Verify),
    /// Rebuild the files of a run, repeat its gates and tests, or run its agent again.
    Replay(replay::Again),
    /// Export the result of a run in a format of other tools.
    Export(export::Export),
    /// Print a completion script for a shell, or a manual page.
    Completions(completions::Completions),
    /// Show the help of a command, or list all commands.
    Help(help::Help),
}

/// The command line, with the commands of every day on its first page.
fn command() -> clap::Command {
    help::with_groups(Cli::command(), help::EVERY_DAY)
        .mut_subcommand("check", |check| check.mut_subcommands(with_example))
}

/// Adds an example to the help of a check; all checks of one file are called the same way.
fn with_example(kind: clap::Command) -> clap::Command {
    if kind.get_after_help().is_some() {
        return kind;
    }
    let example = format!("Example:\n  provost check {} payload.json", kind.get_name());
    kind.after_help(example)
}

fn parse() -> Result<Cli, clap::Error> {
    let mut matches = command().try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches)
}

pub(crate) fn main() -> ExitCode {
    // A panic in any thread ends the program: what that thread had to watch is not watched any more.
    panic::set_hook(Box::new(|panic| {
        show::print_message(&format!("error[BUG]: {panic}\nhint: provost explain BUG"));
        process::exit(i32::from(u8::from(Exit::Bug)));
    }));
    ExitCode::from(u8::from(run()))
}

fn run() -> Exit {
    match parse() {
        Ok(cli) => {
            let reader = if cli.json {
                Reader::Program
            } else {
                Reader::Person
            };
            cli.look.apply();
            let drives = matches!(
                cli.command,
                Command::Run(_) | Command::Chain(_) | Command::Retry(_) | Command::Resume(_)
            );
            let outcome = dispatch(cli.command, reader);
            let outcome = if drives {
                cli.notified.after(outcome)
            } else {
                outcome
            };
            show::show(&outcome, reader)
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
        Command::Judge(judge) => run::judge::run(*judge, reader),
        Command::Init(init) => init::run(&init, reader),
        Command::Doctor(doctor) => Ok(doctor::run(&doctor)),
        Command::Prepare(prepare) => prepare::run(&prepare, reader),
        Command::Demo(demo) => demo::run(&demo, reader),
        Command::Plan(plan) => plan::plan(&plan, reader),
        Command::Split(split) => plan::split(&split, reader),
        Command::Case(case) => case::run(&case, reader),
        Command::Chain(chain) => chain::run(&chain, reader),
        Command::Status(status) => status::run(&status, reader),
        Command::Runs => runs::list(),
        Command::Spend(spend) => spend::run(&spend),
        Command::Show(which) => runs::show(&which),
        Command::Log(log) => log::run(&log, reader),
        Command::Diff(which) => runs::diff(&which, reader),
        Command::Why(asked) => why::run(&asked),
        Command::Analyze(analyze) => analyze::run(&analyze, reader),
        Command::Land(land) => land::run(&land, reader),
        #[cfg(feature = "formats")]
        Command::Packet(packet) => packet::run(&packet),
        Command::Resume(resume) => resume::run(&resume, reader),
        Command::Cancel(ended) => cancel::run(&ended, reader),
        Command::Retry(retry) => retry::run(&retry, reader),
        Command::Approve(approve) => approve::approve(&approve, reader),
        Command::Reject(reject) => approve::reject(&reject, reader),
        Command::Salvage(salvage) => salvage::run(&salvage),
        Command::Lease(lease) => lease::run(&lease),
        Command::Agent(agent) => agent::run(&agent, reader),
        #[cfg(feature = "formats")]
        Command::Board(board) => board::run(&board),
        Command::Change(change) => change::run(&change),
        Command::Mcp => crate::mcp::serve().map(|()| crate::answer::Answer::silent()),
        Command::Gc(gc) => gc::run(&gc, reader),
        Command::Sandbox(sandboxed) => sandbox::run(sandboxed, reader),
        Command::Shell(shell) => shell::run(&shell, reader),
        Command::Check(check) => check::run(check),
        Command::Child(child) => child::run(child),
        Command::Ask(asked) => ask::run(asked),
        Command::Package(package) => package::run(package, reader),
        #[cfg(feature = "formats")]
        Command::Convert(convert) => convert::run(&convert, reader),
        Command::Schema(schema) => schema::run(&schema),
        Command::Explain(explain) => explain::run(&explain),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => serve::run(&serve, reader),
        Command::Snapshot(snapshot) => snapshot::run(&snapshot),
        Command::Contract(contract) => contract::run(&contract),
        Command::Hook(hook) => hook::run(&hook),
        Command::Key(key) => key::run(&key),
        Command::Verify(verify) => verify::run(&verify),
        Command::Replay(again) => replay::run(&again, reader),
        Command::Export(export) => export::run(&export, reader),
        Command::Completions(completions) => completions::run(&completions),
        Command::Help(help) => help::run(&help),
    }
}

/// Reports a command line that clap refused in the form of every other refusal.
fn refuse(error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        show::print_message(text.trim_end());
        return Exit::Usage;
    }
    let wants_json = std::env::args_os()
        .take_while(|word| word != "--")
        .any(|word| word == "--json");
    let reader = if wants_json {
        Reader::Program
    } else {
        Reader::Person
    };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    show::show(&Err(wrong(&text, &named(&words))), reader)
}

/// The command that `words` begin with; its arguments may still be wrong.
fn named(words: &[String]) -> String {
    let mut command = Cli::command();
    command.build();
    let mut name = "provost".to_owned();
    for word in words.iter().skip(1) {
        let Some(below) = command.find_subcommand(word) else {
            break;
        };
        name = format!("{name} {word}");
        command = below.clone();
    }
    name
}

/// The failure behind clap's message: what is wrong, then tips, the usage and a pointer to help,
/// with empty lines between them. `named` is the command of the command line.
fn wrong(text: &str, named: &str) -> Failure {
    let mut reason: Vec<String> = Vec::new();
    let mut tips = Vec::new();
    let mut usage = "";
    for part in text.split("\n\n").map(str::trim) {
        if let Some(tip) = part.strip_prefix("tip: ") {
            tips.extend(
                tip.lines()
                    .map(|line| line.trim().trim_start_matches("tip: "))
                    // A user who types a flag does not mean a value that looks like one.
                    .filter(|tip| !tip.starts_with("to pass '--")),
            );
        } else if let Some(line) = part.strip_prefix("Usage: ") {
            usage = line.lines().next().unwrap_or_default();
        } else if !part.is_empty() && !part.starts_with("For more information") {
            reason.push(on_one_line(part.trim_start_matches("error: ")));
        }
    }
    // `provost run [OPTIONS] …` begins with the command whose help has the details.
    let is_name = |word: &&str| !word.is_empty() && !word.starts_with(['<', '[', '-']);
    let command: Vec<&str> = usage.split(' ').take_while(is_name).collect();
    let command = match command.as_slice() {
        // Clap prints no usage for an invalid value.
        [] => named.to_owned(),
        words => words.join(" "),
    };
    let help = format!("{command} --help");
    let hint = match tips.as_slice() {
        [] => help,
        tips => format!("{}; see {help}", tips.join("; ")),
    };
    Failure::new(Code::UsageError, reason.join("; ")).hint(hint)
}

/// A message of clap that lists arguments below its first line, in one line.
fn on_one_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    format!("{first} {}", rest.join(", ")).trim_end().to_owned()
}
