//! What the stream of an attempt sums up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::Usage;

/// An error of a program about its model, which it retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The HTTP status of the model's reply, if any.
    pub status: Option<u16>,
    /// The program's message.
    pub words: String,
    /// How often it was reported since the agent last made progress.
    pub times: u32,
}

/// Totals of an attempt's stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub events: u64,
    /// How many events show progress.
    pub progress: u64,
    /// Lines that are not events: not JSON, or too long.
    pub unread: u64,
    /// Usage as the agent reports it.
    pub usage: Usage,
    /// How often a tool was used for each forbidden action.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forbidden: BTreeMap<String, u64>,
    /// How often a tool was used with each forbidden form of command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shapes: BTreeMap<String, u64>,
    /// The program's name for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// How the agent says that it ended; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// How an agent says that it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The agent finished.
    Done,
    /// It gave up, with this message.
    GaveUp(String),
    /// It violates its protocol, in this way.
    Broken(String),
}
