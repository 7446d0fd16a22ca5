//! Parses the command line and sends each command to its module.

mod agent;
mod analyze;
mod approve;
mod board;
mod cancel;
mod chain;
mod change;
mod check;
mod completions;
mod contract;
mod convert;
mod demo;
mod doctor;
mod duration;
mod explain;
mod export;
mod gc;
pub(crate) mod hook;
mod init;
mod key;
mod land;
mod lease;
mod limits;
mod log;
mod net;
mod package;
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
mod shell;
mod snapshot;
mod verify;
mod why;

use std::panic;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use provost_core::code::Code;
use provost_core::exit::Exit;

use crate::answer::{Failure, Outcome};
use crate::show::{self, Reader};

/// Puts coding agents under contract: an agent works in a sandbox that cannot exceed its contract, gates
/// judge what it left, and a sealed bundle of evidence comes out.
#[derive(Parser)]
#[command(name = "provost", version, arg_required_else_help = true)]
struct Cli {
    /// Answer in JSON on stdout, for programs.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

// Only what is called is described in full, because each start of any command would pay for all.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Make this repository ready, and say how to begin.
    Init(init::Init),
    /// Say whether this machine has what runs need.
    Doctor(doctor::Doctor),
    /// Make dependencies ready for sandboxes that have no network.
    Prepare(prepare::Prepare),
    /// Watch agents work under contract, in a temporary repository.
    Demo(demo::Demo),
    /// Let an agent work under contract, and judge what it left.
    Run(Box<run::Run>),
    /// Let an agent write a contract for what you want; nothing is run.
    Plan(plan::Plan),
    /// Let an agent divide a contract into smaller ones; nothing is run.
    Split(plan::Split),
    /// Run several contracts, some of which start from the results of others.
    Chain(chain::Run),
    /// Say which runs go on now, which were interrupted, and who changes this checkout.
    Status,
    /// List all runs, the newest first.
    Runs,
    /// Show one run: its verdict, what changed, where the evidence is.
    Show(runs::Which),
    /// Print the records of one run, or follow one that goes on.
    #[command(after_help = "With --json each line is one record, as the ledger holds it.")]
    Log(log::Log),
    /// Print the patch of one run.
    Diff(runs::Which),
    /// Say what was refused, by which line of the contract, and what would open it.
    Why(why::Asked),
    /// Say what source code is made of, and what is wrong with it.
    Analyze(analyze::Analyze),
    /// Put an accepted result on the branch it is meant for.
    Land(land::Land),
    /// Make a control packet from what was measured.
    #[command(subcommand)]
    Packet(packet::Packet),
    /// Bring runs to their end whose driver died.
    Resume(resume::Resume),
    /// End a run, whoever drives it.
    Cancel(cancel::Ended),
    /// Try a run again that is over: the same contract, agent and reviewer.
    Retry(retry::Retry),
    /// Let a run go on that asks for more than the policy lets pass unasked.
    Approve(approve::Approve),
    /// End a run that asks for more than it should get.
    Reject(approve::Reject),
    /// List or restore work that was kept although it did not land.
    #[command(subcommand)]
    Salvage(salvage::Salvage),
    /// Sweep away refs, branches and caches that nobody needs any more.
    Gc(gc::Gc),
    /// Say who holds which paths, or take a lease away.
    #[command(subcommand)]
    Lease(lease::Lease),
    /// Say which agents there are, and try one.
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Keep a board of tasks, locks and logs for a planner and its workers.
    #[command(subcommand)]
    Board(board::Board),
    /// Change files of a checkout that several agents share, under control.
    Change(change::Change),
    /// Serve the tools for controlled changes over MCP, on standard input and output.
    Mcp,
    /// Run any command behind the same walls as an agent.
    #[command(name = "sandbox", alias = "box")]
    Sandbox(sandbox::SandboxCommand),
    /// Enter the sandbox that the acceptance commands of a run had.
    Shell(shell::Shell),
    /// Judge something by the rules, without running anything.
    #[command(subcommand)]
    Check(check::Check),
    /// Say what an agent may do, and what its children may.
    #[command(subcommand)]
    Package(package::Package),
    /// Say in one format what was handed out in another.
    Convert(convert::Convert),
    /// Print the schema of a format, or list them.
    Schema(schema::Schema),
    /// Say what a code means and what to do, or how a contract is written.
    Explain(explain::Explain),
    /// Record the files of a workspace, or those of a git directory that steer git.
    Snapshot(snapshot::TakeSnapshot),
    /// Write contracts, look them over, or learn one from a run.
    #[command(subcommand)]
    Contract(contract::Contract),
    /// Hold commits, pushes and edits of agents to what was agreed, by hooks.
    #[command(subcommand)]
    Hook(hook::Hook),
    /// Manage the key that seals your runs, and the keys you trust.
    #[command(subcommand)]
    Key(key::Key),
    /// Say whether a bundle is intact, complete and authentic.
    Verify(verify::Verify),
    /// Build the files of a run again, or do its gates and tests again, and compare.
    Replay(replay::Again),
    /// Say what a run came to in a format of other tools.
    Export(export::Export),
    /// Print what makes a shell complete these commands.
    Completions(completions::Completions),
}

