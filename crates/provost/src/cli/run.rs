//! `provost run`: runs one contract, from the command line or a file, to its sealed verdict.

mod contract_text;
mod defaults;
mod detach;
mod flags;
mod flaws;
pub(super) mod judge;
mod notes;
pub(in crate::cli) mod refused;
mod several;
pub(super) mod start;
pub(in crate::cli) mod ticketed;

use std::env::VarError;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::contract::document::{AcceptMode, Document};
use provost_core::contract::typed::Typed;
use provost_core::contract::{self, Problem, check};
use provost_core::json;
use provost_core::path::RepoPath;
use provost_core::prepare::Step;
use provost_core::run::fact::{ExistingWork, Names, Opened, WorkspaceChoice};
use provost_core::tier::Tier;
use provost_engine::drive::Source;
use provost_engine::opening::{self, Origin, Request, RequestedAgent};
use provost_engine::ports::PortError;
use provost_host::origin::GitOrigin;
use provost_host::{clock, ids, login, virtual_environment};
use serde_json::Value;

use super::check::contract::unreadable;
use super::duration::seconds;
use super::limits::Limits;
use super::net::Net;
use crate::answer::{Failure, Outcome};
use crate::input;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session;
use crate::show::Reader;
use crate::user_consent;

/// Run an agent under contract and judge the result.
#[derive(Args)]
#[command(
    override_usage = "provost run [OPTIONS] <OBJECTIVE>
       provost run [OPTIONS] -f <CONTRACT>",
    after_help = "Missing flags come from [run] of provost.toml in the base commit, which `provost init` writes. What is
still missing then, Provost asks for on a terminal; elsewhere it refuses the run.
Paths are relative to the top of the repository, wherever you are in it.
The agent starts from the base commit; uncommitted changes are not in its workspace.

Examples:
  provost run 'Fix the greeting'
  provost run 'Fix the greeting' --allow src --accept 'cargo test' --agent-cmd my-agent
  provost run 'Fix the greeting' --allow src/greet.py --accept 'pytest -q' --agent fast --timeout 5m
  provost run -f contract.json --agent-cmd my-agent

`provost explain contract` describes the contract file."
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(super) struct Run {
    /// The objective: what the agent should do.
    #[arg(required_unless_present = "file", value_parser = objective)]
    objective: Option<String>,

    /// The contract as a file (JSON, or YAML or TOML by its name), instead of an objective and
    /// flags; `-` reads JSON from stdin.
    #[arg(short, long, value_name = "CONTRACT", help_heading = CONTRACT, conflicts_with_all =
        ["objective", "allow", "accept", "forbid", "timeout", "target", "base", "permit_oracle",
         "memory", "processes", "disk", "no_progress", "net", "tier", "permit_governing",
         "allow_binary", "permit_symlink", "permit_fewer_tests", "retries", "accept_mode",
         "may_ask", "danger_full_access"])]
    file: Option<PathBuf>,

    /// A path that the agent may write, from the top of the repository, with everything below it.
    /// Repeat for more [default: `allow` of [run]].
    #[arg(long, value_name = "PATH", help_heading = CONTRACT)]
    allow: Vec<String>,

    /// A command that must pass on the result; it is split into words and never given to a shell.
    /// Repeat for more [default: `accept` of [run]].
    #[arg(long, value_name = "CMD", help_heading = CONTRACT)]
    accept: Vec<String>,

    /// A path that the agent may not touch, even inside an allowed path.
    #[arg(long, value_name = "PATH", help_heading = CONTRACT)]
    forbid: Vec<String>,

    /// The revision to start from [default: HEAD].
    #[arg(long, value_name = "REV", help_heading = CONTRACT)]
    base: Option<String>,

    /// The branch that the result lands on [default: the one that is checked out].
    #[arg(long, value_name = "BRANCH", help_heading = CONTRACT)]
    target: Option<String>,

    /// Time limit of the agent, and of each acceptance command: 90s, 20m, 2h or 1d [default:
    /// `timeout` of [run], or 20m].
    #[arg(long, value_name = "TIME", help_heading = CONTRACT, value_parser = seconds)]
    timeout: Option<u64>,

    /// What the acceptance commands have to show: that they `pass`, or `no-regression`: that each
    /// failing test also failed twice on the base, and that no test is missing [default: `accept_mode`
    /// of [run], or pass].
    #[arg(long, value_name = "MODE", help_heading = CONTRACT)]
    accept_mode: Option<AcceptMode>,

    /// How many more attempts may fix what the reviewer or an acceptance command refused; up to 10
    /// [default: `retries` of [run], or 0].
    #[arg(long, value_name = "NUMBER", help_heading = CONTRACT)]
    retries: Option<u32>,

    /// The tier of the sandboxes: `namespaces`, or `landlock` where namespaces are missing and the
    /// policy of the repository accepts it [default: namespaces].
    #[arg(long, value_name = "TIER", help_heading = CONTRACT)]
    tier: Option<Tier>,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    limits: Limits,

    /// An agent of `provost.toml`, or codex, claude or gemini [default: `agent` of [run], the agent
    /// `default`, or `agent` of your own config.toml]. Repeat to run several, one after the other,
    /// and compare them.
    #[arg(long, value_name = "NAME", help_heading = AGENT, conflicts_with = "agent_cmd",
        overrides_with = "agent")]
    agent: Option<String>,

    /// The agent as a command; it is split into words and runs in the sandbox.
    #[arg(long, value_name = "CMD", help_heading = AGENT)]
    agent_cmd: Option<String>,

    /// The reviewer of the result before it is tested: an agent of `provost.toml`, or codex, claude
    /// or gemini [default: `review` of [run], or `review.agent`, if set].
    #[arg(long, value_name = "NAME", help_heading = AGENT, conflicts_with = "review_cmd")]
    review: Option<String>,

    /// The reviewer as a command; it writes its report to `$PROVOST_RESULT`.
    #[arg(long, value_name = "CMD", help_heading = AGENT)]
    review_cmd: Option<String>,

    /// A virtual environment of Python on this machine that the sandboxes read, at the same path.
    #[arg(long, value_name = "DIR", help_heading = AGENT)]
    venv: Option<PathBuf>,

    #[command(flatten)]
    ticketed: ticketed::Ticketed,

    /// Submit the contract to the fleet instead of running it here; every other word is for
    /// `provost-fleet submit`.
    #[arg(long, requires = "file", help_heading = FLEET)]
    fleet: bool,

    /// Run in a background process, and print how to follow it.
    #[arg(long)]
    detach: bool,

    /// A test configuration, build script, lock file or CI file that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_oracle: Vec<String>,

    /// An agent instruction or configuration file that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    allow_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH", help_heading = PERMITS)]
    permit_symlink: Vec<String>,

    /// Permit that an acceptance command runs fewer tests than on the base, or none.
    #[arg(long, help_heading = PERMITS)]
    permit_fewer_tests: bool,

    /// Let the agent ask you, while it works, for a path or a permission that it lacks.
    #[arg(long, help_heading = PERMITS)]
    may_ask: bool,

    /// Give the agent all your files and any place of the network, for this run and at most an hour;
    /// your person key has to grant it.
    #[arg(long, value_name = "WHY", help_heading = PERMITS)]
    danger_full_access: Option<String>,

    /// Work that is judged without an agent; only `provost judge` sets it.
    #[arg(skip)]
    work: Option<ExistingWork>,
}

