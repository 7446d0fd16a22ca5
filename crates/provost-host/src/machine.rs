//! Carries out the steps of one run on this machine: the engine's [`Host`].
//!
//! # Invariants
//!
//! - Every sandbox's init is recorded before its payload starts. After a crash the next driver
//!   reaps it before it touches the workspace.
//! - Nothing is removed before a ref keeps what is in it.

mod accept;
mod acceptance_cache;
mod agent_run;
mod asking;
mod broker;
mod broker_calls;
mod cross_tests;
mod early_patch;
mod evidence;
mod full_access;
mod model_meter;
mod model_replay;
mod overlay_check;
mod prepare;
mod profile;
mod proof;
mod read_only_agent;
mod replay;
mod sandbox_shell;
mod sandboxed_command;
mod secrets;
mod target;
mod workspaces;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_core::bundle::layout::MOST_CHANGED;
use provost_core::code::Code;
use provost_core::json;
use provost_core::net::credential::Credential;
use provost_core::net::model_traffic::ModelTraffic;
use provost_core::object::Oid;
use provost_core::path::{RawPath, RepoPath};
use provost_core::run::effect::{self, Extent, Keep, WriteProtection};
use provost_core::run::fact::{
    AgentRun, Capture, Cleaned, Layered, Left, Placed, Published, ResultFile, ReviewRun, Salvage,
    SandboxTest, TestRun,
};
use provost_core::run::refs::Kind;
use provost_core::secret::Known;
use provost_engine::ports::{ChildRunner, Control, Host, PortError, Watch};
use provost_fs::atomic::{self, Durability};
use provost_model_record::playback::Playback;

use crate::capture::{self, Captured, Limits, Mode};
use crate::git::{Expected, Person, Repository};
use crate::login::Learned;
use crate::sandbox::{self, LauncherProgram, ProcessIdentity};
use crate::workspace::{self, Lower};
pub use prepare::{Ready, layer_keys};
pub use profile::{outlet, user_toolchain};
pub(crate) use profile::{outlet_for, set_dummies};
pub use sandbox_shell::SandboxShell;
pub use secrets::known;

use early_patch::EarlyPatch;
use profile::Places;

/// The largest structured result an agent may leave, in bytes.
const RESULT_LIMIT: u64 = 256 * 1024;

/// How many changed paths one run may have: as many as an event can hold and a user can read.
const MOST_CHANGES: usize = 20_000;

/// How long a sandbox that a crashed driver left may take to die.
const REAP_TIMEOUT: Duration = Duration::from_secs(30);

/// The files of submodules, by their paths in the workspace.
type HeldSubmodules = Vec<(RepoPath, workspace::Layer)>;

/// Carries out the steps of one run.
#[derive(Debug)]
pub struct Machine {
    run_id: String,
    repo: Arc<Repository>,
    places: Places,
    bundle: PathBuf,
    launcher: LauncherProgram,
    /// The lower layer of the attempt's workspace, if it is an overlay.
    lower: Option<Arc<Lower>>,
    /// The prepared layers of the base, once they were needed.
    ready: Option<Ready>,
    /// Values that must not appear in the bundle.
    known: Known,
    /// The credentials of the run.
    brokered: Vec<Credential>,
    /// Tokens that the proxy read from login files.
    learned: Learned,
    /// The secrets that the user permitted this process to send.
    sent: Vec<Credential>,
    /// Drives the runs of children, if the run may have any.
    children: Option<Box<dyn ChildRunner>>,
    /// The patch of what was captured, computed in the background.
    patch: Option<EarlyPatch>,
    /// The shapes of sandboxes whose self-test held in this process.
    proven: RefCell<BTreeSet<String>>,
    /// The write-protected files that were computed last, with their tree and rules.
    walled: RefCell<Option<(Oid, WriteProtection, BTreeSet<PathBuf>)>>,
    /// The submodules that were looked up last, with their tree.
    submodules: RefCell<Option<(Oid, HeldSubmodules)>>,
    /// Recorded answers of models, by the sealed rows that they belong to.
    playbacks: BTreeMap<String, Arc<Playback>>,
}

