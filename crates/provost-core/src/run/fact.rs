//! The facts a run is made of, as its ledger holds them.

mod agent_claims;
mod agent_run;
mod cancel;
mod command;
mod cross_tests;
mod fix;
mod layer;
mod review;
mod tested;
mod violation;
mod withheld;

pub use agent_run::{AgentRun, ResultFile};
pub use cancel::Cancel;
pub use command::{CommandRun, Ending, Side, Stream, TestRun};
pub use cross_tests::CrossTrees;
pub use fix::{Fix, Trigger};
pub use layer::{Layered, Made};
pub use review::{ReviewRun, Reviewer};
use std::collections::BTreeMap;

pub use agent_claims::AgentClaims;
use serde::{Deserialize, Serialize};
pub use tested::{Probe, Probed, SandboxTest};
pub use violation::{Program, RefusedRequest, Stopped, Violation};
pub use withheld::Withheld;

use super::{Gate, Step};
use crate::agent::Adapted;
use crate::approval::{Approval, Rejection, Widening};
use crate::bundle::layout::BundleFormat;
use crate::chain::Part;
use crate::change::{Change, Finding, Ignored};
use crate::contract::check::Referred;
use crate::contract::document::Document;
use crate::contract::limits::Asked;
use crate::json;
use crate::lease::Owner;
use crate::net::credential::Credential;
use crate::object::{ObjectFormat, Oid};
use crate::prepare;
use crate::protect::Extra;
use crate::record::{self, Event, Level};
use crate::tier::Tier;
use crate::verdict::Verdict;

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event_type", content = "payload")]
pub enum Fact {
    /// The run began.
    #[serde(rename = "RUN_OPENED")]
    Opened(Box<Opened>),
    /// Another process took the run over after a crash.
    #[serde(rename = "RUN_RESUMED")]
    Resumed {
        /// Who drives it now.
        owner: Owner,
    },
    /// A person is asked about what the contract widens; nothing is begun before there is an answer.
    #[serde(rename = "HUMAN_APPROVAL_REQUIRED")]
    Asked {
        /// SHA-256 of everything that is asked.
        digest: String,
        /// What is asked about, in words.
        reasons: Vec<String>,
    },
    /// A person said yes.
    #[serde(rename = "HUMAN_APPROVAL_COMPLETED")]
    Approved(Approval),
    /// A yes came too early: its time was over when the work was to begin.
    #[serde(rename = "HUMAN_APPROVAL_TIMEOUT")]
    Expired {},
    /// A person said no.
    #[serde(rename = "HUMAN_APPROVAL_REJECTED")]
    Rejected(Rejection),
    /// Somebody wants the run to end; what is under way is ended, saved and sealed.
    #[serde(rename = "RUN_CANCEL_REQUESTED")]
    CancelRequested(Cancel),
    /// A step is about to be done.
    #[serde(rename = "STEP_STARTED")]
    Started { step: Step },
    /// A step could not be done.
    #[serde(rename = "STEP_FAILED")]
    Failed {
        step: Step,
        /// Why, as the refusal that ends the run.
        verdict: Verdict,
    },
    /// The scope is ours.
    #[serde(rename = "LEASE_GRANTED")]
    Leased {
        /// Grows with every lease ever granted here.
        fence: u64,
    },
    /// The dependencies of the base are there.
    #[serde(rename = "LAYERS_READY")]
    Prepared {
        /// In the order of their steps.
        layers: Vec<Layered>,
    },
    /// The private directory is there.
    #[serde(rename = "WORKTREE_CREATED")]
    Workspace(Placed),
    /// A probe tried to get out of the sandbox.
    #[serde(rename = "SANDBOX_TESTED", alias = "BOX_TESTED")]
    Tested(SandboxTest),
    /// The agent ended and every process of its sandbox is dead.
    #[serde(rename = "AGENT_ENDED")]
    AgentEnded(AgentRun),
    /// The agent was lost with its driver.
    #[serde(rename = "ATTEMPT_LOST")]
    Lost {},
    /// What the agent left is a tree now, reachable by a ref of ours.
    #[serde(rename = "TREE_CAPTURED")]
    Captured(Capture),
    /// A gate said yes.
    #[serde(rename = "GATE_PASSED")]
    Passed(Judgement),
    /// A gate said no.
    #[serde(rename = "gate_failed")]
    Refused(Judgement),
    /// A gate found something out of scope or out of policy, or a sandbox stopped it.
    #[serde(rename = "policy_violation")]
    Violation(Violation),
    /// The reviewer ended and every process of its sandbox is dead.
    #[serde(rename = "REVIEW_RESULT")]
    Reviewed(Box<ReviewRun>),
    /// The acceptance commands ran.
    #[serde(rename = "TEST_RESULT")]
    TestsRan(TestRun),
    /// Another attempt is to fix what a gate refused.
    #[serde(rename = "FIX_LOOP_TRIGGERED")]
    Triggered(Trigger),
    /// The contract of that attempt is written, and it begins.
    #[serde(rename = "FIX_LOOP_ATTEMPT")]
    Fixing(Box<Fix>),
    /// No further attempt is left.
    #[serde(rename = "FIX_LOOP_EXHAUSTED")]
    Exhausted {
        /// How many there were to fix the first one.
        fixes: u32,
    },
    /// A branch holds exactly the candidate.
    #[serde(rename = "CANDIDATE_PUBLISHED")]
    Published(Published),
    /// What was in the workspace is saved, and the workspace is gone.
    #[serde(rename = "WORKTREE_REMOVED")]
    Cleaned(Cleaned),
    /// The gates are through; all that remains is the seal.
    #[serde(rename = "RUN_FINISHED")]
    Finished {
        /// The answer of the run.
        verdict: Verdict,
    },
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The contract, as written.
    pub contract: Document,
    /// SHA-256 of its canonical spelling.
    pub contract_sha256: String,
    /// The file that the person wrote, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_source: Option<ContractSource>,
    /// Whether the commands were typed by the person who started the run.
    pub typed: bool,
    /// The commit the work starts from.
    pub base_commit: Oid,
    pub base_tree: Oid,
    /// How the repository names objects.
    pub object_format: ObjectFormat,
    /// The branch the result is meant for, as a full ref name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The agent's command.
    pub agent: Vec<String>,
    /// Whether that command was typed by the person who started the run.
    pub agent_typed: bool,
    /// How its program is spoken to, if it is one that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// Secrets that the proxy adds for the agent, by the names of the variables that hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// Who looks at the candidate before it is tested, if anybody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Reviewer>,
    /// Further protected files, from the repository's policy at the base.
    pub protect: Extra,
    /// Command prefixes that the repository's policy at the base adds.
    #[serde(default)]
    pub commands: Vec<Vec<String>>,
    /// How the repository's policy at the base wants workspaces made.
    #[serde(default, skip_serializing_if = "WorkspaceChoice::is_auto")]
    pub workspace: WorkspaceChoice,
    /// What the repository's policy at the base wants prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<prepare::Step>,
    /// Whether sandboxes have a loopback of their own, by the policy at the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// Limits that the repository's policy at the base has for contracts that say nothing.
    #[serde(default, skip_serializing_if = "Asked::is_empty")]
    pub limits: Asked,
    /// The files of the base that the contract refers to, each with the SHA-256 of its bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, String>,
    /// What the resolved view of the role refers to, as it is at the base; nothing if nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<BTreeMap<String, Referred>>,
    /// The weakest sandbox that the repository's policy at the base accepts.
    #[serde(default, skip_serializing_if = "Tier::is_strongest")]
    pub least_tier: Tier,
    /// In what the contract goes beyond what the policy at the base lets pass unasked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widenings: Vec<Widening>,
    /// The run that this one is another try of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The chain that this run is a part of, where that divides one contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Who drives the run.
    pub owner: Owner,
    /// The names that files and fields of the bundle have.
    #[serde(default)]
    pub format: BundleFormat,
    /// The version of Provost.
    pub version: String,
}

