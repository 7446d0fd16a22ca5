//! Removes what was decided to go, one thing after the other, each of them safe to be the last.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use provost_core::code::Code;
use provost_core::contract::limits::Limits;
use provost_core::object::Oid;
use provost_core::retention::{CACHED, Fate};
use provost_core::run::effect::{self, Base};
use provost_core::run::refs::{self, Kind};
use provost_engine::opening::Origin as _;
use provost_engine::ports::ObserverChoice;
use provost_host::cache;
use provost_host::git::{Checkout, GitError};
use provost_host::machine::layer_keys;
use provost_host::workspace::{self, Collected, Layers, Lowers, ROOM, Wanted, WorkspaceError};
use provost_store::lock::DriverLock;

use super::records::{self, Kept};
use super::unchanged::Mark;
use super::{Known, Refs};
use crate::answer::Failure;
use crate::origin::GitOrigin;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session;

/// Whether anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Do,
    /// It is only said.
    Say,
}

/// What becomes of a workspace that was never captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncaptured {
    /// It may hold work.
    Stays,
    /// It is old enough.
    Goes,
}

/// What becomes of the bundle of a run, or the record of a plan or a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    Stays,
    /// Somebody asked for it to go, or it tells of nothing.
    Goes,
}

/// How much of the caches goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What nobody used for a while and the current commit does not need.
    Unneeded,
    /// All that nobody uses just now.
    Everything,
}

/// What went.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) refs: Vec<String>,
    pub(super) directories: Vec<PathBuf>,
    /// How many cached checkouts.
    pub(super) checkouts: u64,
    /// How many prepared layers.
    pub(super) layers: u64,
    /// How many cached results of acceptance commands.
    pub(super) results: usize,
    /// How many files that detached runs had printed to.
    pub(super) outputs: usize,
    /// What they held.
    pub(super) bytes: u64,
    /// What stayed although it should have gone, with the reason.
    pub(super) left: Vec<String>,
}

pub(super) struct Sweep<'a> {
    place: &'a Places,
    mode: Mode,
    observer: &'a ProgressObserver,
    refs: Refs,
    /// Branches that somebody has checked out.
    used: BTreeSet<String>,
    pub(super) total: Swept,
}

