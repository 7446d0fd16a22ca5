//! `provost hook`: hooks of git and of agents that hold commits, pushes and edits to contracts.

mod after_call;
pub(crate) mod agent_hooks;
mod git_hooks;
pub(super) mod install;
mod settings;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::verdict::Verdict;
use provost_engine::binding::{Binding, Bindings, Bound, BoundContract, HookStop};
use provost_engine::opening::Origin as _;
use provost_engine::ports::PortError;
use provost_engine::query::short_branch;
use provost_host::hooks::{self, GitHook, HOOKS, Standing, bindings};
use provost_host::origin::GitOrigin;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::places::Places;

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Hook {
    /// Install hooks: git asks before every commit, push and move of a bound branch, or an agent
    /// before every edit. Existing hooks are kept.
    Install(Install),
    /// Remove the hooks, and restore what was there before.
    Uninstall(Uninstall),
    /// List the installed hooks, and what is bound to which contract.
    Status,
    /// Bind a checkout or a branch to a contract.
    Bind(Bind),
    /// Remove the binding of a checkout or a branch.
    Unbind(Unbind),
    /// Prove that the installed hook of an agent denies.
    Selftest(settings::Selftest),
    /// Judge what Claude Code is about to do, read from stdin; only its hook calls this.
    Claude,
    /// Judge what Codex is about to do, read from stdin; only its hook calls this.
    Codex,
    /// Judge what git is about to do; only hooks call this.
    #[command(hide = true)]
    Run(Run),
}

#[derive(Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one field a flag of the command line"
)]
pub(super) struct Install {
    /// The agent that has to ask [default: git].
    program: Option<settings::Program>,

    /// Use your own settings of the agent, instead of those of the checkout.
    #[arg(long, requires = "program")]
    user: bool,

    /// Write settings of the checkout that can be committed for a team: the hook finds provost in
    /// PATH, and refuses where it is missing.
    #[arg(long, requires = "program", conflicts_with = "user")]
    team: bool,

    /// Refuse every commit and push that is bound to no contract; kept by a later install.
    #[arg(long, conflicts_with = "program")]
    require: bool,

    /// Permit commits and pushes again that are bound to no contract.
    #[arg(long, conflicts_with_all = ["program", "require"])]
    no_require: bool,
}

#[derive(Args)]
pub(super) struct Uninstall {
    /// The agent [default: git].
    program: Option<settings::Program>,

    /// Use your own settings of the agent.
    #[arg(long, requires = "program")]
    user: bool,
}

#[derive(Args)]
#[command(after_help = "\
The file must stay at its place and unchanged: once it is missing, changed or broken, commits and
pushes are refused. To change a contract, bind it again. Changes are measured from the contract's
base, or from `--base`: bind it again that way after commits of others were pulled in.

Example:
  provost hook bind contract.yaml --branch greeting")]
pub(super) struct Bind {
    /// The contract as JSON, or as YAML or TOML by its file name.
    contract: PathBuf,

    /// The branch to bind, instead of the current checkout.
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,

    /// The commit from which changes are measured, instead of the contract's base.
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

#[derive(Args)]
pub(super) struct Unbind {
    /// The branch, instead of the current checkout.
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,

    /// Another checkout, by the path that `hook status` shows, also if it is gone.
    #[arg(long, value_name = "PATH", conflicts_with = "branch")]
    checkout: Option<String>,
}

#[derive(Args)]
pub(super) struct Run {
    /// Which hook.
    hook: Which,

    /// Whether an update that is bound to no contract is refused.
    #[arg(long)]
    require: bool,

