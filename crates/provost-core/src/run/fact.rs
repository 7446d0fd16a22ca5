//! The facts of a run, as its ledger holds them.

mod agent_claims;
mod agent_run;
mod cache;
mod cancel;
mod command;
mod cross_tests;
mod fix;
mod layer;
mod level;
mod review;
mod tested;
mod ticket;
mod violation;
mod withheld;
mod work;

pub use agent_run::{AgentRun, ResultFile};
pub use cache::{CacheLayer, CacheRules, CacheStart, CacheUse, WarmRound};
pub use cancel::Cancel;
pub use command::{CommandRun, Ending, Side, Stream, TestRun};
pub use cross_tests::CrossTrees;
pub use fix::{Fix, Trigger};
pub use layer::{Layered, Made};
pub use review::{ReviewRun, Reviewer};
use std::collections::BTreeMap;

pub use agent_claims::AgentClaims;
use serde::{Deserialize, Serialize};
pub use tested::{AgentProgram, Probe, Probed, SandboxTest};
pub use ticket::TicketUse;
pub use violation::{Program, RefusedRequest, Stopped, Violation};
pub use withheld::Withheld;
pub use work::{EarlierRound, EarlierVerdict, ExistingWork, Revision};

use super::{Gate, Step};
use crate::agent::Adapted;
use crate::approval::{Approval, Rejection, Widening};
use crate::bundle::layout::BundleFormat;
use crate::change::{Change, Finding, Ignored};
use crate::children::policy::FamilyPolicies;
use crate::children::{ChildEnd, ChildOf, ChildRefused, ChildStart, FamilyMessage};
use crate::contract::additions::Additions;
use crate::contract::check::Referred;
use crate::contract::document::Document;
use crate::contract::limits::Asked;
use crate::json;
use crate::lease::Owner;
use crate::net::credential::Credential;
use crate::object::{ObjectFormat, Oid};
use crate::prepare;
use crate::protect::Extra;
use crate::question::{AgentQuestion, AskRules, QuestionAnswer};
use crate::record::{self, Event};
use crate::tier::Tier;
use crate::verdict::Verdict;

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// The run started.
    #[serde(rename = "RUN_OPENED")]
    Opened(Box<Opened>),
    /// Another process took the run over after a crash.
    #[serde(rename = "RUN_RESUMED")]
    Resumed {
        /// The new driver.
        owner: Owner,
    },
    /// A person is asked about what the contract widens; no step starts before the answer.
    #[serde(rename = "HUMAN_APPROVAL_REQUIRED")]
    Asked {
        /// SHA-256 of the whole question.
        digest: String,
        /// What is asked about, as text.
        reasons: Vec<String>,
    },
    /// A person approved.
    #[serde(rename = "HUMAN_APPROVAL_COMPLETED")]
    Approved(Approval),
    /// An approval expired before the work started.
    #[serde(rename = "HUMAN_APPROVAL_TIMEOUT")]
    Expired {},
    /// A person rejected.
    #[serde(rename = "HUMAN_APPROVAL_REJECTED")]
    Rejected(Rejection),
    /// The running agent asks whether something may happen.
    #[serde(rename = "QUESTION_ASKED")]
    QuestionAsked(AgentQuestion),
    /// A person, or the allow-list, answered it.
    #[serde(rename = "QUESTION_ANSWERED")]
    QuestionAnswered(QuestionAnswer),
    /// No answer came in time; it counts as no.
    #[serde(rename = "QUESTION_EXPIRED")]
    QuestionExpired {
        /// The digest of the question.
        digest: String,
        /// Why, if a person had said yes.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// Cancellation was requested; the current step is ended, its work saved and the run sealed.
    #[serde(rename = "RUN_CANCEL_REQUESTED")]
    CancelRequested(Cancel),
    /// A step is about to start.
    #[serde(rename = "STEP_STARTED")]
    Started { step: Step },
    /// A step could not be done.
    #[serde(rename = "STEP_FAILED")]
    Failed {
        step: Step,
        /// Why, as the refusal that ends the run.
        verdict: Verdict,
    },
    /// The scope is leased.
    #[serde(rename = "LEASE_GRANTED")]
    Leased {
        /// The fencing number; it grows with every lease ever granted here.
        fence: u64,
    },
    /// The prepared layers of the base exist.
    #[serde(rename = "LAYERS_READY")]
    Prepared {
        /// In the order of their steps.
        layers: Vec<Layered>,
    },
    /// The private directory exists.
    #[serde(rename = "WORKTREE_CREATED")]
    Workspace(Placed),
    /// The sandbox was probed for ways out.
    #[serde(rename = "SANDBOX_TESTED", alias = "BOX_TESTED")]
    Tested(SandboxTest),
    /// The agent ended and every process of its sandbox is dead.
    #[serde(rename = "AGENT_ENDED")]
    AgentEnded(AgentRun),
    /// The agent starts a child; its share is taken from here on.
    #[serde(rename = "CHILD_STARTED")]
    ChildStarted(Box<ChildStart>),
    /// A child ended and every process of its sandbox is dead; what it did not use comes back.
    #[serde(rename = "CHILD_ENDED")]
    ChildEnded(Box<ChildEnd>),
    /// A request of the agent for a child, or for more than its contract gives, was refused; the run
    /// continues.
    #[serde(rename = "CHILD_REFUSED")]
    ChildRefused(Box<ChildRefused>),
    /// A message between the agent and a child or its parent.
    #[serde(rename = "CHILD_MESSAGE")]
    ChildMessage(Box<FamilyMessage>),
    /// The agent was lost with its driver.
    #[serde(rename = "ATTEMPT_LOST")]
    Lost {},
    /// The agent's work is a tree, reachable by a ref.
    #[serde(rename = "TREE_CAPTURED")]
    Captured(Capture),
    /// A gate allowed.
    #[serde(rename = "GATE_PASSED")]
    Passed(Judgement),
    /// A gate refused.
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
    /// The contract of that attempt is written, and it starts.
    #[serde(rename = "FIX_LOOP_ATTEMPT")]
    Fixing(Box<Fix>),
    /// No further attempt is left.
    #[serde(rename = "FIX_LOOP_EXHAUSTED")]
    Exhausted {
        /// How many fix attempts there were.
        fixes: u32,
    },
    /// A branch holds exactly the candidate.
    #[serde(rename = "CANDIDATE_PUBLISHED")]
    Published(Published),
    /// The work in the workspace is saved, and the workspace is removed.
    #[serde(rename = "WORKTREE_REMOVED")]
    Cleaned(Cleaned),
    /// All gates have decided; only the seal remains.
    #[serde(rename = "RUN_FINISHED")]
    Finished {
        /// The verdict of the run.
        verdict: Verdict,
    },
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of its own in the ledger"
)]
pub struct Opened {
    /// The contract, as written.
    pub contract: Document,
    /// SHA-256 of its canonical spelling.
    pub contract_sha256: String,
    /// The contract file of the user, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_source: Option<ContractSource>,
    /// Whether the user typed the commands.
    pub typed: bool,
    pub base_commit: Oid,
    pub base_tree: Oid,
    pub object_format: ObjectFormat,
    /// The branch the result is meant for, as a full ref name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub agent: Vec<String>,
    /// Whether the user typed that command.
    pub agent_typed: bool,
    /// Its adapter, if it is a known program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// Secrets that the proxy adds for the agent, by the names of the variables that hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// The reviewer of the candidate, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Reviewer>,
    /// Additional protected files, from the repository's policy at the base.
    pub protect: Extra,
    /// Additional command prefixes, from the repository's policy at the base.
    #[serde(default)]
    pub commands: Vec<Vec<String>>,
    /// How workspaces are made, by the policy at the base.
    #[serde(default, skip_serializing_if = "WorkspaceChoice::is_auto")]
    pub workspace: WorkspaceChoice,
    /// What the policy at the base says about build caches.
    #[serde(default, skip_serializing_if = "CacheRules::is_default")]
    pub cache: CacheRules,
    /// The preparation steps of the policy at the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<prepare::Step>,
    /// Whether sandboxes have a loopback interface, by the policy at the base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loopback: bool,
    /// Default limits of contracts, from the policy at the base.
    #[serde(default, skip_serializing_if = "Asked::is_empty")]
    pub limits: Asked,
    /// The files of the base that the contract refers to, each with the SHA-256 of its bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub artifacts: BTreeMap<String, String>,
    /// The references of the resolved role view, as found at the base; absent if they were not
    /// resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<BTreeMap<String, Referred>>,
    /// The agents and schemas of the repository that the contract uses, as found at the base.
    #[serde(default, skip_serializing_if = "Additions::is_empty")]
    pub additions: Additions,
    /// The weakest sandbox that the policy at the base accepts.
    #[serde(default, skip_serializing_if = "Tier::is_strongest")]
    pub least_tier: Tier,
    /// How the questions of its agent are asked and answered.
    #[serde(default, skip_serializing_if = "AskRules::is_default")]
    pub ask: AskRules,
    /// Whether programs that the contract forbids are kept from running; earlier versions did not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuses_programs: bool,
    /// Whether a contract that names a conversation is refused; earlier versions carried its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checks_thread: bool,
    /// How the contract exceeds what the policy at the base permits without approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub widenings: Vec<Widening>,
    /// The run that this one retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The work that this run judges without an agent, if it exists already. `agent` then made it,
    /// or is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<ExistingWork>,
    /// The tree that its first attempt starts from, if it continues the work of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Oid>,
    /// The chain that this run is a part of, if the chain divides one contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The policies about children of `provost.toml` at the base.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: FamilyPolicies,
    /// The parent whose agent started this run, with the package that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<ChildOf>>,
    /// The ticket of the fleet that it is made under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<TicketUse>,
    pub owner: Owner,
    /// The naming scheme of the bundle.
    #[serde(default)]
    pub format: BundleFormat,
    /// The version of Provost.
    pub version: String,
}

