//! Questions of a running agent: what is asked, and which answer counts.
//!
//! # Invariants
//!
//! - The digest of a question covers its run, its kind and its content. An answer names that digest
//!   and is valid for no other question.
//! - An answer says how it was given. One that is weaker than the policy of the base asks for does
//!   not count, and a signature that does not verify is no signature.
//! - What cannot be asked counts as no.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval::Person;
use crate::bundle::key::{NamedKey, SigningKey};
use crate::code::Code;
use crate::json;
use crate::object::{hex, sha256};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl AgentQuestion {
    /// The question of the run `run_id`, which counts as no at `until` in milliseconds.
    pub fn new(run_id: &str, kind: QuestionKind, content: &str, until: i64) -> Self {
        Self {
            kind,
            content: content.to_owned(),
            digest: digest(run_id, kind, content),
            until: time::render(until),
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
    /// With the signature of a person's key.
    PersonKey,
}

impl AnswerMeans {
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowList => "allow-list",
            Self::Terminal => "terminal",
            Self::ServeSession => "serve-session",
            Self::PersonKey => "person-key",
        }
    }
}

impl fmt::Display for AnswerMeans {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Which answers a policy asks for: `[approve] needs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeededAnswer {
    /// Any answer of this user.
    #[default]
    Terminal,
    /// One that a person's key signed.
    PersonKey,
}

/// How the questions of a run are asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskRules {
    /// How long a question waits, in seconds; then it counts as no.
    pub wait_sec: u64,
    pub needs: NeededAnswer,
    /// The public keys of the persons whose signatures count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl Default for AskRules {
    fn default() -> Self {
        Self {
            wait_sec: WAIT_SEC,
            needs: NeededAnswer::default(),
            keys: Vec::new(),
        }
    }
}

impl AskRules {
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

    /// Why `answer` does not count under these rules.
    pub fn refuses(&self, answer: &QuestionAnswer) -> Option<AnswerRefused> {
        match (answer.how, self.needs) {
            // Whether the list has the command is the question of the run.
            (AnswerMeans::AllowList, _)
            | (AnswerMeans::Terminal | AnswerMeans::ServeSession, NeededAnswer::Terminal) => None,
            (how @ (AnswerMeans::Terminal | AnswerMeans::ServeSession), NeededAnswer::PersonKey) => {
                Some(AnswerRefused::TooWeak(how))
            }
            (AnswerMeans::PersonKey, _) => {
                (!answer.is_signed(&self.keys)).then_some(AnswerRefused::NotSigned)
            }
        }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<PersonSignature>,
}

/// The signature of a person over an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonSignature {
    /// The id of the key.
    pub key: String,
    /// 64 bytes in hexadecimal.
    pub value: String,
}

impl QuestionAnswer {
    /// Until when it is valid, in milliseconds; a time that cannot be parsed has passed.
    pub fn until_ms(&self) -> i64 {
        time::parse(&self.until).unwrap_or(i64::MIN)
    }

    /// The same answer, signed with the key of a person.
    #[must_use]
    pub fn signed(mut self, key: &SigningKey) -> Self {
        self.how = AnswerMeans::PersonKey;
        let value = hex(&key.sign(&self.signed_text()));
        let key = key.public().id();
        self.signature = Some(PersonSignature { key, value });
        self
    }

    fn signed_text(&self) -> Vec<u8> {
        let value = json!({ "what": "provost answer v1", "digest": self.digest,
                            "allow": self.allow, "until": self.until, "reason": self.reason });
        json::canonical(&value).into_bytes()
    }

    /// Whether one of `keys` signed it.
    fn is_signed(&self, keys: &[String]) -> bool {
        let Some(signature) = &self.signature else {
            return false;
        };
        let Some(value) = bytes_of(&signature.value) else {
            return false;
        };
        let keys = keys.iter().filter_map(|line| NamedKey::parse(line).ok());
        keys.filter(|known| known.key.id() == signature.key)
            .any(|known| known.key.verifies(&self.signed_text(), &value))
    }
}

/// 64 bytes from hexadecimal digits.
fn bytes_of(text: &str) -> Option<[u8; 64]> {
    let mut bytes = [0; 64];
    if text.len() != 128 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
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
    #[error("the answer was given by `{0}`, and `[approve] needs` asks for a person's key")]
    TooWeak(AnswerMeans),
    #[error("no key that counts for this run signed the answer")]
    NotSigned,
    #[error("the allow-list does not have the command")]
    NotListed,
    #[error("the time until which the answer is valid cannot be read")]
    NoTime,
}

impl AnswerRefused {
    pub fn code(&self) -> Code {
        match self {
            Self::TooWeak(_) | Self::NotSigned | Self::NotListed => Code::AnswerTooWeak,
            Self::Unknown | Self::Twice(_) | Self::Late | Self::AgentEnded | Self::NoTime => {
                Code::NothingToApprove
            }
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

    fn answer(how: AnswerMeans) -> QuestionAnswer {
        QuestionAnswer {
            digest: digest("run-1", QuestionKind::Host, "example.com:443"),
            allow: true,
            how,
            by: None,
            until: "2030-01-01T00:00:00Z".to_owned(),
            reason: String::new(),
            signature: None,
        }
    }

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

    #[test]
    fn an_answer_of_too_weak_a_kind_does_not_count() {
        let key = SigningKey::from_seed(&[7; 32], "anna").unwrap();
        let other = SigningKey::from_seed(&[8; 32], "otto").unwrap();
        let strict = AskRules {
            needs: NeededAnswer::PersonKey,
            keys: vec![key.named().to_string()],
            ..AskRules::default()
        };
        let weak = |how| Some(AnswerRefused::TooWeak(how));
        for how in [AnswerMeans::Terminal, AnswerMeans::ServeSession] {
            assert_eq!(AskRules::default().refuses(&answer(how)), None, "{how}");
            assert_eq!(strict.refuses(&answer(how)), weak(how));
        }
        let bare = answer(AnswerMeans::PersonKey);
        assert_eq!(strict.refuses(&bare), Some(AnswerRefused::NotSigned));
        let signed = answer(AnswerMeans::Terminal).signed(&key);
        assert_eq!(strict.refuses(&signed), None);
        let by_other = answer(AnswerMeans::Terminal).signed(&other);
        assert_eq!(strict.refuses(&by_other), Some(AnswerRefused::NotSigned));
        let mut changed = signed.clone();
        changed.allow = false;
        assert_eq!(strict.refuses(&changed), Some(AnswerRefused::NotSigned));
        let mut longer = signed;
        longer.until = "2031-01-01T00:00:00Z".to_owned();
        assert_eq!(strict.refuses(&longer), Some(AnswerRefused::NotSigned));
    }
}
