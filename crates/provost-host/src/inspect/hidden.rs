//! Finds changes that are configured to be invisible in `git status`.
//!
//! They are among the changes on disk anyway. A sign that they were hidden shows the reviewer that
//! this was no accident.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use provost_core::change::{Change, Node};
use provost_core::gate::diff::Reason;
use provost_core::path::RawPath;

use super::layers::Layers;
use super::{Found, Request};
use crate::git::ignore::Patterns;
use crate::git::index::Entry;
use crate::snapshot::{Layout, read_file};

/// The largest file of ignore rules, or of settings, that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Adds a sign for each hidden change.
pub(super) fn look(layers: &Layers<'_>, request: &Request<'_>, layout: &Layout, found: &mut Found) {
    let entries: BTreeMap<&RawPath, &Entry> = layers
        .index
        .iter()
        .map(|entry| (&entry.path, entry))
        .collect();
    let settings_changed = found.signs.iter().any(steers_what_is_shown);
    let mut rules = LiveRules::new(layout);
    for (path, change) in &layers.on_disk {
        let inside = request.rules.covers(path);
        let problem = match entries.get(path) {
            Some(entry) if entry.skip_worktree => {
                Some("changed while the index marks it as not on disk (skip-worktree)")
            }
            Some(entry) if entry.assume_valid => {
                Some("changed while the index marks it as unchanged (assume-unchanged)")
            }
            Some(entry) if !inside && differs(entry, change) && looks_unchanged(entry, layout) => {
                Some("changed with the same time and size as before")
            }
            None if change.before.is_none() => rules
                .ignore(path)
                .filter(|source| !inside || is_new(source, layers, found))
                .map(|_| "is hidden by ignore rules that the base does not have"),
            _ => None,
        };
        let problem = problem.or_else(|| {
            (settings_changed && !inside)
                .then_some("changed while settings that decide what git shows were changed too")
        });
        if let Some(problem) = problem {
            found.sign(path, Reason::HiddenChange, problem);
        }
    }
}

/// Whether the staged content differs from the file on disk.
fn differs(entry: &Entry, change: &Change) -> bool {
    let staged = Node {
        mode: entry.mode,
        oid: entry.oid.clone(),
    };
    change.after.as_ref() != Some(&staged)
}

/// Whether a sign is about a file that decides what git shows.
fn steers_what_is_shown(sign: &provost_core::gate::diff::Sign) -> bool {
    let name = sign.path.to_string();
    let files = [
        "config",
        "config.worktree",
        "info/attributes",
        "info/exclude",
        "info/sparse-checkout",
    ];
    sign.reason == Reason::RepoTamper
        && (name == ".git" || files.iter().any(|file| name.ends_with(&format!("/{file}"))))
}

/// Whether the file on disk has the time and size that the index records.
fn looks_unchanged(entry: &Entry, layout: &Layout) -> bool {
    let path = layout
        .worktree()
        .join(OsStr::from_bytes(entry.path.as_bytes()));
    path.symlink_metadata().is_ok_and(|data| {
        let seconds = u32::try_from(data.mtime() & 0xffff_ffff).ok();
        let size = u32::try_from(data.size() & 0xffff_ffff).ok();
        seconds == Some(entry.modified.0) && size == Some(entry.size)
    })
}

#[derive(Clone)]
enum Source {
    /// The `.gitignore` at this path of the checkout.
    Checkout(RawPath),
    /// A file outside the tree.
    Private,
}

/// Whether the base, or the snapshot, lacks the rules at `source`.
fn is_new(source: &Source, layers: &Layers<'_>, found: &Found) -> bool {
    match source {
        Source::Checkout(path) => layers.on_disk.contains_key(path),
        Source::Private => found.signs.iter().any(steers_what_is_shown),
    }
}

/// The ignore rules that git would obey in the checkout at the moment.
struct LiveRules {
    worktree: PathBuf,
    private: Vec<Patterns>,
    by_directory: BTreeMap<Vec<u8>, Option<Patterns>>,
}

impl LiveRules {
    fn new(layout: &Layout) -> Self {
        let common = layout.common_dir();
        let mut files = vec![common.join("info/exclude")];
        let settings = [
            common.join("config"),
            layout.git_dir().join("config.worktree"),
        ];
        files.extend(settings.iter().flat_map(|path| excludes_files(path)));
        let private = files.iter().filter_map(|path| rules_of(path)).collect();
        Self {
            worktree: layout.worktree(),
            private,
            by_directory: BTreeMap::new(),
        }
    }

    /// The rules that make git ignore `path` or a directory above it.
    fn ignore(&mut self, path: &RawPath) -> Option<Source> {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let places: BTreeSet<usize> = slashes.map(|(at, _)| at).collect();
        for end in places.iter().copied() {
            if let Some(source) = self.decide(&bytes[..end], IsDirectory::Yes) {
                return Some(source);
            }
        }
        self.decide(bytes, IsDirectory::No)
    }

    /// The match of the nearest rules decides.
    fn decide(&mut self, path: &[u8], is_directory: IsDirectory) -> Option<Source> {
        let is_directory = is_directory == IsDirectory::Yes;
        let slashes = path
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'/');
        let starts: Vec<(usize, usize)> = slashes
            .map(|(at, _)| (at, at + 1))
            .chain([(0, 0)])
            .collect();
        for (end, start) in starts {
            let Some(rules) = self.rules_in(&path[..end]) else {
                continue;
            };
            if let Some(ignored) = rules.decide(&path[start..], is_directory) {
                let file = RawPath::new(&path[..end]).join(b".gitignore");
                return ignored.then_some(Source::Checkout(file));
            }
        }
        let ignored = |rules: &Patterns| rules.decide(path, is_directory) == Some(true);
        self.private.iter().any(ignored).then_some(Source::Private)
    }

    fn rules_in(&mut self, directory: &[u8]) -> Option<&Patterns> {
        let worktree = &self.worktree;
        self.by_directory
            .entry(directory.to_vec())
            .or_insert_with(|| {
                rules_of(
                    &worktree
                        .join(OsStr::from_bytes(directory))
                        .join(".gitignore"),
                )
            })
            .as_ref()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsDirectory {
    Yes,
    No,
}

/// The rules in a file; `None` if it cannot be read.
fn rules_of(path: &Path) -> Option<Patterns> {
    let bytes = read_file(path, LARGEST).ok()??;
    Some(Patterns::parse(&bytes))
}

/// The files that a settings file names as `core.excludesFile`.
fn excludes_files(path: &Path) -> Vec<PathBuf> {
    let Ok(Some(bytes)) = read_file(path, LARGEST) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("excludesfile"))
        .map(|(_, value)| PathBuf::from(value.trim().trim_matches('"')))
        .filter(|path| path.is_absolute())
        .collect()
}
