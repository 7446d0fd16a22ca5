//! Questions of a running agent: what is asked, and which answer counts.
//!
//! # Invariants
//!
//! - The digest of a question covers its run, its kind and its content. An answer names that digest
//!   and is valid for no other question.
//! - An answer says how it was given. That of the allow-list counts only for a command it has.
//! - Where the key of a person is needed, a yes counts only with its signature. A no needs none: it
//!   gives nothing.
//! - What cannot be asked counts as no.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval::Person;
use crate::code::Code;
use crate::json;
use crate::object::sha256;
use crate::person_key::{AnswerStatement, PersonSignature, PersonSignatureError};
use crate::time;

/// The longest content of a question, in bytes: a person has to read it.
pub const LONGEST: usize = 8 * 1024;

/// The most questions of one run.
pub const MOST: usize = 500;

/// How long a question waits for its answer unless a policy says otherwise, in seconds.
const WAIT_SEC: u64 = 600;

/// How long a connection of the agent waits for an answer, in seconds; programs give up soon.
const HOLD_SEC: u64 = 10;

/// The longest wait that a policy may set, in seconds.
pub const LONGEST_WAIT_SEC: u64 = 24 * 3600;

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// The agent wants to run a command.
    Command,
    /// The agent wants to reach a place of the network, `host:port`.
    Host,
    /// The agent wants to write a path.
    Path,
    /// The agent wants something else that its contract does not give.
    Widening,
}

impl QuestionKind {
    /// What a yes permits, as words before the content.
    pub fn words(self) -> &'static str {
        match self {
            Self::Command => "run",
            Self::Host => "reach",
            Self::Path => "write",
            Self::Widening => "permit",
        }
    }
}

/// A question of a running agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentQuestion {
    pub kind: QuestionKind,
    pub content: String,
    /// SHA-256 over run, kind and content.
    pub digest: String,
    /// When it counts as no, as RFC 3339.
    pub until: String,
    /// Why the agent asks, in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What a yes needs.
    #[serde(default, skip_serializing_if = "Needs::is_default")]
    pub needs: Needs,
}

impl AgentQuestion {
    /// The question of the run `run_id`, which counts as no at `until` in milliseconds.
    pub fn new(run_id: &str, kind: QuestionKind, content: &str, until: i64) -> Self {
        Self {
            kind,
            content: content.to_owned(),
            digest: digest(run_id, kind, content),
            until: time::render(until),
            reason: String::new(),
            needs: Needs::default(),
        }
    }

    /// Whether it counts as no at `now`, in milliseconds; so does a time that cannot be parsed.
    pub fn is_over(&self, now: i64) -> bool {
        time::parse(&self.until).map_or(true, |until| until <= now)
    }
}

/// The digest that an answer names.
pub fn digest(run_id: &str, kind: QuestionKind, content: &str) -> String {
    let value = json!({ "run_id": run_id, "kind": kind, "content": content });
    sha256(json::canonical(&value).as_bytes())
}

/// How an answer was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerMeans {
    /// The allow-list of the policy answers yes to a command; no person did.
    AllowList,
    /// By a command of this user.
    #[default]
    Terminal,
    /// In the control room.
    ServeSession,
    /// By a program with a token of the control room.
    Token,
    /// With the signature of a person key.
    PersonKey,
    /// By the answer to the question of the case that the run is a part of.
    Case,
}

impl AnswerMeans {
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowList => "allow-list",
            Self::Terminal => "terminal",
            Self::ServeSession => "serve-session",
            Self::Token => "token",
            Self::PersonKey => "person-key",
            Self::Case => "case",
        }
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for AnswerMeans {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What a yes needs, the strictest last.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// A command of this user, or the control room.
    #[default]
    Terminal,
    /// The signature of a person key.
    PersonKey,
}

