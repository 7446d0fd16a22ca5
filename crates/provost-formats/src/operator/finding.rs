//! Collects the findings about a payload.

use std::fmt;

use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::secret;
use provost_core::verdict::Verdict;
use serde_json::{Map, Value, json};

use super::{Answer, Strictness};

/// The most findings that are listed; there may be as many as values.
const MOST_LISTED: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    /// The field, as a JSON pointer; empty for the payload itself.
    pub path: String,
    pub problem: String,
}

/// All findings about a payload, in the order in which they were made.
#[derive(Debug)]
pub struct Findings {
    strictness: Strictness,
    list: Vec<Finding>,
    /// How many findings there are beyond those that are listed.
    more: usize,
}

impl Findings {
    pub fn new(strictness: Strictness) -> Self {
        Self {
            strictness,
            list: Vec::new(),
            more: 0,
        }
    }

    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strictness == Strictness::Strict
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// An empty list with the same strictness.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.strictness)
    }

    /// Adds the findings of another list.
    pub(super) fn absorb(&mut self, others: Self) {
        let room = MOST_LISTED - self.list.len();
        self.more += others.more + others.list.len().saturating_sub(room);
        self.list.extend(others.list.into_iter().take(room));
    }

    pub(super) fn add(&mut self, code: Code, place: Place<'_>, problem: impl fmt::Display) {
        if self.list.len() == MOST_LISTED {
            self.more += 1;
            return;
        }
        self.list.push(Finding {
            code,
            path: place.to_string(),
            problem: problem.to_string(),
        });
    }

    /// Adds a finding for each secret in a text that is passed on.
    pub(super) fn look_for_secrets(&mut self, place: Place<'_>, text: &str) {
        if let Some(secret) = secret::find(text).first() {
            let problem = format!("holds {}", secret.kind.words());
            self.add(Code::UntrustedContextBlock, place, problem);
        }
    }

    /// Adds a finding for each secret in a text below `value`.
    pub(super) fn look_for_secrets_below(&mut self, place: Place<'_>, value: &Node<'_>) {
        match value {
            Node::Text(text) => self.look_for_secrets(place, text),
            Node::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.look_for_secrets_below(place.index(at), item);
                }
            }
            Node::Object(fields) => {
                for (key, field) in fields.iter() {
                    self.look_for_secrets_below(place.key(key), field);
                }
            }
            Node::Null | Node::Bool(_) | Node::Number(_) => {}
        }
    }

    pub(super) fn verdict(self, answer: Answer) -> Verdict {
        let mut details = Map::new();
        for (name, value) in answer.details {
            details.insert(name.to_owned(), value);
        }
        let Some(first) = self.list.first() else {
            let verdict = Verdict::allow(answer.reason);
            if details.is_empty() {
                return verdict;
            }
            return verdict.with(Value::Object(details));
        };
        let others = self.count() - 1;
        let place = match first.path.as_str() {
            "" => String::new(),
            path => format!("`{path}`: "),
        };
        let more = match others {
            0 => String::new(),
            count => format!(" (and {count} more)"),
        };
        let reason = format!("{place}{}{more}", first.problem);
        let code = answer.code.unwrap_or(first.code);
        let row = |finding: &Finding| {
            json!({
                "code": finding.code,
                "path": finding.path,
                "problem": finding.problem,
            })
        };
        let rows = self.list.iter().map(row).collect();
        details.insert("findings".to_owned(), Value::Array(rows));
        Verdict::deny(code, reason).with(Value::Object(details))
    }
}

/// A place in a payload; its pointer is only built when it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    above: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Place<'_> {
    /// The payload itself.
    pub(super) fn root() -> &'static Place<'static> {
        &Place {
            above: None,
            step: Step::Root,
        }
    }

    pub(super) fn key<'a>(&'a self, key: &'a str) -> Place<'a> {
        Place {
            above: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&self, index: usize) -> Place<'_> {
        Place {
            above: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(formatter)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key) => {
                write!(formatter, "/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Step::Index(index) => write!(formatter, "/{index}"),
        }
    }
}
