//! Finds paths that are not separate files, or collide on some file systems.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use provost_core::change::{Finding, FindingKind, Node};
use provost_core::file_system_names::fold_path;
use provost_core::path::RawPath;

use super::finding;
use super::read::Content;
use super::walk::{Seen, What};

pub(super) fn hard_links(
    seen: &[Seen],
    contents: &BTreeMap<RawPath, Content>,
    base: &BTreeMap<RawPath, Node>,
) -> Vec<Finding> {
    let mut names: HashMap<(u64, u64), Vec<&RawPath>> = HashMap::new();
    for one in seen.iter().filter(|one| one.names > 1) {
        if !matches!(one.what, What::Gitlink) {
            names.entry(one.file).or_default().push(&one.path);
        }
    }
    let mut findings = Vec::new();
    for paths in names.values() {
        match paths.as_slice() {
            [path] => {
                let content = contents.get(*path).map(|content| &content.side);
                if content.is_none() || content != base.get(*path) {
                    let note = "has another name outside the captured paths";
                    findings.push(finding(path, FindingKind::HardLink, note));
                }
            }
            paths => {
                for (at, path) in paths.iter().enumerate() {
                    let other = paths[usize::from(at == 0)];
                    let note = format!("is one file with `{other}`");
                    findings.push(finding(path, FindingKind::HardLink, note));
                }
            }
        }
    }
    findings
}

/// Captured paths that some file system takes for the same, unless the base has them all. `added`
/// are those it lacks; `has` says whether it has anything at or below a path.
pub(crate) fn name_twins<'a>(
    added: impl Iterator<Item = &'a RawPath>,
    captured: impl Iterator<Item = &'a RawPath>,
    has: impl Fn(&RawPath) -> bool,
) -> Vec<Finding> {
    let mut new: BTreeSet<&[u8]> = added.flat_map(|path| places(path.as_bytes())).collect();
    new.retain(|place| !has(&RawPath::new(*place)));
    if new.is_empty() {
        return Vec::new();
    }
    let mut groups: BTreeMap<Vec<u8>, BTreeSet<&[u8]>> = BTreeMap::new();
    for place in &new {
        groups.entry(fold_path(place)).or_default().insert(place);
    }
    let lengths: BTreeSet<usize> = groups.keys().map(Vec::len).collect();
    let mut last: &[u8] = &[];
    for path in captured.map(RawPath::as_bytes) {
        // Paths are sorted, so most share the directory of their predecessor.
        let shared = path
            .iter()
            .zip(last)
            .take_while(|(one, other)| one == other);
        let shared = shared.count();
        last = path;
        for place in places(path).filter(|place| place.len() >= shared) {
            if may_fold_to(place, &lengths)
                && let Some(twins) = groups.get_mut(&fold_path(place))
            {
                twins.insert(place);
            }
        }
    }
    let mut findings = Vec::new();
    for twins in groups.values().filter(|twins| twins.len() > 1) {
        for place in twins.iter().filter(|place| new.contains(**place)) {
            let other = twins.iter().find(|other| other != &place);
            let other = other.map_or_else(String::new, |other| RawPath::new(*other).to_string());
            let note = format!("beside `{other}`");
            findings.push(finding(&RawPath::new(*place), FindingKind::CaseTwin, note));
        }
    }
    findings
}

/// Whether the folded form of `place` may have one of these lengths. Folding changes the length
/// only by letters beyond ASCII, and by dots and blanks at the end of a component.
fn may_fold_to(place: &[u8], lengths: &BTreeSet<usize>) -> bool {
    let is_end = |byte: &u8| matches!(byte, b'.' | b' ');
    lengths.contains(&place.len())
        || !place.is_ascii()
        || place.last().is_some_and(is_end)
        || place
            .windows(2)
            .any(|two| is_end(&two[0]) && two[1] == b'/')
}

/// A path and its parent directories.
pub(super) fn places(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at]).chain([path])
}
