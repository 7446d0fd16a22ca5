//! `provost init`: sets up a repository, tries its tests and shows how to start.
//!
//! # Invariants
//!
//! - An existing file is never overwritten; `provost.toml` is created or left alone.
//! - It is written before its commands are tried, so that it can be corrected.
//! - A second call changes nothing and lists what exists.

pub(super) mod trial;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::agent::Adapter;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::gate::command::quote;
use provost_core::path::RawPath;
use provost_core::policy::run::RunDefaults;
use provost_core::policy::{self, FILE as POLICY, Policy};
use provost_engine::dependencies::recipes::{self, PrepareRow};
use provost_engine::opening::Origin as _;
use provost_fs::atomic;
use provost_host::agent;
use provost_host::git::Repository;
use provost_host::login::{self, LoginReport, Validity};
use provost_host::origin::GitOrigin;
use provost_host::project::policy_text::{self, FirstAgent};
use provost_host::project::{self, Project, dependencies};
use provost_host::user_file;
use serde::Serialize;

use super::hook::install::{self, InstalledHooks};
use crate::answer::{Answered, Failure, Outcome};
use crate::input;
use crate::places::Places;
use crate::show::{Reader, neutralise, one_line};
use crate::user_consent;
use trial::Trial;

/// A directory or file that this command creates.
#[derive(Serialize)]
struct Row {
    what: &'static str,
    path: PathBuf,
    state: State,
    /// Why it cannot be used.
    problem: Option<String>,
}

/// The state of a place.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Made,
    There,
    Broken,
}

/// A repository that is set up.
#[derive(Serialize)]
struct Setup {
    repository: PathBuf,
    places: Vec<Row>,
    /// What prepares the dependencies.
    prepares: Vec<String>,
    project: Project,
    /// The agent of `[run]`.
    agent: Option<String>,
    /// Lines for a policy that is there and has no `[run]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested: Option<String>,
    tried: Trial,
    /// The hooks of git, if they were installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooks: Option<InstalledHooks>,
    next: Vec<String>,
}

/// Set up this repository and show how to start.
#[derive(Args)]
#[command(after_help = "\
provost.toml is written from what is found here, with [run]: the paths, commands and agent that
`provost run 'Fix …'` takes where you give no flag. Then the commands are tried on the current commit,
in a sandbox and for at most two minutes.

With --trust nothing is created: your agreement to a part of the committed provost.toml is stored
by its digest, for this machine. `provost explain approvals` lists what needs it.

Examples:
  provost init
  provost init --trust DIGEST")]
pub(super) struct Init {
    /// Agree to the part of provost.toml with this digest, as a refusal printed it. Repeat for
    /// more.
    #[arg(long, value_name = "DIGEST")]
    trust: Vec<String>,

    /// Do not try the test command.
    #[arg(long, conflicts_with = "trust")]
    no_try: bool,

    /// Install the hooks of git, which hold commits and pushes to the contract that is bound; on a
    /// terminal you are asked.
    #[arg(long, conflicts_with = "trust")]
    hooks: bool,
}

pub(super) fn run(init: &Init, reader: Reader) -> Outcome {
    if init.trust.is_empty() {
        return make(init, reader);
    }
    let place = Places::around(Path::new("."))?;
    let origin = GitOrigin(&place.repo);
    let policy = origin.policy(&origin.tree(&origin.resolve("HEAD")?)?)?;
    let meant = user_consent::agree(&place, &policy, Some(&init.trust))?;
    Ok(Agreement { agreed: meant }.into())
}

/// The parts of the policy that the user has agreed to.
#[derive(Serialize)]
struct Agreement {
    agreed: Vec<user_consent::Wanted>,
}

impl Answered for Agreement {
    fn text(&self) -> String {
        let line = |one: &user_consent::Wanted| format!("agreed: provost.toml {}\n", one.what);
        self.agreed.iter().map(line).collect()
    }
}

