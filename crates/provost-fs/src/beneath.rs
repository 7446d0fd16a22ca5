//! Opens files below a directory, never through a symbolic link and never outside.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use crate::atomic::{self, Durability};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A directory that lookups cannot leave.
#[derive(Debug)]
pub struct Beneath(OwnedFd);

/// Flags of every lookup: a link is an error, a fifo does not block, no child inherits it.
const CAREFUL: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Opens the regular file at `path` for reading, through no symbolic link; a relative path does
/// not leave the current directory.
pub fn open_file(path: &Path) -> std::io::Result<File> {
    let parts = path.components();
    let plain = |part: Component<'_>| !matches!(part, Component::RootDir | Component::CurDir);
    let inner: std::path::PathBuf = parts.filter(|part| plain(*part)).collect();
    let root = if path.is_absolute() { "/" } else { "." };
    let root = Beneath::new(Path::new(root))?;
    let name = inner.as_os_str().as_bytes();
    let file = File::from(root.open(name, OFlags::RDONLY, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(Error::new(ErrorKind::InvalidInput, "is not a regular file"))
}

impl Beneath {
    /// Opens `path`, which must be a directory and not a link to one.
    pub fn new(path: &Path) -> rustix::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAREFUL;
        rustix::fs::open(path, flags, Mode::empty()).map(Self)
    }

    /// A directory below, which lookups cannot leave either.
    pub fn below(&self, path: &[u8]) -> rustix::io::Result<Self> {
        self.directory(path).map(Self)
    }

    /// Writes the file `name` in this directory itself, whole or not at all. Whatever had the name
    /// before, a link too, is replaced and not written through.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        if name.contains('/') {
            return Err(Errno::XDEV.into());
        }
        // By its descriptor, the directory is the same one whatever becomes of its name.
        let place = format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd());
        atomic::replace(Path::new(&place), bytes, 0o644, Durability::Synced)
    }

    /// Opens the directory at `path`; the empty path is the root.
    pub fn directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    pub fn open(&self, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let flags = flags | CAREFUL;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.0, path, flags, mode, resolve) {
            // Old kernels lack the call, and some containers refuse unknown calls.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {
                self.step_by_step(path, flags, mode)
            }
            result => result,
        }
    }

    /// Like [`Self::open`], with one lookup for each component.
    fn step_by_step(&self, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        let mut here = None;
        while let Some(part) = parts.next() {
            let base = here.as_ref().map_or(self.0.as_fd(), OwnedFd::as_fd);
            if part == b".." || part.is_empty() {
                return Err(Errno::XDEV);
            }
            if parts.peek().is_none() {
                return rustix::fs::openat(base, part, flags, mode);
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | CAREFUL;
            here = Some(rustix::fs::openat(base, part, flags, Mode::empty())?);
        }
        Err(Errno::NOENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_lookup_leaves_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("a/b/file"), "f").unwrap();
        std::os::unix::fs::symlink(outer.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink("a/b/file", root.join("link")).unwrap();
        let beneath = Beneath::new(&root).unwrap();
        let cases: [(&[u8], bool); 5] = [
            (b"a/b/file", true),
            (b"link", false),
            (b"out/secret", false),
            (b"../secret", false),
            (b"a/../../secret", false),
        ];
        for (path, want) in cases {
            let flags = OFlags::RDONLY;
            let one = beneath.open(path, flags, Mode::empty());
            let other = beneath.step_by_step(path, flags | CAREFUL, Mode::empty());
            assert_eq!(one.is_ok(), want, "{path:?}");
            assert_eq!(other.is_ok(), want, "{path:?} step by step");
        }
    }
}
