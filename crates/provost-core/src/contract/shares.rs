//! Paths that a part of a divided contract shares with other parts.

use super::{Problems, paths};
use crate::contract::document::Document;
use crate::scope::{self, Scope};

const PLACE: &str = "/x_provost/shares";

/// The paths that a part shares with others.
pub(super) fn shared(document: &Document, problems: &mut Problems) -> Scope {
    paths(PLACE, entries(document), problems)
}

/// Finds shared paths outside of the scope. A scope that is empty or does not parse has a finding of
/// its own.
pub(super) fn outside_of_scope(document: &Document, problems: &mut Problems) {
    let scope = Scope::parse(&document.allowed_paths).unwrap_or_default();
    if scope.is_empty() {
        return;
    }
    for (index, entry) in entries(document).iter().enumerate() {
        if scope::parse_entry(entry).is_ok_and(|path| !scope.covers(&path)) {
            let problem = format!("(`{}`) is not in `allowed_paths`", entry.escape_debug());
            problems.add(format!("{PLACE}/{index}"), problem);
        }
    }
}

fn entries(document: &Document) -> &[String] {
    let written = document.x_provost.as_ref();
    written.map_or(&[], |written| written.shares.as_slice())
}
