//! The context that a parent asks to hand over, what is handed over, and the record of it.
//!
//! # Invariants
//!
//! - Nothing is handed over but what a resolved policy permits.
//! - Every document is in the child's package by the digest of exactly the text that it gets, after
//!   secrets were removed.
//! - A whole history is handed over only with the record of what was taken from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{self, FamilyPolicies, FamilyPolicyKind, HandoffKind};
use crate::bundle::report::Sha256;
use crate::code::Code;
use crate::object::sha256;
use crate::package::{Content, Handoff, Id};
use crate::path::{RepoPath, is_segment};
use crate::verdict::Verdict;

/// The most bytes that are handed over to one child.
pub const MOST_HANDED: usize = 128 << 10;

/// The most references of one hand-off.
const MOST_REFS: usize = 32;

/// Bytes of text that count as one token, as the gateway estimates it.
const BYTES_PER_TOKEN: usize = 3;

/// The context that an agent asks to hand over to its child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum AskedHandoff {
    None {},
    SummaryOnly {
        summary: String,
        max_tokens: u32,
        policy: String,
    },
    SelectedRefs {
        /// `tree:PATH`, `ledger:NUMBER`, `file:NAME` or `child:RUN/NAME`.
        refs: Vec<String>,
        policy: String,
    },
    /// What the agent said and did so far.
    FullHistory {
        policy: String,
    },
}

impl Default for AskedHandoff {
    fn default() -> Self {
        Self::None {}
    }
}

/// Something that can be handed over by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextRef {
    /// A file of the parent's work.
    Tree(RepoPath),
    /// An event of the parent's ledger.
    Ledger(u64),
    /// A file beside the result of the parent's agent.
    File(String),
    /// A file that an earlier child left.
    Child { run_id: String, name: String },
}

impl ContextRef {
    /// The reference in `text`; each thing has one spelling.
    pub fn parse(text: &str) -> Result<Self, Verdict> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(128).collect();
            let reason = format!("the reference `{}` {why}", shown.escape_debug());
            Verdict::deny(Code::HandoffRefUnresolved, reason)
        };
        let (kind, rest) = text.split_once(':').unwrap_or(("", text));
        match kind {
            "tree" => match RepoPath::try_from(rest) {
                Ok(path) if path.as_str() == rest => Ok(Self::Tree(path)),
                Ok(_) => Err(refuse("spells its path in another way than the tree")),
                Err(error) => Err(refuse(&error.to_string())),
            },
            "ledger" => match rest.parse::<u64>() {
                Ok(number) if number.to_string() == rest => Ok(Self::Ledger(number)),
                _ => Err(refuse("names no event by its number")),
            },
            "file" if is_segment(rest) => Ok(Self::File(rest.to_owned())),
            "child" => match rest.split_once('/') {
                Some((run_id, name @ ("said.txt" | "patch.diff"))) if is_segment(run_id) => {
                    Ok(Self::Child {
                        run_id: run_id.to_owned(),
                        name: name.to_owned(),
                    })
                }
                _ => Err(refuse("is no `said.txt` or `patch.diff` of a child")),
            },
            _ => Err(refuse(
                "is no `tree:PATH`, `ledger:NUMBER`, `file:NAME` or `child:RUN/NAME`",
            )),
        }
    }
}

/// A document that a child gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedDocument {
    /// `summary`, `history`, or the reference.
    pub name: String,
    pub text: String,
    /// How many secrets were removed from it.
    pub redacted: u64,
}

impl HandedDocument {
    fn content(&self) -> Result<Content, Verdict> {
        let invalid = |error: String| Verdict::deny(Code::ChildRequestInvalid, error);
        Ok(Content {
            name: Id::try_from(self.name.clone()).map_err(|error| invalid(error.to_string()))?,
            sha256: Sha256::try_from(sha256(self.text.as_bytes()))
                .map_err(|error| invalid(error.to_string()))?,
        })
    }
}

/// What of a history was handed over, and what was left out: the audit of its projection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectionAudit {
    /// The file of the bundle that the history is in.
    pub source: String,
    pub source_sha256: String,
    pub source_bytes: u64,
    pub handed_sha256: String,
    pub handed_bytes: u64,
    /// Bytes at the beginning that were left out.
    pub omitted_bytes: u64,
    pub redacted: u64,
}

/// The record of a hand-off in the event that starts a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffRecord {
    /// The policy that permits it.
    pub policy: String,
    /// The hand-off, as the package has it.
    pub handoff: Handoff,
    /// SHA-256 of that.
    pub sha256: String,
    pub bytes: u64,
    pub redacted: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<ProjectionAudit>,
}

/// What is handed over, with the record of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handed {
    pub documents: Vec<HandedDocument>,
    pub audit: Option<ProjectionAudit>,
}

