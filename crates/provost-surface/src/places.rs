//! Finds the repository, the runtime root and the cache.

mod cases;
mod meant;
mod refused;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::path::is_segment;
use provost_core::user_secret::Secret;
use provost_core::wording::counted;
use provost_engine::bundle::verify::Pins;
use provost_engine::ports::Registry;
use provost_host::git::{GitError, Repository};
use provost_host::keys::KeysError;
use provost_host::model_record;
use provost_host::runtime_root::{self as root, Standing};
use provost_host::user_state::{UserState, UserStateError};

use self::meant::meant;
use crate::answer::Failure;
use crate::stores;

const REGISTRY: &str = "registry.db";

#[derive(Debug)]
pub struct Places {
    pub repo: Repository,
    /// The runtime root: runs and the registry.
    pub root: PathBuf,
    /// Workspaces and whatever can be made again; only commands that write there need it.
    cache: Result<PathBuf, NoHome>,
    /// Who made the runtime root.
    standing: Standing,
    /// The secret of this user, read on first use.
    secret: OnceLock<Option<Secret>>,
}

/// Something that has evidence here.
pub enum Evidence {
    /// A run, by its id.
    Run(String),
    /// A plan or a chain, by its directory.
    Record(PathBuf),
    /// A controlled change, by its id.
    Change(String),
}

/// No directory for the caches of this user is known.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("neither HOME nor XDG_CACHE_HOME is set")]
pub struct NoHome;

/// The runtime root that `PROVOST_ROOT` names.
fn named_root(root: &Path) -> Result<PathBuf, Failure> {
    let refused = |reason: &str| {
        Failure::new(Code::UsageError, format!("PROVOST_ROOT {reason}"))
            .hint("name a directory of its own, or unset it: unset PROVOST_ROOT")
    };
    // An empty path would be the current directory, whichever that is.
    let absolute = std::path::absolute(root).map_err(|_| refused("is empty"))?;
    if !matches!(
        absolute.components().next_back(),
        Some(Component::Normal(_))
    ) {
        return Err(refused(
            "names no directory of its own, such as the whole file system",
        ));
    }
    Ok(absolute)
}

impl Places {
    /// The places of the repository that the current directory is in, with a runtime root of this
    /// user.
    pub fn find() -> Result<Self, Failure> {
        Self::of(&here()?)
    }

    /// The places of the repository that `directory` is in, with a runtime root of this user.
    pub fn of(directory: &Path) -> Result<Self, Failure> {
        let mut place = Self::around(directory)?;
        place.judge()?;
        match place.standing {
            Standing::Own | Standing::New => Ok(place),
            // Without a usable secret, that is the failure.
            Standing::Foreign => {
                let own = place.own()?;
                if own.load().map_err(refused)?.is_none() {
                    own.can_be_made().map_err(refused)?;
                }
                Err(root::foreign(&place.root, &root::whose(&own)).into())
            }
        }
    }

    /// The same for reading only: the runtime root may be foreign.
    pub fn look() -> Result<Self, Failure> {
        Self::look_at(&here()?)
    }

    /// The same for the repository that `directory` is in.
    pub fn look_at(directory: &Path) -> Result<Self, Failure> {
        let mut place = Self::around(directory)?;
        if place.root.symlink_metadata().is_ok() {
            place.judge()?;
        } else {
            place.standing = Standing::New;
        }
        Ok(place)
    }

    /// The places of the repository that `directory` is in, for callers that do not use its runtime
    /// root.
    pub fn around(directory: &Path) -> Result<Self, Failure> {
        let repo = Repository::discover(directory).map_err(|error| match error {
            GitError::NoProgram => Failure::of(Code::GitMissing, &error),
            _ => Failure::of(Code::NotARepository, &error)
                .hint("go into a git repository, or make one with `git init`"),
        })?;
        let root = match std::env::var_os("PROVOST_ROOT") {
            Some(root) => named_root(Path::new(&root))?,
            None => repo
                .top()
                .unwrap_or_else(|| repo.common_dir())
                .join(".provost"),
        };
        let id = sha256(repo.common_dir().as_os_str().as_encoded_bytes());
        let cache = cache_root().map(|root| root.join(&id[..16]));
        Ok(Self {
            repo,
            root,
            cache,
            standing: Standing::Foreign,
            secret: OnceLock::new(),
        })
    }

