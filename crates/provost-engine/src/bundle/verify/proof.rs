//! Proves the patch from git objects alone: base commit, both trees, and their differences.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::Finding;
use super::read::{ATTESTATION, Bundle, CHANGED, PACK};
use crate::bundle::attempts;
use crate::bundle::statement::RunPredicate;
use provost_core::change::Change;
use provost_core::object::{Kind, Mode, Oid};
use provost_core::pack::{self, Objects};
use provost_core::path::RawPath;
use provost_core::question::QuestionKind;
use provost_core::run::fact::Withheld;
use provost_core::scope::Scope;
use provost_core::tree;

/// The most bytes of trees that are walked.
///
/// A tree may name one directory many times, so a small pack can hold more paths than can be walked
/// in reasonable time.
const MOST_WALKED: usize = 1 << 26;

/// The pack proves that the trees are those of the seal, and that they differ in exactly the listed
/// paths. If the run was accepted, all of them are in scope.
pub(super) fn pack(bundle: &Bundle<'_>) -> Vec<Finding> {
    let Some(predicate) = bundle.predicate() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let listed = listed(bundle, &mut findings);
    let Some(candidate) = &predicate.candidate_tree else {
        if listed.is_some_and(|paths| !paths.is_empty()) {
            findings.push(Finding::altered(
                CHANGED,
                "lists paths of a run that has no candidate",
            ));
        }
        return findings;
    };
    let Some(bytes) = bundle.bytes(PACK) else {
        return findings;
    };
    let objects = match pack::read(bytes, predicate.object_format) {
        Ok(objects) => objects,
        Err(error) => {
            findings.push(Finding::altered(PACK, error.to_string()));
            return findings;
        }
    };
    findings.extend(base(predicate, &objects));
    let withheld = &bundle.course.withheld;
    if withheld.names {
        // Names of this candidate are withheld, so the pack only has earlier attempts.
        return findings;
    }
    match walk(predicate, candidate, &objects) {
        Ok(changes) => {
            findings.extend(contents(&changes, &objects, withheld));
            findings.extend(scope(bundle, predicate, &changes));
            if let Some(listed) = listed {
                findings.extend(compare(&changes, &listed, CHANGED));
            }
        }
        Err(problem) => findings.push(Finding::altered(PACK, problem)),
    }
    findings
}

/// The differences between the base and `candidate`, from the trees of a pack.
fn walk(
    predicate: &RunPredicate,
    candidate: &Oid,
    objects: &Objects,
) -> Result<Vec<Change>, String> {
    let walked = Cell::new(0_usize);
    let look = |oid: &Oid| {
        let (_, bytes) = objects.get(oid).filter(|(kind, _)| *kind == Kind::Tree)?;
        // An empty directory has a cost as well.
        walked.set(walked.get().saturating_add(bytes.len() + 64));
        (walked.get() <= MOST_WALKED).then(|| bytes.clone())
    };
    tree::diff(&predicate.base_tree, candidate, look).map_err(|error| {
        if walked.get() > MOST_WALKED {
            "holds trees with more paths than are followed".to_owned()
        } else {
            format!("does not prove the trees: {error}")
        }
    })
}

/// The pack proves every earlier attempt whose patch was sealed.
pub(super) fn attempts(bundle: &Bundle<'_>) -> Vec<Finding> {
    let (Some(predicate), Some(manifest), Some(state)) = (
        bundle.predicate(),
        bundle.manifest.as_ref(),
        bundle.course.end(),
    ) else {
        return Vec::new();
    };
    let mut earlier = attempts::earlier(state);
    // A patch that is not named was left out, or is from a version that kept no attempts.
    earlier.retain(|attempt| manifest.evidence_hashes.contains_key(&attempt.patch()));
    earlier.retain(|attempt| !attempt.captured.withheld.names);
    if earlier.is_empty() {
        return Vec::new();
    }
    let Some(bytes) = bundle.bytes(PACK) else {
        let problem = "is missing, and earlier attempts left something";
        return vec![Finding::incomplete(PACK, problem)];
    };
    let Ok(objects) = pack::read(bytes, predicate.object_format) else {
        // Another check reports it.
        return Vec::new();
    };
    let mut findings: Vec<Finding> = base(predicate, &objects).into_iter().collect();
    for attempt in earlier {
        let place = attempt.patch();
        match walk(predicate, &attempt.captured.tree, &objects) {
            Ok(changes) => {
                findings.extend(contents(&changes, &objects, &attempt.captured.withheld));
                let listed = attempt.captured.changes.iter();
                let listed = listed.map(|change| change.path.clone()).collect();
                findings.extend(compare(&changes, &listed, &place));
            }
            Err(problem) => findings.push(Finding::altered(
                PACK,
                format!("does not prove `{place}`: it {problem}"),
            )),
        }
    }
    findings
}

