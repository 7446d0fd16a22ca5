//! Removes what was decided to go, in steps that can each be the last one.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use provost_core::code::Code;
use provost_core::contract::limits::Limits;
use provost_core::object::Oid;
use provost_core::run::effect::{self, Base};
use provost_core::run::refs::{self, Kind};
use provost_engine::opening::Origin as _;
use provost_engine::ports::ObserverChoice;
use provost_engine::retention::{CACHED, Fate};
use provost_host::cache;
use provost_host::git::{Checkout, GitError};
use provost_host::machine::layer_keys;
use provost_host::origin::GitOrigin;
use provost_host::workspace::{
    self, BuildCaches, Collected, Layers, Lowers, ROOM, Wanted, WorkspaceError,
};

use super::records::{self, Kept};
use super::unchanged::Mark;
use super::{Known, Refs};
use crate::answer::Failure;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session;
use crate::stores::DriverGuard;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Do,
    /// Only the report is made.
    Say,
}

/// Whether a workspace that was never captured is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncaptured {
    /// It may hold work.
    Stays,
    /// It is old enough.
    Goes,
}

/// Whether the bundle of a run, or the record of a plan or a chain, is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    Stays,
    /// The user asked for it, or there is no evidence in it.
    Goes,
}

/// How much of the caches is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What was not used for a while and the current commit does not need.
    Unneeded,
    /// All that is not in use.
    Everything,
}

/// What was removed.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) refs: Vec<String>,
    pub(super) directories: Vec<PathBuf>,
    /// Number of cached checkouts.
    pub(super) checkouts: u64,
    /// Number of prepared layers.
    pub(super) layers: u64,
    /// Number of build caches of acceptance commands.
    pub(super) builds: u64,
    /// Number of cached results of acceptance commands.
    pub(super) results: usize,
    /// Number of output files of detached runs.
    pub(super) outputs: usize,
    /// Total size.
    pub(super) bytes: u64,
    /// What stayed although it should have been removed, with the reason.
    pub(super) left: Vec<String>,
}

pub(super) struct Sweep<'a> {
    pub(super) place: &'a Places,
    mode: Mode,
    observer: &'a ProgressObserver,
    refs: Refs,
    /// Branches that are checked out.
    used: BTreeSet<String>,
    pub(super) total: Swept,
}

