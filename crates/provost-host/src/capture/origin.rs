//! Finds where the content of new paths came from.

use std::collections::{BTreeMap, HashMap};

use provost_core::change::{Change, EXACT, Movement, Node, Origin};
use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;

use crate::git::{GitError, Repository};

/// Smaller files are alike by chance: an empty `__init__.py` is no copy of another.
const LEAST_BYTES: u64 = 32;

/// The most pairs of a new file and one of the base that are compared beyond exact equality.
const MOST_PAIRS: usize = 1_000_000;

/// The most new files whose origin is looked for beyond exact equality.
const MOST_TARGETS: usize = 1000;

type Files = BTreeMap<RawPath, Node>;

/// Sets the origin of new files that have exactly the content of a file of the base.
pub(super) fn exact(
    changes: &mut [Change],
    base: &Files,
    files: &Files,
    sizes: &HashMap<&RawPath, u64>,
) {
    if !changes.iter().any(is_new) {
        return;
    }
    let mut sources: HashMap<&Oid, Vec<&RawPath>> = HashMap::new();
    for (path, side) in base.iter().filter(|(_, side)| is_file(side)) {
        sources.entry(&side.oid).or_default().push(path);
    }
    for change in changes.iter_mut().filter(|change| is_new(change)) {
        let large = sizes
            .get(&change.path)
            .is_some_and(|size| *size >= LEAST_BYTES);
        let Some(after) = change.after.as_ref().filter(|_| large) else {
            continue;
        };
        let Some(paths) = sources.get(&after.oid) else {
            continue;
        };
        // A file that is gone was rather moved; among those, one of the same name.
        let name = name_of(&change.path);
        let best = paths
            .iter()
            .min_by_key(|path| (files.contains_key(**path), name_of(path) != name));
        change.origin = best.map(|path| origin(path, files, EXACT));
    }
}

/// Sets the origin of new files that are edited copies, as git sees it.
///
/// Looking in every file of a large base costs too much; beyond the limits only files that changed
/// or are gone are looked at, and beyond those of new files none.
pub(super) fn similar(
    repo: &Repository,
    changes: &mut [Change],
    before: &Oid,
    after: &Oid,
    base: &Files,
    files: &Files,
    sizes: &HashMap<&RawPath, u64>,
) -> Result<(), GitError> {
    let open =
        |change: &&mut Change| is_new(change) && is_large(change, sizes) && change.origin.is_none();
    let targets = changes.iter_mut().filter(open).count();
    if targets == 0 || targets > MOST_TARGETS {
        return Ok(());
    }
    let harder = base.len() * targets <= MOST_PAIRS;
    let pairs = repo.similar(before, after, harder)?;
    for change in changes.iter_mut().filter(open) {
        if let Some((source, likeness)) = pairs
            .get(&change.path)
            .filter(|(path, _)| base.contains_key(path))
        {
            change.origin = Some(origin(source, files, *likeness));
        }
    }
    Ok(())
}

fn origin(source: &RawPath, files: &Files, likeness: u8) -> Origin {
    let how = if files.contains_key(source) {
        Movement::Copy
    } else {
        Movement::Rename
    };
    Origin {
        path: source.clone(),
        how,
        likeness,
    }
}

/// Whether a file stands where the base has nothing.
fn is_new(change: &Change) -> bool {
    change.before.is_none() && change.after.as_ref().is_some_and(is_file)
}

/// Whether a file is large enough not to be like another by chance.
fn is_large(change: &Change, sizes: &HashMap<&RawPath, u64>) -> bool {
    sizes
        .get(&change.path)
        .is_some_and(|size| *size >= LEAST_BYTES)
}

fn is_file(side: &Node) -> bool {
    matches!(side.mode, Mode::File | Mode::Executable)
}

fn name_of(path: &RawPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes)
}
