//! Finds functions, classes and imports that exceed limits of good design.

use crate::structure::graph::Graph;
use crate::structure::{Category, Class, Confidence, Family, Settings, Severity, Spot};
use provost_core::path::RepoPath;
use provost_core::wording::counted as worded;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use crate::facts::{after_last, bytes_hash, name_hash};
use crate::found::{self, Draft, Function, counted, digits, spot};
use crate::language;

/// The cognitive complexity, nesting and length without a finding.
const READABLE: u32 = 30;
const DEEP: u32 = 5;
const LONG: u32 = 150;

/// Functions with too many branches, and those that are hard to read.
pub(crate) fn functions(functions: &[Function<'_>], settings: &Settings) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for function in functions {
        let fact = function.fact;
        let checks = [
            (
                Category::Complexity,
                fact.cyclomatic,
                settings.complexity_threshold,
            ),
            (Category::Cognitive, fact.cognitive, READABLE),
            (Category::Nesting, fact.nesting, DEEP),
            (Category::Length, function.lines(), LONG),
        ];
        for (category, value, limit) in checks {
            if value > limit {
                let confidence = if fact.unsound || function.test {
                    Confidence::Low
                } else {
                    Confidence::High
                };
                let shape = digits(fact.shape);
                let one = One {
                    category,
                    value,
                    limit,
                    confidence,
                    shape,
                };
                drafts.push(one.draft(&fact.name, function.spot()));
            }
        }
    }
    drafts
}

/// Classes that use too many others, or whose methods share nothing.
pub(crate) fn classes(classes: &[Class], tests: &[bool], settings: &Settings) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for (class, is_test) in classes.iter().zip(tests) {
        // A test class contains what is tested, which is many unrelated things.
        let confidence = if *is_test {
            Confidence::Low
        } else {
            Confidence::Medium
        };
        let checks = [
            (
                Category::Coupling,
                Some(class.coupling),
                settings.coupling_threshold,
            ),
            (
                Category::Cohesion,
                class.cohesion,
                settings.cohesion_threshold,
            ),
        ];
        for (category, value, limit) in checks {
            if let Some(value) = value.filter(|value| *value > limit) {
                let one = One {
                    category,
                    value,
                    limit,
                    confidence,
                    shape: String::new(),
                };
                let place = spot(&class.path, &class.name, class.line, class.end_line);
                drafts.push(one.draft(&class.name, place));
            }
        }
    }
    drafts
}

struct One {
    category: Category,
    value: u32,
    limit: u32,
    confidence: Confidence,
    shape: String,
}

impl One {
    fn draft(self, name: &str, place: Spot) -> Draft {
        let (value, limit) = (self.value, self.limit);
        let (head, family, what) = match self.category {
            Category::Complexity => (
                "design:complexity",
                Family::Design,
                format!("has a complexity of {value}, {limit} is fine"),
            ),
            Category::Coupling => (
                "design:coupling",
                Family::Design,
                format!("uses {value} other classes, {limit} are fine"),
            ),
            Category::Cohesion => (
                "design:cohesion",
                Family::Design,
                format!("falls into {value} parts that share nothing, {limit} are fine"),
            ),
            Category::Cognitive => (
                "structural:cognitive",
                Family::Structural,
                format!("is hard to read: {value}, {limit} is fine"),
            ),
            Category::Nesting => (
                "structural:nesting",
                Family::Structural,
                format!("nests {value} deep, {limit} is fine"),
            ),
            _ => (
                "structural:length",
                Family::Structural,
                format!("has {value} lines, {limit} are fine"),
            ),
        };
        let severity = match family {
            Family::Structural => Severity::Info,
            _ if self.value >= 2 * self.limit => Severity::Critical,
            _ => Severity::Warning,
        };
        Draft {
            head,
            key: name.to_owned(),
            family,
            category: self.category,
            severity,
            confidence: self.confidence,
            symbol: name.to_owned(),
            message: format!("`{name}` {what}"),
            places: vec![place],
            value: self.value,
            limit: self.limit,
            shape: self.shape,
        }
    }
}

/// Files that import each other in a circle.
pub(crate) fn cycles(graph: &Graph<'_>) -> Vec<Draft> {
    graph
        .cycles()
        .into_iter()
        .map(|cycle| circle(&cycle))
        .collect()
}

fn circle(cycle: &[&RepoPath]) -> Draft {
    let mut names: Vec<&str> = cycle.iter().map(|path| path.name()).collect();
    names.sort_unstable();
    let sure = cycle
        .first()
        .and_then(|path| language::of(path.as_str()))
        .and_then(language::spec)
        .map_or(Confidence::Low, |spec| spec.circles);
    Draft {
        head: "design:dependency_cycle",
        key: digits(bytes_hash(names.join("\0").as_bytes())),
        family: Family::Design,
        category: Category::DependencyCycle,
        severity: Severity::Warning,
        confidence: sure,
        symbol: names.join(", "),
        places: cycle.iter().map(|path| spot(path, "", 1, 1)).collect(),
        value: counted(cycle.len()),
        limit: 1,
        shape: String::new(),
        message: format!(
            "{} import each other in a circle",
            worded(cycle.len(), "file")
        ),
    }
}

/// The classes of a tree, with how many of the others each one uses.
pub(crate) fn coupled(classes: &[found::Class<'_>]) -> Vec<Class> {
    let last = |name: &str| name_hash(after_last(name, b'.').as_bytes());
    let mut names: Vec<u32> = classes.iter().map(|class| last(&class.fact.name)).collect();
    names.sort_unstable();
    names.dedup();
    let count = |class: &found::Class<'_>| {
        let own = last(&class.fact.name);
        // Both are sorted, and few names in a class are those of classes.
        let mut rest = names.as_slice();
        let known = |name: &u32| {
            let at = rest.partition_point(|other| other < name);
            rest = rest.get(at..).unwrap_or_default();
            rest.first() == Some(name)
        };
        let uses = class.fact.uses.all().filter(|name| *name != own);
        counted(uses.filter(known).count())
    };
    classes
        .par_iter()
        .map(|class| Class {
            path: class.path.clone(),
            name: class.fact.name.clone().into_owned(),
            line: class.fact.line,
            end_line: class.fact.end_line,
            methods: class.fact.methods,
            coupling: count(class),
            cohesion: class.fact.cohesion,
        })
        .collect()
}
