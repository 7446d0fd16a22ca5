//! Paths that a part of a divided contract shares with other parts.

use super::{Problems, paths};
use crate::contract::document::Document;
use crate::scope::{self, Scope};

const PLACE: &str = "/x_provost/shares";

/// The paths that a part shares with others, each inside its scope. They are not compared with a
/// scope that is empty or cannot be read, because that has a finding of its own.
pub(super) fn shared(document: &Document, problems: &mut Problems) -> Scope {
    let written = document.x_provost.as_ref();
    let entries = written.map_or(&[][..], |written| written.shares.as_slice());
    let shares = paths(PLACE, entries, problems);
    let scope = Scope::parse(&document.allowed_paths).unwrap_or_default();
    if scope.is_empty() {
        return shares;
    }
    for (index, entry) in entries.iter().enumerate() {
        if scope::parse_entry(entry).is_ok_and(|path| !scope.covers(&path)) {
            let problem = format!("(`{}`) is not in `allowed_paths`", entry.escape_debug());
            problems.add(format!("{PLACE}/{index}"), problem);
        }
    }
    shares
}
