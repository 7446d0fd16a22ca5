//! Why a command of the fleet ends without its result.

use std::fmt;

use provost_core::code::Code;
use provost_core::verdict::Verdict;

/// A refusal or a failure, with its code and the command that helps.
#[derive(Debug, Clone)]
pub struct FleetFailure {
    pub code: Code,
    pub reason: String,
    pub hint: Option<String>,
}

pub type FleetResult<T> = Result<T, FleetFailure>;

impl FleetFailure {
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            hint: None,
        }
    }

    /// The failure with the causes of `error`.
    pub fn of(code: Code, what: &str, error: &dyn std::error::Error) -> Self {
        let mut reason = format!("{what}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            reason += &format!(": {error}");
            cause = error.source();
        }
        Self::new(code, reason)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn verdict(&self) -> Verdict {
        let verdict = Verdict::deny(self.code, self.reason.clone());
        match &self.hint {
            Some(hint) => verdict.with_hint(hint),
            None => verdict,
        }
    }
}

impl fmt::Display for FleetFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for FleetFailure {}

/// A failure of the operating system while doing `what`.
pub fn host(what: &str) -> impl Fn(std::io::Error) -> FleetFailure + '_ {
    move |error| FleetFailure::of(Code::HostFailed, what, &error)
}
