//! The results of a search, and how far each claim is supported. Written only if a search happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Sha256, Time, eight_or_more, one_or_more, share};
use crate::closed::closed;

closed! {
    /// `evidence_bundle.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct EvidenceBundle {
        /// The id of the search.
        #[serde(deserialize_with = "eight_or_more")]
        #[schemars(length(min = 8))]
        pub bundle_id: String,
        /// When it was made.
        pub created_at: Time,
        /// The requester.
        pub requested_by: Requester,
        /// The question.
        pub query: Query,
        /// What was found; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub sources: Vec<Source>,
        /// The claims that were drawn from the sources.
        pub claims: Vec<Claim>,
        /// What was not examined.
        pub limitations: Vec<String>,
        /// Where sources agree.
        pub consensus?: Consensus,
        /// Files that were kept.
        pub artifacts?: Vec<ArtifactRef>,
    }
}

/// Who asked for a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requester {
    /// The role of the requester.
    pub role: RequesterRole,
    /// The id of the requester.
    pub agent_id: String,
}

/// Who may ask for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RequesterRole {
    Pm,
    TechLead,
    Searcher,
    Orchestrator,
}

closed! {
    /// The question of a search.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Query {
        /// The question as it was asked.
        pub raw_question: String,
        /// The question as it was searched for.
        pub refined_prompt: String,
        /// The maximum age of a source, in days.
        pub freshness_requirement_days?: u32,
    }
}

closed! {
    /// A source that was found.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Source {
        /// Its id in this bundle.
        pub source_id: String,
        /// What kind of source it is.
        pub kind: SourceKind,
        /// Its title.
        pub title: String,
        /// When it was read.
        pub retrieved_at: Time,
        /// Its address.
        pub url?: String,
        /// Its publisher.
        pub publisher?: String,
        /// The digest of what was read.
        pub content_sha256?: Sha256,
        /// Further notes.
        pub notes?: String,
    }
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Webpage,
    Pdf,
    Repo,
    Issue,
    Paper,
    ForumThread,
    Video,
    Other,
}

closed! {
    /// A claim that was drawn from the sources.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Claim {
        /// Its id in this bundle.
        pub claim_id: String,
        /// The claim.
        pub text: String,
        /// How far it was checked.
        pub status: ClaimStatus,
        /// From 0 to 1.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        pub confidence: f64,
        /// The ids of sources that support it.
        pub supporting_source_ids: Vec<String>,
        /// The ids of sources that contradict it.
        pub contradicting_source_ids?: Vec<String>,
        /// How it was checked.
        pub verification_notes?: String,
        /// What depends on it.
        pub risk_if_wrong?: Risk,
    }
}

/// How far a claim was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ClaimStatus {
    Unverified,
    Verified,
    Disputed,
    Rejected,
}

/// How much depends on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Risk {
    Low,
    Medium,
    High,
}

closed! {
    /// Where sources agree and where they do not.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Consensus {
        /// Where they agree.
        pub agreements?: Vec<String>,
        /// Where they do not.
        pub disagreements?: Vec<String>,
        /// What still needs to be verified.
        pub needs_verification?: Vec<String>,
    }
}
