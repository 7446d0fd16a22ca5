//! Finds functions and classes that nobody names.
//!
//! Names are compared, not meanings: a name that is used for anything anywhere keeps everything
//! with that name alive. A word in a text may be a name that is looked up, so it makes us unsure.

use std::collections::{HashMap, HashSet};

use provost_core::structure::{Category, Confidence, Family, Severity};

use crate::facts::{Facts, name_hash};
use crate::found::{Class, Draft, Function, digits, spot};

/// The names of a whole tree.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: HashSet<u32>,
    by_themselves: HashSet<u32>,
    mentioned: HashSet<u32>,
    defined: HashMap<u32, u32>,
    /// Languages of which a file could not be read at all.
    pub(crate) blind: HashSet<usize>,
}

impl Names {
    /// Adds the names of a file.
    pub(crate) fn add(&mut self, facts: &Facts) {
        self.used.extend(facts.references.all());
        self.by_themselves.extend(facts.own.all());
        self.mentioned.extend(facts.mentions.all());
        let functions = facts.functions.iter().map(|one| one.name.as_str());
        let classes = facts.classes.iter().map(|one| one.name.as_str());
        for name in functions.chain(classes) {
            *self.defined.entry(simple(name)).or_default() += 1;
        }
    }

    /// How sure it is that what has this name is unused; nothing if it is used.
    fn judge(&self, name: u32, sure: Confidence, language: usize) -> Option<Confidence> {
        let namesakes = self.defined.get(&name).is_some_and(|count| *count > 1);
        let called = self.by_themselves.contains(&name) && namesakes;
        if self.used.contains(&name) || called {
            return None;
        }
        let unsure = self.mentioned.contains(&name) || self.blind.contains(&language);
        Some(if unsure { Confidence::Low } else { sure })
    }
}

/// The hash of a name without what is around it.
fn simple(name: &str) -> u32 {
    name_hash(last(name).as_bytes())
}

/// A name without what is around it.
fn last(name: &str) -> &str {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Everything that nobody names.
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
    place: provost_core::structure::Spot,
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
        message: format!("nobody uses `{}`", last(name)),
    }
}
