//! What can happen in a case, as its ledger records it.
//!
//! The parts of a case are recorded by the facts of a chain (`NODE_STARTED`, `NODE_ENDED`, …) in the
//! same ledger; everything else has a `CASE_` event.

use provost_core::approval::{Person, Widening};
use provost_core::contract::document::Document;
use provost_core::json;
use provost_core::object::{Oid, sha256};
use provost_core::person_key::{AnswerStatement, PersonSignature};
use provost_core::question::{AnswerMeans, AskRules};
use provost_core::record::{self, Event, Level};
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use serde::{Deserialize, Serialize};

use crate::chain::{End, NodeAgents};
use crate::opening::RequestedAgent;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    #[serde(rename = "CASE_OPENED")]
    Opened(Box<CaseOpened>),
    /// Another process drives the case from here on.
    #[serde(rename = "CASE_RESUMED")]
    Resumed {
        /// Whether what was refused is tried again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A planner wrote the contract of the whole, or did not.
    #[serde(rename = "CASE_PLANNED")]
    Planned(Drafted),
    /// A planner divided the contract into parts, or did not.
    #[serde(rename = "CASE_SPLIT")]
    Split(Drafted),
    /// What the parts do beyond the policy; empty if a person need not be asked.
    #[serde(rename = "CASE_ASKED")]
    Asked(CaseQuestion),
    /// The approval expired before a part began.
    #[serde(rename = "CASE_APPROVAL_TIMEOUT")]
    Expired {},
    #[serde(rename = "CASE_ANSWERED")]
    Answered(CaseAnswer),
    /// The results of the parts were merged, as far as they can be.
    #[serde(rename = "CASE_INTEGRATED")]
    Integrated(Integration),
    #[serde(rename = "CASE_JUDGE_STARTED")]
    JudgeStarted { run_id: String },
    #[serde(rename = "CASE_JUDGED")]
    Judged { end: Box<End> },
    /// The run that judges the whole never began: its driver died first.
    #[serde(rename = "CASE_JUDGE_LOST")]
    JudgeLost {},
    /// The commands of the whole ran on the first parts alone.
    #[serde(rename = "CASE_PREFIX_TESTED")]
    PrefixTested { commit: Oid, verdict: Verdict },
    /// A part is fixed, because the whole was refused.
    #[serde(rename = "CASE_FIX_STARTED")]
    FixStarted(FixStart),
    #[serde(rename = "CASE_FIX_ENDED")]
    FixEnded { end: Box<End> },
    #[serde(rename = "CASE_FIX_LOST")]
    FixLost {},
    #[serde(rename = "CASE_FINISHED")]
    Finished { verdict: Verdict },
    /// The run that judged the whole was landed.
    #[serde(rename = "CASE_LANDED")]
    Landed { branch: String, commit: Oid },
}

/// What the user asked for when the case began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseOpened {
    pub request: String,
    /// The commit that the parts start from.
    pub base_commit: Oid,
    /// One trace for the case and all of its runs.
    pub trace_id: String,
    /// The agent that plans and splits.
    pub planner: RequestedAgent,
    /// The agent of every part.
    pub agent: RequestedAgent,
    /// The reviewer of the parts and of the whole; that of the policy if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<RequestedAgent>,
    /// Whether the whole may be accepted without a reviewer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreviewed: bool,
    /// How often a part may be fixed because the whole was refused.
    pub retries: u32,
    /// Whether the planner may divide the contract.
    pub split: bool,
    /// What the answer to its question needs.
    #[serde(default, skip_serializing_if = "AskRules::is_default")]
    pub ask: AskRules,
    pub version: String,
}

impl CaseOpened {
    /// The agent and the reviewer of every part, as the facts of parts name them.
    pub fn hands(&self) -> NodeAgents {
        let review = self.review.as_ref();
        NodeAgents {
            agent: self.agent.words().to_owned(),
            review: review.map(|review| review.words().to_owned()),
            credentials: Vec::new(),
        }
    }
}

/// The result of a planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drafted {
    /// The record of the plan.
    pub plan_id: String,
    pub verdict: Verdict,
    /// SHA-256 of the document, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_sha256: Option<String>,
}

/// What a person is asked before any part begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseQuestion {
    /// SHA-256 over the case, its contract, its parts and every widening.
    pub digest: String,
    pub parts: Vec<AskedPart>,
}

/// What one part is to do, and how that exceeds the policy; the whole is the part without a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedPart {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    pub objective: String,
    /// The paths that it may write.
    pub allow: Vec<String>,
    /// Its acceptance commands.
    pub accept: Vec<String>,
    pub widenings: Vec<Widening>,
}

impl AskedPart {
    pub fn of(part: Option<String>, contract: &Document, widenings: Vec<Widening>) -> Self {
        let tests = contract.acceptance_tests.iter();
        Self {
            part,
            objective: contract.inputs.spec.clone(),
            allow: contract.allowed_paths.clone(),
            accept: tests.map(|test| test.cmd.clone()).collect(),
            widenings,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseAnswer {
    /// The digest of the question that is answered.
    pub digest: String,
    pub approved: bool,
    pub by: Person,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, skip_serializing_if = "AnswerMeans::is_default")]
    pub how: AnswerMeans,
    /// Until when the parts may begin, as RFC 3339; older answers have no end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// The signature of a person key, if it was given by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<PersonSignature>,
}

impl CaseAnswer {
    /// What a person signs.
    pub fn statement(&self) -> AnswerStatement<'_> {
        AnswerStatement {
            digest: &self.digest,
            allow: self.approved,
            until: &self.until,
            reason: &self.reason,
        }
    }

