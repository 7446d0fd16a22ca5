//! Finds paths that are not as separate as a tree says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use provost_core::alias::fold_path;
use provost_core::change::{Finding, FindingKind, Node};
use provost_core::path::RawPath;

use super::base::has_below;
use super::finding;
use super::read::Content;
use super::walk::{Seen, What};

/// Files with more than one name.
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

/// Paths that some file system takes for one, unless the base has them all.
pub(crate) fn name_twins(
    captured: &BTreeMap<RawPath, Node>,
    base: &BTreeMap<RawPath, Node>,
) -> Vec<Finding> {
    let added = captured.keys().filter(|path| !base.contains_key(*path));
    let mut new: BTreeSet<&[u8]> = added.flat_map(places).collect();
    new.retain(|place| !is_place_of(base, place));
    if new.is_empty() {
        return Vec::new();
    }
    let mut groups: BTreeMap<Vec<u8>, BTreeSet<&[u8]>> = BTreeMap::new();
    for place in &new {
        groups.entry(fold_path(place)).or_default().insert(place);
    }
    for place in captured.keys().flat_map(places) {
        if let Some(twins) = groups.get_mut(&fold_path(place)) {
            twins.insert(place);
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

/// Whether `files` has something at or below `place`.
fn is_place_of(files: &BTreeMap<RawPath, Node>, place: &[u8]) -> bool {
    let path = RawPath::new(place);
    files.contains_key(&path) || has_below(files, &path)
}

/// A path and the directories it lies in.
fn places(path: &RawPath) -> impl Iterator<Item = &[u8]> {
    let bytes = path.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &bytes[..at]).chain([bytes])
}
