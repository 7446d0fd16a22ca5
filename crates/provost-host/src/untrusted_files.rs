//! Reads single files below a directory with untrusted content.
//!
//! # Invariants
//!
//! - Only regular files are read, none through a symbolic link, and nothing outside the directory.
//! - Reading never blocks: a fifo is not opened for its bytes. No more than a limit is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use provost_core::path::RepoPath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use provost_fs::beneath::Beneath;

#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("there is no such file")]
    Missing,
    /// A directory, a fifo, a device.
    #[error("it is no regular file")]
    NotAFile,
    /// A file, a link or something else where a directory should be.
    #[error("it is no directory")]
    NotADirectory,
    /// A symbolic link, as the last component or before it.
    #[error("it is a symbolic link or lies behind one")]
    Link,
    #[error("it is larger than the {0} bytes that are read")]
    TooLarge(usize),
    /// A system call failed.
    #[error("{0}")]
    Refused(#[from] io::Error),
}

#[derive(Debug)]
pub struct Below(Option<Beneath>);

impl Below {
    /// Opens `directory`, as the caller names it. A missing one has no files.
    pub fn new(directory: &Path) -> Result<Self, ForeignError> {
        // The caller may name the directory by a link; its entries may not be links.
        let real = match directory.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self(None)),
            Err(error) => return Err(error.into()),
        };
        let root = Beneath::new(&real).map_err(io::Error::from)?;
        Ok(Self(Some(root)))
    }

    /// The directory `path` below this one; a missing one has no files.
    pub fn below(&self, path: &RepoPath) -> Result<Self, ForeignError> {
        let Some(root) = &self.0 else {
            return Ok(Self(None));
        };
        match root.below(path.as_str().as_bytes()) {
            Ok(below) => Ok(Self(Some(below))),
            Err(Errno::NOENT) => Ok(Self(None)),
            Err(Errno::LOOP) => Err(ForeignError::Link),
            // Some kernels report a link in the place of a directory with this error.
            Err(Errno::NOTDIR) => Err(ForeignError::NotADirectory),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Writes the file `name` in this directory, whole or not at all, and never through a link.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ForeignError> {
        match &self.0 {
            Some(root) => Ok(root.replace(name, bytes)?),
            None => Err(ForeignError::Missing),
        }
    }

    /// The names in this directory itself, sorted, up to `most` of them.
    pub fn names(&self, most: usize) -> Result<Vec<String>, ForeignError> {
        let Some(root) = &self.0 else {
            return Ok(Vec::new());
        };
        let handle = root.directory(b"").map_err(io::Error::from)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(handle).map_err(io::Error::from)? {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && names.len() < most {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads the file `path`, up to `limit` bytes.
    pub fn read(&self, path: &RepoPath, limit: usize) -> Result<Vec<u8>, ForeignError> {
        let Some(root) = &self.0 else {
            return Err(ForeignError::Missing);
        };
        let name = path.as_str().as_bytes();
        let handle = match root.open(name, OFlags::RDONLY, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(ForeignError::Missing),
            Err(Errno::LOOP) => return Err(ForeignError::Link),
            Err(Errno::NXIO) => return Err(ForeignError::NotAFile),
            Err(error) => return Err(io::Error::from(error).into()),
        };
        let file = File::from(handle);
        if !file.metadata()?.is_file() {
            return Err(ForeignError::NotAFile);
        }
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(ForeignError::TooLarge(limit));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_directory_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        fs::write(root.join("a/file"), "bytes").unwrap();
        symlink("../secret", root.join("link")).unwrap();
        symlink("a", root.join("way")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        let below = Below::new(&root).unwrap();
        let read = |path: &str, limit: usize| {
            let path = RepoPath::try_from(path).unwrap();
            below.read(&path, limit).map_err(|error| error.to_string())
        };
        assert_eq!(read("a/file", 5), Ok(b"bytes".to_vec()));
        let cases = [
            ("a/file", "it is larger than the 4 bytes that are read"),
            ("none", "there is no such file"),
            ("a/file/x", "there is no such file"),
            ("a", "it is no regular file"),
            ("fifo", "it is no regular file"),
            ("link", "it is a symbolic link or lies behind one"),
            ("way/file", "it is a symbolic link or lies behind one"),
        ];
        for (path, want) in cases {
            assert_eq!(read(path, 4), Err(want.to_owned()), "{path}");
        }
        assert_eq!(below.names(9).unwrap(), ["a", "fifo", "link", "way"]);
        assert_eq!(below.names(2).unwrap().len(), 2);
        let inner = RepoPath::try_from("a").unwrap();
        let inner = below.below(&inner).unwrap();
        let file = RepoPath::try_from("file").unwrap();
        assert_eq!(inner.read(&file, 9).unwrap(), b"bytes");
        let way = RepoPath::try_from("way").unwrap();
        assert!(below.below(&way).is_err());
        below.write("link", b"new").unwrap();
        assert_eq!(fs::read(outer.path().join("secret")).unwrap(), b"s");
        assert_eq!(read("link", 3), Ok(b"new".to_vec()));
        let nowhere = Below::new(&root.join("nowhere")).unwrap();
        let path = RepoPath::try_from("a").unwrap();
        assert!(matches!(nowhere.read(&path, 1), Err(ForeignError::Missing)));
    }
}