impl AskedHandoff {
    /// Whether a policy permits it, before anything is read.
    pub fn check(&self, policies: &FamilyPolicies) -> Result<(), Verdict> {
        let (kind, id) = match self {
            Self::None {} => return Ok(()),
            Self::SummaryOnly { policy, .. } => (HandoffKind::SummaryOnly, policy),
            Self::SelectedRefs { policy, .. } => (HandoffKind::SelectedRefs, policy),
            Self::FullHistory { policy } => (HandoffKind::FullHistory, policy),
        };
        let policy = policy::resolve(policies, id, FamilyPolicyKind::Context)?;
        if !policy.handoff.contains(&kind) {
            let reason = format!("the policy `{id}` does not permit the hand-off `{kind}`");
            return Err(Verdict::deny(Code::HandoffNotGranted, reason));
        }
        match self {
            Self::SummaryOnly {
                summary,
                max_tokens,
                ..
            } => check_summary(summary, *max_tokens, policy.longest_summary()),
            Self::SelectedRefs { refs, .. } => check_refs(refs),
            Self::None {} | Self::FullHistory { .. } => Ok(()),
        }
    }

    /// The hand-off in the package and its record, for the documents that were resolved.
    pub fn handed(&self, handed: &Handed) -> Result<Option<HandoffRecord>, Verdict> {
        let documents = &handed.documents;
        let bytes: usize = documents.iter().map(|it| it.text.len()).sum();
        if bytes > MOST_HANDED {
            let reason = format!("{bytes} bytes are handed over; at most {MOST_HANDED} can be");
            return Err(Verdict::deny(Code::HandoffTooLong, reason));
        }
        let contents: Result<Vec<Content>, Verdict> =
            documents.iter().map(HandedDocument::content).collect();
        let mut contents = contents?;
        let id = |policy: &str| {
            let wrong = |error: crate::package::IdError| {
                Verdict::deny(Code::ChildRequestInvalid, error.to_string())
            };
            Id::try_from(policy.to_owned()).map_err(wrong)
        };
        let missing = || Verdict::deny(Code::HandoffRefUnresolved, "nothing is handed over");
        let (policy, handoff) = match self {
            Self::None {} => return Ok(None),
            Self::SummaryOnly {
                max_tokens, policy, ..
            } => {
                let handoff = Handoff::SummaryOnly {
                    summary: contents.pop().ok_or_else(missing)?,
                    max_tokens: *max_tokens,
                    policy: id(policy)?,
                };
                (policy, handoff)
            }
            Self::SelectedRefs { policy, .. } => {
                let handoff = Handoff::SelectedRefs {
                    refs: contents.into_iter().collect(),
                    policy: id(policy)?,
                };
                (policy, handoff)
            }
            Self::FullHistory { policy } => (policy, full_history(handed, id(policy)?)?),
        };
        handoff
            .validate()
            .map_err(|refusal| Verdict::deny(refusal.code, refusal.reason))?;
        Ok(Some(HandoffRecord {
            policy: policy.clone(),
            sha256: handoff.digest(),
            handoff,
            bytes: bytes as u64,
            redacted: documents.iter().map(|it| it.redacted).sum(),
            audit: handed.audit.clone(),
        }))
    }
}

fn full_history(handed: &Handed, policy: Id) -> Result<Handoff, Verdict> {
    let none = || {
        let reason = "a full history is handed over only with the audit of its projection";
        Verdict::deny(Code::HandoffFullHistoryNoAudit, reason)
    };
    let audit = handed.audit.as_ref().ok_or_else(none)?;
    let text = serde_json::to_string(audit).map_err(|_| none())?;
    let audit = HandedDocument {
        name: "audit".to_owned(),
        text,
        redacted: 0,
    };
    Ok(Handoff::FullHistory {
        audit: audit.content()?,
        policy,
    })
}

fn check_summary(summary: &str, max_tokens: u32, longest: u32) -> Result<(), Verdict> {
    if max_tokens == 0 {
        let reason = "a summary with a budget of no tokens";
        return Err(Verdict::deny(Code::HandoffSummaryZeroTokens, reason));
    }
    let tokens = summary.len().div_ceil(BYTES_PER_TOKEN);
    let most = max_tokens.min(longest);
    if tokens > most as usize {
        let reason = format!("the summary has about {tokens} tokens; {most} are permitted");
        return Err(Verdict::deny(Code::HandoffTooLong, reason));
    }
    Ok(())
}

fn check_refs(refs: &[String]) -> Result<(), Verdict> {
    if refs.is_empty() {
        let reason = "selected references without a reference";
        return Err(Verdict::deny(Code::HandoffSelectedRefsEmpty, reason));
    }
    if refs.len() > MOST_REFS {
        let reason = format!(
            "{} references; at most {MOST_REFS} are handed over",
            refs.len()
        );
        return Err(Verdict::deny(Code::HandoffTooLong, reason));
    }
    for (at, one) in refs.iter().enumerate() {
        ContextRef::parse(one)?;
        if refs[..at].contains(one) {
            let reason = format!("the reference `{one}` is there twice");
            return Err(Verdict::deny(Code::HandoffRefUnresolved, reason));
        }
    }
    Ok(())
}
