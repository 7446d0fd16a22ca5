//! Removes cached directories that are not in use.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use provost_fs::lock::Hold;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::DirectoryCache;
use super::lock::{lock, unused};
use crate::workspace::manifest::Manifest;
use crate::workspace::{WorkspaceError, remove, system};

/// Prefix of the name of a directory that was taken out of use.
const ASIDE: &str = "gone.";

/// Last use, name, and size in bytes of a directory.
type Found = (SystemTime, String, u64);

/// Decides from a directory's name and last use whether a later run may need it.
pub type Wanted<'a> = &'a dyn Fn(&str, SystemTime) -> bool;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// How many directories.
    pub count: u64,
    /// Their size.
    pub bytes: u64,
}

impl Collected {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl DirectoryCache {
    /// Removes directories without a holder: those not `wanted`, then the least recently used ones
    /// until the rest fits into `room` bytes. Unfinished and discarded ones are removed too.
    pub(crate) fn collect(
        &self,
        room: u64,
        wanted: Wanted<'_>,
    ) -> Result<Collected, WorkspaceError> {
        let (found, others) = self.list()?;
        let mut collected = Collected::default();
        for (_, name, bytes) in self.condemned(found, room, wanted) {
            let Some(_lock) = unused(&self.place(&name)) else {
                continue;
            };
            if let Some(aside) = self.set_aside(&name)? {
                remove(&self.root, &aside)?;
            }
            collected.add(bytes);
        }
        self.sweep(&others)?;
        Ok(collected)
    }

    /// What [`DirectoryCache::collect`] would remove.
    pub(crate) fn collectable(
        &self,
        room: u64,
        wanted: Wanted<'_>,
    ) -> Result<Collected, WorkspaceError> {
        let (found, _) = self.list()?;
        let mut collected = Collected::default();
        for (_, _, bytes) in self.condemned(found, room, wanted) {
            collected.add(bytes);
        }
        Ok(collected)
    }

    /// Those of `found` to remove, in this order.
    fn condemned(&self, mut found: Vec<Found>, room: u64, wanted: Wanted<'_>) -> Vec<Found> {
        found.sort();
        let mut held = found.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        let (wanted, unwanted): (Vec<Found>, Vec<Found>) = found
            .into_iter()
            .partition(|(used, name, _)| wanted(name, *used));
        let is_free = |found: &Found| unused(&self.place(&found.1)).is_some();
        let mut condemned: Vec<Found> = unwanted.into_iter().filter(is_free).collect();
        let gone = condemned.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        held = held.saturating_sub(gone);
        for found in wanted {
            if held <= room {
                break;
            }
            if is_free(&found) {
                held = held.saturating_sub(found.2);
                condemned.push(found);
            }
        }
        condemned
    }

    /// The directories with last use and size, and the names of other entries.
    fn list(&self) -> Result<(Vec<Found>, Vec<String>), WorkspaceError> {
        let mut found = Vec::new();
        let mut others = Vec::new();
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((found, others));
            }
            entries => entries.map_err(system("list", &self.root))?,
        };
        for entry in entries {
            let entry = entry.map_err(system("list", &self.root))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let used = fs::metadata(entry.path().join("lock")).and_then(|it| it.modified());
                let manifest = Manifest::read(&entry.path().join("manifest"));
                let bytes = manifest.map_or(0, |manifest| manifest.bytes);
                found.push((used.unwrap_or(SystemTime::UNIX_EPOCH), name, bytes));
            } else {
                others.push(name);
            }
        }
        Ok((found, others))
    }

    /// Removes unfinished directories, and discarded ones that have no holder.
    fn sweep(&self, names: &[String]) -> Result<(), WorkspaceError> {
        for name in names {
            let path = self.root.join(name);
            if let Some(begun) = name.strip_suffix(".new") {
                let maker = self.root.join(format!("{begun}.lock"));
                let lock = lock(&maker, Hold::Alone);
                if matches!(lock, Ok(Some(_))) {
                    remove(&self.root, &path)?;
                }
            } else if name.starts_with(ASIDE) {
                self.remove_unused(&path)?;
            }
        }
        Ok(())
    }

    /// Removes a discarded directory; if it still has a holder, a later collection does.
    pub(super) fn remove_unused(&self, aside: &Path) -> Result<(), WorkspaceError> {
        let without_lock = !aside.join("lock").exists();
        if without_lock || unused(aside).is_some() {
            remove(&self.root, aside)?;
        }
        Ok(())
    }

    /// Takes the directory `name` out of use; returns its new path, if it existed.
    pub(super) fn set_aside(&self, name: &str) -> Result<Option<PathBuf>, WorkspaceError> {
        let place = self.place(name);
        for number in 0_u32.. {
            let aside = format!("{ASIDE}{name}.{}.{number}", std::process::id());
            let aside = self.root.join(aside);
            match rustix::fs::renameat_with(CWD, &place, CWD, &aside, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(Some(aside)),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(system("rename", &place)(error)),
            }
        }
        Ok(None)
    }
}
