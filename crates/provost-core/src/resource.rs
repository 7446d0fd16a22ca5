//! Resources that can be locked: path-like text with one canonical spelling.
//!
//! # Invariants
//!
//! - Two spellings of one path are one [`Resource`]: blanks around it, backslashes, repeated and
//!   trailing slashes, `.` and `..` are gone.
//! - No relative resource climbs above the directory it is relative to.
//! - In the order of resources, everything inside a resource follows it without a gap.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::LONGEST;

/// A path that can be locked; it stands for itself and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Resource {
    is_absolute: bool,
    /// Components joined by `/`; empty for `/` and for `.`.
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error("is blank")]
    Blank,
    #[error("leads above its root")]
    Climbs,
    #[error("holds a control character")]
    BadCharacter,
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
}

impl Resource {
    pub fn parse(text: &str) -> Result<Self, ResourceError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ResourceError::Blank);
        }
        if text.len() > LONGEST {
            return Err(ResourceError::TooLong);
        }
        // Control characters beyond ASCII are two bytes, of which the first is 0xc2.
        let may_control = |byte: u8| byte < 0x20 || byte == 0x7f || byte == 0xc2;
        if text.bytes().any(may_control) && text.contains(char::is_control) {
            return Err(ResourceError::BadCharacter);
        }
        let is_slash = |letter| matches!(letter, '/' | '\\');
        let is_absolute = text.starts_with(is_slash);
        let mut path = String::with_capacity(text.len());
        for part in text.split(is_slash) {
            match part {
                "" | "." => {}
                ".." if path.is_empty() && !is_absolute => return Err(ResourceError::Climbs),
                ".." => path.truncate(path.rfind('/').unwrap_or(0)),
                part => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(part);
                }
            }
        }
        Ok(Self { is_absolute, path })
    }

    /// Whether `other` is this path or lies below it. The absolute root contains everything;
    /// otherwise an absolute path contains no relative one, because the root of the latter is
    /// unknown.
    pub fn contains(&self, other: &Self) -> bool {
        if self.is_root() {
            return true;
        }
        let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.is_absolute == other.is_absolute
            && (self.path.is_empty() || other.path.strip_prefix(&*self.path).is_some_and(below))
    }

    pub fn is_absolute(&self) -> bool {
        self.is_absolute
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Whether it looks like a pattern; it is never interpreted as one.
    pub fn looks_like_pattern(&self) -> bool {
        self.path.contains(['*', '?', '['])
    }

    /// Whether a file system may know it under another sequence of characters.
    pub fn has_other_spelling(&self) -> bool {
        !unicode_normalization::is_nfc(&self.path)
    }

    fn is_root(&self) -> bool {
        self.is_absolute && self.path.is_empty()
    }

    fn rank(&self) -> u8 {
        match (self.is_absolute, self.path.is_empty()) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        }
    }
}

impl Ord for Resource {
    fn cmp(&self, other: &Self) -> Ordering {
        // A slash sorts before every other byte, so that `a/b` stands between `a` and `a.b`.
        fn weighed(path: &str) -> impl Iterator<Item = u16> {
            path.bytes().map(|byte| match byte {
                b'/' => 0,
                byte => u16::from(byte) + 1,
            })
        }
        let by_rank = self.rank().cmp(&other.rank());
        by_rank.then_with(|| weighed(&self.path).cmp(weighed(&other.path)))
    }
}

impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TryFrom<String> for Resource {
    type Error = ResourceError;

    fn try_from(text: String) -> Result<Self, ResourceError> {
        Self::parse(&text)
    }
}

impl From<Resource> for String {
    fn from(resource: Resource) -> Self {
        resource.to_string()
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Otherwise a blank at an end of the text would be trimmed.
        let before = match (self.is_absolute, self.path.as_str()) {
            (true, _) => "/",
            (false, "") => ".",
            (false, path) if path.starts_with(char::is_whitespace) => "./",
            (false, _) => "",
        };
        let ends_blank = self.path.ends_with(char::is_whitespace);
        let after = if ends_blank { "/" } else { "" };
        write!(formatter, "{before}{}{after}", self.path)
    }
}

/// A set of paths, and what it covers.
#[derive(Debug, Clone)]
pub struct Cover<'a> {
    /// Sorted, none inside another.
    tops: Vec<&'a Resource>,
}

impl<'a> Cover<'a> {
    pub fn of(places: impl IntoIterator<Item = &'a Resource>) -> Self {
        let mut tops: Vec<&Resource> = places.into_iter().collect();
        tops.sort();
        tops.dedup_by(|place, top| top.contains(place));
        Self { tops }
    }

    /// The path of the set that contains `resource`.
    pub fn holder_of(&self, resource: &Resource) -> Option<&'a Resource> {
        let after = self.tops.partition_point(|top| *top <= resource);
        let before = self.tops.get(after.checked_sub(1)?)?;
        before.contains(resource).then_some(*before)
    }

    /// A path of the set that contains `resource` or lies inside it.
    pub fn touched_by(&self, resource: &Resource) -> Option<&'a Resource> {
        self.holder_of(resource).or_else(|| {
            let after = self.tops.partition_point(|top| *top <= resource);
            let next = self.tops.get(after)?;
            resource.contains(next).then_some(*next)
        })
    }
}

