//! The facts about build caches that acceptance commands start with.

use serde::{Deserialize, Serialize};

use super::CommandRun;
use crate::object::Oid;
use crate::path::RawPath;
use crate::prepare::Output;
use crate::words;

words! {
    #[derive(Deserialize)]
    pub enum CacheStart {
        /// Nothing was built before.
        Cold = "cold",
        /// On build caches of a trusted commit.
        Warm = "warm",
    }
}

/// What the policy at the base says about build caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRules {
    /// More directories with caches that check their own inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<Output>,
    /// How the commands start on a candidate, where a cache may be used.
    pub candidate: CacheStart,
    /// How they start when a run lands.
    pub land: CacheStart,
}

impl Default for CacheRules {
    fn default() -> Self {
        Self {
            acceptance: Vec::new(),
            candidate: CacheStart::Warm,
            land: CacheStart::Cold,
        }
    }
}

impl CacheRules {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a round of the acceptance commands started, in a project with build caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheUse {
    pub start: CacheStart,
    /// Why it started so, as text.
    pub reason: String,
    /// The caches it started with; absent after a cold start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<CacheLayer>,
    /// The caches that it left for later rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<CacheLayer>,
    /// The warm round before it, which would have been refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<WarmRound>,
}

/// Build caches of a trusted commit, which no later round writes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLayer {
    /// The commit and its tree that were tested when they were kept.
    pub commit: Oid,
    pub tree: Oid,
    /// The hash of what they were made by: tree, sandbox, commands and toolchain.
    pub key: String,
    /// SHA-256 of the manifest, which names the digest of their content.
    pub sha256: String,
    pub bytes: u64,
}

/// A warm round that a cold one replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmRound {
    pub layer: CacheLayer,
    pub commands: Vec<CommandRun>,
    pub altered: Vec<RawPath>,
}
