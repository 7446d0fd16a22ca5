//! `provost shell RUN`: enters the sandbox of a run's acceptance commands.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::thread;

use clap::Args;
use provost_core::code::Code;
use provost_core::run::State;
use provost_engine::query;
use provost_host::cache;
use provost_host::machine::{Machine, SandboxShell};
use provost_host::proxy::Outlet;
use provost_host::sandbox::{Command, Control, Ended, LauncherProgram, Stdin, Terminal};
use rustix::termios::{self, OptionalActions, Termios};

use super::prepare::PrepareProgress;
use super::sandbox::{self, SandboxedCommand, Scratch, Shown};
use crate::answer::{Failure, Outcome};
use crate::places::Places;
use crate::session;
use crate::show;
use crate::show::Reader;

// Enter the sandbox of a run's acceptance commands, on what its agent left.
#[derive(Args)]
#[command(after_help = "\
The workspace is a fresh one of exactly the judged tree, with everything that was prepared for it;
for a run that captured nothing it is the base. What you write there is removed when you leave.
The exit status is that of the command, and --json prints to stderr, as with `provost sandbox`.

Examples:
  provost shell last
  provost shell last -- cargo test --offline")]
pub(super) struct Shell {
    /// The run: its id, a part of it, or `last`.
    #[arg(value_name = "RUN")]
    run: String,

    /// A command to run instead of an interactive shell.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(shell: &Shell, reader: Reader) -> Outcome {
    let outcome = visit(shell, reader);
    if shell.command.is_empty() {
        return outcome;
    }
    sandbox::aside(outcome, reader)
}

fn visit(shell: &Shell, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let run_id = place.find_run(&shell.run)?;
    let here = [io::stdin().is_terminal(), io::stdout().is_terminal()];
    if shell.command.is_empty() && here != [true, true] {
        let reason = "a shell needs a terminal, and there is none";
        return Err(
            Failure::new(Code::UsageError, reason).hint(format!("provost shell {run_id} -- CMD"))
        );
    }
    query::require_own(&place, &run_id)?;
    let directory = place.run(&run_id);
    let _lock = session::lock(&directory, &run_id)?;
    let state = query::state(&place, &run_id)?;
    let tree = match &state.captured {
        Some(captured) => captured.tree.clone(),
        None => state.opened.base_tree.clone(),
    };
    let order = state.accept_again(tree);
    let order = order.map_err(|error| Failure::of(Code::Bug, &error))?;
    place.prepare()?;
    let cache = place.cache()?.to_owned();
    let machine = Machine::new(place.repo, &cache, &cache.join(cache::PREPARED), &run_id);
    let mut progress = PrepareProgress::new(reader);
    let eraser = progress.0.eraser();
    let entered = |visit: &SandboxShell| {
        eraser.wipe();
        enter(visit, shell, &state)
    };
    let ended = machine.visit(&order, &mut progress, entered);
    ended?
}

fn enter(visit: &SandboxShell, shell: &Shell, state: &State) -> Outcome {
    let scratch = Scratch::make()?;
    if shell.command.is_empty() {
        show::print_message(&format!(
            "the acceptance sandbox of {}; what you write is removed when you leave",
            state.names.run_id
        ));
        return at_terminal(visit, &scratch);
    }
    let command = scratch.command(shell.command.clone(), Stdin::Null);
    let mut shown = Shown::default();
    let mut follow = || shown.copy(&command);
    let ended = follow_sandbox(visit, &command, &mut follow);
    shown.copy(&command);
    Ok(SandboxedCommand::of("provost shell", &visit.profile, ended)?.into())
}

fn follow_sandbox(
    visit: &SandboxShell,
    command: &Command,
    tick: &mut dyn FnMut(),
) -> Result<Ended, provost_host::sandbox::SandboxError> {
    LauncherProgram::own()
        .start_with(&visit.profile, command, Outlet::default(), |birth| {
            visit.born(birth)
        })?
        .wait(&mut |_| {
            tick();
            Control::Continue
        })
}

/// An interactive shell of the sandbox, on a terminal of its own.
fn at_terminal(visit: &SandboxShell, scratch: &Scratch) -> Outcome {
    let failed = |error: io::Error| Failure::of(Code::HostFailed, &error);
    let terminal = Terminal::open().map_err(failed)?;
    let shells = ["/bin/bash", "/bin/sh"];
    let found = shells.into_iter().find(|shell| Path::new(shell).exists());
    let argv = vec![found.unwrap_or("/bin/sh").to_owned(), "-i".to_owned()];
    let command = scratch.command(argv, Stdin::Terminal(terminal.far().to_owned()));
    let near = terminal.near();
    let copy = |file: &File| file.try_clone().map_err(failed);
    let (typed, shown) = (copy(near)?, copy(near)?);
    let _raw = Raw::enter().map_err(failed)?;
    fit(near);
    // Ends with this process: a thread that waits for a key cannot be interrupted.
    thread::spawn(move || pass(io::stdin().lock(), typed));
    let screen = thread::spawn(move || pass(shown, io::stdout()));
    let ended = follow_sandbox(visit, &command, &mut || fit(near));
    // The other end is closed with the sandbox, and then no output is left.
    let _ = screen.join();
    Ok(SandboxedCommand::of("provost shell", &visit.profile, ended)?.into())
}

/// Copies from `from` to `to` until the end.
fn pass(mut from: impl io::Read, mut to: impl io::Write) {
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if to
            .write_all(&chunk[..length])
            .and_then(|()| to.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Resizes the sandbox's terminal to that of the user.
fn fit(near: &File) {
    if let Ok(size) = termios::tcgetwinsize(io::stdout()) {
        // A failure affects the layout only.
        let _ = termios::tcsetwinsize(near, size);
    }
}

/// The user's terminal in raw mode, so that every key goes to the sandbox; restored on drop.
struct Raw(Termios);

impl Raw {
    fn enter() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin().as_fd())?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}
