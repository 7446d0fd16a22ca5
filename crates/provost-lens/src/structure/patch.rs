//! Scores a change by the functions that it touched, and by nothing else.
//!
//! In a large tree one bad function hardly changes the health of the whole; here it decides.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::compare::by_name;
use super::health::{Dimension, Points, standard};
use super::metrics::{Debt, Debts, branches_owed, unused_owed};
use super::{Family, Finding, Function, Report};
use provost_core::path::RepoPath;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    pub added: u64,
    pub removed: u64,
    pub changed: u64,
    /// The health, before, of the functions that were changed or removed; `None` if there are none.
    pub before: Option<Points>,
    /// The health, after, of the functions that were changed or added; `None` if there are none.
    pub after: Option<Points>,
}

/// Scores the difference between two reports.
pub(super) fn score(before: &Report, after: &Report) -> Patch {
    let old = by_name(&before.functions, |one: &Function| {
        (&one.path, one.name.as_str())
    });
    let new = by_name(&after.functions, |one: &Function| {
        (&one.path, one.name.as_str())
    });
    let mut gone: Vec<&Function> = Vec::new();
    let (mut touched_old, mut touched_new) = (Vec::new(), Vec::new());
    for (key, function) in &old {
        match new.get(key) {
            None => gone.push(function),
            Some(other) if other.text != function.text => {
                touched_old.push(*function);
                touched_new.push(*other);
            }
            Some(_) => {}
        }
    }
    let changed = touched_old.len() as u64;
    // A function that is elsewhere, with equal tokens, was not touched.
    let mut moved: BTreeMap<&str, u64> = BTreeMap::new();
    for function in &gone {
        *moved.entry(&function.text).or_default() += 1;
    }
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut added = Vec::new();
    for (key, function) in &new {
        if old.contains_key(key) {
            continue;
        }
        match moved.get_mut(function.text.as_str()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                *found.entry(&function.text).or_default() += 1;
            }
            _ => added.push(*function),
        }
    }
    gone.retain(|function| match found.get_mut(function.text.as_str()) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    });
    let (removed, fresh) = (gone.len() as u64, added.len() as u64);
    touched_old.extend(gone);
    touched_new.extend(added);
    Patch {
        added: fresh,
        removed,
        changed,
        before: health(&touched_old, &before.findings),
        after: health(&touched_new, &after.findings),
    }
}

fn health(functions: &[&Function], findings: &[Finding]) -> Option<Points> {
    let names: BTreeSet<(&RepoPath, &str)> = functions
        .iter()
        .map(|one| (&one.path, one.name.as_str()))
        .collect();
    let touched = |finding: &Finding| {
        let among = |spot: &&super::Spot| names.contains(&(&spot.path, spot.symbol.as_str()));
        finding.places.iter().filter(among).count() as u64
    };
    let copies = |finding: &Finding| match finding.family {
        Family::Clone if finding.gates() => 2 * touched(finding),
        _ => 0,
    };
    let unused = |finding: &Finding| unused_owed(finding) * touched(finding);
    let size = functions.len() as u64;
    let of = |debt: u64| Debt { debt, size };
    let debts = Debts::from([
        (
            Dimension::Complexity,
            of(functions
                .iter()
                .map(|one| branches_owed(one.cyclomatic, one.cognitive))
                .sum()),
        ),
        (Dimension::Clones, of(findings.iter().map(copies).sum())),
        (Dimension::DeadCode, of(findings.iter().map(unused).sum())),
    ]);
    standard(&debts).map(|health| health.points)
}
