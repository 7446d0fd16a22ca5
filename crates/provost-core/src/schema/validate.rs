//! Validates a document against a schema, and reports all problems.
//!
//! A schema is compiled into [`Rules`] once, and then judges any number of documents. Only the
//! keywords that Provost's own schemas use are implemented; a test checks that. An unknown keyword
//! would be a rule that is never checked.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::leaf::Cause;
use super::rules::{Field, Rule, Rules, name, texts};
use crate::json::{Fields, Node};
use crate::wording::closest;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misfit {
    /// As a JSON pointer.
    pub path: String,
    pub problem: String,
    #[serde(skip)]
    pub cause: Cause,
}

impl Misfit {
    /// A value that is there and breaks a rule.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
            cause: Cause::Wrong,
        }
    }
}

/// The most problems of one document that are listed.
const MOST: usize = 1000;

/// Validates `value`; required fields come first, in the order in which `schema` lists them.
pub fn validate(schema: &Value, value: &Value) -> Vec<Misfit> {
    Rules::new(schema).validate(&Node::from(value.clone()))
}

impl Rules {
    pub(super) fn validate(&self, node: &Node<'_>) -> Vec<Misfit> {
        let mut check = Check {
            rules: self,
            problems: Vec::new(),
        };
        check.visit(&self.root, node, Place::Root);
        check.problems
    }
}

/// A place in a document; its pointer is only built when it is shown.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(above, key) => {
                let key = key.replace('~', "~0").replace('/', "~1");
                write!(formatter, "{above}/{key}")
            }
            Self::Index(above, index) => write!(formatter, "{above}/{index}"),
        }
    }
}

struct Check<'a> {
    rules: &'a Rules,
    problems: Vec<Misfit>,
}

impl<'a> Check<'a> {
    fn add(&mut self, place: Place<'_>, cause: Cause, problem: impl fmt::Display) {
        if self.problems.len() < MOST {
            self.problems.push(Misfit {
                path: place.to_string(),
                problem: problem.to_string(),
                cause,
            });
        }
    }

    fn wrong(&mut self, place: Place<'_>, problem: impl fmt::Display) {
        self.add(place, Cause::Wrong, problem);
    }

    fn visit(&mut self, rule: &'a Rule, node: &Node<'_>, place: Place<'_>) {
        if rule.never {
            return self.wrong(place, "is not allowed");
        }
        if let Some(reference) = &rule.reference {
            match self.rules.parts.get(reference) {
                Some(part) => self.visit(part, node, place),
                None => self.wrong(place, format_args!("the schema has no `{reference}`")),
            }
        }
        if !rule.kinds.is_empty() && !rule.kinds.iter().any(|kind| kind.has(node)) {
            let wanted: Vec<&str> = rule.kinds.iter().map(|kind| kind.name()).collect();
            let problem = format!("is {}; {} is asked for", name(node), wanted.join(" or "));
            return self.wrong(place, problem);
        }
        match node {
            Node::Object(members) => self.object(rule, members, place),
            Node::List(items) => self.array(rule, items, place),
            Node::Text(text) => {
                if let Some((cause, problem)) = text_problem(rule, text) {
                    return self.add(place, cause, problem);
                }
            }
            Node::Number(number) => self.number(rule, number, place),
            Node::Null | Node::Bool(_) => {}
        }
        // Without a type, only the format says that the value is text.
        if let Some(format) = rule.format.filter(|_| rule.kinds.is_empty())
            && node.as_str().is_none()
        {
            let problem = format!("is {}; string is asked for", name(node));
            return self.add(place, format.cause, problem);
        }
        self.choose(rule, node, place);
    }

    /// `const`, `enum`, `anyOf` and `oneOf`.
    fn choose(&mut self, rule: &'a Rule, node: &Node<'_>, place: Place<'_>) {
        if let Some(only) = &rule.only
            && only.1 != *node
        {
            self.wrong(place, format_args!("is not {}", only.0));
        }
        if let Some(list) = &rule.choices
            && !list.1.contains(node)
        {
            self.wrong(place, format_args!("is none of {}", texts(&list.0)));
        }
        for choices in &rule.any {
            let flaws = |choice| {
                let mut alone = Check {
                    rules: self.rules,
                    problems: Vec::new(),
                };
                alone.visit(choice, node, place);
                alone.problems
            };
            let all: Vec<Vec<Misfit>> = choices.iter().map(flaws).collect();
            if all.iter().any(Vec::is_empty) {
                continue;
            }
            // The intended choice is the first of the value's type, or else the first: the others
            // are ways to leave it out.
            let of_type = choices
                .iter()
                .position(|choice| self.is_of_type(choice, node));
            let intended = all.into_iter().nth(of_type.unwrap_or(0));
            self.problems.extend(intended.unwrap_or_default());
        }
    }