/// The paths that are listed as changed.
fn listed(bundle: &Bundle<'_>, findings: &mut Vec<Finding>) -> Option<BTreeSet<RawPath>> {
    let bytes = bundle.bytes(CHANGED)?;
    let mut wrong = |line: usize, problem: &str| {
        findings.push(Finding::altered(format!("{CHANGED} line {line}"), problem));
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        wrong(1, "is not UTF-8");
        return None;
    };
    let mut paths = BTreeSet::new();
    for (index, line) in text.split_terminator('\n').enumerate() {
        match RawPath::try_from(line.to_owned()) {
            Ok(path) if path.to_string() != line || line.is_empty() => {
                wrong(index + 1, "is not spelled as we spell a path");
            }
            Ok(path) if paths.contains(&path) => wrong(index + 1, "is there twice"),
            Ok(path) => {
                paths.insert(path);
            }
            Err(error) => wrong(index + 1, &error.to_string()),
        }
    }
    Some(paths)
}

/// The base commit exists and has the base tree.
fn base(predicate: &RunPredicate, objects: &Objects) -> Option<Finding> {
    let problem = match objects.get(&predicate.base_commit) {
        None => "does not hold the base commit",
        Some((Kind::Commit, bytes)) => match tree::commit_tree(bytes) {
            Some(tree) if tree == predicate.base_tree => return None,
            Some(_) => "holds a base commit with another tree than the sealed one",
            None => "holds a base commit that names no tree",
        },
        Some(_) => "holds something else in place of the base commit",
    };
    Some(Finding::altered(PACK, problem))
}

/// Every new content is in the pack, except what the ledger says is withheld.
fn contents(changes: &[Change], objects: &Objects, withheld: &Withheld) -> Vec<Finding> {
    let new = changes.iter().filter_map(|change| {
        let side = change.after.as_ref()?;
        // A commit of another repository is not part of the pack.
        (side.mode != Mode::Gitlink).then_some((&change.path, &side.oid))
    });
    new.filter(|(path, _)| !withheld.contents.contains(path))
        .filter(|(_, oid)| !matches!(objects.get(oid), Some((Kind::Blob, _))))
        .map(|(path, oid)| {
            let problem = format!("does not hold {oid}, the new content of `{path}`");
            Finding::incomplete(PACK, problem)
        })
        .collect()
}

/// An accepted run changed only paths that its contract covers, or that a person permitted by its
/// ledger.
fn scope(bundle: &Bundle<'_>, predicate: &RunPredicate, changes: &[Change]) -> Vec<Finding> {
    let Some(contract) = &bundle.contract else {
        return Vec::new();
    };
    // A scope that does not parse is a finding about the contract.
    let granted = bundle.course.end().into_iter().flat_map(|state| {
        let granted = state.granted_widenings();
        granted.filter(|it| it.kind == QuestionKind::Path)
    });
    let granted = granted.map(|it| it.content);
    let entries = contract.allowed_paths.iter().map(String::as_str);
    let entries: Vec<&str> = entries.chain(granted).collect();
    let Ok(scope) = Scope::parse(&entries) else {
        return Vec::new();
    };
    if !predicate.verdict.allow {
        return Vec::new();
    }
    changes
        .iter()
        .filter(|change| !scope.covers_raw(&change.path))
        .map(|change| {
            let problem = format!(
                "accepts a change of `{}`, which is out of scope",
                change.path
            );
            Finding::altered(ATTESTATION, problem)
        })
        .collect()
}

/// The paths that differ are the listed ones.
fn compare(changes: &[Change], listed: &BTreeSet<RawPath>, place: &str) -> Vec<Finding> {
    let differing: BTreeSet<&RawPath> = changes.iter().map(|change| &change.path).collect();
    let silent = differing.iter().filter(|path| !listed.contains(**path));
    let invented = listed.iter().filter(|path| !differing.contains(path));
    let silent = silent.map(|path| format!("does not list `{path}`, which differs"));
    let invented = invented.map(|path| format!("lists `{path}`, which does not differ"));
    silent
        .chain(invented)
        .map(|problem| Finding::altered(place, problem))
        .collect()
}
