//! `provost run`: one contract, from the command line or a file, to its sealed verdict.

mod flags;

use std::path::PathBuf;

use clap::Args;
use provost_core::code::Code;
use provost_core::contract::document::Document;
use provost_core::gate::command;
use provost_core::run::fact::{Names, Opened};
use provost_core::{contract, json};
use provost_host::git::GitError;
use provost_host::{clock, ids};

use crate::answer::{Failure, Outcome};
use crate::config::Config;
use crate::place::Place;
use crate::progress::Onlooker;
use crate::session::{self, Session};
use crate::show::Reader;
use crate::{history, input, report};

/// Let an agent work under contract, and judge what it left.
#[derive(Args)]
pub(super) struct Run {
    /// What is to be done.
    #[arg(required_unless_present = "file")]
    objective: Option<String>,

    /// The contract as a JSON file, instead of flags; `-` reads stdin.
    #[arg(short, long, value_name = "CONTRACT", conflicts_with_all =
        ["objective", "allow", "accept", "forbid", "timeout", "target", "base", "permit_oracle",
         "permit_governing", "permit_binary", "permit_symlink"])]
    file: Option<PathBuf>,

    /// A path the agent may write; it covers everything below it.
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,

    /// A command that must pass on the result.
    #[arg(long, value_name = "CMD")]
    accept: Vec<String>,

    /// A path the agent may not touch, even inside what is allowed.
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,

    /// An agent of `provost.toml`.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_cmd")]
    agent: Option<String>,

    /// The agent as a command; it is split like a shell would and runs in the box.
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,

    /// The revision to start from.
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// The branch the result is meant for; by default the one that is checked out.
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,

    /// When the agent, or one acceptance command, is ended: seconds, or with `s`, `m` or `h`.
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = seconds)]
    timeout: u64,

    /// A test configuration, build script, lock file or CI file that may change.
    #[arg(long, value_name = "PATH")]
    permit_oracle: Vec<String>,

    /// An agent instruction or configuration file that may change.
    #[arg(long, value_name = "PATH")]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH")]
    permit_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH")]
    permit_symlink: Vec<String>,
}

pub(super) fn run(run: &Run, reader: Reader) -> Outcome {
    let place = Place::find()?;
    let document = match &run.file {
        Some(file) => {
            let bytes = input::read(file, json::LARGEST)?;
            contract::parse(&bytes).map_err(|error| Failure::of(Code::InputInvalid, &error))?
        }
        None => flags::document(run),
    };
    let unlucky = |error: ids::NoRandomness| Failure::of(Code::HostFailed, &error);
    let names = Names {
        run_id: ids::run_id(clock::now_millis()).map_err(unlucky)?,
        task_id: document.task_id.clone(),
        trace_id: ids::trace_id().map_err(unlucky)?,
    };
    let opened = opening(run, &place, document)?;
    let bundle = place.run(&names.run_id);
    let mut onlooker = Onlooker::new(reader == Reader::Program);
    for run_id in history::interrupted(&place)? {
        onlooker.line(&format!(
            "note: {run_id} was interrupted; provost resume {run_id}"
        ));
    }
    onlooker.line(&format!("run {}", names.run_id));
    let state = Session::create(place, &names)?.run(&names, opened, &mut onlooker);
    onlooker.clear();
    Ok(report::run(&state?, &bundle))
}

/// How the run begins: its contract, with everything it refers to pinned.
fn opening(run: &Run, place: &Place, document: Document) -> Result<Opened, Failure> {
    let git = |error: GitError| Failure::of(Code::GitFailed, &error);
    let base = run.base.as_ref().unwrap_or(&document.rollback.baseline_ref);
    let base_commit = place.repo.resolve(base).map_err(|error| {
        Failure::of(Code::NotFound, &error).hint("commit something first, or name a revision")
    })?;
    let base_tree = place.repo.commit_tree(&base_commit).map_err(git)?;
    let config = Config::at(&place.repo, &base_tree)?;
    let extra = document.x_provost.as_ref();
    let target = match extra.and_then(|extra| extra.target.clone()) {
        Some(name) if name.starts_with("refs/heads/") => Some(name),
        Some(name) => Some(format!("refs/heads/{name}")),
        None => place.repo.head_branch().map_err(git)?,
    };
    Ok(Opened {
        contract_sha256: contract::digest(&document),
        contract: document,
        typed: run.file.is_none(),
        base_commit,
        base_tree,
        object_format: place.repo.format(),
        target,
        agent: agent(run, &config)?,
        agent_typed: run.agent_cmd.is_some(),
        protect: config.protect,
        commands: config.commands,
        owner: session::owner()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The command of the agent.
fn agent(run: &Run, config: &Config) -> Result<Vec<String>, Failure> {
    if let Some(text) = &run.agent_cmd {
        let argv = command::split(text).map_err(|flaw| {
            Failure::new(Code::UsageError, format!("--agent-cmd `{text}`: {flaw}"))
                .hint("for a shell, quote it: --agent-cmd \"sh -c '…'\"")
        })?;
        if argv.is_empty() {
            return Err(Failure::new(Code::UsageError, "--agent-cmd is empty"));
        }
        return Ok(argv);
    }
    let name = run.agent.as_deref().unwrap_or("default");
    config.agents.get(name).cloned().ok_or_else(|| {
        Failure::new(
            Code::NotFound,
            format!("provost.toml has no agent `{name}`"),
        )
        .hint("name a command with --agent-cmd, or add [agents.NAME] to provost.toml and commit it")
    })
}

/// Reads a time as a person writes it.
fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write 90, 90s, 20m or 2h".to_owned())?;
    let seconds = number
        .checked_mul(factor)
        .ok_or_else(|| "is too long".to_owned())?;
    if seconds == 0 {
        Err("must be at least one second".to_owned())
    } else {
        Ok(seconds)
    }
}