/// The commands, by what a person is up to.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Begin",
        &["init", "doctor", "agent", "prepare", "demo", "completions"],
    ),
    (
        "Work",
        &[
            "plan", "split", "contract", "run", "chain", "status", "approve", "reject", "cancel",
            "retry", "land", "resume", "hook",
        ],
    ),
    ("Share a checkout", &["change", "mcp"]),
    (
        "Look",
        &["runs", "show", "why", "diff", "log", "analyze", "explain"],
    ),
    ("Prove", &["verify", "replay", "export", "key"]),
    ("Recover and tidy", &["salvage", "lease", "gc"]),
    (
        "Judge and run by hand",
        &["check", "snapshot", "sandbox", "shell"],
    ),
    (
        "Formats of others",
        &["board", "packet", "package", "convert", "schema"],
    ),
];

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}

`provost COMMAND --help` says more about each.
";

/// The command line, with its commands in groups.
fn command() -> clap::Command {
    let command = Cli::command();
    let about = |name: &str| {
        let found = command.find_subcommand(name)?;
        found.get_about().map(ToString::to_string)
    };
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{heading}:\n");
        for name in *names {
            text += &format!("  {name:11} {}\n", about(name).unwrap_or_default());
        }
        text += "\n";
    }
    let text = text.trim_end().to_owned();
    command
        .before_help(text)
        .help_template(TEMPLATE)
        .mut_subcommand("check", |check| check.mut_subcommands(with_example))
}

/// A kind of check whose help shows how it is called; those that judge one file are called alike.
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

/// Runs the command that argv names.
pub(crate) fn main() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        show::print_message(&format!("error[BUG]: {panic}\nhint: provost explain BUG"));
    }));
    let exit = panic::catch_unwind(run).unwrap_or(Exit::Bug);
    ExitCode::from(u8::from(exit))
}

fn run() -> Exit {
    match parse() {
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
        Command::Init(init) => init::run(&init),
        Command::Doctor(doctor) => Ok(doctor::run(&doctor)),
        Command::Prepare(prepare) => prepare::run(&prepare, reader),
        Command::Demo(demo) => demo::run(&demo, reader),
        Command::Plan(plan) => plan::plan(&plan, reader),
        Command::Split(split) => plan::split(&split, reader),
        Command::Chain(chain) => chain::run(&chain, reader),
        Command::Status => runs::status(),
        Command::Runs => runs::list(),
        Command::Show(which) => runs::show(&which),
        Command::Log(log) => log::run(&log, reader),
        Command::Diff(which) => runs::diff(&which),
        Command::Why(asked) => why::run(&asked),
        Command::Analyze(analyze) => analyze::run(&analyze, reader),
        Command::Land(land) => land::run(&land, reader),
        Command::Packet(packet) => packet::run(&packet),
        Command::Resume(resume) => resume::run(&resume, reader),
        Command::Cancel(ended) => cancel::run(&ended, reader),
        Command::Retry(retry) => retry::run(&retry, reader),
        Command::Approve(approve) => approve::approve(&approve, reader),
        Command::Reject(reject) => approve::reject(&reject, reader),
        Command::Salvage(salvage) => salvage::run(&salvage),
        Command::Lease(lease) => lease::run(&lease),
        Command::Agent(agent) => agent::run(&agent, reader),
        Command::Board(board) => board::run(&board),
        Command::Change(change) => change::run(&change, reader),
        Command::Mcp => crate::mcp::serve().map(|()| crate::answer::Answer::silent()),
        Command::Gc(gc) => gc::run(&gc, reader),
        Command::Sandbox(sandboxed) => sandbox::run(sandboxed, reader),
        Command::Shell(shell) => shell::run(&shell, reader),
        Command::Check(check) => check::run(check),
        Command::Package(package) => package::run(&package),
        Command::Convert(convert) => convert::run(&convert, reader),
        Command::Schema(schema) => schema::run(&schema),
        Command::Explain(explain) => explain::run(&explain),
        Command::Snapshot(snapshot) => snapshot::run(&snapshot),
        Command::Contract(contract) => contract::run(&contract),
        Command::Hook(hook) => hook::run(&hook),
        Command::Key(key) => key::run(&key),
        Command::Verify(verify) => verify::run(&verify),
        Command::Replay(again) => replay::run(&again, reader),
        Command::Export(export) => export::run(&export, reader),
        Command::Completions(completions) => Ok(completions::run(&completions)),
    }
}

