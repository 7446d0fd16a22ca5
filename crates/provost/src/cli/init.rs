//! `provost init`: sets up a repository and shows how to start.
//!
//! # Invariants
//!
//! - An existing file is never overwritten; `provost.toml` is created or left alone.
//! - A second call changes nothing and lists what exists.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::gate::command::quote;
use provost_core::path::RawPath;
use provost_core::policy::{self, FILE as POLICY};
use provost_engine::opening::Origin as _;
use provost_fs::atomic;
use provost_host::git::Repository;
use provost_host::origin::GitOrigin;
use provost_host::project::dependencies::{self, Dependencies};
use provost_host::project::{self, Project};
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::input;
use crate::places::Places;
use crate::show::{neutralise, one_line};
use crate::user_consent;

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
    next: Vec<String>,
}

/// Set up this repository and show how to start.
#[derive(Args)]
#[command(after_help = "\
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
}

pub(super) fn run(init: &Init) -> Outcome {
    if init.trust.is_empty() {
        return make();
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

fn make() -> Outcome {
    let place = Places::find()?;
    let Some(checkout) = place.repo.checkout().map(Path::to_owned) else {
        let path = place.repo.common_dir().display();
        return Err(Failure::new(
            Code::NotARepository,
            format!("`{path}` is a bare repository, and {POLICY} needs a checkout"),
        )
        .hint("clone it, and run `provost init` in the clone"));
    };
    let dependencies = dependencies::recognise(&checkout, &on_path);
    let venv = dependencies.iter().any(Dependencies::is_venv);
    let is_there = |program: &str| on_path(program) || program == "pytest" && venv;
    let project = project::recognise(&checkout, &is_there);
    let greeting = project::free_name(&checkout);
    let accept = project.accept(&greeting);
    let steps: Vec<String> = dependencies.iter().map(Dependencies::step).collect();
    let steps = steps.join("\n");
    let mut rows = vec![
        row("runtime root", place.root.clone()),
        row("cache", place.cache()?.to_owned()),
    ];
    place.prepare()?;
    let text = project::policy(&accept, &steps);
    let row = policy(&checkout.join(POLICY), &text)?;
    let mut prepares = Vec::new();
    if row.state == State::Made {
        // The user who has the policy written agrees to it.
        let written = policy::parse(text.as_bytes());
        let written = written.map_err(|error| Failure::of(Code::Bug, &error))?;
        user_consent::agree(&place, &written, None)?;
        // Only a policy that was written just now grants what was recognised just now.
        prepares = dependencies.iter().map(Dependencies::words).collect();
    }
    rows.push(row);
    let setup = Setup {
        next: next_steps(&place.repo, &greeting, &accept),
        repository: checkout,
        places: rows,
        prepares,
        project,
    };
    Ok(setup.into())
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
fn next_steps(repo: &Repository, greeting: &str, accept: &str) -> Vec<String> {
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
    steps.push(format!(
        "{} run 'Say hello' --allow {greeting} --accept '{accept}' \
         --agent-cmd \"sh -c 'echo Hello from an agent > {greeting}'\"",
        own_name(),
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
        text += &format!("{:13} {}\n", "project", self.project.words());
        for words in &self.prepares {
            text += &format!("{:13} {words}\n", "prepares");
        }
        for step in &self.next {
            text += &format!("next: {}\n", one_line(step));
        }
        text += "      the shell stands in for your agent; replace it by any command\n";
        if let Some(accept) = self.project.accept {
            text += &format!(
                "      `{accept}` decides, in a sandbox without network; if it fails there, the end \
                 of its output is shown\n"
            );
        }
        text
    }
}