fn make(init: &Init, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let Some(checkout) = place.repo.checkout().map(Path::to_owned) else {
        let path = place.repo.common_dir().display();
        return Err(Failure::new(
            Code::NotARepository,
            format!("`{path}` is a bare repository, and {POLICY} needs a checkout"),
        )
        .hint("clone it, and run `provost init` in the clone"));
    };
    let files = dependencies::of_directory(&checkout);
    let dependencies = recipes::all(&files, &on_path);
    let venv = dependencies.iter().any(PrepareRow::is_venv);
    let is_there = |program: &str| on_path(program) || program == "pytest" && venv;
    let project = project::recognise(&checkout, &is_there);
    let dependencies = recipes::with_runner(dependencies, &files, &project.accept);
    let agent = first_agent()?;
    let steps: Vec<String> = dependencies.iter().map(PrepareRow::toml).collect();
    let mut rows = vec![
        row("runtime root", place.root.clone()),
        row("cache", place.cache()?.to_owned()),
    ];
    place.prepare()?;
    let text = policy_text::policy(&project, &agent, &steps.join("\n"));
    let row = policy(&checkout.join(POLICY), &text)?;
    let is_made = row.state == State::Made;
    let written = if is_made {
        Some(agree_to(&place, &text)?)
    } else {
        committed_or_written(&place, &checkout)
    };
    // Only a policy that was written just now grants what was recognised just now.
    let prepares = dependencies.iter().filter(|_| is_made);
    let prepares = prepares.map(PrepareRow::words).collect();
    let has_none = |it: &Policy| it.run == RunDefaults::default();
    let suggested = written.as_ref().filter(|it| !is_made && has_none(it));
    let suggested = suggested.map(|_| policy_text::run(&project, &agent));
    rows.push(row);
    let tried = match &written {
        _ if init.no_try => Trial::not("--no-try"),
        None => Trial::not("the policy is not committed, or cannot be used"),
        Some(policy) => tried(&place, policy, reader),
    };
    let hooks = hooks(&place, init, reader)?;
    // What failed just now would not judge a first run.
    let fails = matches!(tried, Trial::Failed { .. });
    let accept = if fails { &[][..] } else { &project.accept };
    let setup = Setup {
        next: next_steps(&place.repo, &checkout, accept, written.as_ref()),
        repository: checkout,
        places: rows,
        prepares,
        project,
        agent: written.and_then(|policy| policy.run.agent),
        suggested,
        tried,
        hooks,
    };
    Ok(setup.into())
}

/// Installs the hooks of git, if the user wants them and they are not there.
fn hooks(place: &Places, init: &Init, reader: Reader) -> Result<Option<InstalledHooks>, Failure> {
    let question = "Install git hooks that hold commits and pushes to the contract you bind?";
    let wanted = init.hooks
        || reader == Reader::Person && !install::are_there(place) && user_consent::asked(question);
    wanted.then(|| install::for_repository(place)).transpose()
}

/// The policy `text` that was written; the user who has it written agrees to it.
fn agree_to(place: &Places, text: &str) -> Result<Policy, Failure> {
    let written = policy::parse(text.as_bytes());
    let written = written.map_err(|error| Failure::of(Code::Bug, &error))?;
    user_consent::agree(place, &written, None)?;
    user_consent::keep_written(place, text.as_bytes())?;
    Ok(written)
}

/// Tries the commands of `policy`, and notes the result for the runs that follow.
fn tried(place: &Places, policy: &Policy, reader: Reader) -> Trial {
    let trial = trial::attempt(place, policy, reader);
    if let Ok(commit) = place.repo.resolve("HEAD") {
        trial::note_down(place, &policy.run.accept, &commit, &trial);
    }
    trial
}

/// The policy that a run would use: that of the current commit, or the file that this command wrote
/// earlier.
fn committed_or_written(place: &Places, checkout: &Path) -> Option<Policy> {
    if !is_uncommitted(&place.repo) {
        let origin = GitOrigin(&place.repo);
        let tree = origin
            .resolve("HEAD")
            .and_then(|commit| origin.tree(&commit));
        return origin.policy(&tree.ok()?).ok();
    }
    let bytes = input::read(&checkout.join(POLICY), policy::LARGEST).ok()?;
    let policy = policy::parse(&bytes).ok()?;
    user_consent::wrote(place, &bytes).then_some(policy)
}

/// The agent that the first policy names: a known program that is installed, with a login if there
/// is one.
fn first_agent() -> Result<FirstAgent, Failure> {
    if let Some(own) = user_file::read()?.agent {
        let own = one_line(&own);
        let why = format!("Who works; your own config.toml names `{own}` for all repositories.");
        return Ok(FirstAgent { name: None, why });
    }
    let installed = Adapter::programs().filter_map(|adapter| {
        let adapted = login::resolved(&adapter.plain()?);
        agent::find(&adapted).ok().flatten()?;
        let usable = |login: LoginReport| !matches!(login.validity, Validity::Unusable { .. });
        let has_login = LoginReport::of(&adapted).is_some_and(usable);
        Some((adapter.name(), has_login))
    });
    let installed: Vec<(&str, bool)> = installed.collect();
    let ready: Vec<&str> = installed.iter().filter(|it| it.1).map(|it| it.0).collect();
    let (name, why) = match (ready.as_slice(), installed.as_slice()) {
        ([one], _) => (
            Some(*one),
            "Who works: the known program with a login here.".to_owned(),
        ),
        ([first, ..], _) => {
            let all = ready.join(", ");
            let why = format!("Who works: one of the known programs with a login here ({all}).");
            (Some(*first), why)
        }
        ([], [(first, _), ..]) => {
            let why = "Who works: a known program that is installed here, without a login yet.";
            (Some(*first), why.to_owned())
        }
        ([], []) => (
            None,
            "Who works; none of the known programs is installed here.".to_owned(),
        ),
    };
    let name = name.map(str::to_owned);
    Ok(FirstAgent { name, why })
}

