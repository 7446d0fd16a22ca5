//! Looks up the protection of a path by its components.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::table::{self, Row};
use super::{Protection, first};
use crate::file_system_names::Reading;

/// The table as an index by name.
pub(super) struct Index {
    files: BTreeMap<&'static str, Protection>,
    directories: BTreeMap<&'static str, Protection>,
    patterns: Vec<Pattern>,
    /// Positions of the file patterns that may match a name.
    places: BTreeMap<Key, Vec<usize>>,
}

/// What a name shares with the patterns that may match it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    First(u8),
    Ending(&'static str),
    Any,
}

/// A pattern that is more than one whole name.
struct Pattern {
    parts: Vec<Part>,
    from_root: bool,
    /// Whether it matches everything below as well.
    is_directory: bool,
    protection: Protection,
}

/// One component of a pattern.
enum Part {
    Whole(&'static str),
    /// The literal pieces around its stars.
    Pieces(Vec<&'static str>),
}

pub(super) fn index(edition: u32) -> &'static Index {
    static FIRST: OnceLock<Index> = OnceLock::new();
    static CURRENT: OnceLock<Index> = OnceLock::new();
    match edition {
        1 => FIRST.get_or_init(|| Index::build(first::ROWS.iter())),
        _ => CURRENT.get_or_init(|| Index::build(table::rows())),
    }
}

impl Index {
    fn build(rows: impl Iterator<Item = &'static Row>) -> Self {
        let mut index = Self {
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            patterns: Vec::new(),
            places: BTreeMap::new(),
        };
        for row in rows {
            for file in row.files() {
                index.add(file, false, row.protection);
            }
            for directory in row.directories() {
                index.add(directory, true, row.protection);
            }
        }
        index
    }

    fn add(&mut self, text: &'static str, is_directory: bool, protection: Protection) {
        if text.contains(['*', '/']) {
            let pattern = Pattern::parse(text, is_directory, protection);
            let place = self.places.entry(pattern.key()).or_default();
            place.push(self.patterns.len());
            self.patterns.push(pattern);
            return;
        }
        let names = if is_directory {
            &mut self.directories
        } else {
            &mut self.files
        };
        let known = names.entry(text).or_insert(protection);
        *known = protection.min(*known);
    }

    /// The protection of a path with these components: the strictest of all matching rows.
    pub(super) fn classify(&self, parts: &[Reading]) -> Option<Protection> {
        let name = parts.last()?;
        let named = find(&self.files, name);
        let inside = parts
            .iter()
            .filter_map(|part| find(&self.directories, part));
        let patterns = self.about(name).filter(|pattern| pattern.covers(parts));
        let patterns = patterns.map(|pattern| pattern.protection);
        named.into_iter().chain(inside).chain(patterns).min()
    }
}

impl Index {
    /// The patterns that may match a path whose last component is `name`.
    fn about(&self, name: &Reading) -> impl Iterator<Item = &Pattern> {
        let text = name.folded();
        let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
        let first = text.as_bytes().first().copied().unwrap_or_default();
        let is_asked = move |key: &Key| match key {
            Key::First(letter) => *letter == first,
            Key::Ending(known) => *known == ending,
            Key::Any => true,
        };
        let is_short = name.may_be_short();
        let places = self.places.iter();
        let places = places.filter(move |(key, _)| is_short || is_asked(key));
        places.flat_map(move |(_, at)| at.iter().filter_map(move |at| self.patterns.get(*at)))
    }
}

fn find(names: &BTreeMap<&'static str, Protection>, name: &Reading) -> Option<Protection> {
    let plainly = names.get(name.folded()).copied();
    if !name.may_be_short() {
        return plainly;
    }
    let known = names.iter().filter(|(known, _)| name.is(known));
    known.map(|(_, protection)| *protection).min()
}

impl Pattern {
    fn parse(text: &'static str, is_directory: bool, protection: Protection) -> Self {
        let part = |part: &'static str| {
            if part.contains('*') {
                Part::Pieces(part.split('*').collect())
            } else {
                Part::Whole(part)
            }
        };
        let inner = text.strip_prefix('/');
        Self {
            parts: inner.unwrap_or(text).split('/').map(part).collect(),
            from_root: inner.is_some(),
            is_directory,
            protection,
        }
    }

    /// What a name must have to match the last component of a file pattern.
    fn key(&self) -> Key {
        let first = |text: &'static str| text.as_bytes().first().copied().map(Key::First);
        let key = match self.parts.last().filter(|_| !self.is_directory) {
            Some(Part::Whole(name)) => first(name),
            Some(Part::Pieces(pieces)) => pieces.first().copied().and_then(first).or_else(|| {
                let (_, ending) = pieces.last()?.rsplit_once('.')?;
                (!ending.is_empty()).then_some(Key::Ending(ending))
            }),
            None => None,
        };
        key.unwrap_or(Key::Any)
    }

    fn covers(&self, parts: &[Reading]) -> bool {
        let Some(last) = parts.len().checked_sub(self.parts.len()) else {
            return false;
        };
        let starts = match (self.from_root, self.is_directory) {
            (true, true) => 0..=0,
            (true, false) if last > 0 => return false,
            (_, false) => last..=last,
            (false, true) => 0..=last,
        };
        starts.into_iter().any(|at| {
            let window = &parts[at..at + self.parts.len()];
            self.parts
                .iter()
                .zip(window)
                .all(|(part, name)| part.is(name))
        })
    }
}

impl Part {
    fn is(&self, name: &Reading) -> bool {
        match self {
            Self::Whole(known) => name.is(known),
            Self::Pieces(pieces) => name.has_pieces(pieces),
        }
    }
}
