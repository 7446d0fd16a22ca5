//! Reads an untrusted object store through a git directory of our own.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::object::{ObjectFormat, hex};

use super::InspectError;
use crate::git::Repository;
use crate::snapshot::Layout;

/// A private repository without refs, whose objects include those of another one.
pub(super) struct Store {
    pub(super) repo: Repository,
    _directory: Scratch,
}

impl Store {
    /// Opens the objects that the checkout uses. New objects go to the private repository.
    pub(super) fn open(layout: &Layout, format: ObjectFormat) -> Result<Self, InspectError> {
        let objects = layout.common_dir().join("objects");
        let directory = Scratch::make().map_err(InspectError::Scratch)?;
        fill(&directory.0, &objects, format).map_err(InspectError::Scratch)?;
        let repo = Repository::discover_with(&directory.0, &directory.0)?;
        Ok(Self {
            repo,
            _directory: directory,
        })
    }
}

fn fill(directory: &Path, objects: &Path, format: ObjectFormat) -> io::Result<()> {
    if objects.as_os_str().as_bytes().contains(&b'\n') {
        return Err(io::Error::other("the repository's path holds a line break"));
    }
    fs::create_dir_all(directory.join("objects/info"))?;
    fs::create_dir_all(directory.join("refs/heads"))?;
    fs::write(directory.join("HEAD"), "ref: refs/heads/none\n")?;
    let config = match format {
        ObjectFormat::Sha1 => "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n",
        ObjectFormat::Sha256 => {
            "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = \
             sha256\n"
        }
    };
    fs::write(directory.join("config"), config)?;
    let alternates = [objects.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(directory.join("objects/info/alternates"), alternates)
}

/// A private directory, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> io::Result<Self> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let path = std::env::temp_dir().join(format!("provost-inspect-{}", hex(&number)));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
