//! Does the steps of one run on this machine: the engine's [`Host`].
//!
//! # Invariants
//!
//! - Every box's init is written down before its payload starts, so that after a crash the next
//!   driver can see it buried before it touches the workspace.
//! - Nothing is removed before a ref keeps what is in it.

mod accept;
mod layered;
mod prepare;
mod profile;
mod proof;
mod target;
mod visit;
mod watched;
mod workspaces;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::agent::{instruction, launch};
use provost_core::bundle::layout::MOST_CHANGED;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::fact::{
    AgentRun, BoxTest, Capture, Cleaned, Layered, Left, Placed, Published, ResultFile, Salvage,
    Side, TestRun,
};
use provost_core::run::{Site, State};
use provost_core::time;
use provost_engine::drive;
use provost_engine::ports::{Host, PortError, Watch};

use crate::agent::{self, Ears};
use crate::boxes::{self, Birth, Launcher, Stdin};
use crate::capture::{self, Limits, Mode};
use crate::git::{Expected, Person, Repository};
use crate::workspace::{self, Lower};
pub use prepare::{Plan, Ready};
pub use profile::{outlet, user_toolchain};
pub use visit::Visit;

use profile::Places;

/// The largest structured result an agent may leave, in bytes.
const RESULT_LIMIT: u64 = 256 * 1024;

/// How many changed paths one run may have: as many as a record can hold and a person can read.
const MOST_CHANGES: usize = 20_000;

/// How long a box that was left by a crash may take to die.
const BURIAL: Duration = Duration::from_secs(30);

/// One run's hands.
#[derive(Debug)]
pub struct Machine {
    repo: Repository,
    places: Places,
    bundle: PathBuf,
    launcher: Launcher,
    /// What the workspace of the attempt stands on, if it is an overlay.
    lower: Option<Lower>,
    /// The prepared layers of the base, once somebody asked for them.
    ready: Option<Ready>,
}

impl Machine {
    /// The hands of the run `run_id`, with workspaces below `cache` and evidence in `bundle`.
    pub fn new(repo: Repository, cache: &Path, bundle: &Path, run_id: &str) -> Self {
        Self {
            places: Places::new(cache, run_id),
            repo,
            bundle: bundle.to_owned(),
            launcher: Launcher::own(),
            lower: None,
            ready: None,
        }
    }

    /// Ends the box that an earlier driver may have left at work in `directory`.
    fn bury(directory: &Path) -> Result<(), PortError> {
        let Some(birth) = read_birth(directory).map_err(host("read the birth record"))? else {
            return Ok(());
        };
        boxes::bury(&birth, BURIAL).map_err(|error| PortError::of(error.code(), error))?;
        Ok(())
    }

    /// Removes one of our directories, with whatever box was at work there.
    fn remove(&self, directory: &Path) -> Result<(), PortError> {
        Self::bury(directory)?;
        workspace::remove(&self.places.cache, directory)
            .map_err(|e| PortError::of(Code::HostFailed, e))
    }

    /// A commit of `tree` on the base that depends on nothing but the ledger.
    fn commit_on_base(&self, state: &State, tree: &Oid, message: &str) -> Result<Oid, PortError> {
        self.commit_on(state, tree, &state.opened.base_commit, message)
    }

    /// A commit of `tree` on `parent` that depends on nothing but the ledger.
    fn commit_on(
        &self,
        state: &State,
        tree: &Oid,
        parent: &Oid,
        message: &str,
    ) -> Result<Oid, PortError> {
        let person = Person {
            name: "Provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: time::parse(&state.began).map_or(0, |millis| millis / 1000),
        };
        let parents = [parent.clone()];
        self.repo
            .commit(tree, &parents, message, &person, &person)
            .map_err(git)
    }

    fn keep(&self, name: &str, commit: &Oid) -> Result<(), PortError> {
        self.repo.keep(name, commit, &Expected::Any).map_err(git)
    }
}

/// The failure of a port that a failure of git stands for.
fn git(error: crate::git::GitError) -> PortError {
    PortError::of(Code::GitFailed, error)
}

/// The failure of a port that a failure of capture stands for.
fn uncaptured(error: capture::CaptureError) -> PortError {
    let code = match error {
        capture::CaptureError::TooManyChanges { .. } | capture::CaptureError::TooMuch { .. } => {
            Code::DiffRefused
        }
        _ => Code::HostFailed,
    };
    PortError::of(code, error)
}