    /// Determines who made the runtime root, and refuses one that must not even be read.
    fn judge(&mut self) -> Result<(), Failure> {
        let own = self.own().ok();
        self.standing = root::standing(&self.root, own.as_ref())?;
        Ok(root::untracked(&self.repo, &self.root, own.as_ref())?)
    }

    /// Whether another user made the runtime root.
    pub fn is_foreign(&self) -> bool {
        self.standing == Standing::Foreign
    }

    /// A note that `count` of the runs here are foreign, and how that was decided.
    pub fn foreign_note(&self, count: usize) -> String {
        let whose = match self.own() {
            _ if !self.is_foreign() => String::new(),
            Ok(own) => format!(": {}; check HOME and XDG_STATE_HOME", root::whose(&own)),
            Err(failure) => format!(": {}", failure.reason),
        };
        let are = if count == 1 { "is" } else { "are" };
        let runs = counted(count, "run");
        format!(
            "note: {runs} here {are} FOREIGN, not begun by you{whose}; provost explain RUN_FOREIGN\n"
        )
    }

    /// The state directory that proves what this user made.
    pub fn own(&self) -> Result<UserState, Failure> {
        let top = self.repo.top().unwrap_or_else(|| self.repo.common_dir());
        UserState::find(top).map_err(refused)
    }

    /// The secret of this user, created if there is none.
    pub fn secret(&self) -> Result<Secret, Failure> {
        self.own()?.load_or_create().map_err(refused)
    }

    /// The secret of this user, if there is one that can be used.
    pub fn known_secret(&self) -> Option<&Secret> {
        let load = || self.own().ok()?.load().ok().flatten();
        self.secret.get_or_init(load).as_ref()
    }

    /// The directory of workspaces.
    pub fn cache(&self) -> Result<&Path, Failure> {
        let cache = self.cache.as_deref();
        cache.map_err(|error| Failure::of(Code::HostFailed, error))
    }

    /// Creates missing directories, and excludes them from git.
    pub fn prepare(&self) -> Result<(), Failure> {
        self.prepare_for(|| Ok(()))
    }

    /// The same around `other`, which may fail; after any failure, no directory stays that was
    /// created here.
    pub fn prepare_for<T>(&self, other: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let mut new = Vec::new();
        let made = [Ok(self.root.join("runs")), self.cache().map(Path::to_owned)]
            .into_iter()
            .try_for_each(|directory| {
                let directory = directory?;
                new.extend(missing_parts(&directory));
                make(&directory)
            });
        let done = made.and_then(|()| other());
        let done = done.and_then(|other| self.settle().map(|()| other));
        if done.is_err() {
            for directory in new.iter().rev() {
                // A directory that another process wrote to meanwhile stays.
                let _ = fs::remove_dir(directory);
            }
        }
        done
    }

    /// The directory of boards, one directory for each run of a planner.
    #[cfg(feature = "formats")]
    pub fn boards(&self) -> PathBuf {
        self.root.join("boards")
    }

    /// Creates the directory of boards, and excludes it from git.
    #[cfg(feature = "formats")]
    pub fn prepare_boards(&self) -> Result<(), Failure> {
        make(&self.boards())?;
        self.settle()
    }

    /// The directory with the evidence of controlled changes, one directory for each intent.
    pub fn changes(&self) -> PathBuf {
        self.root.join("changes")
    }

    /// Creates the directory of controlled changes, and excludes it from git.
    pub fn prepare_changes(&self) -> Result<(), Failure> {
        make(&self.changes())?;
        self.settle()
    }

