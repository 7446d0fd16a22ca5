//! The policies that a request for a child can name: built in, or `[policies."id"]` of the base.
//!
//! A reference that names neither is refused; nothing is granted by a name alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::verdict::Verdict;
use crate::words;

words! {
    /// What a policy is about.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    pub enum FamilyPolicyKind {
        Context = "context",
        Redaction = "redaction",
        RuntimePackage = "runtime_package",
    }
}

words! {
    /// What of the context of a parent can reach a child.
    #[derive(PartialOrd, Ord, Deserialize, JsonSchema)]
    pub enum HandoffKind {
        SummaryOnly = "summary_only",
        SelectedRefs = "selected_refs",
        FullHistory = "full_history",
    }
}

/// A policy about children, as `provost.toml` writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FamilyPolicy {
    pub kind: FamilyPolicyKind,
    /// The hand-offs that it permits; of the kind `context` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoff: Vec<HandoffKind>,
    /// The longest summary, in tokens; 4 000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether a child may continue when the agent of its parent has ended; of the kind
    /// `runtime_package` only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
}

/// The policies of a base, by their ids.
pub type FamilyPolicies = BTreeMap<String, FamilyPolicy>;

/// A child belongs to its parent and ends with it.
pub const PARENT_OWNED: &str = "policy.child.parent_owned";
/// Known secrets, and texts that have the form of one, are removed.
pub const DEFAULT_REDACTION: &str = "policy.redaction.subagent.default";

const LONGEST_SUMMARY: u32 = 4_000;

impl FamilyPolicy {
    fn plain(kind: FamilyPolicyKind) -> Self {
        Self {
            kind,
            handoff: Vec::new(),
            max_tokens: None,
            detach: false,
        }
    }

    fn handing(kind: HandoffKind) -> Self {
        Self {
            handoff: vec![kind],
            ..Self::plain(FamilyPolicyKind::Context)
        }
    }

    pub fn longest_summary(&self) -> u32 {
        self.max_tokens.unwrap_or(LONGEST_SUMMARY)
    }

    /// The field that a policy of this kind cannot have.
    pub fn flaw(&self) -> Option<&'static str> {
        let is_context = self.kind == FamilyPolicyKind::Context;
        if !is_context && !self.handoff.is_empty() {
            return Some("handoff");
        }
        if !is_context && self.max_tokens.is_some() {
            return Some("max_tokens");
        }
        (self.detach && self.kind != FamilyPolicyKind::RuntimePackage).then_some("detach")
    }
}

/// The policies that every base has.
fn built_in(id: &str) -> Option<FamilyPolicy> {
    Some(match id {
        PARENT_OWNED | "policy.child.safe-defaults" | "policy.detach.deny-by-default" => {
            FamilyPolicy::plain(FamilyPolicyKind::RuntimePackage)
        }
        DEFAULT_REDACTION => FamilyPolicy::plain(FamilyPolicyKind::Redaction),
        "policy.handoff.summary" => FamilyPolicy::handing(HandoffKind::SummaryOnly),
        "policy.handoff.refs" => FamilyPolicy::handing(HandoffKind::SelectedRefs),
        _ => return None,
    })
}

/// The policy `id`, which must be of this kind.
pub fn resolve(
    policies: &FamilyPolicies,
    id: &str,
    kind: FamilyPolicyKind,
) -> Result<FamilyPolicy, Verdict> {
    let refuse = |reason: String| Verdict::deny(Code::PolicyRefUnresolved, reason);
    let shown: String = id.chars().take(128).collect();
    let shown = shown.escape_debug();
    // What is built in cannot be redefined by a base.
    let found = built_in(id).or_else(|| policies.get(id).cloned());
    let found = found.ok_or_else(|| {
        refuse(format!(
            "the policy `{shown}` is neither built in nor in `[policies]` of provost.toml"
        ))
    })?;
    if found.kind == kind {
        return Ok(found);
    }
    let is = found.kind;
    Err(refuse(format!(
        "the policy `{shown}` is of the kind `{is}`, and one of the kind `{kind}` is needed"
    )))
}

/// Why a base cannot have the policy `id`.
pub fn flaw(id: &str, policy: &FamilyPolicy) -> Option<String> {
    if id.is_empty() || id.len() > 128 || id.chars().any(char::is_control) {
        return Some("an id has 1 to 128 bytes and no control character".to_owned());
    }
    if built_in(id).is_some() {
        return Some("is built in and cannot be redefined".to_owned());
    }
    let field = policy.flaw()?;
    Some(format!(
        "a policy of the kind `{}` has no `{field}`",
        policy.kind
    ))
}
