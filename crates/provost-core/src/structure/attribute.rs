//! Says which of what became worse belongs to a scope, and what to make of a gate that fell.

use super::Finding;
use super::budget::Gate;
use super::compare::{Delta, Worsened};
use super::pattern::covers;

/// What became worse, by whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributed<'a> {
    /// New findings of the scope.
    pub intent_regressions: Vec<&'a Finding>,
    /// New findings of somebody else.
    pub external_regressions: Vec<&'a Finding>,
    /// Symbols of the scope that became worse.
    pub intent_worsened: Vec<&'a Worsened>,
    /// Symbols of somebody else that became worse.
    pub external_worsened: Vec<&'a Worsened>,
}

impl Attributed<'_> {
    /// Whether a gate that passed before and fails now is the doing of the scope.
    pub fn caused(&self, before: &Gate, after: &Gate) -> bool {
        let fell = !before.would_fail && after.would_fail;
        fell && !(self.intent_regressions.is_empty() && self.intent_worsened.is_empty())
    }
}

/// Attributes what became worse to the scope that `entries` name: paths, directories or patterns.
///
/// A finding belongs to the scope if one of its places does. One without any place cannot be
/// somebody else's.
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
