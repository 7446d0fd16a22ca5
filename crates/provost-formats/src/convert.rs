//! Converts between formats for handing out work: task card, assignment, task contract.
//!
//! The three say much of the same in different places; [`table`] lists which. The reader of its
//! format reads the source, and the reader of the target checks the result.
//!
//! # Invariants
//!
//! - A result keeps every rule of its format, checked strictly, or there is none.
//! - What the target has no field for is listed; so is everything in the result that the source did
//!   not say.
//! - What is carried both ways is the same after a conversion there and back.
//! - Text that a format calls data never becomes a command.

mod place;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{self, Purpose, Rules};
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::operator::{self, Kind as Payload, Strictness, Surroundings};
use crate::packet::alone::{self, File};
use crate::schema;
use provost_core::document::Format;
use provost_core::document::yaml;
use table::Kind;

/// A format for handing out work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// The task card of a control packet.
    Card,
    /// The assignment of the operator contracts.
    Assignment,
    /// The task contract.
    Contract,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::Card, Self::Assignment, Self::Contract];

    /// The name of the format in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Card => "a task card",
            Self::Assignment => "an assignment",
            Self::Contract => "a task contract",
        }
    }

    fn schema(self) -> Value {
        let name = match self {
            Self::Card => "packet_task_card",
            Self::Assignment => "operator_assignment",
            Self::Contract => "task_contract",
        };
        schema::find(name)
            .map(provost_core::schema::Format::schema)
            .unwrap_or_default()
    }

    /// The file format of its documents by default.
    pub fn format(self) -> Format {
        match self {
            Self::Card => Format::Yaml,
            Self::Assignment | Self::Contract => Format::Json,
        }
    }

    pub fn render(self, document: &Value) -> String {
        match self {
            Self::Card => yaml::render(document),
            Self::Assignment | Self::Contract => format!("{document:#}\n"),
        }
    }

    /// Judges a document by the rules of its format.
    pub fn check(
        self,
        document: &Value,
        policy: &CommandPolicy,
        strictness: Strictness,
    ) -> Verdict {
        match self {
            Self::Card => {
                let text = self.render(document);
                alone::check(File::TaskCard, text.as_bytes(), strictness)
            }
            Self::Assignment => {
                let surroundings = Surroundings {
                    file_exists: &|_| false,
                };
                let bytes = document.to_string().into_bytes();
                operator::check(Payload::Assignment, &bytes, strictness, surroundings)
            }
            Self::Contract => {
                let purpose = match strictness {
                    Strictness::Literal => Purpose::Format,
                    Strictness::Strict => Purpose::Run,
                };
                let trust = Trust::FromFile;
                let rules = Rules {
                    policy,
                    trust,
                    purpose,
                    additions: AdditionsFrom::Nowhere,
                };
                contract::judge(&check::check(document, &rules))
            }
        }
    }
}

/// A remark about one place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The place, as a JSON pointer.
    pub path: String,
    pub reason: String,
}

/// A document in another format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Converted {
    pub document: Value,
    /// Places of the source that are not in the result.
    pub lost: Vec<Note>,
    /// Places of the result that are not from the source.
    pub given: Vec<Note>,
}

/// Values that a user gives for places of the target, by their names, as in `task.task_id`.
pub type Settings = BTreeMap<String, Vec<String>>;

/// Converts `source`, a document of the format `from`, to the format `to`.
pub fn convert(
    (from, to): (Dialect, Dialect),
    source: &Value,
    settings: &Settings,
    policy: &CommandPolicy,
) -> Result<Converted, Verdict> {
    if from == to {
        let reason = format!("the source is {} already", to.words());
        return Err(Verdict::deny(Code::UsageError, reason));
    }
    let verdict = from.check(source, policy, Strictness::Literal);
    if !verdict.allow {
        return Err(about(
            verdict,
            &format!("the source is not {}", from.words()),
        ));
    }
    let mut work = Work {
        to,
        document: Value::Object(Map::new()),
        lost: Vec::new(),
        given: Vec::new(),
    };
    for (at, value) in table::constants(to) {
        place::write(&mut work.document, at, value);
    }
    work.set(settings)?;
    work.carry(from, source, settings);
    work.fill();
    let verdict = to.check(&work.document, policy, Strictness::Strict);
    if !verdict.allow {
        let words = format!(
            "it does not make {} yet (`--set FIELD=VALUE` gives a field)",
            to.words()
        );
        return Err(about(verdict, &words));
    }
    Ok(Converted {
        document: work.document,
        lost: work.lost,
        given: work.given,
    })
}