    /// The process of git that called the hook.
    #[arg(long)]
    process: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    PreCommit,
    PreMergeCommit,
    PreApplypatch,
    PrePush,
    ReferenceTransaction,
}

pub(super) fn run(hook: &Hook) -> Outcome {
    if let Hook::Run(run) = hook {
        return judged(run);
    }
    let place = Places::find()?;
    match hook {
        Hook::Install(Install {
            program: Some(program),
            user,
            team,
            ..
        }) => {
            let whom = match (user, team) {
                (true, _) => settings::For::User,
                (false, true) => settings::For::Team,
                (false, false) => settings::For::Checkout,
            };
            settings::install(&place, *program, whom)
        }
        Hook::Install(install) => install::run(&place, install),
        Hook::Uninstall(Uninstall {
            program: Some(program),
            user,
        }) => settings::uninstall(&place, *program, *user),
        Hook::Uninstall(_) => uninstall(&place),
        Hook::Selftest(selftest) => settings::selftest(&place, selftest),
        // `main` answers these; here they came with arguments that no hook has.
        Hook::Claude | Hook::Codex | Hook::Run(_) => {
            let reason = "a hook takes no other arguments";
            Err(Failure::new(Code::UsageError, reason))
        }
        Hook::Status => status(&place),
        Hook::Bind(bind) => self::bind(&place, bind),
        Hook::Unbind(unbind) => self::unbind(&place, unbind),
    }
}

/// The answer to a hook of git.
fn judged(run: &Run) -> Outcome {
    match git_hooks::answer(run) {
        Ok(notes) if notes.is_empty() => Ok(Answer::silent()),
        Ok(notes) => {
            let lines: Vec<String> = notes.iter().map(|note| format!("note: {note}\n")).collect();
            Ok(Answer::data(
                json!({ "notes": notes }),
                crate::show::neutralise(&lines.concat()),
            ))
        }
        Err(Stop::Refused(verdict)) => Ok(verdict.into()),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

fn checkout(place: &Places) -> Result<&Path, Failure> {
    let none = || Failure::new(Code::NotFound, "a bare repository has no checkout");
    place.repo.checkout().ok_or_else(none)
}

fn directory(place: &Places) -> Result<PathBuf, Failure> {
    let directory = hooks::directory(checkout(place)?);
    directory.map_err(|error| Failure::of(Code::GitFailed, &error))
}

fn broken(error: &io::Error, path: &Path) -> Failure {
    Failure::of(Code::HookBroken, error).about(path)
}

fn uninstall(place: &Places) -> Outcome {
    let directory = directory(place)?;
    let mut gone = Vec::new();
    for name in HOOKS {
        let done = hooks::uninstall(&directory, name);
        if done.map_err(|error| broken(&error, &directory.join(name)))? {
            gone.push(name);
        }
    }
    let text = match gone.as_slice() {
        [] => "no hook of provost is installed\n".to_owned(),
        gone => format!("removed {} from {}\n", gone.join(", "), directory.display()),
    };
    Ok(Answer::data(
        json!({ "directory": directory, "removed": gone }),
        text,
    ))
}

fn status(place: &Places) -> Outcome {
    let directory = directory(place)?;
    install::same_root(place, &directory)?;
    let mut text = format!("hooks in {}\n", directory.display());
    let mut rows = Vec::new();
    for name in HOOKS {
        let standing = hooks::standing(&directory, name);
        let word = match standing.map_err(|error| broken(&error, &directory.join(name)))? {
            Standing::Absent => "not installed",
            Standing::Ours => "installed",
            Standing::OursChained => "installed, calls the one that was there",
            Standing::Foreign => "foreign",
        };
        text += &format!("  {name:21} {word}\n");
        rows.push(json!({ "hook": name, "standing": word }));
    }
    let require = install::requires(&directory)?;
    text += install::unbound_line(require);
    let (words, agents) = settings::standing(place)?;
    text += &words;
    let all = read(place)?.bindings;
    let mut bound = Vec::new();
    for binding in &all {
        let what = &binding.to;
        let problem = bindings::gone(&place.repo, binding);
        let problem = problem.or_else(|| match usable(place, binding) {
            Ok(_) => None,
            Err(Stop::Refused(verdict)) => Some(verdict.reason),
            Err(Stop::Failed(failure)) => Some(failure.reason),
        });
        let word = problem.clone().unwrap_or_else(|| "ok".to_owned());
        text += &format!(
            "{what}: {} from {}, {word}\n",
            binding.contract,
            binding.base.short()
        );
        bound.push(json!({ "binding": binding, "problem": problem }));
    }
    if all.is_empty() {
        text += "nothing is bound\n";
    }
    let json = json!({
        "directory": directory, "hooks": rows, "require": require, "agents": agents,
        "bindings": bound,
    });
    Ok(Answer::data(json, crate::show::neutralise(&text)))
}

/// The target of a binding: the branch, or the current checkout.
fn bound(place: &Places, branch: Option<&str>) -> Result<Bound, Failure> {
    Ok(match branch {
        Some(name) if name.starts_with("refs/") => Bound::Branch(name.to_owned()),
        Some(name) => Bound::Branch(format!("refs/heads/{name}")),
        None => Bound::Checkout(checkout(place)?.display().to_string()),
    })
}

fn bind(place: &Places, bind: &Bind) -> Outcome {
    let directory = directory(place)?;
    install::same_root(place, &directory)?;
    let path = bind.contract.canonicalize();
    let path =
        path.map_err(|error| Failure::of(Code::InputUnreadable, &error).about(&bind.contract))?;
    let bytes = input::read(&path, json::LARGEST)?;
    let document = input::contract(&path)?.document;
    let origin = GitOrigin(&place.repo);
    let base = bind.base.as_ref();
    let base = origin.resolve(base.unwrap_or(&document.rollback.baseline_ref));
    let to = bound(place, bind.branch.as_deref())?;
    exists(place, &to)?;
    let (git_dir, on_branch) = bindings::identity(&place.repo, &to)?;
    let binding = Binding {
        to,
        git_dir,
        on_branch,
        contract: path.display().to_string(),
        sha256: sha256(&bytes),
        base: base?,
    };
    match usable(place, &binding) {
        Ok(_) => {}
        Err(Stop::Refused(verdict)) => return Ok(verdict.into()),
        Err(Stop::Failed(failure)) => return Err(failure),
    }
    let mut all = read(place)?;
    all.bind(binding.clone());
    write(place, &all)?;
    let mut text = format!(
        "bound {} to {} from {}\n",
        binding.to,
        binding.contract,
        binding.base.short()
    );
    let lacks = |name: &&str| {
        let standing = hooks::standing(&directory, name);
        standing.is_ok_and(|it| matches!(it, Standing::Absent | Standing::Foreign))
    };
    if HOOKS.iter().any(lacks) {
        text += "next: provost hook install\n";
    }
    Ok(Answer::data(json!(binding), text))
}

/// Refuses a branch that does not exist: a mistyped name would have no effect.
fn exists(place: &Places, to: &Bound) -> Result<(), Failure> {
    let Bound::Branch(name) = to else {
        return Ok(());
    };
    let unborn = || {
        place
            .repo
            .head_branch()
            .map(|head| head.as_ref() == Some(name))
    };
    if place.repo.ref_value(name)?.is_some() || unborn()? {
        return Ok(());
    }
    let reason = format!("there is no branch `{}`", short_branch(name));
    Err(Failure::new(Code::NotFound, reason).hint("make it first: git branch NAME"))
}

fn unbind(place: &Places, unbind: &Unbind) -> Outcome {
    install::same_root(place, &directory(place)?)?;
    let mut all = read(place)?;
    let (to, git_dir) = if let Some(path) = &unbind.checkout {
        (Bound::Checkout(path.clone()), None)
    } else {
        let to = bound(place, unbind.branch.as_deref())?;
        let (git_dir, _) = bindings::identity(&place.repo, &to)?;
        (to, git_dir)
    };
    if !all.unbind(&to, git_dir.as_deref()) {
        return Err(Failure::new(Code::NotFound, "nothing is bound there"));
    }
    write(place, &all)?;
    Ok(Answer::data(
        json!({ "unbound": to }),
        "the binding is removed\n",
    ))
}

/// Why a hook refuses early.
enum Stop {
    Refused(Verdict),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<PortError> for Stop {
    fn from(error: PortError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<HookStop> for Stop {
    fn from(stop: HookStop) -> Self {
        match stop {
            HookStop::Refused(verdict) => Self::Refused(verdict),
            HookStop::Failed(error) => error.into(),
        }
    }
}

impl From<Which> for GitHook {
    fn from(which: Which) -> Self {
        match which {
            Which::PreCommit => Self::PreCommit,
            Which::PreMergeCommit => Self::PreMergeCommit,
            Which::PreApplypatch => Self::PreApplypatch,
            Which::PrePush => Self::PrePush,
            Which::ReferenceTransaction => Self::ReferenceTransaction,
        }
    }
}

fn read(place: &Places) -> Result<Bindings, Failure> {
    Ok(bindings::read(&place.repo, &place.root)?)
}

fn write(place: &Places, all: &Bindings) -> Result<(), Failure> {
    place.prepare()?;
    Ok(bindings::write(&place.root, all)?)
}

/// The contract of `binding`, if the file exists, is unchanged and is a contract.
fn usable(place: &Places, binding: &Binding) -> Result<BoundContract, Stop> {
    let bytes = input::read(Path::new(&binding.contract), json::LARGEST).ok();
    let origin = GitOrigin(&place.repo);
    Ok(BoundContract::of(binding, bytes.as_deref(), &origin)?)
}
