//! `provost completions`: prints completion scripts for shells, and manual pages.

mod values;

use clap::{Args, ValueEnum};
use clap_complete::aot::{Shell, generate};
use clap_mangen::Man;
use provost_core::code::Code;
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};

/// Print a completion script for a shell, or a manual page.
#[derive(Args)]
#[command(after_help = "Examples:
  provost completions bash > ~/.local/share/bash-completion/completions/provost
  provost completions zsh > \"${fpath[1]}/_provost\"
  provost completions fish > ~/.config/fish/completions/provost.fish
  provost completions man run > ~/.local/share/man/man1/provost-run.1")]
pub(super) struct Completions {
    /// The shell, or `man`.
    #[arg(value_enum)]
    kind: Known,
    /// The command whose manual page is printed; `provost` itself if none is named.
    command: Option<String>,
}

/// What can be printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
    Man,
    /// What the scripts offer for a run.
    #[value(hide = true)]
    Runs,
    /// What they offer for an agent.
    #[value(hide = true)]
    Agents,
}

/// Adds the completion of values to a script.
type WithValues = fn(&str) -> String;

pub(super) fn run(completions: &Completions) -> Outcome {
    let name = completions.command.as_deref();
    let words = |words: Vec<String>| {
        let script = words.join("\n");
        Ok(Script { script }.into())
    };
    let (shell, with_values): (Shell, WithValues) = match completions.kind {
        Known::Bash => (Shell::Bash, values::bash),
        Known::Zsh => (Shell::Zsh, values::zsh),
        Known::Fish => (Shell::Fish, values::fish),
        Known::Man => return manual(name),
        Known::Runs => return words(values::runs()),
        Known::Agents => return words(values::agents()),
    };
    if let Some(name) = name {
        let reason = format!("a script is for all commands; `{name}` is for a manual page only");
        return Err(Failure::new(Code::UsageError, reason).hint("leave the command out"));
    }
    let mut script = Vec::new();
    generate(shell, &mut super::command(), "provost", &mut script);
    let script = with_values(&String::from_utf8_lossy(&script));
    Ok(Script { script }.into())
}

/// The manual page of one command, or of the program.
fn manual(name: Option<&str>) -> Outcome {
    let mut command = super::command();
    command.build();
    if let Some(name) = name {
        let Some(found) = command.find_subcommand(name) else {
            let reason = format!("there is no command `{name}`");
            return Err(
                Failure::new(Code::UsageError, reason).hint("`provost help --all` lists them")
            );
        };
        command = found.clone();
    }
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command).section("1").render(&mut page);
    let script = String::from_utf8_lossy(&page).into_owned();
    Ok(Script { script }.into())
}

/// A completion script or a manual page.
#[derive(Serialize)]
struct Script {
    script: String,
}

impl Answered for Script {
    fn text(&self) -> String {
        self.script.clone()
    }
}
