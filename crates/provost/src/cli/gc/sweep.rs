//! Removes what was decided to go, one thing after the other, each of them safe to be the last.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::retention::Fate;
use provost_host::git::{Checkout, GitError};
use provost_host::workspace::{self, Layers, Lowers};

use super::{Known, Refs, refs};
use crate::answer::Failure;
use crate::place::Place;
use crate::session;

/// Whether anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is.
    Do,
    /// It is only said.
    Say,
}

/// What went.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Refs.
    pub(super) refs: Vec<String>,
    /// Directories.
    pub(super) directories: Vec<PathBuf>,
    /// How many cached checkouts.
    pub(super) checkouts: u64,
    /// How many prepared layers.
    pub(super) layers: u64,
    /// What they held.
    pub(super) bytes: u64,
    /// What stayed although it should have gone, with the reason.
    pub(super) left: Vec<String>,
}

/// One sweep.
pub(super) struct Sweep<'a> {
    place: &'a Place,
    mode: Mode,
    refs: Refs,
    /// Branches that somebody has checked out.
    used: BTreeSet<String>,
    pub(super) total: Swept,
}

/// Where directories wait for their removal, in the runtime root and in the cache.
const ASIDE: &str = "removed";

impl<'a> Sweep<'a> {
    pub(super) fn new(place: &'a Place, mode: Mode) -> Result<Self, Failure> {
        let checkouts = place.repo.checkouts().map_err(|error| git(&error))?;
        let branch = |checkout: Checkout| checkout.branch;
        Ok(Self {
            place,
            mode,
            refs: refs(place)?,
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
        aged: bool,
        bundle: bool,
    ) -> Result<Swept, Failure> {
        let directory = self.place.run(&known.run_id);
        let mut swept = Swept::default();
        // Held until the end: nobody lands or resumes it meanwhile.
        let _lock = match self.mode {
            Mode::Say => None,
            Mode::Do => match session::lock(&directory, &known.run_id) {
                Ok(lock) => Some(lock),
                Err(failure) if failure.code == Code::RunBusy => {
                    swept
                        .left
                        .push(format!("{} ({})", known.run_id, failure.reason));
                    self.total.left.extend(swept.left.clone());
                    return Ok(swept);
                }
                Err(failure) => return Err(failure),
            },
        };
        self.branch(known, &mut swept)?;
        let kinds: &[&str] = match fate {
            Fate::Goes => &["merged", "runs", "salvage", "base"],
            Fate::GoesButSalvage => &["merged", "runs", "base"],
            Fate::Stays(_) => &[],
        };
        for kind in kinds {
            let own = format!("refs/provost/{kind}/{}", known.run_id);
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
        let workspace = self.place.cache()?.join("ws").join(&known.run_id);
        if workspace.symlink_metadata().is_ok() && !captured && !aged {
            swept
                .left
                .push(format!("{} (it may hold work)", workspace.display()));
        } else {
            let cache = self.place.cache()?.to_owned();
            self.set_aside(&cache, &workspace, &mut swept)?;
        }
        if bundle {
            let root = self.place.root.clone();
            self.set_aside(&root, &directory, &mut swept)?;
        }
        self.total.add(&swept);
        Ok(swept)
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
        let of_run = |name: &&String| {
            let run = name
                .strip_prefix("refs/provost/")
                .and_then(|name| name.split('/').nth(1));
            run.is_some_and(|run| !known.contains(run))
        };
        self.refs.keys().filter(of_run).count()
    }

    /// The cached results of acceptance commands on base trees, which can be had again.
    pub(super) fn cached_tests(&mut self) -> Result<(), Failure> {
        let cache = self.place.cache()?.to_owned();
        let tests: PathBuf = cache.join("tests");
        let mut swept = Swept::default();
        self.set_aside(&cache, &tests, &mut swept)?;
        self.total.add(&swept);
        Ok(())
    }

    /// The checkouts that overlays stand on, and the prepared layers, that nobody uses now.
    pub(super) fn checkouts(&mut self) -> Result<(), Failure> {
        let lowers = Lowers::new(self.place.cache()?);
        let collected = match self.mode {
            Mode::Do => lowers.collect(0),
            Mode::Say => lowers.idle(),
        };
        let collected = collected.map_err(|error| Failure::of(Code::HostFailed, &error))?;
        self.total.checkouts += collected.count;
        self.total.bytes = self.total.bytes.saturating_add(collected.bytes);
        let layers = Layers::new(self.place.cache()?);
        let collected = match self.mode {
            Mode::Do => layers.collect(0),
            Mode::Say => layers.idle(),
        };
        let collected = collected.map_err(|error| Failure::of(Code::HostFailed, &error))?;
        self.total.layers += collected.count;
        self.total.bytes = self.total.bytes.saturating_add(collected.bytes);
        Ok(())
    }
}

impl Swept {
    fn count(&mut self, directory: &Path) {
        self.directories.push(directory.to_owned());
        self.bytes += workspace::size(directory);
    }

    fn add(&mut self, more: &Self) {
        self.refs.extend(more.refs.iter().cloned());
        self.directories.extend(more.directories.iter().cloned());
        self.checkouts += more.checkouts;
        self.layers += more.layers;
        self.bytes += more.bytes;
        self.left.extend(more.left.iter().cloned());
    }
}

fn git(error: &GitError) -> Failure {
    Failure::of(Code::GitFailed, error)
}
