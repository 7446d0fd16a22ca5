//! `provost completions`: prints completion scripts for shells.

use clap::{Args, ValueEnum};
use clap_complete::aot::{Shell, generate};
use serde_json::json;

use crate::answer::Answer;

/// Print a completion script for a shell.
#[derive(Args)]
#[command(after_help = "Examples:
  provost completions bash > ~/.local/share/bash-completion/completions/provost
  provost completions zsh > \"${fpath[1]}/_provost\"
  provost completions fish > ~/.config/fish/completions/provost.fish")]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Known,
}

/// The supported shells.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(completions: &Completions) -> Answer {
    let shell = match completions.shell {
        Known::Bash => Shell::Bash,
        Known::Zsh => Shell::Zsh,
        Known::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut super::command(), "provost", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Answer::data(json!({ "script": script }), script)
}
