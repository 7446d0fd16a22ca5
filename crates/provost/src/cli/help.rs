//! The pages of help: the commands of every day, and all commands in groups.

use clap::CommandFactory as _;
use provost_core::code::Code;
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};

/// A heading and the commands below it.
type Group = (&'static str, &'static [&'static str]);

const DAILY: Group = ("Every day", EACH_DAY);

#[cfg(feature = "serve")]
const EACH_DAY: &[&str] = &[
    "init", "doctor", "demo", "run", "judge", "status", "show", "why", "diff", "log", "land",
    "retry", "approve", "reject", "cancel", "verify", "serve", "hook", "change", "agent",
];

#[cfg(not(feature = "serve"))]
const EACH_DAY: &[&str] = &[
    "init", "doctor", "demo", "run", "judge", "status", "show", "why", "diff", "log", "land",
    "retry", "approve", "reject", "cancel", "verify", "hook", "change", "agent",
];

/// What `provost --help` shows.
pub(super) const EVERY_DAY: &[Group] = &[DAILY];

/// All commands, grouped by task.
pub(super) const ALL: &[Group] = &[
    DAILY,
    (
        "Contracts",
        &["contract", "plan", "split", "case", "chain", "prepare"],
    ),
    (
        "Evidence",
        &[
            "runs", "spend", "replay", "export", "key", "salvage", "gc", "lease", "resume",
        ],
    ),
    ("Sandbox", &["sandbox", "shell", "snapshot", "analyze"]),
    ("In a sandbox", &["child", "ask"]),
    ("Formats", FORMATS),
    ("Reference", &["help", "explain", "completions"]),
];

#[cfg(feature = "formats")]
const FORMATS: &[&str] = &[
    "check", "board", "packet", "package", "convert", "schema", "mcp",
];

#[cfg(not(feature = "formats"))]
const FORMATS: &[&str] = &["check", "package", "schema", "mcp"];

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}
      --color WHEN  Use colour: auto, always or never; NO_COLOR turns it off for auto
      --plain       Plain lines for screen readers: no symbols, nothing that is redrawn
      --no-pager    Print long answers without a pager
      --notify=HOW  Say when a run ends: bell, desktop, or command of your own config.toml

`provost help --all` lists all commands, `provost COMMAND --help` explains one.
";

#[derive(clap::Args)]
pub(super) struct Help {
    /// The command to explain, such as `run` or `contract new`.
    #[arg(value_name = "COMMAND", conflicts_with = "all")]
    words: Vec<String>,

    /// List all commands in groups.
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct HelpPage {
    text: String,
}

impl Answered for HelpPage {
    fn text(&self) -> String {
        self.text.clone()
    }
}

pub(super) fn run(help: &Help) -> Outcome {
    let mut command = if help.all {
        with_groups(super::Cli::command(), ALL)
    } else {
        super::command()
    };
    command.build();
    let mut page = &mut command;
    for word in &help.words {
        let Some(below) = page.find_subcommand_mut(word) else {
            let reason = format!("there is no command `{}`", help.words.join(" "));
            let hint = "`provost help --all` lists all commands";
            return Err(Failure::new(Code::UsageError, reason).hint(hint));
        };
        page = below;
    }
    let text = page.render_long_help().to_string();
    Ok(HelpPage { text }.into())
}

/// `command` with a first page that lists `groups`.
pub(super) fn with_groups(command: clap::Command, groups: &[Group]) -> clap::Command {
    let about = |name: &str| {
        let found = command.find_subcommand(name)?;
        found.get_about().map(ToString::to_string)
    };
    let mut text = String::new();
    for (heading, names) in groups {
        text += &format!("{heading}:\n");
        for name in *names {
            text += &format!("  {name:11} {}\n", about(name).unwrap_or_default());
        }
        text += "\n";
    }
    let text = text.trim_end().to_owned();
    command.before_help(text).help_template(TEMPLATE)
}
