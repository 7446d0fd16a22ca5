//! Git tree arithmetic: bytes to entries, files to trees, two trees to changes.
//!
//! # Invariants
//!
//! - [`parse`] accepts only trees that git itself would write and that can be checked out: sorted,
//!   no name twice, no name that escapes or is read as a repository.
//! - An object is used only if its bytes have its id; the caller's lookup is not trusted.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Change, Node};
use crate::file_system_names;
use crate::object::{Collision, Kind, Mode, ObjectFormat, Oid};
use crate::path::{LONGEST, RawPath};

/// One entry of a tree object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: Mode,
    /// One path component.
    pub name: Vec<u8>,
    pub oid: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The bytes end inside an entry, or a mode is invalid.
    #[error("the tree is damaged at byte {at}")]
    Damaged {
        /// The start of the entry.
        at: usize,
    },
    /// A name that cannot be checked out.
    #[error("the tree holds the name `{name}`")]
    Name { name: RawPath },
    #[error("the tree is out of order at `{name}`")]
    Order {
        /// The first name that comes too late.
        name: RawPath,
    },
    /// A duplicate name, or a file that is also a directory.
    #[error("`{path}` is there twice")]
    Twice { path: RawPath },
    #[error("the object {oid} is missing")]
    Missing { oid: Oid },
    /// Bytes that do not have the id they were looked up by.
    #[error("the bytes of object {oid} have the id {found}")]
    Forged {
        /// The requested id.
        oid: Oid,
        /// The id of the bytes.
        found: Oid,
    },
    /// A path that is too long to be checked out.
    #[error("`{path}` is longer than {LONGEST} bytes")]
    TooLong {
        /// Truncated.
        path: RawPath,
    },
    #[error(transparent)]
    Collision(#[from] Collision),
}

/// Whether a tree may hold `name`.
///
/// `.git` is refused in every spelling that some file system treats as it.
pub fn name_is_safe(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !file_system_names::is_git(name)
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// The bytes git sorts an entry by: a directory counts as if its name ended with a slash.
fn sort_key(entry: &TreeEntry) -> impl Iterator<Item = u8> {
    let slash = (entry.mode == Mode::Tree).then_some(b'/');
    entry.name.iter().copied().chain(slash)
}

/// Parses the bytes of a tree object.
pub fn parse(bytes: &[u8], format: ObjectFormat) -> Result<Vec<TreeEntry>, TreeError> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (entry, others) = entry(rest, format).ok_or(TreeError::Damaged { at })?;
        let name = || RawPath::new(entry.name.as_slice());
        if !name_is_safe(&entry.name) {
            return Err(TreeError::Name { name: name() });
        }
        if !names.insert(entry.name.clone()) {
            return Err(TreeError::Twice { path: name() });
        }
        let sorted = |last: &TreeEntry| sort_key(last).lt(sort_key(&entry));
        if !entries.last().is_none_or(sorted) {
            return Err(TreeError::Order { name: name() });
        }
        entries.push(entry);
        rest = others;
    }
    Ok(entries)
}

/// The entry at the start of `bytes` and what follows it.
fn entry(bytes: &[u8], format: ObjectFormat) -> Option<(TreeEntry, &[u8])> {
    let blank = bytes.iter().take(7).position(|byte| *byte == b' ')?;
    let digits = &bytes[..blank];
    // A mode with a leading zero would be another tree with the same meaning.
    let mode = Mode::parse(digits).filter(|_| !digits.starts_with(b"0"))?;
    let rest = &bytes[blank + 1..];
    let end = rest.iter().position(|byte| *byte == 0)?;
    let oid = rest.get(end + 1..=end + format.width())?;
    let entry = TreeEntry {
        mode,
        name: rest[..end].to_vec(),
        oid: Oid::from_bytes(oid)?,
    };
    Some((entry, &rest[end + 1 + format.width()..]))
}

