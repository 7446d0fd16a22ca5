//! The report of the reviewer, who reads and never writes.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::shape::{ArtifactRef, Judged, Time};
use crate::closed::closed;

closed! {
    /// `review_report.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct ReviewReport {
        /// The run.
        pub run_id: String,
        /// The reviewer.
        pub reviewer: Reviewer,
        /// When the review ended.
        pub reviewed_at: Time,
        /// The verdict of the reviewer; `BLOCKED` if there was no review.
        pub verdict: ReviewVerdict,
        /// The verdict as text.
        pub summary: String,
        /// Whether the change stays in its scope.
        pub scope_check: ScopeCheck,
        /// The files that document the review.
        pub evidence: Vec<ArtifactRef>,
        /// The task.
        pub task_id?: String,
        /// Which attempt was reviewed.
        pub attempt?: u32,
        /// Whether the reviewer changed anything; never true.
        #[serde(
            default,
            deserialize_with = "never",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(extend("const" = false))]
        pub produced_diff: Option<bool>,
        /// Further notes.
        pub notes?: String,
        /// Provost's additions.
        pub x_provost?: Judged,
    }
}

closed! {
    /// A reviewer.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Reviewer {
        /// Its role.
        pub role: ReviewerRole,
        /// Its id.
        pub agent_id: String,
        /// The id of its conversation.
        pub codex_thread_id?: String,
    }
}

/// The one role that reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReviewerRole {
    Reviewer,
}

/// The verdict of a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReviewVerdict {
    Pass,
    Fail,
    Blocked,
}

/// Whether a change stays in its scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeCheck {
    /// Whether it does.
    pub passed: bool,
    /// Where it does not.
    pub violations: Vec<String>,
}

fn never<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<bool>, D::Error> {
    if bool::deserialize(reader)? {
        return Err(D::Error::custom("is true: the reviewer changed the tree"));
    }
    Ok(Some(false))
}