/// The part of a divided contract that a run executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub chain: String,
    pub node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub path: String,
    #[serde(default)]
    pub kind: WorkspaceKind,
    /// Why this kind, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How the files of a workspace are provided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// A separate checkout.
    #[default]
    Copy,
    /// A writable layer on a shared checkout that is never written.
    Overlay,
}

/// How a repository wants its workspaces made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceChoice {
    /// Depends on the size of the tree.
    #[default]
    Auto,
    /// A separate checkout.
    Copy,
    /// A layer on a shared checkout; if that is not possible, the run fails.
    Overlay,
}

impl WorkspaceChoice {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The user's contract file, kept unchanged in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractSource {
    /// Its name in the bundle.
    pub path: String,
    pub sha256: String,
}

/// The work of an agent, as a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    pub tree: Oid,
    /// The ref that keeps it.
    pub kept_by: String,
    /// The differences from the base.
    pub changes: Vec<Change>,
    /// What a tree cannot represent.
    pub findings: Vec<Finding>,
    /// Build output that was left out.
    pub ignored: Ignored,
    /// What the bundle leaves out of it.
    #[serde(default, skip_serializing_if = "Withheld::is_nothing")]
    pub withheld: Withheld,
    /// The trees for cross-tests, if the change touches both tests and the code they test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossed: Option<CrossTrees>,
}