/// The private directory of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub path: String,
    /// How its files come to be there.
    #[serde(default)]
    pub kind: WorkspaceKind,
    /// Why so, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How the files of a workspace come to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// A checkout of its own.
    #[default]
    Copy,
    /// A layer for what is written, on a checkout that is shared and never written.
    Overlay,
}

/// How a repository wants its workspaces made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceChoice {
    /// As it suits the size of the tree.
    #[default]
    Auto,
    /// A checkout of its own.
    Copy,
    /// A layer on a shared checkout; without one there is no workspace.
    Overlay,
}

impl WorkspaceChoice {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What a person wrote, kept in the bundle as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractSource {
    /// Its name in the bundle.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// What an agent left, as a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    pub tree: Oid,
    /// The ref that keeps it.
    pub kept_by: String,
    /// What differs from the base.
    pub changes: Vec<Change>,
    /// What a tree cannot hold faithfully.
    pub findings: Vec<Finding>,
    /// Build output that was left out.
    pub ignored: Ignored,
    /// What the bundle leaves out of it.
    #[serde(default, skip_serializing_if = "Withheld::is_nothing")]
    pub withheld: Withheld,
    /// Trees with one half of the change, if it touches tests and what they test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossed: Option<CrossTrees>,
}

impl Capture {
    /// Whether there is anything to judge.
    pub fn holds_anything(&self) -> bool {
        !self.changes.is_empty() || !self.findings.is_empty()
    }
}

/// The answer of one gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub gate: Gate,
    /// What it said.
    pub verdict: Verdict,
}