impl Machine {
    /// For the run `run_id`, with workspaces below `cache` and evidence in `bundle`.
    pub fn new(repo: Repository, cache: &Path, bundle: &Path, run_id: &str) -> Self {
        let launcher = LauncherProgram::own();
        // All repositories of this user share one launcher program.
        sandbox::selftest::foresee(&launcher, cache.parent().unwrap_or(cache));
        Self {
            run_id: run_id.to_owned(),
            places: Places::new(cache, run_id),
            repo: Arc::new(repo),
            bundle: bundle.to_owned(),
            launcher,
            lower: None,
            ready: None,
            known: secrets::known(&[]),
            brokered: Vec::new(),
            learned: Learned::default(),
            sent: Vec::new(),
            children: None,
            patch: None,
            proven: RefCell::default(),
            walled: RefCell::default(),
            submodules: RefCell::default(),
            playbacks: BTreeMap::new(),
        }
    }

    /// Lets agents of this run start children, driven by `runner`, where the contract grants them.
    pub fn start_children_with(&mut self, runner: Box<dyn ChildRunner>) {
        self.children = Some(runner);
    }

    /// Ends the sandbox that an earlier driver may have left running in `directory`.
    fn reap(directory: &Path) -> Result<(), PortError> {
        let Some(birth) = read_birth(directory).map_err(host("read the birth record"))? else {
            return Ok(());
        };
        sandbox::reap(&birth, REAP_TIMEOUT)?;
        Ok(())
    }

    /// Removes one of our directories, after ending a sandbox that runs there.
    fn remove(&self, directory: &Path) -> Result<(), PortError> {
        Self::reap(directory)?;
        workspace::remove(&self.places.cache, directory)
            .map_err(|e| PortError::of(Code::HostFailed, e))
    }

    /// Keeps `tree` by a commit that depends only on the ledger.
    fn keep(&self, tree: &Oid, keep: &Keep) -> Result<Oid, PortError> {
        let commit = self.commit(tree, &keep.parent, &keep.message, keep.seconds)?;
        self.point(&keep.name, &commit)?;
        Ok(commit)
    }

    /// A commit of `tree` on `parent`, of a run that began at `seconds`.
    fn commit(
        &self,
        tree: &Oid,
        parent: &Oid,
        message: &str,
        seconds: i64,
    ) -> Result<Oid, PortError> {
        let person = Person {
            name: "Provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: seconds,
        };
        let parents = [parent.clone()];
        self.repo
            .commit(tree, &parents, message, &person, &person)
            .map_err(git)
    }

    /// Points the ref `name` at `commit`.
    fn point(&self, name: &str, commit: &Oid) -> Result<(), PortError> {
        self.repo.keep(name, commit, &Expected::Any).map_err(git)
    }
}

fn git(error: crate::git::GitError) -> PortError {
    PortError::of(Code::GitFailed, error)
}

/// The limits of the work of one run.
fn of_run() -> Limits {
    Limits {
        changes: MOST_CHANGES,
        changed_bytes: MOST_CHANGED,
        ..Limits::default()
    }
}

fn uncaptured(error: capture::CaptureError) -> PortError {
    let code = match error {
        capture::CaptureError::TooManyChanges { .. } | capture::CaptureError::TooMuch { .. } => {
            Code::DiffRefused
        }
        _ => Code::HostFailed,
    };
    PortError::of(code, error)
}

/// Converts an I/O error; `doing` says what failed.
fn host(doing: &'static str) -> impl Fn(io::Error) -> PortError {
    move |error| PortError::new(Code::HostFailed, format!("cannot {doing}: {error}"))
}

const BIRTH: &str = "sandbox.json";

/// The file beside it with the traffic to the model so far.
const LIVE: &str = "live.json";

/// Records the init of a sandbox, atomically, so that a reader never sees half a record.
fn write_birth(directory: &Path, birth: &ProcessIdentity) -> io::Result<()> {
    let bytes = serde_json::to_vec(birth)?;
    atomic::replace(&directory.join(BIRTH), &bytes, 0o600, Durability::Synced)
}

/// Writes the traffic to the model of the agent in `directory`, for `provost show`.
fn write_live(directory: &Path, passed: &ModelTraffic) -> io::Result<()> {
    let bytes = serde_json::to_vec(passed)?;
    atomic::replace(&directory.join(LIVE), &bytes, 0o600, Durability::Cache)
}