/// The state of a directory before it is created.
fn row(what: &'static str, path: PathBuf) -> Row {
    let state = if path.is_dir() {
        State::There
    } else {
        State::Made
    };
    Row {
        what,
        path,
        state,
        problem: None,
    }
}

/// Writes the policy unless the file exists.
fn policy(path: &Path, text: &str) -> Result<Row, Failure> {
    let (state, problem) = match atomic::create(path, text.as_bytes(), 0o666) {
        Ok(()) => (State::Made, None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => standing(path),
        Err(error) => {
            let reason = format!("`{}`: {error}", path.display());
            return Err(Failure::new(Code::HostFailed, reason));
        }
    };
    Ok(Row {
        what: POLICY,
        path: path.to_owned(),
        state,
        problem,
    })
}

/// Whether the existing policy can be used.
fn standing(path: &Path) -> (State, Option<String>) {
    match input::read(path, policy::LARGEST).map(|bytes| policy::parse(&bytes)) {
        Ok(Ok(_)) => (State::There, None),
        Ok(Err(error)) => (State::Broken, Some(error.to_string())),
        Err(failure) => (State::Broken, Some(failure.verdict().reason)),
    }
}

/// The next steps, as whole command lines.
fn next_steps(
    repo: &Repository,
    checkout: &Path,
    accept: &[String],
    policy: Option<&Policy>,
) -> Vec<String> {
    let mut steps = Vec::new();
    if is_uncommitted(repo) {
        // An agent starts from a commit; in a repository without one, all files make the first
        // commit.
        steps.push(if repo.resolve("HEAD").is_ok() {
            format!("git add {POLICY} && git commit -m 'Add the policy of Provost'")
        } else {
            "git add --all && git commit -m 'Begin'".to_owned()
        });
    }
    let name = own_name();
    let is_complete = |policy: &Policy| {
        let run = &policy.run;
        !run.allow.is_empty() && !run.accept.is_empty() && run.agent.is_some()
    };
    if policy.is_some_and(is_complete) {
        steps.push(format!("{name} run 'Fix …'"));
        return steps;
    }
    let greeting = project::free_name(checkout);
    let accept = match accept {
        [] => format!("--accept 'test -e {greeting}'"),
        commands => {
            let flags = commands.iter().map(|it| format!("--accept {}", quote(it)));
            flags.collect::<Vec<_>>().join(" ")
        }
    };
    steps.push(format!(
        "{name} run 'Say hello' --allow {greeting} {accept} \
         --agent-cmd \"sh -c 'echo Hello from an agent > {greeting}'\""
    ));
    steps
}

/// Whether the current commit lacks a policy.
fn is_uncommitted(repo: &Repository) -> bool {
    let tree = repo
        .resolve("HEAD")
        .and_then(|commit| repo.commit_tree(&commit));
    let top = tree.and_then(|tree| repo.read_top(&tree));
    !top.is_ok_and(|top| top.files.contains_key(&RawPath::new(POLICY.as_bytes())))
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// How this program is called here: by its name if PATH leads to it, else by its path.
fn own_name() -> String {
    let Ok(own) = std::env::current_exe() else {
        return "provost".to_owned();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|directory| directory.join("provost"))
        .find(|program| program.is_file());
    let named = first.is_some_and(|program| program.canonicalize().is_ok_and(|at| at == own));
    if named {
        return "provost".to_owned();
    }
    quote(&own.display().to_string())
}

impl Answered for Setup {
    fn exit(&self) -> Exit {
        let broken = self.places.iter().any(|row| row.state == State::Broken);
        if broken { Exit::No } else { Exit::Yes }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.places {
            let problem = row.problem.as_deref().unwrap_or_default();
            let words = match row.state {
                State::Made => "made".to_owned(),
                State::There => "exists".to_owned(),
                State::Broken => format!("cannot be used: {problem}"),
            };
            let path = row.path.display();
            text += &neutralise(&format!("{:13} {path}  {words}\n", row.what));
        }
        let mut rows = |name: &str, lines: &[String]| {
            for (at, line) in lines.iter().enumerate() {
                let name = if at == 0 { name } else { "" };
                text += &format!("{name:13} {}\n", one_line(line));
            }
        };
        rows("project", &self.project.words());
        rows("prepares", &self.prepares);
        rows("tried", &self.tried.lines());
        if let Some(hooks) = &self.hooks {
            rows("hooks", &[hooks.words()]);
        }
        if let Some(lines) = &self.suggested {
            text += "provost.toml has no [run]; with these lines `provost run 'Fix …'` needs no flag:\n";
            text += &neutralise(lines);
        }
        for step in &self.next {
            text += &format!("next: {}\n", one_line(step));
        }
        if self.next.iter().any(|step| step.contains(" --agent-cmd ")) {
            text += "      the shell stands in for your agent; replace it by any command\n";
        }
        text
    }
}
