//! Reads `HEAD` and the refs from their files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use provost_core::object::Oid;
use provost_core::path::RawPath;
use serde::{Deserialize, Serialize};

use super::files::read_file;
use super::{Layout, SnapshotError, full_id};

/// The longest file of one ref, in bytes.
const LONGEST: u64 = 8192;

/// The largest file of packed refs, in bytes.
const LARGEST: u64 = 64 << 20;

const MOST: usize = 500_000;

/// The most components in the name of a ref.
const DEEPEST: usize = 32;

/// `HEAD` and the refs of a repository, as written in their files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refs {
    /// The content of `HEAD`: `ref: NAME` or an object id.
    pub head: String,
    /// The content of each ref.
    pub all: BTreeMap<String, String>,
}

impl Refs {
    pub(super) fn read(layout: &Layout) -> Result<Self, SnapshotError> {
        let common = layout.common_dir();
        if common.join("reftable").symlink_metadata().is_ok() {
            return Err(SnapshotError::RefFormat("reftable"));
        }
        let head_file = layout.git_dir().join("HEAD");
        let head = read_one(&head_file)?.ok_or_else(|| SnapshotError::Unreadable {
            path: head_file,
            source: io::ErrorKind::NotFound.into(),
        })?;
        let mut refs = read_packed(&common.join("packed-refs"))?;
        read_loose(&common.join("refs"), "refs", DEEPEST, &mut refs)?;
        if layout.is_linked() {
            // Refs of this worktree alone are beside the shared ones.
            let own = layout.git_dir().join("refs");
            read_loose(&own, "worktree/refs", DEEPEST, &mut refs)?;
        }
        Ok(Self { head, all: refs })
    }

    /// The branch that `HEAD` names, whether or not it exists.
    pub fn head_branch(&self) -> Option<&str> {
        self.head.strip_prefix("ref:").map(str::trim)
    }

    pub fn head_id(&self) -> Option<Oid> {
        self.follow(&self.head)
    }

    pub fn id(&self, name: &str) -> Option<Oid> {
        self.follow(self.all.get(name)?)
    }

    fn follow(&self, value: &str) -> Option<Oid> {
        let mut value = value;
        // As many steps as git takes.
        for _ in 0..5 {
            match value.strip_prefix("ref:") {
                Some(name) => value = self.all.get(name.trim())?,
                None => return full_id(value),
            }
        }
        None
    }
}

/// The object that `name` means among `refs`: a full id, `HEAD`, or a ref with or without its
/// prefix.
pub fn named(name: &str, refs: &Refs) -> Option<Oid> {
    if let Some(oid) = full_id(name) {
        return Some(oid);
    }
    if name == "HEAD" {
        return refs.head_id();
    }
    // In the order in which git tries them.
    [
        name.to_owned(),
        format!("refs/{name}"),
        format!("refs/tags/{name}"),
        format!("refs/heads/{name}"),
        format!("refs/remotes/{name}"),
        format!("refs/remotes/{name}/HEAD"),
    ]
    .iter()
    .find_map(|name| refs.id(name))
}

/// The text of one ref's file; `None` if it does not exist.
fn read_one(path: &Path) -> Result<Option<String>, SnapshotError> {
    let is_link = path.symlink_metadata().is_ok_and(|data| data.is_symlink());
    if is_link {
        // Old repositories have a symbolic link where newer ones have a file with a ref name.
        let target = fs::read_link(path).map_err(|source| SnapshotError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let target = RawPath::new(target.as_os_str().as_bytes());
        return Ok(Some(format!("ref: {target}")));
    }
    let Some(bytes) = read_file(path, LONGEST)? else {
        return Ok(None);
    };
    let text = RawPath::new(bytes.trim_ascii_end()).to_string();
    Ok(Some(text))
}

fn read_packed(path: &Path) -> Result<BTreeMap<String, String>, SnapshotError> {
    let mut refs = BTreeMap::new();
    let bytes = read_file(path, LARGEST)?.unwrap_or_default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if matches!(line.first(), None | Some(b'#' | b'^')) {
            continue;
        }
        let malformed = || SnapshotError::Malformed(path.to_owned());
        let blank = line
            .iter()
            .position(|byte| *byte == b' ')
            .ok_or_else(malformed)?;
        let id = std::str::from_utf8(&line[..blank]).map_err(|_| malformed())?;
        let id = full_id(id).ok_or_else(malformed)?;
        let name = RawPath::new(line[blank + 1..].trim_ascii_end());
        refs.insert(name.to_string(), id.as_str().to_owned());
        if refs.len() > MOST {
            return Err(SnapshotError::TooMuch(path.to_owned()));
        }
    }
    Ok(refs)
}

fn read_loose(
    directory: &Path,
    label: &str,
    depth: usize,
    refs: &mut BTreeMap<String, String>,
) -> Result<(), SnapshotError> {
    let unreadable = |source| SnapshotError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let name = RawPath::new(entry.file_name().as_bytes());
        let label = format!("{label}/{name}");
        let kind = entry.file_type().map_err(unreadable)?;
        if refs.len() > MOST || depth == 0 {
            return Err(SnapshotError::TooMuch(directory.to_owned()));
        }
        if kind.is_dir() {
            read_loose(&entry.path(), &label, depth - 1, refs)?;
        } else if let Some(value) = read_one(&entry.path())?
            && !name.as_bytes().ends_with(b".lock")
        {
            refs.insert(label, value);
        }
    }
    Ok(())
}
