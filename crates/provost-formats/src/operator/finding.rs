//! Collects the findings about a payload.

use std::borrow::Cow;
use std::fmt::Display;

use provost_core::code::Code;
use provost_core::json::Node;
use provost_core::schema::Strictness;
use provost_core::schema::leaf::Cause;
use provost_core::schema::read::FormatReader;
use provost_core::schema::validate::Misfit;
use provost_core::secret;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Answer;

/// The most findings that are listed; there may be as many as values.
const MOST_LISTED: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

    /// Reads `node`, which is at the pointer `at`; `None` if its shape is wrong.
    pub(super) fn read<T: JsonSchema + DeserializeOwned>(
        &mut self,
        format: &FormatReader<T>,
        node: &Node<'_>,
        at: impl Display,
    ) -> Option<T> {
        let misfits = match format.read(node, self.strictness) {
            Ok(read) => return Some(read),
            Err(misfits) => misfits,
        };
        for Misfit {
            path,
            problem,
            cause,
        } in misfits
        {
            let code = match cause {
                Cause::Absent => Code::MissingRequiredInput,
                Cause::Version => Code::UnknownSchemaVersion,
                Cause::Wrong => Code::SchemaInvalid,
            };
            self.add(code, format_args!("{at}{path}"), problem);
        }
        None
    }

    /// Adds a finding about the value at the pointer `path`.
    pub(super) fn add(&mut self, code: Code, path: impl Display, problem: impl Display) {
        if self.list.len() == MOST_LISTED {
            self.more += 1;
            return;
        }
        self.list.push(Finding {
            code,
            path: path.to_string(),
            problem: problem.to_string(),
        });
    }

    /// Adds a finding for each secret in a text that is passed on.
    pub(super) fn look_for_secrets(&mut self, path: impl Display, text: &str) {
        if let Some(secret) = secret::find(text).first() {
            let problem = format!("holds {}", secret.kind.words());
            self.add(Code::UntrustedContextBlock, path, problem);
        }
    }

    /// Adds a finding for each secret in a text below `node`, which is at the pointer `at`.
    pub(super) fn look_for_secrets_below(&mut self, at: &dyn Display, node: &Node<'_>) {
        match node {
            Node::Text(text) => self.look_for_secrets(at, text),
            Node::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look_for_secrets_below(&format_args!("{at}/{index}"), item);
                }
            }
            Node::Object(fields) => {
                for (key, field) in fields.iter() {
                    let key = if key.contains(['~', '/']) {
                        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
                    } else {
                        Cow::Borrowed(key)
                    };
                    self.look_for_secrets_below(&format_args!("{at}/{key}"), field);
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
        details.insert("findings".to_owned(), json!(self.list));
        Verdict::deny(code, reason).with(Value::Object(details))
    }
}