/// The failure of a port that a refusal of the system stands for.
fn host(doing: &'static str) -> impl Fn(io::Error) -> PortError {
    move |error| PortError::new(Code::HostFailed, format!("cannot {doing}: {error}"))
}

const BIRTH: &str = "box.json";

/// Writes down who the init of a box is; whole or not at all, so what is there can be believed.
fn write_birth(directory: &Path, birth: &Birth) -> io::Result<()> {
    let beside = directory.join("box.json.new");
    let file = fs::File::create(&beside)?;
    serde_json::to_writer(&file, birth)?;
    file.sync_all()?;
    fs::rename(beside, directory.join(BIRTH))
}

fn read_birth(directory: &Path) -> io::Result<Option<Birth>> {
    match fs::read(directory.join(BIRTH)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Host for Machine {
    fn keep_base(&mut self, run_id: &str, base: &Oid) -> Result<(), PortError> {
        self.keep(&format!("refs/provost/base/{run_id}"), base)
    }

    fn prepare(&mut self, state: &State, watch: &mut dyn Watch) -> Result<Vec<Layered>, PortError> {
        let plan = Plan::of(state, &state.opened.base_tree, prepare::LOGS);
        let ready = self.ready(plan, watch)?;
        Ok(self.ready.insert(ready).layered.clone())
    }

    fn workspace(&mut self, state: &State) -> Result<Placed, PortError> {
        let directory = self.places.attempt(state.attempt);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.home).map_err(host("make the home directory"))?;
        if let Some(parent) = directory.parent() {
            fs::create_dir_all(parent).map_err(host("make the cache directory"))?;
        }
        let placed = self.place(state, &directory)?;
        fs::create_dir(directory.join("out")).map_err(host("make the result directory"))?;
        Ok(placed)
    }

    fn selftest(&mut self, state: &State) -> Result<BoxTest, PortError> {
        self.stand(state)?;
        self.prove(state)
    }

    fn agent(&mut self, state: &State, watch: &mut dyn Watch) -> Result<AgentRun, PortError> {
        let directory = self.places.attempt(state.attempt);
        self.stand(state)?;
        let profile = self.agent_profile(state)?;
        let name = |file: &str, kind: &str| {
            let (task, attempt) = (&state.names.task_id, state.attempt);
            format!("agent/{task}/{file}.{attempt}.{kind}")
        };
        let run = watched::Watched {
            launcher: &self.launcher,
            profile: &profile,
            directory: &directory,
            bundle: &self.bundle,
            what: "agent",
            stdout: name("stdout", "log"),
            stderr: name("stderr", "log"),
            outlet: outlet(&state.opened.credentials)?,
        };
        let result = || read_result(&directory.join("out/result.json"));
        let Some(adapted) = &state.opened.adapted else {
            let contract = serde_json::to_vec(&state.opened.contract)
                .map_err(|error| PortError::of(Code::Bug, error))?;
            let ended = run.follow(state.opened.agent.clone(), Stdin::Bytes(contract), watch)?;
            return Ok(ended.of_agent(result(), None));
        };
        let argv = agent::find(adapted.adapter)?.argv(&state.opened.agent);
        let contract = drive::contract(state)?;
        let answer = launch::Answer::of(contract.result);
        let instruction = instruction::render(&contract, answer).into_bytes();
        let stream = self.bundle.join(&run.stdout);
        let mut ears = Ears::open(adapted, stream, &self.bundle, name("events", "jsonl"))
            .map_err(host("write the events of the agent"))?;
        let ended = run.follow_with(argv, Stdin::Bytes(instruction), watch, Some(&mut ears))?;
        let told = ears
            .finish()
            .map_err(host("read the events of the agent"))?;
        let left = match (result(), answer) {
            (ResultFile::Absent, launch::Answer::Bound) => {
                ears.result(&state.names.task_id, RESULT_LIMIT)
            }
            (left, _) => left,
        };
        Ok(ended.of_agent(left, Some(told)))
    }

    fn capture(&mut self, state: &State) -> Result<Capture, PortError> {
        let directory = self.places.attempt(state.attempt);
        Self::bury(&directory)?;
        let base = &state.opened.base_tree;
        let source = workspace::left_in(&directory)
            .ok_or_else(|| PortError::new(Code::HostFailed, "the workspace is gone"))?;
        let limits = Limits {
            changes: MOST_CHANGES,
            changed_bytes: MOST_CHANGED,
            ..Limits::default()
        };
        let captured = capture::capture(&self.repo, base, &source, &limits, Mode::Record)
            .map_err(uncaptured)?;
        let run = &state.names.run_id;
        let commit = self.commit_on_base(state, &captured.tree, &format!("Capture of {run}\n"))?;
        let kept_by = format!("refs/provost/runs/{run}/{}", state.attempt);
        self.keep(&kept_by, &commit)?;
        Ok(Capture {
            tree: captured.tree,
            kept_by,
            changes: captured.changes,
            findings: captured.findings,
            ignored: captured.ignored,
        })
    }

    fn accept(
        &mut self,
        state: &State,
        side: Side,
        tree: &Oid,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError> {
        let logs = match side {
            Side::Base => "ci/base",
            Side::Candidate => "ci/candidate",
            Side::Merged => return Err(PortError::new(Code::Bug, "a merge has its own logs")),
        };
        self.run_tests(state, (side, tree, logs), watch)
    }

    fn publish(&mut self, state: &State) -> Result<Published, PortError> {
        let Some(captured) = &state.captured else {
            return Err(PortError::new(
                Code::Bug,
                "there is no candidate to publish",
            ));
        };
        let message = proof::commit_message(state, &captured.tree);
        let commit = self.commit_on_base(state, &captured.tree, &message)?;
        let branch = format!("refs/heads/provost/{}", state.names.run_id);
        self.keep(&branch, &commit)?;
        Ok(Published { commit, branch })
    }

    fn clean(&mut self, state: &State) -> Result<Cleaned, PortError> {
        let directory = self.places.attempt(state.attempt);
        Self::bury(&directory)?;
        let cleaned = match state.site {
            Site::Workspace | Site::Abandoned if !is_captured_whole(state) => {
                self.salvage(state, &directory)?
            }
            // Only a workspace that was finished can hold work, and this one is kept already.
            _ => Cleaned::default(),
        };
        self.lower = None;
        self.ready = None;
        let stay: BTreeSet<PathBuf> = state
            .left
            .iter()
            .chain(&cleaned.left)
            .map(|left| PathBuf::from(&left.path))
            .collect();
        match state.site {
            // A lost attempt is followed by another one, which continues in the same home.
            Site::Abandoned if stay.contains(&directory) => {}
            Site::Abandoned => self.remove(&directory)?,
            Site::Empty | Site::Begun | Site::Workspace => self.clear(&stay)?,
        }
        Ok(cleaned)
    }

    fn patch(&mut self, before: &Oid, after: &Oid) -> Result<Vec<u8>, PortError> {
        self.repo.patch(before, after).map_err(git)
    }

    fn objects(&mut self, state: &State, after: &Oid) -> Result<Vec<u8>, PortError> {
        proof::objects(&self.repo, &state.opened, after)
    }
}

impl Machine {
    /// Keeps what is on disk and nowhere else.
    fn salvage(&self, state: &State, directory: &Path) -> Result<Cleaned, PortError> {
        let run = &state.names.run_id;
        let kept_by = format!("refs/provost/salvage/{run}/{}", state.attempt);
        let known = self.repo.ref_value(&kept_by).map_err(git)?;
        let Some(source) = workspace::left_in(directory) else {
            let salvage = known.map(|commit| Salvage { kept_by, commit });
            return Ok(Cleaned {
                salvage,
                left: None,
            });
        };
        let base = &state.opened.base_tree;
        let saved = workspace::salvage(&self.repo, base, &source).map_err(uncaptured)?;
        let commit = match known {
            // An interrupted removal leaves half a tree; what was saved before it is the whole.
            Some(commit) => Some(commit),
            None if saved.tree == *base || is_captured(state, &saved.tree) => None,
            None => {
                let message = format!("Salvage of {run}\n");
                let commit = self.commit_on_base(state, &saved.tree, &message)?;
                self.keep(&kept_by, &commit)?;
                Some(commit)
            }
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

    /// Removes everything of the run but the directories that `stay`.
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

/// Whether the capture holds every byte that the agent left.
fn is_captured_whole(state: &State) -> bool {
    let whole = |captured: &Capture| {
        let mut findings = captured.findings.iter();
        !findings.any(|finding| finding.kind.leaves_work_out())
    };
    state.captured.as_ref().is_some_and(whole)
}

/// Whether `tree` is what was captured.
fn is_captured(state: &State, tree: &Oid) -> bool {
    state.captured.as_ref().is_some_and(|it| it.tree == *tree)
}

/// Reads what an agent left as its result, without trusting what stands there.
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
