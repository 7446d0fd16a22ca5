//! Who wanted a run to end.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval::Person;
use crate::code::Code;
use crate::verdict::Verdict;

/// The wish that a run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// Whose wish it is; nobody knows who sent a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Person>,
    /// When, as RFC 3339.
    pub at: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Cancel {
    /// The answer of a run that was cancelled so.
    pub fn verdict(&self) -> Verdict {
        let who = match &self.by {
            Some(person) => person.to_string(),
            None => "a signal".to_owned(),
        };
        let words = format!("the run was cancelled by {who} at {}", self.at);
        let words = match self.reason.as_str() {
            "" => words,
            reason => format!("{words}: {reason}"),
        };
        Verdict::deny(Code::Cancelled, words)
            .with(json!({ "by": self.by, "at": self.at, "reason": self.reason }))
    }
}