/// The traffic so far to the model of the run's agent, if the agent has one.
pub fn live(cache: &Path, run_id: &str, attempt: u32) -> Option<ModelTraffic> {
    let directory = Places::new(cache, run_id).attempt(attempt);
    let bytes = fs::read(directory.join(LIVE)).ok()?;
    json::parse_as(&bytes).ok()
}

fn read_birth(directory: &Path) -> io::Result<Option<ProcessIdentity>> {
    match fs::read(directory.join(BIRTH)) {
        Ok(bytes) => json::parse_as(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Host for Machine {
    fn keep_base(&mut self, run_id: &str, base: &Oid) -> Result<(), PortError> {
        self.point(&Kind::Base.of_run(run_id), base)
    }

    fn keep_tree(&mut self, tree: &Oid, keep: &Keep) -> Result<(), PortError> {
        self.keep(tree, keep).map(|_| ())
    }

    fn prepare(
        &mut self,
        order: &effect::Prepare,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Layered>, PortError> {
        let ready = self.ready(order, watch)?;
        Ok(self.ready.insert(ready).layered.clone())
    }

    fn workspace(&mut self, order: &effect::Workspace) -> Result<Placed, PortError> {
        let directory = self.places.attempt(order.attempt);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.home).map_err(host("make the home directory"))?;
        if let Some(parent) = directory.parent() {
            fs::create_dir_all(parent).map_err(host("make the cache directory"))?;
        }
        let placed = self.place(order, &directory)?;
        fs::create_dir(directory.join("out")).map_err(host("make the result directory"))?;
        Ok(placed)
    }

    fn selftest(&mut self, order: &effect::Selftest) -> Result<SandboxTest, PortError> {
        let Some(agent) = &order.agent else {
            return self.prove_judges(order);
        };
        self.stand(agent)?;
        self.copy_evidence(agent)?;
        self.prove(order, agent)
    }

    fn agent(
        &mut self,
        order: &effect::AgentEffect,
        watch: &mut dyn Watch,
    ) -> Result<AgentRun, PortError> {
        let mut runner = self.children.take();
        let run = self.run_agent(order, watch, runner.as_deref_mut());
        self.children = runner;
        run
    }

    fn capture(&mut self, order: &effect::Capture) -> Result<Capture, PortError> {
        self.learn();
        let mut captured = match &order.existing {
            None => self.capture_workspace(order)?,
            Some(existing) => self.capture_existing(existing, order)?,
        };
        self.keep(&captured.tree, &order.keep)?;
        let withheld = self.find_secrets(&mut captured, &order.base)?;
        let crossed = self.cross(&captured, order)?;
        self.patch = EarlyPatch::patch(&self.repo, &order.base, &captured.tree);
        self.repo.release();
        Ok(Capture {
            tree: captured.tree,
            kept_by: order.keep.name.clone(),
            changes: captured.changes,
            findings: captured.findings,
            ignored: captured.ignored,
            withheld,
            crossed,
        })
    }

    fn review(
        &mut self,
        order: &effect::Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        self.review_candidate(order, watch)
    }

    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError> {
        self.run_tests(order, watch)
    }

    fn pause(&mut self, time: Duration, watch: &mut dyn Watch) -> Result<Control, PortError> {
        Ok(sandboxed_command::pause(time, watch))
    }

    fn publish(&mut self, order: &effect::Publish) -> Result<Published, PortError> {
        let commit = self.keep(&order.tree, &order.keep)?;
        self.repo.release();
        let branch = order.keep.name.clone();
        Ok(Published { commit, branch })
    }

    fn clean(&mut self, order: &effect::Clean) -> Result<Cleaned, PortError> {
        let directory = self.places.attempt(order.attempt);
        Self::reap(&directory)?;
        let cleaned = match &order.salvage {
            Some(salvage) => self.salvage(salvage, &directory)?,
            None => Cleaned::default(),
        };
        self.repo.release();
        self.lower = None;
        self.ready = None;
        let mut stay: BTreeSet<PathBuf> = order.stay.iter().map(PathBuf::from).collect();
        stay.extend(cleaned.left.iter().map(|left| PathBuf::from(&left.path)));
        match order.extent {
            Extent::Attempt if stay.contains(&directory) => {}
            Extent::Attempt => self.remove(&directory)?,
            Extent::Run => self.clear(&stay)?,
        }
        Ok(cleaned)
    }

    fn hide(&self, text: &str) -> Option<String> {
        self.known.hide(text)
    }

    fn patch(&mut self, before: &Oid, after: &Oid) -> Result<Vec<u8>, PortError> {
        let foreseen = self.patch.take().and_then(|it| it.of(before, after));
        foreseen.map_or_else(|| self.repo.patch(before, after).map_err(git), Ok)
    }

    fn patch_of(
        &mut self,
        before: &Oid,
        after: &Oid,
        paths: &[RawPath],
    ) -> Result<Vec<u8>, PortError> {
        self.repo.patch_of(before, after, paths).map_err(git)
    }

    fn objects(
        &mut self,
        base: &effect::Base,
        after: &[(&Oid, &BTreeSet<RawPath>)],
    ) -> Result<Vec<u8>, PortError> {
        proof::objects(&self.repo, base, after)
    }
}

impl Machine {
    /// Captures the files that the agent left.
    fn capture_workspace(&self, order: &effect::Capture) -> Result<Captured, PortError> {
        let directory = self.places.attempt(order.attempt);
        Self::reap(&directory)?;
        let source = workspace::left_in(&directory)
            .ok_or_else(|| PortError::new(Code::HostFailed, "the workspace is gone"))?;
        let (repo, base) = (&self.repo, &order.base);
        capture::capture(repo, base, &source, &of_run(), Mode::Record).map_err(uncaptured)
    }

    /// Keeps work that exists only on disk.
    fn salvage(&self, order: &effect::Salvage, directory: &Path) -> Result<Cleaned, PortError> {
        let kept_by = order.keep.name.clone();
        let known = self.repo.ref_value(&kept_by).map_err(git)?;
        let Some(source) = workspace::left_in(directory) else {
            let salvage = known.map(|commit| Salvage { kept_by, commit });
            return Ok(Cleaned {
                salvage,
                left: None,
            });
        };
        let saved = workspace::salvage(&self.repo, &order.base, &source).map_err(uncaptured)?;
        let is_kept = saved.tree == order.base || order.captured.as_ref() == Some(&saved.tree);
        let commit = match known {
            // An interrupted removal leaves half a tree; the commit from before it is complete.
            Some(commit) => Some(commit),
            None if is_kept => None,
            None => Some(self.keep(&saved.tree, &order.keep)?),
        };
        let mut findings = saved.findings;
        findings.retain(|finding| finding.kind.leaves_work_out());
        let left = (!findings.is_empty()).then(|| Left {
            path: directory.display().to_string(),
            findings,
        });
        let salvage = commit.map(|commit| Salvage { kept_by, commit });
        Ok(Cleaned { salvage, left })
    }

    /// Removes everything of the run except the directories in `stay`.
    fn clear(&self, stay: &BTreeSet<PathBuf>) -> Result<(), PortError> {
        if stay.is_empty() {
            return self.remove(&self.places.run);
        }
        let entries = fs::read_dir(&self.places.run).map_err(host("look into the cache"))?;
        for entry in entries {
            let path = entry.map_err(host("look into the cache"))?.path();
            if !stay.contains(&path) {
                self.remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Reads the result file of an agent, which may be anything.
fn read_result(path: &Path) -> ResultFile {
    use rustix::fs::{FileType, Mode as Bits, OFlags};
    use std::io::Read as _;
    let unusable = |why: &str| ResultFile::Unusable(why.to_owned());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Bits::empty()) {
        Ok(descriptor) => fs::File::from(descriptor),
        Err(rustix::io::Errno::NOENT) => return ResultFile::Absent,
        Err(_) => return unusable("cannot be opened as a plain file"),
    };
    match rustix::fs::fstat(&file) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {}
        _ => return unusable("is not a regular file"),
    }
    let mut bytes = Vec::new();
    if file.take(RESULT_LIMIT + 1).read_to_end(&mut bytes).is_err() {
        return unusable("cannot be read");
    }
    if bytes.len() as u64 > RESULT_LIMIT {
        return unusable("is larger than 256 KiB");
    }
    String::from_utf8(bytes).map_or_else(|_| unusable("is not UTF-8"), ResultFile::Text)
}
