//! What a child is told of its parent's context. All of it is hashed.

use serde::{Deserialize, Serialize};

use super::{Id, Refusal, Set};
use crate::bundle::report::Sha256;
use crate::code::Code;
use crate::object;

/// What is handed over.
///
/// `None` has braces because a variant without them takes members nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Handoff {
    /// Nothing.
    None {},
    SummaryOnly {
        summary: Content,
        /// How long it may be.
        max_tokens: u32,
        /// The rule it was made under.
        policy: Id,
    },
    /// Some documents.
    SelectedRefs {
        /// The documents.
        refs: Set<Content>,
        /// The rule they were chosen under.
        policy: Id,
    },
    /// Everything that was said so far.
    FullHistory {
        /// The record of who looked at it before.
        audit: Content,
        /// The rule it is handed over under.
        policy: Id,
    },
}

/// A document by its name and its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub name: Id,
    /// The digest of its bytes.
    pub sha256: Sha256,
}

impl Default for Handoff {
    fn default() -> Self {
        Self::None {}
    }
}

impl Handoff {
    /// Whether this may be handed over.
    pub fn validate(&self) -> Result<(), Refusal> {
        match self {
            Self::SummaryOnly { max_tokens: 0, .. } => Err(Refusal::rule(
                Code::HandoffSummaryZeroTokens,
                "a summary with a budget of no tokens",
            )),
            Self::SelectedRefs { refs, .. } if refs.is_empty() => Err(Refusal::rule(
                Code::HandoffSelectedRefsEmpty,
                "selected references without a reference",
            )),
            Self::None {}
            | Self::SummaryOnly { .. }
            | Self::SelectedRefs { .. }
            | Self::FullHistory { .. } => Ok(()),
        }
    }

    /// The name of the variant on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None {} => "none",
            Self::SummaryOnly { .. } => "summary_only",
            Self::SelectedRefs { .. } => "selected_refs",
            Self::FullHistory { .. } => "full_history",
        }
    }

    /// The digest of everything that is handed over.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        object::sha256(crate::json::canonical(&value).as_bytes())
    }
}