/// A branch that holds exactly the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The one commit on top of the base.
    pub commit: Oid,
    pub branch: String,
}

/// What became of a workspace that is not needed any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Where work is saved that no other ref holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<Salvage>,
    /// What stays on disk, because no commit can hold all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

/// A directory that stays until a person has looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub path: String,
    /// What in it is saved nowhere else.
    pub findings: Vec<Finding>,
}

/// Work that is kept although the run does not land it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Salvage {
    /// The ref that keeps it.
    pub kept_by: String,
    /// The commit it points to.
    pub commit: Oid,
}

/// An event that is no fact of a run.
#[derive(Debug, thiserror::Error)]
#[error("record {seq} is no fact of a run")]
pub struct NoFact {
    /// Which.
    pub seq: u64,
    /// What is wrong with it.
    pub source: json::JsonError,
}

/// What the records of one run share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub run_id: String,
    /// The task of its contract.
    pub task_id: String,
    /// Joins its records across tools.
    pub trace_id: String,
}

impl Fact {
    /// The fact as an event of the run `names`, at the time `ts`.
    pub fn event(&self, names: &Names, attempt: u32, ts: String) -> Event {
        let (event_type, payload) = record::tagged(self);
        Event {
            ts,
            level: self.level(),
            event_type,
            run_id: names.run_id.clone(),
            task_id: Some(names.task_id.clone()),
            attempt: Some(attempt),
            payload,
            trace_id: names.trace_id.clone(),
        }
    }

    /// The fact that `event`, number `seq` of its ledger, holds.
    pub fn of(event: &Event, seq: u64) -> Result<Self, NoFact> {
        event.untagged().map_err(|source| NoFact { seq, source })
    }

    /// The fact that `judgement` is recorded as.
    pub fn judged(judgement: Judgement) -> Self {
        match (judgement.verdict.allow, judgement.gate) {
            (true, _) => Self::Passed(judgement),
            (false, Gate::Policy | Gate::Diff | Gate::Tree) => {
                Self::Violation(Violation::Gate(judgement))
            }
            (
                false,
                Gate::Sandbox | Gate::Agent | Gate::Output | Gate::Review | Gate::Acceptance,
            ) => Self::Refused(judgement),
        }
    }

    fn level(&self) -> Level {
        match self {
            Self::Failed { .. }
            | Self::Rejected(_)
            | Self::Refused(_)
            | Self::Violation(_)
            | Self::Exhausted { .. } => Level::Error,
            Self::Lost {}
            | Self::Resumed { .. }
            | Self::Triggered(_)
            | Self::Asked { .. }
            | Self::CancelRequested(_)
            | Self::Expired {} => Level::Warn,
            Self::Finished { verdict } if !verdict.allow => Level::Error,
            _ => Level::Info,
        }
    }
}