/// A command line that clap refused, in the words of every other refusal.
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

/// The command that the words of a command line begin with, which may still be used wrongly.
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
/// with empty lines between them. `named` is the command that was meant.
fn wrong(text: &str, named: &str) -> Failure {
    let mut reason = Vec::new();
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
            reason.push(part.trim_start_matches("error: "));
        }
    }
    // `provost run [OPTIONS] …` begins with the command whose help says more.
    let is_name = |word: &&str| !word.is_empty() && !word.starts_with(['<', '[', '-']);
    let command: Vec<&str> = usage.split(' ').take_while(is_name).collect();
    let command = match command.as_slice() {
        // Of a wrong value clap gives no usage.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a person reads about a command line that cannot be parsed.
    fn refusal(line: &str) -> String {
        let words = std::iter::once("provost").chain(line.split(' '));
        let error = command().try_get_matches_from(words.clone()).unwrap_err();
        let words: Vec<String> = words.map(str::to_owned).collect();
        let failure = wrong(&error.render().to_string(), &named(&words));
        format!(
            "{}\nhint: {}",
            failure.reason,
            failure.hint.unwrap_or_default()
        )
    }

    #[test]
    fn a_wrong_command_line_is_answered_with_what_was_meant() {
        insta::assert_snapshot!(refusal("rnu"), @r"
        unrecognized subcommand 'rnu'
        hint: a similar subcommand exists: 'runs'; see provost --help
        ");
        insta::assert_snapshot!(refusal("qqqqq"), @r"
        unrecognized subcommand 'qqqqq'
        hint: provost --help
        ");
        insta::assert_snapshot!(refusal("run x --allw src --accept true"), @r"
        unexpected argument '--allw' found
        hint: a similar argument exists: '--allow'; see provost run --help
        ");
        insta::assert_snapshot!(refusal("retry last --timeout 4"), @r"
        unexpected argument '--timeout' found
        hint: provost retry --help
        ");
        insta::assert_snapshot!(refusal("run x --allow src"), @r"
        the following required arguments were not provided:
          --accept <CMD>
        hint: provost run --help
        ");
        insta::assert_snapshot!(refusal("check scop src"), @r"
        unrecognized subcommand 'scop'
        hint: a similar subcommand exists: 'scope'; see provost check --help
        ");
        insta::assert_snapshot!(refusal("sandbox --timeout soon -- true"), @r"
        invalid value 'soon' for '--timeout <TIME>': write 90, 90s, 20m, 2h or 7d
        hint: provost sandbox --help
        ");
    }

    /// What every command says of itself, with its name.
    fn abouts(command: &clap::Command, path: &str, all: &mut Vec<(String, Option<String>)>) {
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            let about = below.get_about().map(ToString::to_string);
            abouts(below, &path, all);
            all.push((path, about));
        }
    }

    #[test]
    fn no_part_of_a_command_speaks_in_its_place() {
        let mut brief = Vec::new();
        abouts(&Cli::command(), "provost", &mut brief);
        let mut whole = Cli::command();
        whole.build();
        let mut full = Vec::new();
        abouts(&whole, "provost", &mut full);
        for said in brief {
            assert!(full.contains(&said), "{said:?} is described otherwise");
        }
    }

    #[test]
    fn every_command_is_in_one_group_and_every_group_names_commands() {
        command().debug_assert();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        there.sort_unstable();
        assert_eq!(grouped, there);
    }
}
