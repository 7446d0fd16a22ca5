//! Keeps the build caches that acceptance commands left on a trusted commit, for later rounds.
//!
//! # Invariants
//!
//! - An entry is made of one cold round, and never written to afterwards. A round that starts on it
//!   writes to a layer of its own.
//! - The manifest names commit and tree, when the round had ended, and a digest of all content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use provost_core::object::{Oid, sha256};
use provost_core::path::RepoPath;
use provost_core::run::fact::CacheLayer;
use provost_engine::acceptance_cache::GO_CACHE;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::directory_cache::{self, Collected, DirectoryCache, HeldDirectory, Wanted};
use super::layer::{contents, take};
use super::{WorkspaceError, make_private, remove, size, system};
use crate::cache;
use provost_fs::regular_file::read as read_file;

/// The manifest of an entry, beside its files.
const ABOUT: &str = "about.json";

/// The largest manifest that is read, in bytes.
const LARGEST_ABOUT: u64 = 64 << 10;

/// The largest caches that are kept, in bytes.
pub(crate) const MOST_BYTES: u64 = 8 << 30;

/// What an entry was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) commit: Oid,
    pub(crate) tree: Oid,
    /// The directories, in the order of their numbers.
    pub(crate) directories: Vec<String>,
    /// When the last process of the round had ended, since 1970.
    ended: Duration,
    /// SHA-256 of the content.
    content: String,
}

/// The build caches of one repository, by key.
#[derive(Debug, Clone)]
pub struct BuildCaches {
    directories: DirectoryCache,
}

/// Build caches that stay unchanged while this value lives.
#[derive(Debug)]
pub(crate) struct BuildCache {
    held: HeldDirectory,
    pub(crate) about: About,
}

impl BuildCache {
    /// The directory with this number.
    pub(crate) fn directory(&self, number: usize) -> PathBuf {
        self.held.files().join(number.to_string())
    }

    /// A time later than that of any file in it; `None` if the clock was set back since.
    pub(crate) fn later(&self) -> Option<SystemTime> {
        let now = SystemTime::now();
        (now > UNIX_EPOCH + self.about.ended).then_some(now)
    }

    /// What the ledger says about it.
    pub(crate) fn recorded(&self) -> CacheLayer {
        CacheLayer {
            commit: self.about.commit.clone(),
            tree: self.about.tree.clone(),
            key: self.held.manifest.name.clone(),
            sha256: self.held.manifest.note.clone(),
            bytes: self.held.manifest.bytes,
        }
    }
}

/// A directory that a round left, with its name.
pub(crate) struct LeftDirectory {
    pub(crate) name: String,
    /// A directory that only this program wrote to, and the path below it.
    pub(crate) root: PathBuf,
    pub(crate) path: RepoPath,
}

impl BuildCaches {
    /// The build caches below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            directories: DirectoryCache::new(cache.join(cache::BUILDS)),
        }
    }

    /// The entry `key`, if it exists and is unmodified.
    pub(crate) fn find(&self, key: &str) -> Result<Option<BuildCache>, WorkspaceError> {
        let Some(held) = self.directories.existing(key)? else {
            return Ok(None);
        };
        let bytes = read_file(&held.place.join(ABOUT), LARGEST_ABOUT)
            .ok()
            .flatten();
        let bytes = bytes.filter(|bytes| sha256(bytes) == held.manifest.note);
        let about = bytes.and_then(|bytes| provost_core::json::parse_as(&bytes).ok());
        Ok(about.map(|about| BuildCache { held, about }))
    }

    /// Whether `key` was kept before; it may be damaged.
    pub(crate) fn know(&self, key: &str) -> bool {
        self.directories.know(key)
    }

    /// Moves what a round on `commit` left into the entry `key`, unless that exists; `None` if the
    /// round left nothing.
    pub(crate) fn keep(
        &self,
        key: &str,
        (commit, tree): (&Oid, &Oid),
        left: &[LeftDirectory],
    ) -> Result<Option<BuildCache>, WorkspaceError> {
        let ended = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let place = |left: &LeftDirectory| left.root.join(left.path.as_str());
        let is_empty =
            |place: PathBuf| fs::read_dir(place).map_or(true, |mut it| it.next().is_none());
        if left.iter().map(place).all(is_empty) {
            return Ok(None);
        }
        let bytes = left.iter().map(|left| size::size(&place(left)));
        let bytes = bytes.fold(0, u64::saturating_add);
        if bytes > MOST_BYTES {
            let source = io::Error::other(format!("{bytes} bytes, and {MOST_BYTES} are kept"));
            let path = self.directories.place(key);
            let what = "keep so large a build cache as";
            return Err(WorkspaceError::System { what, path, source });
        }
        let mut fill = |begun: &Path| {
            let files = begun.join(directory_cache::FILES);
            make_private(&files)?;
            for (number, left) in left.iter().enumerate() {
                move_in(left, &files.join(number.to_string()), ended)?;
            }
            let (paths, content) = contents(&files).map_err(system("read", &files))?;
            let about = About {
                commit: commit.clone(),
                tree: tree.clone(),
                directories: left.iter().map(|left| left.name.clone()).collect(),
                ended,
                content,
            };
            let path = begun.join(ABOUT);
            let bytes = serde_json::to_vec(&about).map_err(io::Error::other);
            let bytes = bytes.map_err(system("write", &path))?;
            fs::write(&path, &bytes).map_err(system("write", &path))?;
            directory_cache::finish(begun, (key, &sha256(&bytes)), paths.iter())
        };
        drop(self.directories.hold::<WorkspaceError>(key, &mut fill)?);
        self.find(key)
    }

    /// Removes entries without a holder: those not `wanted`, then the least recently used ones
    /// until the rest fits into `room` bytes. Unfinished and discarded ones are removed too.
    pub fn collect(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collect(room, wanted)
    }

    /// What [`Self::collect`] would remove.
    pub fn collectable(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collectable(room, wanted)
    }
}

/// Moves one directory to `to`, without what is no build cache in it.
fn move_in(left: &LeftDirectory, to: &Path, ended: Duration) -> Result<(), WorkspaceError> {
    match take(&left.root, &left.path, to) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => make_private(to)?,
        taken => taken.map_err(system("take", &left.root.join(left.path.as_str())))?,
    }
    if left.path.name() == "target" {
        // The scratch directory that cargo gives to tests: state of a test, not of a build.
        remove(to, &to.join("tmp"))?;
    }
    if left.name == GO_CACHE {
        // Results of tests from before this time do not count, so that every test runs again.
        let path = to.join("testexpire.txt");
        remove(to, &path)?;
        fs::write(&path, format!("{}\n", ended.as_nanos())).map_err(system("write", &path))?;
    }
    Ok(())
}