    /// The directory with requests to planners and their answers, one directory for each plan.
    pub fn plans(&self) -> PathBuf {
        self.root.join("plans")
    }

    /// The directory of chains, one directory for each.
    pub fn chains(&self) -> PathBuf {
        self.root.join("chains")
    }

    /// The directory with the output of detached runs, two files for each.
    pub fn detached(&self) -> PathBuf {
        self.root.join("detached")
    }

    /// Creates `directory` of the runtime root, and everything else that a run needs.
    pub fn prepare_with(&self, directory: &Path) -> Result<(), Failure> {
        self.prepare()?;
        make(directory)
    }

    pub fn registry_path(&self) -> PathBuf {
        self.root.join(REGISTRY)
    }

    /// Excludes the runtime root from git, and marks it as this user's own.
    fn settle(&self) -> Result<(), Failure> {
        let secret = self.secret()?;
        self.exclude()?;
        Ok(root::mark(&self.root, &secret)?)
    }

    /// Keeps the runtime root out of `git status` without touching a tracked file.
    fn exclude(&self) -> Result<(), Failure> {
        let info = self.repo.common_dir().join("info");
        let path = info.join("exclude");
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unusable(&path, &error)),
        };
        let mut lines = text.split(|byte| *byte == b'\n');
        if lines.any(|line| line.trim_ascii() == b"/.provost/") {
            return Ok(());
        }
        if let Some(link) = [&info, &path].into_iter().find(|path| is_link(path)) {
            let shown = link.display();
            let reason = format!("`{shown}` is a symbolic link, and nothing is written through it");
            return Err(Failure::new(Code::LinkRefused, reason).hint(format!(
                "add the line /.provost/ to `{}` yourself",
                path.display()
            )));
        }
        fs::create_dir_all(&info).map_err(|error| unusable(&info, &error))?;
        let gap = if text.is_empty() || text.ends_with(b"\n") {
            ""
        } else {
            "\n"
        };
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{gap}/.provost/\n").as_bytes()))
            .map_err(|error| unusable(&path, &error))
    }

    /// The directory of the run `run_id`, which may not exist.
    pub fn run(&self, run_id: &str) -> PathBuf {
        self.root.join("runs").join(run_id)
    }

    /// What was asked of models in that run, and answered, if it was recorded.
    pub fn bodies(&self, run_id: &str) -> PathBuf {
        model_record::store::directory(&self.root, run_id)
    }

    /// The runs whose bodies are kept, whether the runs themselves are or not.
    pub fn runs_with_bodies(&self) -> Result<Vec<String>, Failure> {
        named(&model_record::store::root(&self.root), "run_")
    }

    /// The ids of all runs, oldest first.
    pub fn runs(&self) -> Result<Vec<String>, Failure> {
        named(&self.root.join("runs"), "run_")
    }

    /// The run that `text` names: its whole id, an unambiguous part of it, or `last`.
    pub fn find_run(&self, text: &str) -> Result<String, Failure> {
        let mut runs = self.runs()?;
        if text == "last" {
            return runs.pop().ok_or_else(|| self.no_run_yet());
        }
        match meant(&runs, text, "run")? {
            Some(run_id) => Ok(run_id),
            None => Err(self.no_run(text)),
        }
    }

    /// What `text` names, in whole or in part: a run, a plan, a chain or a change.
    pub fn find_evidence(&self, text: &str) -> Result<Evidence, Failure> {
        let runs = self.runs()?;
        let plans = named(&self.plans(), "plan_")?;
        let chains = named(&self.chains(), "chain_")?;
        let changes = self.all_changes()?;
        let refused = self.all_refused()?;
        if text == "last" {
            return self.find_run(text).map(Evidence::Run);
        }
        if let Some(id) = self.find_case(text)? {
            return Ok(Evidence::Record(self.run(&id)));
        }
        let all: Vec<String> = [&runs, &plans, &chains, &changes, &refused]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let Some(name) = meant(&all, text, "bundle")? else {
            return Err(missing(&format!("there is no evidence of `{text}`")));
        };
        Ok(if changes.contains(&name) {
            Evidence::Change(name)
        } else if plans.contains(&name) {
            Evidence::Record(self.plans().join(name))
        } else if chains.contains(&name) {
            Evidence::Record(self.chains().join(name))
        } else if refused.contains(&name) {
            Evidence::Record(self.refused().join(name))
        } else {
            Evidence::Run(name)
        })
    }

    fn all_changes(&self) -> Result<Vec<String>, Failure> {
        let is_one = |name: &String| name.len() == 26 && is_segment(name);
        let all = named(&self.changes(), "")?;
        Ok(all.into_iter().filter(is_one).collect())
    }

    /// The controlled change that `text` names, in whole or in part.
    ///
    /// An open change is preferred to a closed one, because the user types a name to continue it.
    pub fn find_change(&self, text: &str) -> Result<Option<String>, Failure> {
        let all = self.all_changes()?;
        if all.iter().any(|name| name == text) {
            return Ok(Some(text.to_owned()));
        }
        let mut open = Vec::new();
        if self.registry_path().exists() {
            let path = self.registry_path();
            let known = stores::look_at_intents(&path, |intents| Ok(intents.look(None)?.intents))?;
            open.extend(known.into_iter().map(|intent| intent.intent_id));
        }
        match meant(&open, text, "change")? {
            Some(name) => Ok(Some(name)),
            None => meant(&all, text, "change"),
        }
    }

    /// The ends of the chains of the run `run_id`, by the registry; nothing where there is none.
    pub fn pins(&self, run_id: &str) -> Result<Pins, Failure> {
        // A registry of another user pins nothing.
        if self.is_foreign() || !self.root.join(REGISTRY).exists() {
            return Ok(Pins::default());
        }
        Ok(stores::pins(&self.registry_path(), run_id)?)
    }

    /// The end of the chain of the controlled change `intent_id`, likewise.
    pub fn pins_of_change(&self, intent_id: &str) -> Result<Pins, Failure> {
        // A registry of another user pins nothing.
        if self.is_foreign() || !self.root.join(REGISTRY).exists() {
            return Ok(Pins::default());
        }
        Ok(Pins {
            ledger: stores::pinned_change(&self.registry_path(), intent_id)?,
            after: None,
        })
    }

    pub fn registry(&self) -> Result<Box<dyn Registry>, Failure> {
        Ok(stores::run_registry(&self.registry_path())?)
    }
}

fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::of(Code::HostFailed, &error))
}

/// The failure when nothing can be proven to be this user's own.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over so")]
pub fn refused(error: UserStateError) -> Failure {
    let code = match error {
        UserStateError::NoPlace | UserStateError::Files(KeysError::Io { .. }) => Code::HostFailed,
        _ => Code::KeyUnsafe,
    };
    Failure::of(code, &error).hint("a secret that is kept there proves which runs are yours")
}

/// The missing directories on the path of `directory`, outermost first.
fn missing_parts(directory: &Path) -> Vec<PathBuf> {
    let parts = directory.ancestors().take_while(|part| !part.exists());
    let mut parts: Vec<PathBuf> = parts.map(Path::to_owned).collect();
    parts.reverse();
    parts
}

/// Creates a directory that only this user may enter.
fn make(directory: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| unusable(directory, &error))
}

/// The names in `directory` that begin with `prefix`, sorted; none if there is no directory.
pub fn named(directory: &Path, prefix: &str) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(directory, &error)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    Ok(names)
}

fn missing(reason: &str) -> Failure {
    Failure::new(Code::NotFound, reason).hint("`provost runs` lists all runs")
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}

/// The directory of caches: per user, outside every repository.
pub fn cache_root() -> Result<PathBuf, NoHome> {
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(cache).join("provost"));
    }
    match std::env::var_os("HOME").filter(|value| !value.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(".cache/provost")),
        None => Err(NoHome),
    }
}
