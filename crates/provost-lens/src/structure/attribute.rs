//! Attributes regressions to a scope, and decides whether the scope caused a failed gate.

use super::Finding;
use super::budget::Gate;
use super::compare::{Delta, Worsened};
use super::pattern::covers;

/// Regressions, separated by whether they belong to the scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributed<'a> {
    /// New findings of the scope.
    pub intent_regressions: Vec<&'a Finding>,
    /// New findings outside of the scope.
    pub external_regressions: Vec<&'a Finding>,
    /// Symbols of the scope that became worse.
    pub intent_worsened: Vec<&'a Worsened>,
    /// Symbols outside of the scope that became worse.
    pub external_worsened: Vec<&'a Worsened>,
}

impl Attributed<'_> {
    /// Whether the scope caused a gate to fail that passed before.
    pub fn caused(&self, before: &Gate, after: &Gate) -> bool {
        let fell = !before.would_fail && after.would_fail;
        fell && !(self.intent_regressions.is_empty() && self.intent_worsened.is_empty())
    }
}

/// Attributes regressions to the scope that `entries` name: paths, directories or patterns.
///
/// A finding belongs to the scope if one of its places does. A finding without a place belongs to
/// the scope.
pub fn attribute<'a>(delta: &'a Delta, entries: &[impl AsRef<str>]) -> Attributed<'a> {
    let within = |path: &str| entries.iter().any(|entry| covers(entry.as_ref(), path));
    let mut found = Attributed::default();
    for finding in &delta.regressions {
        let own = finding.places.is_empty() || finding.paths().any(|path| within(path.as_str()));
        if own {
            found.intent_regressions.push(finding);
        } else {
            found.external_regressions.push(finding);
        }
    }
    for worsened in &delta.worsened {
        if within(worsened.path.as_str()) {
            found.intent_worsened.push(worsened);
        } else {
            found.external_worsened.push(worsened);
        }
    }
    found
}
