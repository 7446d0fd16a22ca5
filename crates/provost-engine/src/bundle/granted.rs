//! What persons gave an agent beyond its contract: paths and permissions while it worked, and the
//! user's own files.

use provost_core::person_key::PersonSignature;
use provost_core::question::AnswerMeans;
use provost_core::run::State;
use serde::{Deserialize, Serialize};

/// One thing that a person gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonGrant {
    /// What the agent was given, as text.
    pub what: String,
    pub how: AnswerMeans,
    /// The fingerprint of the person key that signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why the agent asked, or why it was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Until when, if it ends before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl PersonGrant {
    /// Everything that persons gave the agents of a run.
    pub fn all(state: &State) -> Vec<Self> {
        let full = state.approval.as_ref().filter(|_| state.has_full_access());
        let full = full.map(|approval| Self {
            what: "DANGER: all files of the user and any place of the network".to_owned(),
            how: approval.how,
            key: approval
                .signature
                .as_ref()
                .map(PersonSignature::fingerprint),
            by: Some(approval.by.to_string()),
            reason: approval.reason.clone(),
            until: Some(approval.until.clone()),
        });
        let widened = state.granted_widenings().map(|granted| Self {
            what: format!("{} `{}`", granted.kind.words(), granted.content),
            how: granted.answer.how,
            key: granted
                .answer
                .signature
                .as_ref()
                .map(PersonSignature::fingerprint),
            by: granted.answer.by.as_ref().map(ToString::to_string),
            reason: granted.reason.to_owned(),
            until: None,
        });
        full.into_iter().chain(widened).collect()
    }

    /// The grant in one line.
    pub fn words(&self) -> String {
        let mut text = self.what.clone();
        if let Some(until) = &self.until {
            text += &format!(", until {until}");
        }
        text += &format!(" ({}", self.how);
        for word in self.key.iter().chain(&self.by) {
            text += &format!(", {word}");
        }
        text += ")";
        if !self.reason.is_empty() {
            text += &format!(": {}", self.reason);
        }
        text
    }
}
