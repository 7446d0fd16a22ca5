//! Removes cached checkouts that nobody uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use provost_core::object::Oid;
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;

use super::Lowers;
use super::lock::{lock, unused};
use crate::workspace::manifest::Manifest;
use crate::workspace::{WorkspaceError, remove, system};

/// How the name of a checkout that is out of use begins.
const ASIDE: &str = "gone.";

/// When a checkout was used last, its tree, and its bytes.
type Checkout = (SystemTime, Oid, u64);

/// What a collection removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// How many checkouts.
    pub checkouts: u64,
    /// What they held, in bytes.
    pub bytes: u64,
}

impl Lowers {
    /// Removes what nobody holds, the least recently used first, until the rest fits into `room`
    /// bytes; also what was set aside or never finished.
    pub fn collect(&self, room: u64) -> Result<Collected, WorkspaceError> {
        let (mut found, others) = self.list()?;
        found.sort();
        let mut held = found.iter().map(|(_, _, bytes)| bytes).sum::<u64>();
        let mut collected = Collected::default();
        for (_, tree, bytes) in found {
            if held <= room {
                break;
            }
            let Some(_lock) = unused(&self.place(&tree)) else {
                continue;
            };
            if let Some(aside) = self.set_aside(&tree)? {
                remove(&self.root, &aside)?;
            }
            held = held.saturating_sub(bytes);
            collected.checkouts += 1;
            collected.bytes = collected.bytes.saturating_add(bytes);
        }
        self.sweep(&others)?;
        Ok(collected)
    }

    /// What a collection that leaves no room would remove.
    pub fn idle(&self) -> Result<Collected, WorkspaceError> {
        let (found, _) = self.list()?;
        let mut idle = Collected::default();
        for (_, tree, bytes) in found {
            if unused(&self.place(&tree)).is_some() {
                idle.checkouts += 1;
                idle.bytes = idle.bytes.saturating_add(bytes);
            }
        }
        Ok(idle)
    }

    /// The checkouts with the time of their last use and their bytes, and the names of other things.
    fn list(&self) -> Result<(Vec<Checkout>, Vec<String>), WorkspaceError> {
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
            match Oid::try_from(name.as_str()) {
                Ok(tree) => {
                    let used = fs::metadata(entry.path().join("lock")).and_then(|it| it.modified());
                    let manifest = Manifest::read(&entry.path().join("manifest"));
                    let bytes = manifest.map_or(0, |manifest| manifest.bytes);
                    found.push((used.unwrap_or(SystemTime::UNIX_EPOCH), tree, bytes));
                }
                Err(_) => others.push(name),
            }
        }
        Ok((found, others))
    }

    /// Removes what was never finished, and what was set aside and is not used any more.
    fn sweep(&self, names: &[String]) -> Result<(), WorkspaceError> {
        for name in names {
            let path = self.root.join(name);
            if let Some(tree) = name.strip_suffix(".new") {
                let maker = self.root.join(format!("{tree}.lock"));
                let lock = lock(&maker, FlockOperation::NonBlockingLockExclusive);
                if matches!(lock, Ok(Some(_))) {
                    remove(&self.root, &path)?;
                }
            } else if name.starts_with(ASIDE) {
                self.remove_unused(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what was set aside, unless somebody still uses it; then a later collection does.
    pub(super) fn remove_unused(&self, aside: &Path) -> Result<(), WorkspaceError> {
        let without_lock = !aside.join("lock").exists();
        if without_lock || unused(aside).is_some() {
            remove(&self.root, aside)?;
        }
        Ok(())
    }

    /// Takes the checkout of `tree` out of use; where it is now, if there was one.
    pub(super) fn set_aside(&self, tree: &Oid) -> Result<Option<PathBuf>, WorkspaceError> {
        let place = self.place(tree);
        for number in 0_u32.. {
            let name = format!("{ASIDE}{tree}.{}.{number}", std::process::id());
            let aside = self.root.join(name);
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
