//! Makes the overlay layer that turns a checkout of one tree into a checkout of another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use provost_core::change::{Change, Node};
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;
use rustix::fs::{FileType, Mode as Permissions};
use rustix::io::Errno;

use super::checkout::{self, Dates, Written};
use super::{WorkspaceError, system};
use crate::capture::has_below;
use crate::git::Repository;
use provost_fs::beneath::Beneath;

type Files = BTreeMap<RawPath, Node>;

/// Writes the layer into the empty directory `target`. `changes` lead from the lower tree to
/// `after`; removed paths become whiteouts of the overlay.
pub(super) fn write(
    repo: &Repository,
    after: &Oid,
    changes: &[Change],
    target: &Path,
    dates: &Dates,
) -> Result<Written, WorkspaceError> {
    let now = |change: &Change| Some((change.path.clone(), change.after.clone()?));
    let new: Files = changes.iter().filter_map(now).collect();
    let written = checkout::write(repo, &new, target, dates)?;
    let mut gone = changes.iter().filter(|change| change.after.is_none());
    if let Some(first) = gone.next() {
        let root = Beneath::new(target).map_err(system("open", target))?;
        // Only the whole tree shows which directories became empty.
        let files = &repo.read_tree(after)?.files;
        let gone = [first].into_iter().chain(gone);
        let marks: BTreeSet<RawPath> = gone
            .filter_map(|change| gone_with(files, &change.path))
            .collect();
        for path in &marks {
            mark(&root, path.as_bytes()).map_err(system("mark a removal in", target))?;
        }
    }
    Ok(written)
}

/// The path to mark so that `path` is gone: the outermost directory without an entry in `files`, or
/// `path` itself. `None` if a file takes its place.
fn gone_with(files: &Files, path: &RawPath) -> Option<RawPath> {
    let bytes = path.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for (at, _) in slashes {
        let directory = RawPath::new(&bytes[..at]);
        match files.get(&directory) {
            // A gitlink is an empty directory, through which the checkout below would show.
            Some(node) if node.mode == Mode::Gitlink => {}
            Some(_) => return None,
            None if !has_below(files, &directory) => return Some(directory),
            None => {}
        }
    }
    (!has_below(files, path)).then(|| path.clone())
}

/// Makes a whiteout: a device that the kernel lets any user make.
fn mark(root: &Beneath, path: &[u8]) -> rustix::io::Result<()> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for (at, _) in slashes {
        match checkout::make_directory(root, &path[..at]) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    let (parent, name) = checkout::parent_of(root, path)?;
    let kind = FileType::CharacterDevice;
    rustix::fs::mknodat(parent, name, kind, Permissions::empty(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_marked_as_high_up_as_can_be() {
        let node = |mode| Node {
            mode,
            oid: Oid::try_from("4b825dc642cb6eb9a060e54bf8d69288fbee4904").unwrap(),
        };
        let files = [
            ("a/b/c", Mode::File),
            ("file", Mode::File),
            ("link", Mode::Gitlink),
            ("now/below", Mode::File),
        ];
        let files: Files = files
            .into_iter()
            .map(|(path, mode)| (RawPath::new(path), node(mode)))
            .collect();
        let cases = [
            ("a/b/gone", Some("a/b/gone")),
            ("a/x/y/z", Some("a/x")),
            ("x/y", Some("x")),
            ("x", Some("x")),
            ("file/was/directory", None),
            ("link/was/directory", Some("link/was")),
            ("now", None),
        ];
        for (path, want) in cases {
            let found = gone_with(&files, &RawPath::new(path));
            assert_eq!(found, want.map(RawPath::new), "{path}");
        }
    }
}