impl Capture {
    /// Whether there is anything to judge.
    pub fn holds_anything(&self) -> bool {
        !self.changes.is_empty() || !self.findings.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub gate: Gate,
    pub verdict: Verdict,
}

/// A branch that holds exactly the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The one commit on top of the base.
    pub commit: Oid,
    pub branch: String,
}

/// The result of removing a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Where work is saved that no other ref holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salvage: Option<Salvage>,
    /// What stays on disk, because no commit can represent all of it.
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
    pub commit: Oid,
}

#[derive(Debug, thiserror::Error)]
#[error("record {seq} is no fact of a run")]
pub struct NoFact {
    pub seq: u64,
    pub source: json::ReadError,
}

/// The fields that all records of one run share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub run_id: String,
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

    /// The fact in `event`, number `seq` of its ledger.
    pub fn of(event: &Event, seq: u64) -> Result<Self, NoFact> {
        event.untagged().map_err(|source| NoFact { seq, source })
    }

    /// The fact that records `judgement`.
    pub fn judged(judgement: Judgement) -> Self {
        match (judgement.verdict.allow, judgement.gate) {
            (true, _) => Self::Passed(judgement),
            (false, Gate::Integrated | Gate::Sampling | Gate::Policy | Gate::Diff | Gate::Tree) => {
                Self::Violation(Violation::Gate(judgement))
            }
            (
                false,
                Gate::Sandbox | Gate::Agent | Gate::Output | Gate::Review | Gate::Acceptance,
            ) => Self::Refused(judgement),
        }
    }
}
