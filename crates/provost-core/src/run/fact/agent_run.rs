//! What one attempt of the agent came to.

use serde::{Deserialize, Serialize};

use super::{AgentClaims, Ending, Stream};
use crate::agent::event::Usage;
use crate::net::model::{Passed, Trouble};
use crate::net::traffic_log::Traffic;

/// One attempt of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRun {
    pub ending: Ending,
    /// How long it took.
    pub wall_ms: u64,
    /// What it printed.
    pub stdout: Stream,
    /// What it complained.
    pub stderr: Stream,
    /// The structured result it left.
    pub result: ResultFile,
    /// Secrets that were taken out of that result.
    #[serde(default, skip_serializing_if = "super::command::none")]
    pub redacted: u64,
    /// What it asked of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Traffic>,
    /// What it told while it worked, if its program is one that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Box<AgentClaims>>,
    /// What passed between it and its model, if the proxy could read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<Passed>>,
}

impl AgentRun {
    /// What it spent: tokens as the proxy counted them, or else by its own word; money by its own
    /// word.
    pub fn spent(&self) -> Option<Usage> {
        let claimed = self.claimed();
        let Some(model) = self.model.as_ref().filter(|model| !model.unread) else {
            return claimed.copied();
        };
        Some(Usage {
            micro_usd: claimed.map_or(0, |claimed| claimed.micro_usd),
            ..model.usage
        })
    }

    /// What it spent by its own word.
    pub fn claimed(&self) -> Option<&Usage> {
        self.told.as_ref().map(|told| &told.sum.usage)
    }

    /// Why its model could not be worked with.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.model.as_ref()?.trouble.as_ref()
    }

    /// Every file that it was heard by.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        let events = self.told.iter().map(|told| &told.events);
        [&self.stdout, &self.stderr].into_iter().chain(events)
    }
}

/// What an agent left as its structured result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultFile {
    /// Nothing.
    Absent,
    /// Something that is no regular, small text file.
    Unusable(String),
    Text(String),
}