impl Needs {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the questions of a run are asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskRules {
    /// How long a question waits, in seconds; then it counts as no.
    pub wait_sec: u64,
    /// What a yes needs, to a question before the start too.
    #[serde(skip_serializing_if = "Needs::is_default")]
    pub needs: Needs,
    /// The public person keys whose signatures count, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub person_keys: Vec<String>,
}

impl Default for AskRules {
    fn default() -> Self {
        Self {
            wait_sec: WAIT_SEC,
            needs: Needs::default(),
            person_keys: Vec::new(),
        }
    }
}

impl AskRules {
    /// Whether an answer that was given like this counts where a yes needs `needs`.
    pub fn admit(
        &self,
        needs: Needs,
        (how, signature): (AnswerMeans, Option<&PersonSignature>),
        statement: &AnswerStatement<'_>,
    ) -> Result<(), AnswerRefused> {
        match (how, signature) {
            (AnswerMeans::PersonKey, Some(signature)) => {
                Ok(signature.verify(statement, &self.person_keys)?)
            }
            (AnswerMeans::PersonKey, None) => Err(AnswerRefused::Unsigned),
            (_, Some(_)) => Err(AnswerRefused::SignedOtherwise),
            (AnswerMeans::Case, None) => Err(AnswerRefused::TooWeak(how)),
            (_, None) if needs == Needs::PersonKey && statement.allow => {
                Err(AnswerRefused::TooWeak(how))
            }
            (_, None) => Ok(()),
        }
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// How long a question waits, in milliseconds.
    pub fn wait_ms(&self) -> i64 {
        i64::try_from(self.wait_sec.min(LONGEST_WAIT_SEC) * 1000).unwrap_or(i64::MAX)
    }

    /// How long a connection waits for the answer about its place.
    pub fn hold(&self) -> Duration {
        Duration::from_secs(self.wait_sec.min(HOLD_SEC))
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionAnswer {
    /// The digest of the question.
    pub digest: String,
    pub allow: bool,
    pub how: AnswerMeans,
    /// Who gave it; absent if the allow-list did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Person>,
    /// Until when the same question has the same answer, as RFC 3339.
    pub until: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The signature of a person key, if it was given by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<PersonSignature>,
}

impl QuestionAnswer {
    /// What a person signs.
    pub fn statement(&self) -> AnswerStatement<'_> {
        AnswerStatement {
            digest: &self.digest,
            allow: self.allow,
            until: &self.until,
            reason: &self.reason,
        }
    }

    /// Until when it is valid, in milliseconds; a time that cannot be parsed has passed.
    pub fn until_ms(&self) -> i64 {
        time::parse(&self.until).unwrap_or(i64::MIN)
    }
}

/// Why an answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefused {
    #[error("the run asks no question with that digest")]
    Unknown,
    #[error("the question is answered already: {0}")]
    Twice(&'static str),
    #[error("the question waited too long and counts as no; the agent may ask it again")]
    Late,
    #[error("the agent that asked has ended")]
    AgentEnded,
    #[error("the allow-list does not have the command")]
    NotListed,
    #[error("the user's files are granted with a reason only")]
    NoReason,
    #[error("the time until which the answer is valid cannot be read")]
    NoTime,
    #[error("a yes to this question needs the key of a person, and this one is of the kind `{0}`")]
    TooWeak(AnswerMeans),
    #[error("the answer says that a person key gave it, and carries no signature")]
    Unsigned,
    #[error("the answer carries a signature, and says that it was given in another way")]
    SignedOtherwise,
    #[error("the signature does not count: {0}")]
    Signature(#[from] PersonSignatureError),
}

impl AnswerRefused {
    pub fn code(&self) -> Code {
        match self {
            Self::Unknown
            | Self::Twice(_)
            | Self::Late
            | Self::AgentEnded
            | Self::NotListed
            | Self::NoTime => Code::NothingToApprove,
            Self::NoReason => Code::UsageError,
            Self::TooWeak(_) => Code::PersonKeyNeeded,
            Self::Unsigned | Self::SignedOtherwise | Self::Signature(_) => Code::PersonKeyRefused,
        }
    }

    /// The command that helps.
    pub fn hint(&self, run_id: &str) -> String {
        match self.code() {
            Code::PersonKeyNeeded => {
                format!("provost approve {run_id} in a terminal signs with your person key")
            }
            Code::UsageError => "add --reason WHY".to_owned(),
            Code::PersonKeyRefused => "provost key lists your person key".to_owned(),
            _ => format!("provost log {run_id} says what was asked and answered"),
        }
    }
}

/// Whether what was asked may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// No answer yet.
    Open,
    /// It may, until this time in milliseconds since 1970.
    Yes { until: i64 },
    /// It may not, for this reason.
    No(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_bound_to_run_kind_and_content() {
        let one = digest("run-1", QuestionKind::Command, "make");
        for (run, kind, content) in [
            ("run-2", QuestionKind::Command, "make"),
            ("run-1", QuestionKind::Path, "make"),
            ("run-1", QuestionKind::Command, "make "),
        ] {
            assert_ne!(digest(run, kind, content), one, "{run} {kind:?} {content}");
        }
    }
}