/// The bytes of the tree object with these entries, in git's order.
pub fn render(mut entries: Vec<TreeEntry>) -> Vec<u8> {
    entries.sort_by(|one, other| sort_key(one).cmp(sort_key(other)));
    let mut bytes = Vec::new();
    for entry in &entries {
        bytes.extend_from_slice(entry.mode.digits().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(&entry.name);
        bytes.push(0);
        bytes.extend_from_slice(&entry.oid.to_bytes());
    }
    bytes
}

pub type Trees = BTreeMap<Oid, Vec<u8>>;

/// Builds the trees that hold `files`; returns the id of the root and every tree object.
///
/// A node that is a tree itself stands for a directory that was not expanded.
pub fn build(
    files: &BTreeMap<RawPath, Node>,
    format: ObjectFormat,
) -> Result<(Oid, Trees), TreeError> {
    let mut trees = Trees::new();
    let files: Vec<(&RawPath, &Node)> = files.iter().collect();
    if let Some((path, _)) = files
        .iter()
        .find(|(path, _)| path.as_bytes().len() > LONGEST)
    {
        let path = RawPath::new(&path.as_bytes()[..LONGEST]);
        return Err(TreeError::TooLong { path });
    }
    let root = level(&files, 0, format, &mut trees)?;
    Ok((root, trees))
}

/// Builds the tree of `files`, which are all in the directory that takes `from` bytes of their
/// paths.
fn level(
    files: &[(&RawPath, &Node)],
    from: usize,
    format: ObjectFormat,
    trees: &mut Trees,
) -> Result<Oid, TreeError> {
    let mut entries = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = files;
    while let Some((path, side)) = rest.first() {
        let below = &path.as_bytes()[from..];
        let slash = below.iter().position(|byte| *byte == b'/');
        let name = &below[..slash.unwrap_or(below.len())];
        let here = RawPath::new(&path.as_bytes()[..from + name.len()]);
        if !name_is_safe(name) {
            return Err(TreeError::Name { name: here });
        }
        if !names.insert(name.to_vec()) {
            return Err(TreeError::Twice { path: here });
        }
        let count = if slash.is_some() {
            let directory = &below[..=name.len()];
            let within = |path: &RawPath| path.as_bytes()[from..].starts_with(directory);
            rest.partition_point(|(path, _)| within(path))
        } else {
            1
        };
        let (mode, oid) = if slash.is_some() {
            let inner = level(&rest[..count], from + name.len() + 1, format, trees)?;
            (Mode::Tree, inner)
        } else {
            (side.mode, side.oid.clone())
        };
        entries.push(TreeEntry {
            mode,
            name: name.to_vec(),
            oid,
        });
        rest = &rest[count..];
    }
    let bytes = render(entries);
    let oid = format.oid(Kind::Tree, &bytes)?;
    trees.insert(oid.clone(), bytes);
    Ok(oid)
}

/// The differences of two trees, sorted by path, without reading equal directories.
///
/// Only `path`, `before` and `after` of the changes are set: the rest needs the blobs.
pub fn diff(
    before: &Oid,
    after: &Oid,
    mut lookup: impl FnMut(&Oid) -> Option<Vec<u8>>,
) -> Result<Vec<Change>, TreeError> {
    let mut load = |oid: Option<&Oid>| match oid {
        None => Ok(Vec::new()),
        Some(oid) => {
            let bytes = lookup(oid).ok_or_else(|| TreeError::Missing { oid: oid.clone() })?;
            verified(oid, &bytes)
        }
    };
    let mut changes = Vec::new();
    let mut open = Vec::new();
    if before != after {
        open.push((RawPath::new(""), Some(before.clone()), Some(after.clone())));
    }
    while let Some((directory, before, after)) = open.pop() {
        if directory.as_bytes().len() > LONGEST {
            let path = RawPath::new(&directory.as_bytes()[..LONGEST]);
            return Err(TreeError::TooLong { path });
        }
        let mut pairs: BTreeMap<Vec<u8>, [Option<Node>; 2]> = BTreeMap::new();
        for (at, oid) in [before, after].iter().enumerate() {
            for entry in load(oid.as_ref())? {
                let side = Node {
                    mode: entry.mode,
                    oid: entry.oid,
                };
                pairs.entry(entry.name).or_default()[at] = Some(side);
            }
        }
        for (name, [before, after]) in pairs {
            if before == after {
                continue;
            }
            let path = directory.join(&name);
            let (before, old) = apart(before);
            let (after, new) = apart(after);
            if old.is_some() || new.is_some() {
                open.push((path.clone(), old, new));
            }
            if before.is_some() || after.is_some() {
                changes.push(change(path, before, after));
            }
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// Splits a node into a file (first) or a directory (second).
fn apart(side: Option<Node>) -> (Option<Node>, Option<Oid>) {
    match side {
        Some(Node {
            mode: Mode::Tree,
            oid,
        }) => (None, Some(oid)),
        other => (other, None),
    }
}

/// A change with only `path`, `before` and `after`.
pub fn change(path: RawPath, before: Option<Node>, after: Option<Node>) -> Change {
    Change {
        path,
        before,
        after,
        binary: false,
        origin: None,
        link: None,
    }
}

/// The entries of the tree `oid`, if `bytes` have that id.
pub fn verified(oid: &Oid, bytes: &[u8]) -> Result<Vec<TreeEntry>, TreeError> {
    let found = oid.format().oid(Kind::Tree, bytes)?;
    if found != *oid {
        return Err(TreeError::Forged {
            oid: oid.clone(),
            found,
        });
    }
    parse(bytes, oid.format())
}

/// The tree that a commit object with these `bytes` names.
pub fn commit_tree(bytes: &[u8]) -> Option<Oid> {
    let rest = bytes.strip_prefix(b"tree ")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    std::str::from_utf8(&rest[..end]).ok()?.try_into().ok()
}

/// The parents that a commit object with these `bytes` names.
pub fn commit_parents(bytes: &[u8]) -> Vec<Oid> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let head = lines.take_while(|line| !line.is_empty());
    let named = head.filter_map(|line| line.strip_prefix(b"parent "));
    named
        .filter_map(|text| std::str::from_utf8(text).ok()?.try_into().ok())
        .collect()
}

#[cfg(test)]
mod tests;
