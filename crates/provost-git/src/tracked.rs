//! Decides whether git tracks anything at a path, without starting git if possible.

use std::path::{Component, Path};

use provost_core::file_system_names::{Reading, fold};
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_fs::stamp::{self, Stamp};

use super::index;
use super::run::Place;
use super::{GitError, Repository};
use provost_fs::regular_file::read as read_file;

impl Repository {
    /// A path that git tracks at or below `root`, which lies in the main checkout; `None` if there
    /// is none. Names count that a file system may treat as equal to those of `root`.
    ///
    /// Both the index and the commit that is checked out are searched.
    pub fn tracked_at(&self, root: &Path) -> Result<Option<RawPath>, GitError> {
        let Some(wanted) = self.top.as_deref().and_then(|top| Wanted::of(top, root)) else {
            return Ok(None);
        };
        if let Some(found) = self.staged_at(&wanted)? {
            return Ok(Some(found));
        }
        // From a linked worktree, the main checkout may be on another commit.
        if self.git_dir != self.common_dir {
            return Ok(None);
        }
        match self.resolve("HEAD") {
            Ok(commit) => self.committed_at(&self.commit_tree(&commit)?, &wanted),
            // Before the first commit nothing is tracked.
            Err(_) => Ok(None),
        }
    }

    /// Stamp of what [`Self::tracked_at`] depends on; `None` if it changed recently.
    pub fn tracking_stamp(&self) -> Option<String> {
        let began = stamp::now();
        let mut text = String::new();
        for name in ["index", "HEAD", "logs/HEAD"] {
            match rustix::fs::stat(self.common_dir.join(name)) {
                Ok(stat) if Stamp::of(&stat).is_settled(began) => {
                    text.extend(
                        Stamp::of(&stat)
                            .bytes()
                            .iter()
                            .map(|byte| format!("{byte:02x}")),
                    );
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => text.push('-'),
                Ok(_) | Err(_) => return None,
            }
        }
        Some(text)
    }

    fn staged_at(&self, wanted: &Wanted) -> Result<Option<RawPath>, GitError> {
        let path = self.common_dir.join("index");
        let limit = u64::try_from(index::LARGEST).unwrap_or(u64::MAX);
        if let Ok(None) = read_file(&path, limit) {
            return Ok(None);
        }
        let entries = match read_file(&path, limit) {
            Ok(Some(bytes)) => index::parse(&bytes, self.format).ok(),
            _ => None,
        };
        if let Some(entries) = entries {
            let paths = entries.iter().map(|entry| entry.path.as_bytes());
            return Ok(wanted.first(paths));
        }
        // The index is split, or damaged; git reports damage best.
        let place = Place {
            git_dir: &self.common_dir,
            objects: None,
            work_tree: None,
            index: None,
        };
        let output = self.git.run(&place, &["ls-files", "-z"], Vec::new())?;
        Ok(wanted.first(output.stdout.split(|byte| *byte == 0)))
    }

    fn committed_at(&self, tree: &Oid, wanted: &Wanted) -> Result<Option<RawPath>, GitError> {
        let mut level = vec![(RawPath::new(""), tree.clone())];
        let mut batch = self.batch()?;
        for depth in 1..=wanted.parts.len() {
            let mut read = super::TreeRead::default();
            let below = self.read_level(&mut batch, &mut read, level)?;
            let files = read.files.keys().map(RawPath::as_bytes);
            if let Some(found) = wanted.first(files) {
                return Ok(Some(found));
            }
            level = below;
            level.retain(|(path, _)| wanted.leads(path.as_bytes(), depth));
        }
        Ok(level.into_iter().next().map(|(path, _)| path))
    }
}

/// The path components from the top of a checkout to a place.
struct Wanted {
    parts: Vec<String>,
}

impl Wanted {
    fn of(top: &Path, root: &Path) -> Option<Self> {
        let below = root.strip_prefix(top).ok()?;
        let mut parts = Vec::new();
        for part in below.components() {
            match part {
                Component::Normal(name) => parts.push(fold(&name.to_string_lossy())),
                _ => return None,
            }
        }
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Whether the first `depth` components of `path` count as equal to ours.
    fn leads(&self, path: &[u8], depth: usize) -> bool {
        let mut names = path.split(|byte| *byte == b'/');
        let is = |part: &String| {
            let name = names.next();
            name.is_some_and(|name| Reading::of(&String::from_utf8_lossy(name)).is(part))
        };
        self.parts.iter().take(depth).all(is)
    }

    /// The first of `paths` that lies at or below the place.
    fn first<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) -> Option<RawPath> {
        // Neighbours mostly share their first component, and comparing one takes a while.
        let mut last: (&[u8], bool) = (b"", false);
        for path in paths {
            let name = path.split(|byte| *byte == b'/').next().unwrap_or_default();
            if name != last.0 {
                last = (name, self.leads(name, 1));
            }
            if last.1 && self.leads(path, self.parts.len()) {
                return Some(RawPath::new(path));
            }
        }
        None
    }
}