/// The lock on something while it is removed; a dry run needs none.
struct Hold(#[expect(dead_code, reason = "it is held, not read")] Option<DriverGuard>);

/// The directory of directories that wait for their removal, in the runtime root and in the cache.
const ASIDE: &str = cache::REMOVED;

impl<'a> Sweep<'a> {
    pub(super) fn new(
        place: &'a Places,
        mode: Mode,
        observer: &'a ProgressObserver,
    ) -> Result<Self, Failure> {
        let checkouts = place.repo.checkouts()?;
        let branch = |checkout: Checkout| checkout.branch;
        Ok(Self {
            place,
            mode,
            observer,
            refs: super::refs(place)?,
            used: checkouts.into_iter().filter_map(branch).collect(),
            total: Swept::default(),
        })
    }

    /// Completes the removals of an interrupted sweep.
    pub(super) fn leftovers(&mut self) -> Result<(), Failure> {
        for root in [self.place.root.clone(), self.place.cache()?.to_owned()] {
            let aside = root.join(ASIDE);
            if aside.symlink_metadata().is_ok() {
                self.total.count(&aside);
                self.remove(&root, &aside)?;
            }
        }
        Ok(())
    }

    /// Removes what the run left, as far as `fate` permits.
    pub(super) fn run(
        &mut self,
        known: &Known,
        fate: Fate,
        uncaptured: Uncaptured,
        evidence: Evidence,
    ) -> Result<Swept, Failure> {
        self.announce(&known.run_id)?;
        let directory = self.place.run(&known.run_id);
        let mut swept = Swept::default();
        // Held until the end: no process lands or resumes the run meanwhile.
        let Some(_lock) = self.hold(&directory, &known.run_id, &known.mark, &mut swept)? else {
            return Ok(swept);
        };
        self.branch(known, &mut swept)?;
        let kinds: &[Kind] = match fate {
            Fate::Goes => &[
                Kind::Merged,
                Kind::Crossed,
                Kind::Captured,
                Kind::Salvaged,
                Kind::Base,
            ],
            Fate::GoesButSalvage => &[Kind::Merged, Kind::Crossed, Kind::Captured, Kind::Base],
            Fate::Stays(_) => &[],
        };
        for kind in kinds {
            let own = kind.of_run(&known.run_id);
            let below = format!("{own}/");
            let refs = self.refs.iter();
            let refs = refs.filter(|(name, _)| **name == own || name.starts_with(&below));
            let refs: Vec<_> = refs.map(|(name, at)| (name.clone(), at.clone())).collect();
            for (name, at) in refs {
                self.delete(&name, &at, &mut swept)?;
            }
        }
        // A workspace that was never captured may be the only copy of work.
        let captured = known
            .state
            .as_ref()
            .is_some_and(|state| state.captured.is_some());
        let workspace = self.place.cache()?.join(cache::WORKSPACES);
        let workspace = workspace.join(&known.run_id);
        if workspace.symlink_metadata().is_ok() && !captured && uncaptured == Uncaptured::Stays {
            swept
                .left
                .push(format!("{} (it may hold work)", workspace.display()));
        } else {
            let root = self.place.cache()?.to_owned();
            self.set_aside(&root, &workspace, &mut swept)?;
        }
        for file in records::printed(self.place, &known.run_id) {
            self.output(&file, &mut swept)?;
        }
        let root = self.place.root.clone();
        self.set_aside(&root, &self.place.bodies(&known.run_id), &mut swept)?;
        if evidence == Evidence::Goes {
            self.set_aside(&root, &directory, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(swept)
    }

    /// Locks `directory`, so that no process continues it meanwhile; nothing if a process drives it
    /// already, or has changed it since it was judged by `mark`.
    fn hold(
        &mut self,
        directory: &Path,
        id: &str,
        mark: &Mark,
        swept: &mut Swept,
    ) -> Result<Option<Hold>, Failure> {
        if self.mode == Mode::Say {
            return Ok(Some(Hold(None)));
        }
        let why = match session::lock(directory, id) {
            Ok(lock) if Mark::of(directory) == *mark => return Ok(Some(Hold(Some(lock)))),
            Ok(_) => "it was changed just now".to_owned(),
            Err(failure) if failure.code == Code::RunBusy => failure.reason,
            Err(failure) => return Err(failure),
        };
        swept.left.push(format!("{id} ({why})"));
        self.total.left.extend(swept.left.clone());
        Ok(None)
    }

    /// Removes what a planner or a chain left in the cache, and its record if `evidence` says so.
    pub(super) fn record(&mut self, kept: &Kept, evidence: Evidence) -> Result<Swept, Failure> {
        self.announce(&kept.id)?;
        let mut swept = Swept::default();
        let Some(_lock) = self.hold(&kept.directory, &kept.id, &kept.mark, &mut swept)? else {
            return Ok(swept);
        };
        let cache = self.place.cache()?.to_owned();
        // A planner or reviewer cannot write to its tree, so no work is lost.
        let workspace = cache.join(cache::WORKSPACES).join(&kept.id);
        self.set_aside(&cache, &workspace, &mut swept)?;
        if evidence == Evidence::Goes {
            let root = self.place.root.clone();
            self.set_aside(&root, &kept.directory, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(swept)
    }

    /// Removes the output files of runs that are gone.
    pub(super) fn printed(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let mut swept = Swept::default();
        for file in files {
            self.announce("the output of detached runs")?;
            self.output(file, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(())
    }

    fn output(&self, file: &Path, swept: &mut Swept) -> Result<(), Failure> {
        swept.outputs += 1;
        swept.bytes += workspace::size(file);
        if self.mode == Mode::Say {
            return Ok(());
        }
        match fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let reason = format!("`{}`: {error}", file.display());
                Err(Failure::new(Code::HostFailed, reason))
            }
            _ => Ok(()),
        }
    }

    /// Removes the branch of a run that was refused; refs keep its work.
    pub(super) fn refused_branch(&mut self, known: &Known) -> Result<(), Failure> {
        let finished = known.state.as_ref().and_then(|it| it.finished.as_ref());
        if finished.is_none_or(|verdict| verdict.allow) {
            return Ok(());
        }
        let directory = self.place.run(&known.run_id);
        let mut swept = Swept::default();
        let held = self.hold(&directory, &known.run_id, &known.mark, &mut swept)?;
        if held.is_some() {
            self.branch(known, &mut swept)?;
            self.total.add(&swept);
        }
        Ok(())
    }

    /// Removes the branch of the run, if it is as the run left it.
    fn branch(&self, known: &Known, swept: &mut Swept) -> Result<(), Failure> {
        let Some(state) = &known.state else {
            return Ok(());
        };
        let branch = refs::branch(&known.run_id);
        // A driver that died may have made the branch and not recorded it.
        let as_left = |at: &Oid| match (&state.published, &state.captured) {
            (Some(published), _) => published.commit == *at,
            (None, Some(captured)) => {
                let tree = self.place.repo.commit_tree(at);
                tree.is_ok_and(|tree| tree == captured.tree)
            }
            (None, None) => false,
        };
        let why = match self.refs.get(&branch) {
            None => return Ok(()),
            Some(at) if !as_left(at) => "it has moved since the run",
            Some(_) if self.used.contains(&branch) => "it is checked out",
            Some(at) => return self.delete(&branch, at, swept),
        };
        swept.left.push(format!("{branch} ({why})"));
        Ok(())
    }

    fn delete(&self, name: &str, at: &Oid, swept: &mut Swept) -> Result<(), Failure> {
        if self.mode == Mode::Do {
            match self.place.repo.delete_ref(name, at) {
                Ok(()) => {}
                Err(GitError::RefMoved { found: None, .. }) => return Ok(()),
                Err(GitError::RefMoved { .. }) => {
                    swept.left.push(format!("{name} (it moved meanwhile)"));
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        swept.refs.push(name.to_owned());
        Ok(())
    }

    /// Removes `directory`, which lies below `root`, atomically: it is renamed first.
    pub(super) fn set_aside(
        &self,
        root: &Path,
        directory: &Path,
        swept: &mut Swept,
    ) -> Result<(), Failure> {
        if directory.symlink_metadata().is_err() {
            return Ok(());
        }
        swept.count(directory);
        if self.mode == Mode::Say {
            return Ok(());
        }
        let aside = root.join(ASIDE);
        let unusable = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| {
                Failure::new(Code::HostFailed, format!("`{path}`: {error}"))
            }
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&aside)
            .map_err(unusable(&aside))?;
        let name = directory.file_name().unwrap_or_default();
        fs::rename(directory, aside.join(name)).map_err(unusable(directory))?;
        self.remove(root, &aside)
    }

    fn remove(&self, root: &Path, directory: &Path) -> Result<(), Failure> {
        if self.mode == Mode::Say {
            return Ok(());
        }
        workspace::remove(root, directory).map_err(|error| Failure::of(Code::HostFailed, &error))
    }

    /// Number of refs of runs whose bundle does not exist here.
    pub(super) fn strangers(&self, known: &BTreeSet<&str>) -> usize {
        let of_run = |name: &&String| refs::run_of(name).is_some_and(|run| !known.contains(run));
        self.refs.keys().filter(of_run).count()
    }

    /// Reports the next step, unless the user cancelled: the sweep can stop between any two steps.
    fn announce(&self, what: &str) -> Result<(), Failure> {
        if self.observer.choice() == ObserverChoice::Cancel {
            let reason = "gc was cancelled; the next one completes it";
            return Err(Failure::new(Code::Cancelled, reason));
        }
        let doing = match self.mode {
            Mode::Do => "sweeping",
            Mode::Say => "reading",
        };
        self.observer.show_step(&format!("{doing} {what} …"));
        Ok(())
    }

    /// Removes what can be made again: results of acceptance commands on base trees, checkouts that
    /// overlays use as lower layers, prepared layers, and build caches.
    pub(super) fn caches(&mut self, extent: Extent) -> Result<(), Failure> {
        let needed = match (extent, needed(self.place)) {
            (Extent::Everything, _) => None,
            (Extent::Unneeded, Ok(needed)) => Some(needed),
            (Extent::Unneeded, Err(failure)) => {
                // Any entry may be needed.
                let left = format!("the caches ({})", failure.reason);
                self.total.left.push(left);
                return Ok(());
            }
        };
        let wanted = |name: &str, used: SystemTime| {
            // A time in the future does not make an entry old.
            let recent = || used.elapsed().map_or(true, |age| age < CACHED);
            let needed = needed.as_ref();
            needed.is_some_and(|needed| needed.contains(name) || recent())
        };
        self.results(&wanted)?;
        let failed = |error: WorkspaceError| Failure::of(Code::HostFailed, &error);
        let root = self.place.cache()?.to_owned();
        self.announce("cached checkouts")?;
        let lowers = Lowers::new(&root);
        let lowers = match self.mode {
            Mode::Do => lowers.collect(ROOM, &wanted),
            Mode::Say => lowers.collectable(ROOM, &wanted),
        };
        self.total.checkouts += self.total.collected(lowers.map_err(failed)?);
        self.announce("prepared layers")?;
        let layers = Layers::new(&root);
        let layers = match self.mode {
            Mode::Do => layers.collect(ROOM, &wanted),
            Mode::Say => layers.collectable(ROOM, &wanted),
        };
        self.total.layers += self.total.collected(layers.map_err(failed)?);
        self.announce("build caches")?;
        let builds = BuildCaches::new(&root);
        let builds = match self.mode {
            Mode::Do => builds.collect(ROOM, &wanted),
            Mode::Say => builds.collectable(ROOM, &wanted),
        };
        self.total.builds += self.total.collected(builds.map_err(failed)?);
        Ok(())
    }

    /// Removes cached results of acceptance commands that are not `wanted`.
    fn results(&mut self, wanted: Wanted<'_>) -> Result<(), Failure> {
        let root = self.place.cache()?.to_owned();
        let entries = fs::read_dir(root.join(cache::RESULTS))
            .into_iter()
            .flatten();
        let mut swept = Swept::default();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let used = entry.metadata().and_then(|found| found.modified());
            if used.is_ok_and(|used| wanted(&name, used)) {
                continue;
            }
            self.announce("cached test results")?;
            self.set_aside(&root, &entry.path(), &mut swept)?;
        }
        swept.results = swept.directories.len();
        // Only their number is reported.
        swept.directories.clear();
        self.total.add(&swept);
        Ok(())
    }
}

/// The cache entries that the current commit needs: the name of its tree, and those of its layers.
fn needed(place: &Places) -> Result<BTreeSet<String>, Failure> {
    let origin = GitOrigin(&place.repo);
    let Ok(commit) = place.repo.resolve("HEAD") else {
        return Ok(BTreeSet::new());
    };
    let tree = origin.tree(&commit)?;
    let policy = origin.policy(&tree)?;
    let mut needed = BTreeSet::from([tree.as_str().to_owned()]);
    let plan = effect::Prepare {
        steps: policy.prepare,
        loopback: !policy.loopback_off,
        base: Base {
            commit,
            tree: tree.clone(),
        },
        tree,
        logs: String::new(),
        // Nothing is made here.
        limits: Limits::default(),
    };
    needed.extend(layer_keys(&place.repo, &plan)?);
    Ok(needed)
}

impl Swept {
    fn count(&mut self, directory: &Path) {
        self.directories.push(directory.to_owned());
        self.bytes += workspace::size(directory);
    }

    /// Adds what a collection removed; returns the number of entries.
    fn collected(&mut self, collected: Collected) -> u64 {
        self.bytes = self.bytes.saturating_add(collected.bytes);
        collected.count
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.refs.extend(more.refs.iter().cloned());
        self.directories.extend(more.directories.iter().cloned());
        self.checkouts += more.checkouts;
        self.layers += more.layers;
        self.builds += more.builds;
        self.results += more.results;
        self.outputs += more.outputs;
        self.bytes += more.bytes;
        self.left.extend(more.left.iter().cloned());
    }
}