    /// Whether it has expired at `now`, in milliseconds.
    pub fn is_over(&self, now: i64) -> bool {
        let until = time::parse(&self.until);
        self.approved && !self.until.is_empty() && until.map_or(true, |until| until <= now)
    }
}

/// The results of the parts, merged one after the other in the order of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integration {
    /// Each part that was merged; its commit holds all parts up to it.
    pub merged: Vec<MergedPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<PartConflict>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergedPart {
    pub part: String,
    pub commit: Oid,
    /// The paths that this part brought.
    pub paths: Vec<String>,
}

/// A part that cannot be merged with the parts before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartConflict {
    pub part: String,
    /// The earlier parts that changed the same paths.
    pub with: Vec<String>,
    pub paths: Vec<String>,
}

/// A run that fixes one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixStart {
    pub part: String,
    pub run_id: String,
    pub base_commit: Oid,
    pub contract_sha256: String,
    /// Whether the base holds the earlier result of the part; otherwise the fix replaces it.
    pub keeps: bool,
}

impl Fact {
    pub fn event(&self, id: &str, trace_id: &str, ts: String) -> Event {
        let (event_type, payload) = record::tagged(self);
        let refused = match self {
            Self::Planned(drafted) | Self::Split(drafted) => !drafted.verdict.allow,
            Self::Answered(answer) => !answer.approved,
            Self::Integrated(integration) => integration.conflict.is_some(),
            Self::Judged { end } | Self::FixEnded { end } => !end.verdict.allow,
            Self::Finished { verdict } => !verdict.allow,
            _ => false,
        };
        let unusual = matches!(
            self,
            Self::Resumed { .. } | Self::JudgeLost {} | Self::FixLost {} | Self::FixStarted(_)
        );
        let level = match (refused, unusual) {
            (true, _) => Level::Error,
            (false, true) => Level::Warn,
            (false, false) => Level::Info,
        };
        Event {
            ts,
            level,
            event_type,
            run_id: id.to_owned(),
            task_id: None,
            attempt: None,
            payload,
            trace_id: trace_id.to_owned(),
        }
    }
}

impl CaseQuestion {
    /// The question of the case `id` about the documents with these digests.
    pub fn new(id: &str, contract: &str, parts_sha256: &str, parts: Vec<AskedPart>) -> Self {
        let value = serde_json::to_value(&parts).unwrap_or_default();
        let widenings = json::canonical(&value);
        let text = format!("{id}\n{contract}\n{parts_sha256}\n{widenings}");
        Self {
            digest: sha256(text.as_bytes()),
            parts,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.widenings.is_empty())
    }

    /// Whether the question covers every one of `widenings` of `part`.
    pub fn covers(&self, part: Option<&str>, widenings: &[Widening]) -> bool {
        let mut known = self.parts.iter().filter(|it| it.part.as_deref() == part);
        let Some(known) = known.next() else {
            return widenings.is_empty();
        };
        widenings.iter().all(|it| known.widenings.contains(it))
    }
}

/// The details of an event of a case, as text; `None` if it is none.
pub fn describe(event: &Event) -> Option<String> {
    let fact: Fact = event.untagged().ok()?;
    Some(match fact {
        Fact::Opened(opened) => opened.request,
        Fact::Resumed { .. } | Fact::JudgeLost {} | Fact::FixLost {} => String::new(),
        Fact::Expired {} => "the approval has expired".to_owned(),
        Fact::Planned(drafted) | Fact::Split(drafted) => drafted.verdict.reason,
        Fact::Asked(question) => {
            let widenings = question.parts.iter().map(|part| part.widenings.len()).sum();
            counted(widenings, "widening")
        }
        Fact::Answered(CaseAnswer {
            approved, by, how, ..
        }) => {
            let word = if approved { "approved" } else { "rejected" };
            format!("{word} by {by} by {how}")
        }
        Fact::Integrated(Integration { merged, conflict }) => match conflict {
            None => counted(merged.len(), "part"),
            Some(conflict) => format!(
                "`{}` conflicts with {}",
                conflict.part,
                conflict.with.join(", ")
            ),
        },
        Fact::JudgeStarted { run_id } => run_id,
        Fact::Judged { end } | Fact::FixEnded { end } => {
            format!("{}: {}", end.run_id, end.verdict.reason)
        }
        Fact::PrefixTested { commit, verdict } => {
            format!("commit {}: {}", commit.short(), verdict.reason)
        }
        Fact::FixStarted(start) => format!("{}: {}", start.part, start.run_id),
        Fact::Finished { verdict } => verdict.reason,
        Fact::Landed { branch, commit } => format!("{branch}, commit {}", commit.short()),
    })
}
