//! Records which paths of the base are gone, or are something else.

use std::collections::BTreeSet;

use provost_core::path::RawPath;

/// Paths that hide the base at and below them.
#[derive(Debug, Default)]
pub(super) struct Masks(BTreeSet<RawPath>);

impl Masks {
    /// Hides `path` and everything below it; the empty path hides everything.
    pub(super) fn add(&mut self, path: RawPath) {
        self.0.insert(path);
    }

    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether `path`, or a directory above it, is hidden.
    pub(super) fn hide(&self, path: &RawPath) -> bool {
        let hidden = |place: &[u8]| self.0.contains(&RawPath::new(place));
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        !self.0.is_empty()
            && (hidden(b"")
                || hidden(bytes)
                || slashes.into_iter().any(|(at, _)| hidden(&bytes[..at])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_hides_what_lies_below_it_and_nothing_beside_it() {
        let mut masks = Masks::default();
        assert!(!masks.hide(&RawPath::new("a")));
        masks.add(RawPath::new("a/b"));
        let cases = [
            ("a", false),
            ("a/b", true),
            ("a/b/c/d", true),
            ("a/bc", false),
            ("a/c", false),
        ];
        for (path, want) in cases {
            assert_eq!(masks.hide(&RawPath::new(path)), want, "{path}");
        }
        masks.add(RawPath::new(""));
        assert!(masks.hide(&RawPath::new("z")));
    }
}
