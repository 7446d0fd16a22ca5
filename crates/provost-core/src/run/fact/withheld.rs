//! What a bundle leaves out because it holds a secret.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Capture;
use crate::path::RawPath;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Changed paths whose content is neither in the patch nor among the objects.
    pub contents: BTreeSet<RawPath>,
    /// Whether some names held a secret: they are replaced, and there are no objects at all.
    pub names: bool,
}

impl Withheld {
    pub fn is_nothing(&self) -> bool {
        self.contents.is_empty() && !self.names
    }
}

impl Capture {
    /// The changed paths that the patch of the bundle shows; `None` if it shows all of them.
    pub fn shown(&self) -> Option<Vec<RawPath>> {
        let held = &self.withheld;
        if held.is_nothing() {
            return None;
        }
        if held.names {
            return Some(Vec::new());
        }
        // A path that names a directory covers everything in it.
        let above = |path: &RawPath| {
            let directory = [path.as_bytes(), b"/"].concat();
            let mut contents = held.contents.iter();
            contents.any(|one| one == path || one.as_bytes().starts_with(&directory))
        };
        let paths = self.changes.iter().map(|change| change.path.clone());
        Some(paths.filter(|path| !above(path)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Change, Ignored};
    use crate::object::{Kind, ObjectFormat};

    #[test]
    fn what_is_withheld_is_shown_by_no_other_path() {
        let change = |path: &str| Change {
            path: RawPath::new(path),
            before: None,
            after: None,
            binary: false,
            origin: None,
            link: None,
        };
        let mut capture = Capture {
            tree: ObjectFormat::Sha256.oid(Kind::Tree, b"").unwrap(),
            kept_by: String::new(),
            changes: ["a", "a/b", "ab", "c"].map(change).to_vec(),
            findings: Vec::new(),
            ignored: Ignored::default(),
            withheld: Withheld::default(),
            crossed: None,
        };
        assert_eq!(capture.shown(), None);
        capture.withheld.contents.insert(RawPath::new("a/b"));
        let want = ["ab", "c"].map(RawPath::new).to_vec();
        assert_eq!(capture.shown(), Some(want));
        capture.withheld.names = true;
        assert_eq!(capture.shown(), Some(Vec::new()));
    }
}