/// The same verdict, with its subject in front of the reason.
fn about(mut verdict: Verdict, words: &str) -> Verdict {
    verdict.reason = format!("{words}: {}", verdict.reason);
    verdict
}

/// A document during its conversion.
struct Work {
    to: Dialect,
    document: Value,
    lost: Vec<Note>,
    given: Vec<Note>,
}

impl Work {
    /// Takes what the user gives.
    fn set(&mut self, settings: &Settings) -> Result<(), Verdict> {
        for (name, values) in settings {
            let mut all = table::settable(self.to).iter();
            let Some((at, kind)) = all.find(|(at, _)| table::name(at) == *name) else {
                return Err(unknown(self.to, name));
            };
            let value = match (kind, values.as_slice()) {
                (Kind::List, values) => Some(json!(values)),
                (Kind::Text, [one]) => Some(json!(one)),
                (Kind::Number, [one]) => one.parse::<u64>().ok().map(|number| json!(number)),
                (Kind::Text | Kind::Number, _) => None,
            };
            let Some(value) = value else {
                let reason = format!("`{name}` takes one {}", kind.words());
                return Err(Verdict::deny(Code::UsageError, reason));
            };
            self.put(at, value);
            self.note_given(at, "given by hand");
        }
        Ok(())
    }

    /// Takes what the source says and the user does not give.
    fn carry(&mut self, from: Dialect, source: &Value, settings: &Settings) {
        let mut taken = Vec::new();
        for (at, target) in table::pairs(from, self.to) {
            let Some(value) = place::read(source, at) else {
                continue;
            };
            if settings.contains_key(&table::name(target)) {
                continue;
            }
            taken.push(at);
            self.put(target, value);
        }
        for (pointer, value) in place::others(source, &taken) {
            if table::is_tacit(from, &pointer, &value) {
                continue;
            }
            let reason = self.why_lost(from, &pointer);
            self.lost.push(Note {
                path: pointer,
                reason,
            });
        }
    }

    fn why_lost(&self, from: Dialect, pointer: &str) -> String {
        let pairs = table::pairs(from, self.to);
        let replaced = pairs.iter().find(|(at, _)| place::is_at(pointer, at));
        if let Some((_, target)) = replaced {
            return format!("replaced by what was given for `{}`", table::name(target));
        }
        let looser = match pointer {
            "/x_provost/forbid" | table::FORBIDDEN => "; what it forbids is permitted there",
            table::CRITERIA => "; words of an assignment never become a command",
            _ => "",
        };
        format!("{} has no field for it{looser}", self.to.words())
    }

    /// Adds default values for places that are still missing.
    fn fill(&mut self) {
        for (at, value) in table::defaults(self.to, &self.document) {
            if self.document.pointer(at).is_none() {
                self.put(at, value);
                self.note_given(at, "the usual value; the source does not say");
            }
        }
    }

    fn put(&mut self, at: &str, value: Value) {
        place::write(&mut self.document, at, value);
        let Some((list, _)) = at.split_once("/*") else {
            return;
        };
        let rows = self
            .document
            .pointer_mut(list)
            .and_then(Value::as_array_mut);
        let rows = rows.map_or(&mut [][..], Vec::as_mut_slice);
        for (index, row) in rows.iter_mut().enumerate() {
            for (below, value) in table::beside(at, index + 1) {
                place::write(row, below, value);
                self.given.push(Note {
                    path: format!("{list}/{index}{below}"),
                    reason: "the usual value; the source does not say".to_owned(),
                });
            }
        }
    }

    fn note_given(&mut self, at: &str, reason: &str) {
        let list = at.split_once("/*").map_or(at, |(list, _)| list);
        self.given.push(Note {
            path: list.to_owned(),
            reason: reason.to_owned(),
        });
    }
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Text | Self::List => "value",
            Self::Number => "whole number",
        }
    }
}

/// The refusal of a name that is no settable place.
fn unknown(to: Dialect, name: &str) -> Verdict {
    let names: Vec<String> = table::settable(to)
        .iter()
        .map(|(at, _)| table::name(at))
        .collect();
    let reason = format!(
        "`{name}` is no field of {} that can be given; these are: {}",
        to.words(),
        names.join(", ")
    );
    Verdict::deny(Code::UsageError, reason)
}
