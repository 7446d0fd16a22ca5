//! `provost-fleet`: runs contracts on many machines. Control is on Temporal, data in git, and the
//! work is done by `provost`, which this program starts as a child process.
//!
//! # Invariants
//!
//! - Nothing that the server says is believed: tickets, evidence and keys are verified here.
//! - tokio and the Temporal SDK are in this crate only.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints its answer and its refusal"
)]

pub mod attempt;
pub mod child;
pub mod command;
pub mod dev;
pub mod enroll;
pub mod failure;
pub mod flows;
pub mod hub;
pub mod identity;
pub mod landing;
pub mod metrics;
pub mod server;
pub mod settings;
pub mod submit;
pub mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use provost_core::exit::Exit;
use provost_core::foreign_text::one_line;
use provost_ticket::course::{AttemptEnd, CourseEnd};
use provost_ticket::fence::Fence;

use crate::attempt::{AttemptOrder, AttemptWatch};
use crate::failure::{FleetFailure, FleetResult, host};
use crate::server::Role;
use crate::settings::FleetSettings;

/// Runs contracts on many machines, each by the rules of one.
#[derive(Parser)]
#[command(name = "provost-fleet", version, arg_required_else_help = true)]
struct Cli {
    /// The settings of this machine [default: `PROVOST_FLEET_CONFIG`, or fleet.toml beside your
    /// other settings of Provost].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the answer as JSON on stdout, for programs.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Submit a contract, and wait for its end.
    Submit(submit::Submit),
    /// Take runs of a pool.
    Worker {
        #[arg(long, value_name = "NAME", default_value = "default")]
        pool: String,
        /// How many runs at a time.
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        slots: usize,
    },
    /// Decide about leases, and land results.
    Lander,
    /// Make one attempt of a ticket here, under any launcher and without a server.
    Execute {
        /// The signed ticket.
        ticket: PathBuf,
        /// The number of the lease and of the attempt.
        #[arg(long, value_name = "N.A", default_value = "1.1")]
        fence: Fence,
    },
    /// Show where a run stands.
    Status { run: String },
    /// Cancel a run; its work is kept.
    Cancel { run: String },
    /// List, add and revoke the keys of the fleet in provost.toml.
    #[command(subcommand)]
    Keys(enroll::KeysCommand),
    /// Try the whole fleet on this machine: server, hub, two workers and a lander.
    Dev(dev::Dev),
}

pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit = match run(&cli) {
        Ok(exit) => exit,
        Err(failure) => {
            report(&failure, cli.json);
            failure.code.exit()
        }
    };
    ExitCode::from(u8::from(exit))
}

fn report(failure: &FleetFailure, json: bool) {
    if json {
        println!(
            "{}",
            serde_json::to_string(&failure.verdict()).unwrap_or_default()
        );
    }
    eprintln!("error[{}]: {}", failure.code, one_line(&failure.reason));
    match &failure.hint {
        Some(hint) => eprintln!("hint: {}", one_line(hint)),
        None => eprintln!("hint: provost explain {}", failure.code),
    }
}

fn on_tokio<T>(work: impl Future<Output = FleetResult<T>>) -> FleetResult<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(host("starting threads"))?.block_on(work)
}

fn run(cli: &Cli) -> FleetResult<Exit> {
    let settings = || FleetSettings::read(cli.config.as_deref());
    match &cli.command {
        Command::Submit(submit) => {
            let settings = settings()?;
            let order = submit.order(&settings)?;
            on_tokio(async {
                server::start(&settings, &order).await.map_err(|failure| {
                    let kept = format!(
                        "its ticket is kept: provost-fleet submit --run {}",
                        order.run
                    );
                    if failure.hint.is_some() {
                        failure
                    } else {
                        failure.hint(kept)
                    }
                })?;
                if submit.detach {
                    println!("{}", order.run);
                    return Ok(Exit::Yes);
                }
                eprintln!("submitted {}", order.run);
                let end = server::end_of(&settings, &order.run).await?;
                Ok(shown(&order.run, &end, cli.json))
            })
        }
        Command::Worker { pool, slots } => {
            let settings = settings()?;
            fit(&settings)?;
            let role = Role::Worker {
                pool: pool.clone(),
                slots: (*slots).clamp(1, 256),
            };
            on_tokio(server::serve(settings, role)).map(|()| Exit::Yes)
        }
        Command::Lander => {
            let settings = settings()?;
            identity::signing_key()?;
            on_tokio(server::serve(settings, Role::Lander)).map(|()| Exit::Yes)
        }
        Command::Execute { ticket, fence } => execute(&settings()?, ticket, *fence),
        Command::Status { run } => status(&settings()?, run, cli.json),
        Command::Cancel { run } => {
            on_tokio(server::cancel(&settings()?, run))?;
            println!("{run} will end with what it has; provost-fleet status {run}");
            Ok(Exit::Yes)
        }
        Command::Keys(keys) => {
            print!("{}", enroll::keys(keys)?);
            Ok(Exit::Yes)
        }
        Command::Dev(dev) => dev::run(dev).map(|()| Exit::Yes),
    }
}

/// Refuses to take work on a machine that cannot make a sandbox which holds.
fn fit(settings: &FleetSettings) -> FleetResult<()> {
    let mut program = std::process::Command::new(&settings.provost);
    program.args(["sandbox", "selftest"]);
    let done = command::run(program, &[], settings.intervals.git())?;
    if done.status.success() {
        return Ok(());
    }
    let reason = format!(
        "the sandbox of this machine does not hold: {}",
        done.complaint()
    );
    Err(FleetFailure::new(provost_core::code::Code::WorkerUnfit, reason).hint("provost doctor"))
}

fn execute(settings: &FleetSettings, ticket: &PathBuf, fence: Fence) -> FleetResult<Exit> {
    let text = std::fs::read_to_string(ticket).map_err(host("reading the ticket"))?;
    let order = AttemptOrder {
        ticket: text,
        fence,
        again: None,
    };
    let report = attempt::make(settings, &order, &AttemptWatch::default())?;
    println!("{}", serde_json::to_string(&report).unwrap_or_default());
    Ok(match report.end {
        AttemptEnd::Accepted => Exit::Yes,
        AttemptEnd::Refused(verdict) => verdict.exit(),
        AttemptEnd::Cancelled => Exit::No,
    })
}

fn status(settings: &FleetSettings, run: &str, json: bool) -> FleetResult<Exit> {
    let course = on_tokio(server::course(settings, run))?;
    match course.next() {
        provost_ticket::course::CourseStep::Done(end) => Ok(shown(run, &end, json)),
        step if json => {
            println!("{}", serde_json::to_string(&course).unwrap_or_default());
            drop(step);
            Ok(Exit::NotNow)
        }
        step => {
            println!("{run} {}", step.words());
            Ok(Exit::NotNow)
        }
    }
}

fn shown(run: &str, end: &CourseEnd, json: bool) -> Exit {
    if json {
        println!("{}", serde_json::to_string(end).unwrap_or_default());
    }
    let (words, exit) = match end {
        CourseEnd::Landed { commit, fence } => (format!("landed {commit} ({fence})"), Exit::Yes),
        CourseEnd::Refused(verdict) => {
            let words = format!("refused ({}): {}", verdict.code, one_line(&verdict.reason));
            (words, verdict.exit())
        }
        CourseEnd::Cancelled => ("cancelled".to_owned(), Exit::No),
        CourseEnd::Lost { reason } => (format!("lost: {}", one_line(reason)), Exit::Lacking),
    };
    if !json {
        println!("{run} {words}");
    }
    exit
}
