//! `[run]` of `provost.toml`: what `provost run` takes where its user types no flag.
//!
//! # Invariants
//!
//! - A default is held to the rules of the flag that replaces it.
//! - It is for contracts that a person types. A contract from a file gains nothing from it: its
//!   commands and paths are judged as if `[run]` were not there.

use serde::Deserialize;

use super::Flaw;
use crate::contract::document::AcceptMode;
use crate::contract::{LONGEST, MOST_RETRIES};
use crate::duration;
use crate::gate::command::{self, CommandPolicy, Trust};
use crate::scope;

/// The defaults of a repository; what is `None` or empty has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunDefaults {
    /// Paths that an agent may write.
    pub allow: Vec<String>,
    /// Commands that must pass.
    pub accept: Vec<String>,
    pub accept_mode: Option<AcceptMode>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The name of the reviewer.
    pub review: Option<String>,
    /// How many more attempts may fix what was refused.
    pub retries: Option<u32>,
    /// Time limit of the agent, and of each command.
    pub timeout_sec: Option<u64>,
}

/// `[run]` as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenRun {
    allow: Option<Vec<String>>,
    accept: Option<Vec<String>>,
    accept_mode: Option<String>,
    agent: Option<String>,
    review: Option<String>,
    retries: Option<u32>,
    timeout: Option<String>,
}

impl WrittenRun {
    pub(super) fn resolve(self) -> Result<RunDefaults, Flaw> {
        let retries = self.retries;
        if retries.is_some_and(|retries| retries > MOST_RETRIES) {
            return Err(Flaw(format!("run.retries is more than {MOST_RETRIES}")));
        }
        Ok(RunDefaults {
            allow: allow(self.allow)?,
            accept: accept(self.accept)?,
            accept_mode: self.accept_mode.as_deref().map(accept_mode).transpose()?,
            agent: name("run.agent", self.agent)?,
            review: name("run.review", self.review)?,
            retries,
            timeout_sec: self.timeout.as_deref().map(timeout).transpose()?,
        })
    }
}

/// A list that is there and names nothing would be a default that makes no contract.
fn filled(field: &str, list: Option<Vec<String>>) -> Result<Vec<String>, Flaw> {
    match list {
        Some(list) if list.is_empty() => Err(Flaw(format!(
            "{field} is empty; name something or leave it out"
        ))),
        list => Ok(list.unwrap_or_default()),
    }
}

fn allow(list: Option<Vec<String>>) -> Result<Vec<String>, Flaw> {
    let list = filled("run.allow", list)?;
    for entry in &list {
        scope::parse_entry(entry)
            .map_err(|error| Flaw(format!("run.allow: `{}` {error}", entry.escape_debug())))?;
    }
    Ok(list)
}

fn accept(list: Option<Vec<String>>) -> Result<Vec<String>, Flaw> {
    let list = filled("run.accept", list)?;
    if list.is_empty() {
        return Ok(list);
    }
    let policy = CommandPolicy::shipped().map_err(|error| Flaw(error.to_string()))?;
    for command in &list {
        let verdict = command::judge(command, &policy, Trust::TypedByPerson);
        if !verdict.allow {
            let command = command.escape_debug();
            return Err(Flaw(format!(
                "run.accept: `{command}` cannot be used: {}",
                verdict.reason
            )));
        }
    }
    Ok(list)
}

fn accept_mode(word: &str) -> Result<AcceptMode, Flaw> {
    let flaw = |what| {
        Flaw(format!(
            "run.accept_mode: `{}`: {what}",
            word.escape_debug()
        ))
    };
    word.parse().map_err(flaw)
}

/// The name of an agent; whether there is such an agent depends on the machine, too.
pub(super) fn name(field: &str, name: Option<String>) -> Result<Option<String>, Flaw> {
    match name {
        Some(name) if name.trim().is_empty() => Err(Flaw(format!("{field} is empty"))),
        name => Ok(name),
    }
}

fn timeout(text: &str) -> Result<u64, Flaw> {
    let flaw = |what: &str| Flaw(format!("run.timeout: `{}`: {what}", text.escape_debug()));
    let seconds = duration::seconds(text).map_err(|error| flaw(&error))?;
    if seconds > LONGEST.as_secs() {
        return Err(flaw("is more than 7 days"));
    }
    Ok(seconds)
}
