//! The model traffic of one agent, as the proxy counted it.

use serde::{Deserialize, Serialize};

use crate::agent::event::Usage;
use crate::code::Code;
use crate::run::fact::Stream;

/// The traffic between an agent and its model, as the proxy saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTraffic {
    /// Tokens of all programs in the sandbox together.
    pub usage: Usage,
    /// How many requests made the model work.
    pub requests: u64,
    /// How many of them ended without a count: they count for all that was reserved where the agent
    /// is limited, and else by their bytes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub estimated: u64,
    /// How many complete replies had no count, so that all that was left counts for them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub uncounted: u64,
    /// How many more were refused because the budget was used up.
    #[serde(default, skip_serializing_if = "is_none")]
    pub refused: u64,
    /// How many requests went to models whose prices are not known.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unpriced: u64,
    /// Tokens that the provider reported beyond what was reserved.
    #[serde(default, skip_serializing_if = "is_none")]
    pub overshoot: u64,
    /// Whether it was encrypted, so that nothing could be counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// Why the model stopped working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ModelTrouble>,
    /// The file of the bundle with a row for each reservation, settlement and refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Stream>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl ModelTraffic {
    /// The price by the proxy's count, or what the program claims if a model has no known price.
    pub fn price(&self, claimed: u64) -> u64 {
        if self.is_priced() {
            self.usage.micro_usd
        } else {
            claimed
        }
    }

    /// Whether the proxy knew the prices of all that it counted.
    pub fn is_priced(&self) -> bool {
        self.usage.micro_usd > 0 && self.unpriced == 0
    }

    /// The part of a sentence about the spent tokens that names what could not be counted.
    pub fn explain(&self) -> &'static str {
        match self.uncounted {
            0 => "",
            _ => " (a reply had no count, so all that was left counts for it)",
        }
    }
}

/// Why a model does not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTrouble {
    pub code: Code,
    pub reason: String,
}
