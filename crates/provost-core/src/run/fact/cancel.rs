//! The request to cancel a run.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval::Person;
use crate::code::Code;
use crate::verdict::Verdict;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The requester; absent for a signal, whose sender is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Person>,
    /// As RFC 3339.
    pub at: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Cancel {
    /// The verdict of a run that was cancelled this way.
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
