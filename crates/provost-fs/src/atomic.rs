//! Writes files whole or not at all.
//!
//! # Invariants
//!
//! - Under its name a file has the old content or the new one: it is written beside its place, then
//!   renamed or linked.
//! - What is [`Durability::Synced`] is on disk with its name when the call returns. The content is
//!   synced before the rename, the directory after it.
//! - Each writer has a draft of its own, so two of them never mix. A draft of a killed process
//!   ends with [`UNFINISHED`].

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// The end of the name of a file that is not complete.
pub const UNFINISHED: &str = ".provost-unfinished";

/// Whether a file survives a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It does, from the moment the call returns.
    Synced,
    /// It may be lost or damaged. Only for a file whose reader notices that and which can be made
    /// again.
    Cache,
}

/// Replaces the file `path`; a link there is replaced and not followed. The umask applies to `mode`.
pub fn replace(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let draft = Draft::of(path, bytes, mode)?;
    publish(vec![draft], durability)
}

/// Makes the file `path`, which must not exist.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match create_unnamed(path, bytes, mode) {
        // A file system without unnamed files, or no `/proc`.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    let draft = Draft::of(path, bytes, mode)?;
    draft.file.sync_all()?;
    // A link fails if the name is taken, which a rename does not.
    fs::hard_link(&draft.beside, path)?;
    drop(draft);
    sync_directory(directory_of(path))
}

/// Like [`create`], and never leaves a draft, because it has no name until it is complete. Fails
/// where the file system has no such files.
pub fn create_unnamed(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    link_unnamed(path, bytes, mode)?;
    sync_directory(directory_of(path))
}

/// Like [`create_unnamed`], for a caller that syncs the directory.
pub fn link_unnamed(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let mut file = File::from(rustix::fs::open(directory_of(path), flags, mode)?);
    file.write_all(bytes)?;
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// A complete file that does not have its name yet; dropped, it is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    beside: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Writes `bytes`, which [`publish`] gives the name `path`.
    pub fn of(path: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let beside = beside(path, &format!(".{}", unused_number()?));
        Self::at(beside, path, bytes, mode)
    }

    /// Like [`Self::of`], with the new file `beside` as the draft.
    pub fn at(beside: PathBuf, path: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(mode);
        let mut draft = Self {
            file: file.open(&beside)?,
            beside,
            path: path.to_owned(),
        };
        draft.file.write_all(bytes)?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing to remove.
        let _ = fs::remove_file(&self.beside);
    }
}

/// Gives all `drafts` their names.
///
/// All were written before any is synced, so that the file system commits one transaction and not
/// one for each file.
pub fn publish(drafts: Vec<Draft>, durability: Durability) -> io::Result<()> {
    let synced = durability == Durability::Synced;
    if synced {
        drafts.iter().try_for_each(|draft| draft.file.sync_all())?;
    }
    let mut directories = BTreeSet::new();
    for draft in drafts {
        fs::rename(&draft.beside, &draft.path)?;
        if synced {
            directories.insert(directory_of(&draft.path).to_owned());
        }
    }
    directories.iter().try_for_each(|path| sync_directory(path))
}

/// Gives the existing file `from` the further name `path`, whatever had that name before.
pub fn link(from: &Path, path: &Path) -> io::Result<()> {
    let beside = beside(path, "");
    // A process that died here left it.
    let _ = fs::remove_file(&beside);
    fs::hard_link(from, &beside)?;
    let renamed = fs::rename(&beside, path);
    // A rename onto another name of the same file does nothing and reports no error.
    let _ = fs::remove_file(&beside);
    renamed?;
    sync_directory(directory_of(path))
}

/// The name for something unfinished beside `path`; `tag` tells writers apart.
pub fn beside(path: &Path, tag: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(tag);
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// Whether the name of `path` is that of something unfinished.
pub fn is_unfinished(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    name.ends_with(UNFINISHED.as_bytes())
}

/// Makes the names in `directory` survive a power failure.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(directory, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(descriptor)?)
}

/// Makes `directory` and its parents where missing; what was made survives a power failure.
pub fn make_directories(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    make_directories(directory_of(directory))?;
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_directory(directory_of(directory)),
    }
}

/// The directory that holds the entry `path`.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A number for a name that no other process uses, as hexadecimal digits.
pub fn unused_number() -> io::Result<String> {
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|_| Errno::NOSYS)?;
    Ok(format!("{:016x}", u64::from_le_bytes(number)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_no_link_is_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("elsewhere"), "untouched").unwrap();
        symlink(at("elsewhere"), at("file")).unwrap();
        for (text, durability) in [("one", Durability::Synced), ("two", Durability::Cache)] {
            replace(&at("file"), text.as_bytes(), 0o600, durability).unwrap();
            assert_eq!(fs::read_to_string(at("file")).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(at("elsewhere")).unwrap(), "untouched");
        let mode = at("file").symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(names(scratch.path()), ["elsewhere", "file"]);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_content_and_no_draft() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir_all(at("taken/inside")).unwrap();
        fs::write(at("file"), "old").unwrap();
        assert!(replace(&at("taken"), b"new", 0o600, Durability::Synced).is_err());
        let drafts = ["file", "taken"].map(|name| Draft::of(&at(name), b"new", 0o600).unwrap());
        assert!(publish(drafts.into_iter().rev().collect(), Durability::Synced).is_err());
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old");
        assert_eq!(names(scratch.path()), ["file", "taken"]);
    }

    #[test]
    fn a_new_file_never_replaces_one() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        create(&path, b"first", 0o600).unwrap();
        let again = create(&path, b"second", 0o600).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(scratch.path()), ["file"]);
    }

    #[test]
    fn a_link_replaces_a_file_and_leaves_no_draft() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("from"), "content").unwrap();
        fs::write(at("to"), "other").unwrap();
        for _ in 0..2 {
            link(&at("from"), &at("to")).unwrap();
            assert_eq!(fs::read_to_string(at("to")).unwrap(), "content");
            assert_eq!(names(scratch.path()), ["from", "to"]);
        }
    }
}