    fn is_of_type(&self, rule: &Rule, node: &Node<'_>) -> bool {
        let part = rule.reference.as_ref();
        let part = part.and_then(|name| self.rules.parts.get(name));
        let kinds = &part.unwrap_or(rule).kinds;
        kinds.iter().any(|kind| kind.has(node))
    }

    fn object(&mut self, rule: &'a Rule, members: &Fields<'_>, place: Place<'_>) {
        for field in &rule.fields {
            let below = Place::Key(&place, &field.name);
            match (members.get(&field.name), field.required) {
                (Some(node), _) => self.visit(&field.rule, node, below),
                (None, true) => self.add(below, Cause::Absent, "is missing"),
                (None, false) => {}
            }
        }
        let known = |name: &str| rule.fields.iter().any(|field| field.name == name);
        for (name, node) in members.iter().filter(|(name, _)| !known(name)) {
            let below = Place::Key(&place, name);
            let of_prefix = |(prefix, _): &&(String, Rule)| name.starts_with(prefix.as_str());
            match (rule.prefixed.iter().find(of_prefix), &rule.others) {
                (Some((_, rule)), _) => self.visit(rule, node, below),
                (None, Some(others)) if others.never => {
                    // The search for a similar name is not made for what is not listed.
                    if self.problems.len() < MOST {
                        self.wrong(below, unknown(name, &rule.fields));
                    }
                }
                (None, Some(others)) => self.visit(others, node, below),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, rule: &'a Rule, items: &[Node<'_>], place: Place<'_>) {
        if (items.len() as u64) < rule.least_items {
            let problem = match items {
                [] => "is an empty list".to_owned(),
                _ => format!("has fewer than {} items", rule.least_items),
            };
            self.add(place, Cause::Absent, problem);
        }
        if let Some(most) = rule.most_items.filter(|most| items.len() as u64 > *most) {
            self.wrong(place, format_args!("has more than {most} items"));
        }
        if let Some(rule) = &rule.items {
            for (index, node) in items.iter().enumerate() {
                self.visit(rule, node, Place::Index(&place, index));
            }
        }
    }

    fn number(&mut self, rule: &Rule, number: &serde_json::Number, place: Place<'_>) {
        let value = number.as_f64().unwrap_or(f64::NAN);
        if let Some(least) = rule.minimum.filter(|least| value < *least) {
            self.wrong(place, format_args!("is less than {least}"));
        }
        if let Some(most) = rule.maximum.filter(|most| value > *most) {
            self.wrong(place, format_args!("is more than {most}"));
        }
    }
}

/// The first rule for texts that `text` breaks.
fn text_problem(rule: &Rule, text: &str) -> Option<(Cause, String)> {
    let wrong = |problem: String| Some((Cause::Wrong, problem));
    // The characters are only counted if the bytes do not decide.
    let least = rule.least_length;
    if least > 0 && (text.chars().count() as u64) < least {
        return wrong(format!("has fewer than {least} characters"));
    }
    if let Some((pattern, known)) = &rule.pattern
        && !known.is_some_and(|known| (known.fits)(text))
    {
        if text.trim().is_empty() {
            return Some((Cause::Absent, "is blank".to_owned()));
        }
        let words = known.map_or("", |known| known.words);
        return wrong(match words {
            "" => format!("does not look like {pattern}"),
            words => format!("is not {words}"),
        });
    }
    if let Some(most) = rule.most_length
        && text.len() as u64 > most
        && text.chars().count() as u64 > most
    {
        return wrong(format!("has more than {most} characters"));
    }
    let format = rule.format?;
    let problem = (format.check)(text).err()?;
    Some((format.cause, problem.into_owned()))
}

/// The message for a field that the schema does not have.
fn unknown(name: &str, fields: &[Field]) -> String {
    match closest(name, fields.iter().map(|field| field.name.as_str())) {
        Some(meant) => format!("is an unknown field; did you mean `{meant}`?"),
        None => "is an unknown field".to_owned(),
    }
}
