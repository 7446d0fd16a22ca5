//! What a search found, and how far each claim is supported. Written only when a search happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{ArtifactRef, Sha256, Time, eight_or_more, one_or_more, share};
use crate::json::closed;

closed! {
    /// `evidence_bundle.v1`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct EvidenceBundle {
        /// Names the search.
        #[serde(deserialize_with = "eight_or_more")]
        #[schemars(length(min = 8))]
        pub bundle_id: String,
        /// When it was made.
        pub created_at: Time,
        /// Who asked.
        pub requested_by: Requester,
        /// What was asked.
        pub query: Query,
        /// What was found; never empty.
        #[serde(deserialize_with = "one_or_more")]
        #[schemars(length(min = 1))]
        pub sources: Vec<Source>,
        /// What is claimed from it.
        pub claims: Vec<Claim>,
        /// What was not looked at.
        pub limitations: Vec<String>,
        /// Where sources agree.
        pub consensus?: Consensus,
        /// What was kept.
        pub artifacts?: Vec<ArtifactRef>,
    }
}

/// Who asked for a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requester {
    /// In which role.
    pub role: RequesterRole,
    /// Which one.
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
    /// What was asked.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Query {
        /// As it was asked.
        pub raw_question: String,
        /// As it was searched for.
        pub refined_prompt: String,
        /// How old a source may be.
        pub freshness_requirement_days?: u32,
    }
}

closed! {
    /// Something that was found.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Source {
        /// Its name in this bundle.
        pub source_id: String,
        /// What it is.
        pub kind: SourceKind,
        /// What it is called.
        pub title: String,
        /// When it was read.
        pub retrieved_at: Time,
        /// Where it is.
        pub url?: String,
        /// Who answers for it.
        pub publisher?: String,
        /// The digest of what was read.
        pub content_sha256?: Sha256,
        /// What a reader should know besides.
        pub notes?: String,
    }
}

/// What a source is.
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
    /// Something that is claimed from the sources.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Claim {
        /// Its name in this bundle.
        pub claim_id: String,
        /// What is claimed.
        pub text: String,
        /// How far it was checked.
        pub status: ClaimStatus,
        /// From 0 to 1.
        #[serde(deserialize_with = "share")]
        #[schemars(range(min = 0, max = 1))]
        pub confidence: f64,
        /// The sources for it.
        pub supporting_source_ids: Vec<String>,
        /// The sources against it.
        pub contradicting_source_ids?: Vec<String>,
        /// How it was checked.
        pub verification_notes?: String,
        /// What hangs on it.
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

/// What hangs on a claim.
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
        /// What somebody should look at.
        pub needs_verification?: Vec<String>,
    }
}
