//! The result of one attempt of the agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AgentClaims, Ending, Stream};
use crate::agent::event::Usage;
use crate::net::model_traffic::{ModelTraffic, ModelTrouble};
use crate::net::traffic::Traffic;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRun {
    pub ending: Ending,
    /// Duration, in milliseconds.
    pub wall_ms: u64,
    pub stdout: Stream,
    pub stderr: Stream,
    pub result: ResultFile,
    /// How many secrets were removed from that result.
    #[serde(default, skip_serializing_if = "super::command::none")]
    pub redacted: u64,
    /// Its network requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Traffic>,
    /// How often it tried to start each program that may not run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// What it reported while it worked, if it is a known program.
    #[serde(rename = "told", default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Box<AgentClaims>>,
    /// Its traffic with its model, if the proxy could read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<ModelTraffic>>,
}

impl AgentRun {
    /// What it spent: tokens and money as the proxy counted them, or else as it claims.
    pub fn spent(&self) -> Option<Usage> {
        let claimed = self.claimed();
        let Some(model) = self.model.as_ref().filter(|model| !model.unread) else {
            return claimed.copied();
        };
        Some(Usage {
            micro_usd: model.price(claimed.map_or(0, |claimed| claimed.micro_usd)),
            ..model.usage
        })
    }

    /// What it claims to have spent.
    pub fn claimed(&self) -> Option<&Usage> {
        self.claims.as_ref().map(|claims| &claims.sum.usage)
    }

    /// How often its tools were seen used with each forbidden form of command.
    pub fn shapes(&self) -> Option<&BTreeMap<String, u64>> {
        let claims = self.claims.as_ref()?;
        Some(&claims.sum.shapes)
    }

    /// What it used and may not use, with how often: programs and forms of commands.
    pub fn forbidden(&self) -> BTreeMap<String, u64> {
        let shapes = self.shapes().into_iter().flatten();
        let all = self.refused.iter().chain(shapes);
        all.map(|(action, count)| (action.clone(), *count))
            .collect()
    }

    /// Why its model did not work.
    pub fn trouble(&self) -> Option<&ModelTrouble> {
        self.model.as_ref()?.trouble.as_ref()
    }

    /// All files with its output.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        let events = self.claims.iter().map(|claims| &claims.events);
        let rows = self.model.iter().filter_map(|model| model.rows.as_ref());
        let streams = [&self.stdout, &self.stderr].into_iter();
        streams.chain(events).chain(rows)
    }
}

/// The structured result of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultFile {
    Absent,
    /// Not a small regular text file.
    Unusable(String),
    Text(String),
}
