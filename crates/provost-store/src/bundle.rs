//! Keeps the files of one run in its directory.
//!
//! # Invariants
//!
//! - A file exists whole or not at all ([`provost_fs::atomic`]).
//! - Only regular files are read, and no link is followed.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use provost_core::bundle::layout::LARGEST_FILE;
use provost_core::code::Code;
use provost_core::object::hex;
use provost_core::path::RepoPath;
use provost_engine::ports::{self, Kept, PortError};
use provost_fs::atomic::{self, Draft, Durability};
use rustix::fs::OFlags;
use sha2::Digest as _;

use crate::error::StoreError;
use crate::file;

#[derive(Debug, Clone)]
pub struct DirBundle {
    root: PathBuf,
}

impl DirBundle {
    /// The bundle in the directory `root`, which must exist.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The path of the file `name`, whether it exists or not.
    fn place(&self, name: &str) -> Result<PathBuf, PortError> {
        let name = RepoPath::try_from(name)
            .map_err(|error| PortError::new(Code::Bug, format!("`{name}` {error}")))?;
        Ok(self.root.join(name.as_str()))
    }

    fn write(&self, files: &[(PathBuf, &[u8])]) -> Result<(), StoreError> {
        let draft = |(path, bytes): &(PathBuf, &[u8])| {
            atomic::make_directories(atomic::directory_of(path))
                .and_then(|()| Draft::of(path, bytes, 0o600))
                .map_err(StoreError::io("write", path))
        };
        let drafts = files.iter().map(draft).collect::<Result<_, _>>()?;
        let published = atomic::publish(drafts, Durability::Synced);
        published.map_err(StoreError::io("write into", &self.root))
    }

    /// Every regular file below `directory`, named from the root; incomplete ones are `unfinished`.
    fn names(
        &self,
        directory: &Path,
        names: &mut Vec<String>,
        unfinished: &mut Vec<PathBuf>,
    ) -> Result<(), StoreError> {
        let entries = fs::read_dir(directory).map_err(StoreError::io("list", directory))?;
        for entry in entries {
            let entry = entry.map_err(StoreError::io("list", directory))?;
            let path = entry.path();
            let kind = entry
                .file_type()
                .map_err(StoreError::io("look at", &path))?;
            if kind.is_dir() {
                self.names(&path, names, unfinished)?;
            } else if atomic::is_unfinished(&path) {
                unfinished.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(&self.root).unwrap_or(&path);
                names.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }

    fn digest(&self, name: &str) -> Result<Kept, StoreError> {
        let path = self.root.join(name);
        let (mut file, _) = file::open(&path, OFlags::RDONLY)?;
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        loop {
            let count = file
                .read(&mut buffer)
                .map_err(StoreError::io("read", &path))?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            bytes += count as u64;
        }
        Ok(Kept {
            name: name.to_owned(),
            bytes,
            sha256: hex(&hasher.finalize()),
        })
    }
}

/// The port error for an error of the store.
pub(crate) fn refuse(error: StoreError) -> PortError {
    PortError::from(error)
}

impl ports::Bundle for DirBundle {
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError> {
        let mut placed = Vec::with_capacity(files.len());
        for (name, bytes) in files {
            placed.push((self.place(name)?, bytes.as_slice()));
        }
        self.write(&placed).map_err(refuse)
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        let path = self.place(name)?;
        let read = || -> Result<Vec<u8>, StoreError> {
            let (file, _) = file::open(&path, OFlags::RDONLY)?;
            let mut bytes = Vec::new();
            file.take(LARGEST_FILE + 1)
                .read_to_end(&mut bytes)
                .map_err(StoreError::io("read", &path))?;
            if bytes.len() as u64 > LARGEST_FILE {
                return Err(StoreError::TooLarge {
                    path: path.clone(),
                    limit: LARGEST_FILE,
                });
            }
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(refuse(error)),
        }
    }

    fn list(&self) -> Result<Vec<Kept>, PortError> {
        let mut names = Vec::new();
        self.names(&self.root, &mut names, &mut Vec::new())
            .map_err(refuse)?;
        names.sort();
        names
            .iter()
            .map(|name| self.digest(name).map_err(refuse))
            .collect()
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        let mut unfinished = Vec::new();
        self.names(&self.root, &mut Vec::new(), &mut unfinished)
            .map_err(refuse)?;
        for path in unfinished {
            fs::remove_file(&path)
                .map_err(|error| refuse(StoreError::io("remove", &path)(error)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use provost_core::object::sha256;
    use provost_engine::ports::Bundle as _;

    use super::*;

    #[test]
    fn files_come_back_and_are_listed_with_their_digests() {
        let scratch = tempfile::tempdir().unwrap();
        let mut bundle = DirBundle::new(scratch.path());
        bundle.put("reports/a.json", b"one").unwrap();
        bundle.put("reports/a.json", b"two").unwrap();
        bundle.put("b.txt", b"").unwrap();
        assert_eq!(bundle.get("reports/a.json").unwrap().unwrap(), b"two");
        assert_eq!(bundle.get("nothing").unwrap(), None);
        let kept = bundle.list().unwrap();
        let names: Vec<&str> = kept.iter().map(|kept| kept.name.as_str()).collect();
        assert_eq!(names, ["b.txt", "reports/a.json"]);
        assert_eq!(kept[1].sha256, sha256(b"two"));
    }

    #[test]
    fn what_a_crash_left_of_a_file_is_not_a_file() {
        let scratch = tempfile::tempdir().unwrap();
        let mut bundle = DirBundle::new(scratch.path());
        bundle.put("a.json", b"whole").unwrap();
        let torn = scratch.path().join(format!("b.json{}", atomic::UNFINISHED));
        fs::write(&torn, "to").unwrap();
        assert_eq!(bundle.list().unwrap().len(), 1);
        assert!(torn.exists(), "reading changes nothing");
        bundle.tidy().unwrap();
        assert!(!torn.exists());
        assert_eq!(bundle.list().unwrap().len(), 1);
    }

    #[test]
    fn a_name_that_leads_outside_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let mut bundle = DirBundle::new(scratch.path());
        for name in ["../x", "/etc/x", "a/../../x", ""] {
            assert!(bundle.put(name, b"").is_err(), "{name}");
        }
        std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("link")).unwrap();
        assert!(bundle.get("link").is_err());
    }
}
