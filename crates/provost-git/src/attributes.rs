//! Finds the attributes that the user's own git applies beside those in the tree.
//!
//! Attributes decide about line endings, encodings and filters. Only the location of attribute
//! files is read from the user's configuration; no other setting counts, and no program is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::run::failed;
use super::{GitError, Repository, ref_files, system};

/// The most bytes of attributes that are read.
const MOST_READ: u64 = 1 << 24;

/// The file in a private git directory that holds the attributes of the machine and the user.
const OUTER: &str = "attributes";

/// Attributes from outside the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Of the machine, then of the user; those in the tree override them.
    outer: Vec<u8>,
    /// Of the repository, in `info/attributes`; they override those in the tree.
    inner: Vec<u8>,
}

impl Repository {
    pub(super) fn attributes(&self) -> Result<Attributes, GitError> {
        let mut outer = read_if_there(Path::new("/etc/gitattributes"))?;
        if let Some(path) = self.users_file("core.attributesFile", "attributes")? {
            outer.push(b'\n');
            outer.extend(read_if_there(&path)?);
        }
        Ok(Attributes {
            outer,
            inner: read_if_there(&self.common_dir.join("info/attributes"))?,
        })
    }

    /// The path in the user's setting `name`, or else the file `usual` in the user's configuration.
    pub(super) fn users_file(&self, name: &str, usual: &str) -> Result<Option<PathBuf>, GitError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let settings = variable("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| home.as_ref().map(|home| home.join(".config")))
            .map(|place| place.join("git"));
        let mut files = vec![PathBuf::from("/etc/gitconfig")];
        if let Some(global) = variable("GIT_CONFIG_GLOBAL") {
            files.push(global.into());
        } else {
            files.extend(settings.as_ref().map(|place| place.join("config")));
            files.extend(home.as_ref().map(|home| home.join(".gitconfig")));
        }
        files.push(self.common_dir.join("config"));
        files.push(self.git_dir.join("config.worktree"));
        let mut found = settings.map(|place| place.join(usual));
        for file in files.iter().filter(|file| file.is_file()) {
            if let Some(value) = self.setting(file, name)? {
                found = Some(expand(&value, home.as_deref(), &self.git_dir));
            }
        }
        Ok(found)
    }

    pub(super) fn setting(&self, file: &Path, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        if ref_files::lacks(file, name) {
            return Ok(None);
        }
        let words = ["config", "--includes", "--null", "--file"].map(OsStr::new);
        let last = ["--get", name].map(OsStr::new);
        let arguments = [&words[..], &[file.as_os_str()], &last[..]].concat();
        let output = self.git.call(&self.at_side(), &arguments, Vec::new())?;
        match output.status.code() {
            Some(0) => Ok(output.stdout.strip_suffix(b"\0").map(<[u8]>::to_vec)),
            Some(1) => Ok(None),
            _ => Err(failed("config".to_owned(), &output)),
        }
    }
}

impl Attributes {
    /// Writes them into a git directory of ours.
    pub(super) fn put(&self, git_dir: &Path) -> Result<(), GitError> {
        let write = || {
            fs::write(git_dir.join(OUTER), &self.outer)?;
            fs::create_dir(git_dir.join("info"))?;
            fs::write(git_dir.join("info/attributes"), &self.inner)
        };
        write().map_err(system(format!("write into `{}`", git_dir.display())))
    }

    /// The setting that makes git read what [`Self::put`] wrote.
    pub(super) fn setting(git_dir: &Path) -> OsString {
        let mut setting = OsString::from("core.attributesFile=");
        setting.push(git_dir.join(OUTER));
        setting
    }
}

/// A path of the configuration, resolved as git resolves it.
fn expand(value: &[u8], home: Option<&Path>, here: &Path) -> PathBuf {
    match (value.strip_prefix(b"~/"), home) {
        (Some(rest), Some(home)) => home.join(OsStr::from_bytes(rest)),
        _ => here.join(OsStr::from_bytes(value)),
    }
}

/// The bytes of a file that git keeps for itself; empty if it does not exist.
pub(super) fn read_if_there(path: &Path) -> Result<Vec<u8>, GitError> {
    let unread = || system(format!("read `{}`", path.display()));
    let there = match path.metadata() {
        // Reading a pipe could block.
        Ok(data) => data.is_file(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            false
        }
        Err(error) => return Err(unread()(error)),
    };
    if !there {
        return Ok(Vec::new());
    }
    let file = fs::File::open(path).map_err(unread())?;
    let mut bytes = Vec::new();
    file.take(MOST_READ + 1)
        .read_to_end(&mut bytes)
        .map_err(unread())?;
    if bytes.len() as u64 > MOST_READ {
        return Err(unread()(std::io::Error::other("it is too large")));
    }
    Ok(bytes)
}
