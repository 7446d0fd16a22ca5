//! The ignore rules of the base commit.

use std::collections::BTreeMap;

use provost_core::change::Node;
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;

use crate::git::ignore::Patterns;
use crate::git::{GitError, Repository};

/// The ignore rules of a tree, by the directory of their file.
#[derive(Debug, Default)]
pub(super) struct Rules(BTreeMap<Vec<u8>, Patterns>);

impl Rules {
    /// Reads the `.gitignore` that `files` has in each of `directories`.
    pub(super) fn learn<'p>(
        &mut self,
        repo: &Repository,
        files: &BTreeMap<RawPath, Node>,
        directories: impl Iterator<Item = &'p RawPath>,
    ) -> Result<(), GitError> {
        let mut places: BTreeMap<&Oid, Vec<&[u8]>> = BTreeMap::new();
        for directory in directories {
            let plain = |side: &&Node| matches!(side.mode, Mode::File | Mode::Executable);
            let file = files.get(&directory.join(b".gitignore")).filter(plain);
            if let Some(side) = file {
                places
                    .entry(&side.oid)
                    .or_default()
                    .push(directory.as_bytes());
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        repo.batch()?.each(places.keys().copied(), |oid, _, bytes| {
            let patterns = Patterns::parse(&bytes);
            for directory in places.get(oid).into_iter().flatten() {
                self.0.insert(directory.to_vec(), patterns.clone());
            }
            Ok::<(), GitError>(())
        })
    }

    /// Whether `path` is ignored, given that no directory above it is.
    ///
    /// The rules nearest to the path are consulted first; the first match decides.
    pub(super) fn ignore(&self, path: &RawPath, is_directory: bool) -> bool {
        let bytes = path.as_bytes();
        let slashes = bytes
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'/');
        let starts = slashes.map(|(at, _)| (at, at + 1)).chain([(0, 0)]);
        for (end, start) in starts {
            let patterns = self.0.get(&bytes[..end]);
            let opinion = patterns.and_then(|it| it.decide(&bytes[start..], is_directory));
            if let Some(ignored) = opinion {
                return ignored;
            }
        }
        false
    }
}