/// What is ours alone while it is swept; nothing has to be where nothing is done.
struct Hold(#[expect(dead_code, reason = "it is held, not read")] Option<DriverLock>);

/// Where directories wait for their removal, in the runtime root and in the cache.
const ASIDE: &str = cache::REMOVED;

impl<'a> Sweep<'a> {
    pub(super) fn new(
        place: &'a Places,
        mode: Mode,
        observer: &'a ProgressObserver,
    ) -> Result<Self, Failure> {
        let checkouts = place.repo.checkouts().map_err(|error| git(&error))?;
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

    /// Finishes what an interrupted sweep had set aside.
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

    /// Sweeps what the run left, as far as `fate` says.
    pub(super) fn run(
        &mut self,
        known: &Known,
        fate: Fate,
        uncaptured: Uncaptured,
        evidence: Evidence,
    ) -> Result<Swept, Failure> {
        self.goes_on(&known.run_id)?;
        let directory = self.place.run(&known.run_id);
        let mut swept = Swept::default();
        // Held until the end: nobody lands or resumes it meanwhile.
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
        // What was never captured may lie there and nowhere else.
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
        if evidence == Evidence::Goes {
            let root = self.place.root.clone();
            self.set_aside(&root, &directory, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(swept)
    }

    /// Takes what `directory` holds for itself, so that nobody goes on with it meanwhile; nothing if
    /// somebody does already, or did since it was judged by `mark`.
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
            Ok(_) => "somebody went on with it just now".to_owned(),
            Err(failure) if failure.code == Code::RunBusy => failure.reason,
            Err(failure) => return Err(failure),
        };
        swept.left.push(format!("{id} ({why})"));
        self.total.left.extend(swept.left.clone());
        Ok(None)
    }

    /// Sweeps what a planner or a chain left in the cache, and its record as well if it is to go.
    pub(super) fn record(&mut self, kept: &Kept, evidence: Evidence) -> Result<Swept, Failure> {
        self.goes_on(&kept.id)?;
        let mut swept = Swept::default();
        let Some(_lock) = self.hold(&kept.directory, &kept.id, &kept.mark, &mut swept)? else {
            return Ok(swept);
        };
        let cache = self.place.cache()?.to_owned();
        // Whoever looks at a tree cannot write to it, so there is nothing in it to lose.
        let workspace = cache.join(cache::WORKSPACES).join(&kept.id);
        self.set_aside(&cache, &workspace, &mut swept)?;
        if evidence == Evidence::Goes {
            let root = self.place.root.clone();
            self.set_aside(&root, &kept.directory, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(swept)
    }

    /// Removes what runs printed that are gone.
    pub(super) fn printed(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let mut swept = Swept::default();
        for file in files {
            self.goes_on("what detached runs printed")?;
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

    /// The branch of the run, if it is as the run left it.
    fn branch(&self, known: &Known, swept: &mut Swept) -> Result<(), Failure> {
        let published = known
            .state
            .as_ref()
            .and_then(|state| state.published.as_ref());
        let Some(published) = published else {
            return Ok(());
        };
        match self.refs.get(&published.branch) {
            None => Ok(()),
            Some(at) if *at != published.commit => {
                let reason = "somebody went on with it";
                swept.left.push(format!("{} ({reason})", published.branch));
                Ok(())
            }
            Some(_) if self.used.contains(&published.branch) => {
                swept
                    .left
                    .push(format!("{} (it is checked out)", published.branch));
                Ok(())
            }
            Some(at) => self.delete(&published.branch, at, swept),
        }
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
                Err(error) => return Err(git(&error)),
            }
        }
        swept.refs.push(name.to_owned());
        Ok(())
    }

    /// Removes `directory`, which lies below `root`, so that it is there whole or not at all.
    fn set_aside(&self, root: &Path, directory: &Path, swept: &mut Swept) -> Result<(), Failure> {
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

    /// How many refs belong to runs whose bundle is not here.
    pub(super) fn strangers(&self, known: &BTreeSet<&str>) -> usize {
        let of_run = |name: &&String| refs::run_of(name).is_some_and(|run| !known.contains(run));
        self.refs.keys().filter(of_run).count()
    }

    /// Says what comes next, unless somebody wants the sweep to end: it can, between any two things.
    fn goes_on(&self, what: &str) -> Result<(), Failure> {
        if self.observer.choice() == ObserverChoice::Cancel {
            let reason = "the sweep was cancelled; another one goes on with it";
            return Err(Failure::new(Code::Cancelled, reason));
        }
        let doing = match self.mode {
            Mode::Do => "sweeping",
            Mode::Say => "looking at",
        };
        self.observer.show_step(&format!("{doing} {what} …"));
        Ok(())
    }

    /// What can be had again: results of acceptance commands on base trees, checkouts that overlays
    /// stand on, and prepared layers.
    pub(super) fn caches(&mut self, extent: Extent) -> Result<(), Failure> {
        let needed = match (extent, needed(self.place)) {
            (Extent::Everything, _) => None,
            (Extent::Unneeded, Ok(needed)) => Some(needed),
            (Extent::Unneeded, Err(failure)) => {
                // Everything may be needed.
                let left = format!("the caches ({})", failure.reason);
                self.total.left.push(left);
                return Ok(());
            }
        };
        let wanted = |name: &str, used: SystemTime| {
            // A time that is yet to come is no old one.
            let recent = || used.elapsed().map_or(true, |age| age < CACHED);
            let needed = needed.as_ref();
            needed.is_some_and(|needed| needed.contains(name) || recent())
        };
        self.results(&wanted)?;
        let failed = |error: WorkspaceError| Failure::of(Code::HostFailed, &error);
        let root = self.place.cache()?.to_owned();
        self.goes_on("cached checkouts")?;
        let lowers = Lowers::new(&root);
        let lowers = match self.mode {
            Mode::Do => lowers.collect(ROOM, &wanted),
            Mode::Say => lowers.collectable(ROOM, &wanted),
        };
        self.total.checkouts += self.total.collected(lowers.map_err(failed)?);
        self.goes_on("prepared layers")?;
        let layers = Layers::new(&root);
        let layers = match self.mode {
            Mode::Do => layers.collect(ROOM, &wanted),
            Mode::Say => layers.collectable(ROOM, &wanted),
        };
        self.total.layers += self.total.collected(layers.map_err(failed)?);
        Ok(())
    }

    /// The cached results of acceptance commands that nobody wants.
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
            self.goes_on("cached test results")?;
            self.set_aside(&root, &entry.path(), &mut swept)?;
        }
        swept.results = swept.directories.len();
        // Their number says enough.
        swept.directories.clear();
        self.total.add(&swept);
        Ok(())
    }
}

/// What of the caches the current commit needs: the name of its tree, and those of its layers.
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

    /// Takes in what a collection removed; answers how many things.
    fn collected(&mut self, collected: Collected) -> u64 {
        self.bytes = self.bytes.saturating_add(collected.bytes);
        collected.count
    }

    fn add(&mut self, more: &Self) {
        self.refs.extend(more.refs.iter().cloned());
        self.directories.extend(more.directories.iter().cloned());
        self.checkouts += more.checkouts;
        self.layers += more.layers;
        self.results += more.results;
        self.outputs += more.outputs;
        self.bytes += more.bytes;
        self.left.extend(more.left.iter().cloned());
    }
}

fn git(error: &GitError) -> Failure {
    Failure::of(Code::GitFailed, error)
}
