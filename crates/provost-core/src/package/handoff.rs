//! The context that a parent passes to a child. All of it is hashed.

use serde::{Deserialize, Serialize};

use super::{Id, Refusal, Set};
use crate::bundle::report::Sha256;
use crate::code::Code;
use crate::object;

/// What is passed on.
///
/// `None` has braces because serde accepts unknown members in a unit variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Handoff {
    None {},
    SummaryOnly {
        summary: Content,
        max_tokens: u32,
        /// The rule it was made under.
        policy: Id,
    },
    /// Selected documents.
    SelectedRefs {
        refs: Set<Content>,
        /// The rule they were selected under.
        policy: Id,
    },
    /// The whole conversation so far.
    FullHistory {
        /// The record of the review before it was passed on.
        audit: Content,
        /// The rule it is passed on under.
        policy: Id,
    },
}

/// A document by its name and its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    pub name: Id,
    pub sha256: Sha256,
}

impl Default for Handoff {
    fn default() -> Self {
        Self::None {}
    }
}

impl Handoff {
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

    /// The name of the variant in payloads.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None {} => "none",
            Self::SummaryOnly { .. } => "summary_only",
            Self::SelectedRefs { .. } => "selected_refs",
            Self::FullHistory { .. } => "full_history",
        }
    }

    /// The digest of everything that is passed on.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        object::sha256(crate::json::canonical(&value).as_bytes())
    }
}
