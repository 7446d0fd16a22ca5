//! Finds functions and classes that are never named.
//!
//! Names are compared, not meanings: a name that is used for anything anywhere keeps everything
//! with that name alive. A word in a text may be a name that is looked up, so it lowers the
//! confidence.

use std::collections::HashSet;

use crate::structure::{Category, Confidence, Family, Severity};

use crate::facts::{Facts, Hashes, after_last, name_hash};
use crate::found::{Class, Draft, Function, counted, digits, spot};

/// What is known of a name that a function or class of the tree has.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    defined: u32,
    used: bool,
    by_itself: bool,
    mentioned: bool,
}

/// The names of a whole tree.
///
/// Only names that are defined here matter. They are few compared with the used ones, so they are
/// what is looked up.
#[derive(Debug)]
pub(crate) struct Names {
    /// The hashes of all defined names, sorted.
    hashes: Vec<u32>,
    known: Vec<Known>,
    /// Where hashes with these upper bits begin.
    begin: Vec<usize>,
    /// Languages of which a file could not be read at all.
    blind: HashSet<usize>,
}

/// Shift of a hash for its upper bits.
const UPPER: u32 = 16;

fn upper(hash: u32) -> usize {
    (hash >> UPPER) as usize
}

impl Names {
    /// The names of `all` files; of the languages in `blind` a file could not be read at all.
    pub(crate) fn of<'a>(
        all: impl Iterator<Item = &'a Facts<'a>> + Clone,
        blind: HashSet<usize>,
    ) -> Self {
        let defined = |facts: &'a Facts<'a>| {
            let functions = facts.functions.iter().map(|one| one.name.as_ref());
            let classes = facts.classes.iter().map(|one| one.name.as_ref());
            functions.chain(classes).map(simple)
        };
        let mut every: Vec<u32> = all.clone().flat_map(defined).collect();
        every.sort_unstable();
        let (mut hashes, mut known) = (Vec::new(), Vec::new());
        for same in every.chunk_by(|one, other| one == other) {
            hashes.extend(same.first());
            known.push(Known {
                defined: counted(same.len()),
                ..Known::default()
            });
        }
        let mut begin = Vec::with_capacity(upper(u32::MAX) + 2);
        let mut at = 0;
        for bits in 0..=upper(u32::MAX) {
            begin.push(at);
            at += hashes[at..]
                .iter()
                .take_while(|hash| upper(**hash) == bits)
                .count();
        }
        begin.push(at);
        let mut names = Self {
            hashes,
            known,
            begin,
            blind,
        };
        for facts in all {
            names.see(&facts.references, |known| known.used = true);
            names.see(&facts.own, |known| known.by_itself = true);
            names.see(&facts.mentions, |known| known.mentioned = true);
        }
        names
    }

    fn see(&mut self, hashes: &Hashes<'_>, mark: impl Fn(&mut Known)) {
        for hash in hashes.all() {
            if let Some(known) = self.place(hash).and_then(|at| self.known.get_mut(at)) {
                mark(known);
            }
        }
    }

    fn place(&self, hash: u32) -> Option<usize> {
        let (from, to) = (self.begin[upper(hash)], self.begin[upper(hash) + 1]);
        let at = self.hashes[from..to].binary_search(&hash).ok()?;
        Some(from + at)
    }

    /// How surely a definition with this name is unused; `None` if it is used.
    fn judge(&self, name: u32, sure: Confidence, language: usize) -> Option<Confidence> {
        let known = self.place(name).and_then(|at| self.known.get(at));
        let known = known.copied().unwrap_or_default();
        if known.used || (known.by_itself && known.defined > 1) {
            return None;
        }
        let unsure = known.mentioned || self.blind.contains(&language);
        Some(if unsure { Confidence::Low } else { sure })
    }
}

/// The hash of the unqualified name.
fn simple(name: &str) -> u32 {
    name_hash(last(name).as_bytes())
}

/// The unqualified name.
fn last(name: &str) -> &str {
    let name = after_last(name, b'.');
    // Searching for one byte is much faster, and few names have any.
    if !name.contains(':') {
        return name;
    }
    name.rsplit("::").next().unwrap_or(name)
}

/// Everything that is never named.
pub(crate) fn find(functions: &[Function<'_>], classes: &[Class<'_>], names: &Names) -> Vec<Draft> {
    let function = |one: &Function<'_>| {
        let sure = one.fact.unused.filter(|_| !one.test)?;
        let sure = if one.fact.unsound {
            Confidence::Low
        } else {
            sure
        };
        let sure = names.judge(simple(&one.fact.name), sure, one.language)?;
        let place = one.spot();
        let shape = digits(one.fact.shape);
        Some(draft(
            Category::UnusedFunction,
            &one.fact.name,
            sure,
            place,
            shape,
        ))
    };
    let class = |one: &Class<'_>| {
        let sure = one.fact.unused.filter(|_| !one.test)?;
        let sure = names.judge(simple(&one.fact.name), sure, one.language)?;
        let place = spot(one.path, &one.fact.name, one.fact.line, one.fact.end_line);
        Some(draft(
            Category::UnusedClass,
            &one.fact.name,
            sure,
            place,
            String::new(),
        ))
    };
    let functions = functions.iter().filter_map(function);
    functions.chain(classes.iter().filter_map(class)).collect()
}

fn draft(
    category: Category,
    name: &str,
    confidence: Confidence,
    place: crate::structure::Spot,
    shape: String,
) -> Draft {
    Draft {
        head: "dead_code",
        key: name.to_owned(),
        family: Family::DeadCode,
        category,
        severity: if confidence == Confidence::Low {
            Severity::Info
        } else {
            Severity::Warning
        },
        confidence,
        symbol: name.to_owned(),
        places: vec![place],
        value: 1,
        limit: 0,
        shape,
        message: format!("`{}` is never used", last(name)),
    }
}