const CONTRACT: &str = "Contract";
const AGENT: &str = "Agent";
const FLEET: &str = "Fleet";
const PERMITS: &str = "Permissions (refused otherwise, even inside an allowed path)";

pub(super) fn run(run: &Run, reader: Reader) -> Outcome {
    if run.fleet {
        return ticketed::submit("submit");
    }
    let place = Places::find()?;
    if let Some(agents) = several::named() {
        return several::run(run, &place, &agents, reader);
    }
    let now = clock::now_millis();
    let own = if run.detach { detach::adopt()? } else { None };
    let by_itself = own.is_some();
    let own = own.or_else(several::assigned);
    let run_id = match own {
        Some(run_id) => run_id,
        None => ids::run_id(now)?,
    };
    if run.detach && !by_itself {
        return detach::begin(&place, &run_id, run.file.as_deref(), reader);
    }
    let Begun {
        opened,
        source,
        shown,
        policy,
    } = match &run.file {
        None => begin_typed(run, &place, reader, |typed| typed.document(&run_id, now))?,
        Some(file) => {
            let (bytes, too_large) = input::read_front(file, contract::LARGEST)?;
            let begun = match too_large {
                Some(failure) => Err(failure),
                None => begin_file(run, &place, file, bytes.clone()),
            };
            begun.map_err(|failure| refused::keep(&place, &run_id, &bytes, failure))?
        }
    };
    let names = Names {
        run_id,
        task_id: opened.contract.task_id.clone(),
        trace_id: crate::trace::trace_id()?,
    };
    let observer = ProgressObserver::new(reader == Reader::Program);
    start::report_interrupted(&place, &observer)?;
    let advice = check::advice(&opened.contract).into_iter();
    for advice in advice.filter(|_| source.is_some()) {
        observer.line(&format!("note: {}: {}", advice.path, advice.problem));
    }
    for line in shown {
        observer.line(&line);
    }
    if reader == Reader::Person {
        // The notes need git, which takes as long as a sandbox, and a program would not read them.
        for note in notes::notes(run, &place, &opened, policy) {
            observer.line(&format!("note: {note}"));
        }
    }
    start::start(place, &names, opened, source.as_ref(), observer)
}

/// A run whose opening is decided.
struct Begun {
    opened: Opened,
    source: Option<Source>,
    /// The contract in lines for a person at a terminal.
    shown: Vec<String>,
    policy: PolicyOrigin,
}

/// Where the policy of a run comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyOrigin {
    /// The base commit, which may have none.
    Base,
    /// The file that `provost init` wrote for this user, for a base that has none.
    Init,
}

