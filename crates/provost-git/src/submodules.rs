//! Finds uncommitted changes inside submodules, about which git itself is not asked.
//!
//! If git looked into a submodule, it would obey the settings of that submodule. So each is read as
//! the checkout of a repository of its own, in the same hardened way. Its uncommitted changes are
//! reported with paths as seen from outside.
//!
//! # Invariants
//!
//! - A submodule that cannot be read is dirty itself, never clean.
//! - A link is not followed, and nesting has a limit.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use provost_core::checkout::DirtyFile;
use provost_core::object::Mode;
use provost_core::path::RawPath;

use super::status::named;
use super::{GitError, Repository};
use crate::index::Entry;

/// How deeply nested a submodule may be to be read.
pub(super) const DEEPEST: usize = 8;

/// Uncommitted changes inside the submodule of `entry`, by paths from outside.
pub(super) fn changes(
    checkout: &Path,
    entry: &Entry,
    depth: usize,
) -> BTreeMap<RawPath, DirtyFile> {
    let place = checkout.join(OsStr::from_bytes(entry.path.as_bytes()));
    let inside = match state(checkout, &place) {
        // If something else is there instead of a directory, git reports it.
        State::Elsewhere | State::Empty => return BTreeMap::new(),
        State::Foreign => None,
        State::Checkout => look(&place, depth).ok(),
    };
    let Some(dirty) = inside else {
        let recorded = named(entry.mode, &entry.oid);
        let unknown = DirtyFile {
            letters: " M".to_owned(),
            head: recorded.clone(),
            staged: recorded,
            disk: None,
        };
        return BTreeMap::from([(entry.path.clone(), unknown)]);
    };
    let outside = |(path, file): (RawPath, DirtyFile)| (entry.path.join(path.as_bytes()), file);
    dirty.into_iter().map(outside).collect()
}

pub(super) fn is_one(entry: &Entry) -> bool {
    entry.mode == Mode::Gitlink
}

/// What is at the path of a submodule.
enum State {
    /// Not a directory.
    Elsewhere,
    /// An empty directory: the submodule was never checked out.
    Empty,
    /// Files that belong to no repository, or that lie outside this checkout.
    Foreign,
    Checkout,
}

fn state(checkout: &Path, place: &Path) -> State {
    match place.symlink_metadata() {
        Ok(data) if data.is_dir() => {}
        Ok(_) | Err(_) => return State::Elsewhere,
    }
    // A link on the way leads out of this checkout.
    let direct = place.strip_prefix(checkout).ok().and_then(|path| {
        let checkout = checkout.canonicalize().ok()?;
        Some(checkout.join(path))
    });
    if direct.is_none() || direct != place.canonicalize().ok() {
        return State::Foreign;
    }
    if place.join(".git").symlink_metadata().is_ok() {
        return State::Checkout;
    }
    match std::fs::read_dir(place).map(|mut entries| entries.next().is_none()) {
        Ok(true) => State::Empty,
        Ok(false) | Err(_) => State::Foreign,
    }
}

fn look(place: &Path, depth: usize) -> Result<BTreeMap<RawPath, DirtyFile>, GitError> {
    let unseen = || GitError::NotARepository {
        path: place.to_owned(),
    };
    if depth >= DEEPEST {
        return Err(unseen());
    }
    let repo = Repository::discover(place)?;
    // With a link on the way, another checkout would answer.
    let real = place.canonicalize().ok();
    let own = repo.checkout().and_then(|top| top.canonicalize().ok());
    if own.is_none() || own != real {
        return Err(unseen());
    }
    Ok(repo.workspace_at(depth + 1)?.dirty)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_submodule_below_a_link_is_not_followed_out_of_the_checkout() {
        let scratch = tempfile::tempdir().unwrap();
        let checkout = scratch.path().join("checkout");
        for place in ["checkout/own/lib/.git", "outside/lib/.git"] {
            fs::create_dir_all(scratch.path().join(place)).unwrap();
        }
        std::os::unix::fs::symlink("../outside", checkout.join("linked")).unwrap();
        let at = |path: &str| state(&checkout, &checkout.join(path));
        assert!(matches!(at("own/lib"), State::Checkout));
        assert!(matches!(at("linked/lib"), State::Foreign));
        // If the checkout itself is reached by a link, nothing is outside of it.
        let other = scratch.path().join("other");
        std::os::unix::fs::symlink(&checkout, &other).unwrap();
        let lib = other.join("own/lib");
        assert!(matches!(state(&other, &lib), State::Checkout));
    }
}