/// Finds for each path another one that it overlaps, unless the same holder has both.
///
/// Pairs are positions in `held`, the containing one first. Which pairs are listed does not depend
/// on the order of `held` among different paths. There are at most as many pairs as paths.
pub fn clashes<H: Ord>(held: &[(&Resource, Option<&H>)]) -> Vec<(usize, usize)> {
    /// A path that contains what comes next, and the nearest one below it of another holder.
    struct Open {
        at: usize,
        other: Option<usize>,
    }
    if held.len() < 2 {
        return Vec::new();
    }
    let apart = |one: usize, two: usize| held[one].1.is_none() || held[one].1 != held[two].1;
    let mut order: Vec<usize> = (0..held.len()).collect();
    order.sort_by_key(|at| held[*at]);
    let mut stack: Vec<Open> = Vec::new();
    let mut pairs = Vec::new();
    for at in order {
        while stack
            .pop_if(|open| !held[open.at].0.contains(held[at].0))
            .is_some()
        {}
        let other = stack.last().and_then(|open| {
            if apart(open.at, at) {
                Some(open.at)
            } else {
                open.other
            }
        });
        pairs.extend(other.map(|other| (other, at)));
        stack.push(Open { at, other });
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(text: &str) -> Resource {
        Resource::parse(text).unwrap()
    }

    #[test]
    fn one_place_has_one_spelling() {
        let cases = [
            ("a/b", "a/b"),
            ("  a/b \t", "a/b"),
            ("a\\b", "a/b"),
            ("./a//b/", "a/b"),
            ("a/./b", "a/b"),
            ("a/x/../b", "a/b"),
            ("a/..", "."),
            (".", "."),
            ("./", "."),
            ("/", "/"),
            ("//", "/"),
            ("//srv", "/srv"),
            ("///srv/", "/srv"),
            ("/../srv", "/srv"),
            ("\\srv", "/srv"),
            ("a/ b", "a/ b"),
            ("...", "..."),
            ("./ a", "./ a"),
            ("a/.. / b", "a/.. / b"),
            ("x/../ /", "./ /"),
            ("a /.", "a /"),
            ("/ a /", "/ a /"),
        ];
        for (text, want) in cases {
            assert_eq!(place(text).to_string(), want, "{text:?}");
            assert_eq!(place(want), place(text), "{text:?}");
        }
    }

    #[test]
    fn what_names_no_place_is_refused() {
        let long = "x/".repeat(LONGEST);
        let cases = [
            ("", ResourceError::Blank),
            (" \t\n", ResourceError::Blank),
            ("..", ResourceError::Climbs),
            ("../a", ResourceError::Climbs),
            ("a/../../b", ResourceError::Climbs),
            ("a\0b", ResourceError::BadCharacter),
            ("a\nb", ResourceError::BadCharacter),
            (&long, ResourceError::TooLong),
        ];
        for (text, want) in cases {
            assert_eq!(Resource::parse(text), Err(want), "{text:?}");
        }
    }

    #[test]
    fn overlap_is_by_whole_components() {
        let cases = [
            ("lib", "lib", true),
            ("lib", "lib/a", true),
            ("lib", "lib2", false),
            ("lib/a", "lib/a.rs", false),
            ("lib", "LIB", false),
            (".", "lib", true),
            ("/", "/srv", true),
            ("/", "lib", true),
            ("/lib", "lib", false),
            (".", "/srv", false),
            ("lib/*", "lib/a", false),
            ("lib/_", "lib/a", false),
        ];
        for (one, two, want) in cases {
            assert_eq!(place(one).overlaps(&place(two)), want, "{one} {two}");
            assert_eq!(place(two).overlaps(&place(one)), want, "{two} {one}");
        }
    }

    fn any_place() -> impl Strategy<Value = Resource> {
        "(/|\\./)?([ab.]{1,2}/){0,3}[ab]"
            .prop_filter_map("climbs", |text| Resource::parse(&text).ok())
    }

    proptest! {
        #[test]
        fn a_place_is_its_own_text(text in ".{0,12}|[ab ./\\\\]{0,8}") {
            if let Ok(place) = Resource::parse(&text) {
                prop_assert_eq!(Resource::parse(&place.to_string()), Ok(place));
            }
        }

        #[test]
        fn clashes_are_what_comparing_all_pairs_finds(
            held in prop::collection::vec((any_place(), 0_u8..3), 0..8)
        ) {
            let borrowed: Vec<_> = held.iter().map(|(place, task)| (place, Some(task))).collect();
            let found = clashes(&borrowed);
            for (one, two) in &found {
                prop_assert!(held[*one].0.contains(&held[*two].0));
                prop_assert_ne!(held[*one].1, held[*two].1);
            }
            let any = held.iter().any(|(place, task)| {
                held.iter().any(|(other, owner)| task != owner && place.overlaps(other))
            });
            prop_assert_eq!(!found.is_empty(), any);
        }

        #[test]
        fn a_cover_answers_like_a_search(
            places in prop::collection::vec(any_place(), 0..6), asked in any_place()
        ) {
            let cover = Cover::of(&places);
            let held = places.iter().any(|place| place.contains(&asked));
            let touched = places.iter().any(|place| place.overlaps(&asked));
            prop_assert_eq!(cover.holder_of(&asked).is_some(), held);
            prop_assert_eq!(cover.touched_by(&asked).is_some(), touched);
        }
    }
}
