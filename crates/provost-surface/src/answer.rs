//! The answer of a command, before it is rendered as text or JSON.

use std::error::Error;

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use provost_engine::ports::PortError;
use provost_host::git::GitError;
use provost_host::ids::NoRandomness;
use provost_host::keys::KeysError;
use provost_host::keys::person::PersonKeyError;
use provost_host::sandbox::SandboxError;
use serde::Serialize;
use serde_json::{Map, Value};

/// The result of a command: an answer, or a failure.
pub type Outcome = Result<Answer, Failure>;

#[derive(Debug)]
pub struct Answer {
    /// The exit status.
    pub exit: Exit,
    /// The facts, for programs.
    pub json: Value,
    /// The same facts, for people.
    pub text: String,
}

/// What a command found, as a type: its fields are the JSON, and it says the same to people.
pub trait Answered: Serialize {
    fn text(&self) -> String;

    fn exit(&self) -> Exit {
        Exit::Yes
    }
}

impl<A: Answered> From<A> for Answer {
    fn from(answered: A) -> Self {
        Self::new(answered.exit(), &answered, answered.text())
    }
}

impl Answer {
    /// The same `facts` for programs and, as `text`, for people.
    pub fn new(exit: Exit, facts: impl Serialize, text: impl Into<String>) -> Self {
        let text = text.into();
        match serde_json::to_value(facts) {
            Ok(json) => Self { exit, json, text },
            // A path that is not UTF-8.
            Err(error) => Self {
                text,
                ..Failure::of(Code::HostFailed, &error).verdict().into()
            },
        }
    }

    /// An answer with exit status 0.
    pub fn data(facts: impl Serialize, text: impl Into<String>) -> Self {
        Self::new(Exit::Yes, facts, text)
    }

    /// The same answer, with the fields of `facts` in its JSON object too.
    #[must_use]
    pub fn with(mut self, facts: impl Serialize) -> Self {
        let more = Self::new(self.exit, facts, "").json;
        if let (Value::Object(json), Value::Object(more)) = (&mut self.json, more) {
            json.extend(more);
        }
        self
    }

    /// An answer that was printed line by line already.
    pub fn silent() -> Self {
        Self::data(Value::Null, "")
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub reason: String,
    /// The causes, nearest first.
    pub causes: Vec<String>,
    /// What to do about it, if that is more than reading the page about the code.
    pub hint: Option<String>,
    more: Box<More>,
}

/// Details that few failures have.
#[derive(Debug, Default)]
struct More {
    /// The name of the record of the refusal, for `provost show`.
    record: Option<String>,
    /// All findings, each with its place, if there are more than the reason.
    findings: Option<Value>,
}

impl Failure {
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            causes: Vec::new(),
            hint: None,
            more: Box::default(),
        }
    }

    /// The failure of an error, with its chain of causes.
    pub fn of(code: Code, error: &dyn Error) -> Self {
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        Self {
            code,
            reason: error.to_string(),
            causes,
            hint: None,
            more: Box::default(),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure as the verdict object that `--json` prints.
    pub fn verdict(&self) -> Verdict {
        let mut reason = self.reason.clone();
        for cause in &self.causes {
            reason = format!("{reason}: {cause}");
        }
        let verdict = Verdict::deny(self.code, reason);
        let details = [
            ("findings", self.more.findings.clone()),
            ("hint", self.hint.clone().map(Value::String)),
            ("record", self.more.record.clone().map(Value::String)),
        ];
        let known = details
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let details: Map<String, Value> = known.collect();
        if details.is_empty() {
            return verdict;
        }
        verdict.with(Value::Object(details))
    }

    /// The same failure for a caller below the command; its causes become a part of the reason.
    pub fn into_port_error(self) -> PortError {
        let error = PortError::new(self.code, self.verdict().reason);
        match self.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// The same failure, with the name of its record.
    #[must_use]
    pub fn recorded(mut self, run_id: &str) -> Self {
        self.more.record = Some(run_id.to_owned());
        self
    }

    pub fn record(&self) -> Option<&str> {
        self.more.record.as_deref()
    }
}

impl From<Verdict> for Failure {
    fn from(verdict: Verdict) -> Self {
        let mut failure = Self::new(verdict.code, verdict.reason);
        failure.more.findings = verdict.details.and_then(|it| it.get("findings").cloned());
        failure
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        let failure = Self::of(error.code, &error);
        match error.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        Self::of(Code::GitFailed, &error)
    }
}

impl From<NoRandomness> for Failure {
    fn from(error: NoRandomness) -> Self {
        Self::of(Code::HostFailed, &error)
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        PortError::from(error).into()
    }
}

impl From<PersonKeyError> for Failure {
    fn from(error: PersonKeyError) -> Self {
        let code = match error {
            PersonKeyError::Keys(error) => return error.into(),
            PersonKeyError::Exists(_) | PersonKeyError::Short | PersonKeyError::Name(_) => {
                Code::UsageError
            }
            PersonKeyError::Missing => Code::PersonKeyNeeded,
            PersonKeyError::File { .. } => Code::KeyUnsafe,
            PersonKeyError::Passphrase
            | PersonKeyError::Encryption
            | PersonKeyError::NoAgent
            | PersonKeyError::Agent { .. }
            | PersonKeyError::AgentLost(_)
            | PersonKeyError::AgentProtocol
            | PersonKeyError::AgentRefused
            | PersonKeyError::NoAgentKey(_)
            | PersonKeyError::ManyAgentKeys(_)
            | PersonKeyError::WrongSignature => Code::PersonKeyRefused,
        };
        let failure = Self::of(code, &error);
        match code {
            Code::PersonKeyRefused => {
                failure.hint("provost key show says which person key you have")
            }
            _ => failure,
        }
    }
}

impl From<KeysError> for Failure {
    fn from(error: KeysError) -> Self {
        let code = match error {
            KeysError::Loose { .. }
            | KeysError::Foreign { .. }
            | KeysError::NotRegular { .. }
            | KeysError::InsideRepository { .. }
            | KeysError::Line { .. } => Code::KeyUnsafe,
            KeysError::Exists { .. } | KeysError::Name(_) => Code::UsageError,
            KeysError::NoPlace | KeysError::Random(_) | KeysError::Io { .. } => Code::HostFailed,
        };
        Self::of(code, &error)
    }
}
