//! Knows what the base commit ignores.

use std::collections::BTreeMap;

use provost_core::change::Node;
use provost_core::ignore::Patterns;
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;

use crate::git::{GitError, Repository};

/// The ignore rules of a tree, by the directory they stand in.
#[derive(Debug, Default)]
pub(super) struct Rules(BTreeMap<Vec<u8>, Patterns>);

impl Rules {
    /// Reads every `.gitignore` among `files`.
    pub(super) fn read(
        repo: &Repository,
        files: &BTreeMap<RawPath, Node>,
    ) -> Result<Self, GitError> {
        let mut places: BTreeMap<Oid, Vec<&[u8]>> = BTreeMap::new();
        for (path, side) in files {
            let plain = matches!(side.mode, Mode::File | Mode::Executable);
            if let Some(directory) = directory_of_rules(path.as_bytes()).filter(|_| plain) {
                places.entry(side.oid.clone()).or_default().push(directory);
            }
        }
        let mut rules = Self::default();
        if places.is_empty() {
            return Ok(rules);
        }
        repo.batch()?.each(places.keys(), |oid, _, bytes| {
            let patterns = Patterns::parse(&bytes);
            for directory in places.get(oid).into_iter().flatten() {
                rules.0.insert(directory.to_vec(), patterns.clone());
            }
            Ok::<(), GitError>(())
        })?;
        Ok(rules)
    }

    /// Whether `path` is ignored, when no directory above it is.
    ///
    /// The rules nearest to the path are asked first; the first that have an opinion decide.
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

/// The directory that the rules in the file at `path` are for, if it is such a file.
fn directory_of_rules(path: &[u8]) -> Option<&[u8]> {
    let directory = path.strip_suffix(b".gitignore")?;
    if directory.is_empty() {
        return Some(directory);
    }
    directory.strip_suffix(b"/")
}