/// Begins a run of what the flags and the defaults describe.
fn begin_typed(
    run: &Run,
    place: &Places,
    reader: Reader,
    document: impl FnOnce(Typed) -> Document,
) -> Result<Begun, Failure> {
    let typed = defaults::typed(run, place, reader)?;
    let completed = &typed.completed;
    let document = document(flags::typed(run, completed));
    flaws::check(run, &document, place.repo.checkout())?;
    let review = completed.review.as_ref().map(|it| it.value.clone());
    let agents = (completed.agent.value.clone(), review);
    let named = typed.agent_named_by_person();
    let mut begun = begin(run, place, (&typed.origin, named), (document, agents), None)?;
    typed.check(&begun.opened)?;
    begun.policy = typed.policy(&begun.opened)?;
    if reader == Reader::Person && io::stderr().is_terminal() {
        let base = begun.opened.base_commit.short();
        begun.shown = contract_text::lines(&begun.opened.contract, completed, base);
    }
    Ok(begun)
}

/// Begins a run of the contract that is in `bytes` of the file.
fn begin_file(run: &Run, place: &Places, file: &Path, bytes: Vec<u8>) -> Result<Begun, Failure> {
    let value = input::value(file, &bytes)?;
    // A check of the same contract uses the same rules and the same messages.
    if let Some(verdict) = unreadable(place, &value)? {
        return Err(Failure::from(verdict).hint(input::EXPLAINED));
    }
    let written = input::written(file, bytes)?;
    let origin = GitOrigin(&place.repo);
    let base = &written.document.rollback.baseline_ref;
    let (_, policy) = opening::policy_at(&origin, base).map_err(with_flags)?;
    let agents = defaults::agents_for_file(run, &policy)?;
    let work = (written.document, agents);
    begin(
        run,
        place,
        (&origin, run.agent.as_deref()),
        work,
        Some(written.source),
    )
}

/// Begins a run of a document with its agent and its reviewer; `named` is the agent whose name the
/// person gave.
fn begin(
    run: &Run,
    place: &Places,
    (origin, named): (&dyn Origin, Option<&str>),
    (document, agents): (Document, Agents),
    source: Option<Source>,
) -> Result<Begun, Failure> {
    let request = request(run, document, agents)?;
    let mut opened = opening::opening(origin, request).map_err(with_flags)?;
    if let Some(path) = &run.venv {
        let found = virtual_environment::inspect(path, &place.repo, &opened.base_tree);
        let found = found.map_err(|reason| Failure::new(Code::VenvRefused, reason))?;
        opened.prepare.push(Step::of_environment(found));
    }
    let places = run.net.places();
    let typed = user_consent::Typed {
        agent: named,
        review: run.review.as_deref(),
        places: &places,
        credentials: run.net.credentials(),
    };
    run.ticketed.apply(place, &mut opened)?;
    user_consent::to_run(place, &opened, &typed)?;
    start::check(&opened, source.as_ref())?;
    let shown = Vec::new();
    Ok(Begun {
        opened,
        source,
        shown,
        policy: PolicyOrigin::Base,
    })
}

/// References of the contract to files that are missing in the checkout.
pub(super) fn references(place: &Places, document: &Document) -> Vec<Problem> {
    let root = place.repo.checkout();
    let read = |path: &RepoPath| input::reference(root?, path);
    check::references(document, &read)
}

/// The agent and the reviewer of a run.
type Agents = (RequestedAgent, Option<RequestedAgent>);

/// The request that the flags describe.
fn request(run: &Run, contract: Document, agents: Agents) -> Result<Request, Failure> {
    // A missing secret is reported before anything starts.
    run.net.outlet()?;
    Ok(Request {
        contract,
        typed: run.file.is_none(),
        agent: agents.0,
        work: run.work.clone(),
        review: agents.1,
        credentials: run.net.credentials().to_vec(),
        logins: login::found(),
        workspace: workspace()?,
        owner: session::owner()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The failure with a pointer to the flags, which only the command line knows.
fn with_flags(error: PortError) -> Failure {
    let mut failure = Failure::from(error);
    if failure.code == Code::UsageError {
        let hint = failure.hint.take();
        let hint = hint.map_or(String::new(), |hint| format!("{hint}; "));
        failure = failure.hint(format!("{hint}provost run --help has the flags"));
    }
    failure
}

/// The workspace kind that `PROVOST_WORKSPACE` asks for.
pub(super) fn workspace() -> Result<Option<WorkspaceChoice>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(Code::InputInvalid, format!("PROVOST_WORKSPACE: {error}"))
    };
    let text = match std::env::var("PROVOST_WORKSPACE") {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(None),
        Err(error @ VarError::NotUnicode(_)) => return Err(wrong(&error)),
    };
    json::from_value(Value::String(text))
        .map(Some)
        .map_err(|error| wrong(&error))
}

/// Refuses an empty objective.
pub(super) fn objective(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("say what is to be done".to_owned());
    }
    Ok(text.to_owned())
}
