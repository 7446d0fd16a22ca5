//! The task contract as it is written: document version 1 plus the optional object `x_provost`.
//!
//! Field names and closed shapes are those of the format; the module above defines their meaning.
//! Unknown fields are refused, so that no author relies on a limit that Provost does not know.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::Asked;
use super::role::{BrowserPolicy, HandoffChain, RoleContract, RuntimeOptions};
use crate::children::ChildGrant;
use crate::closed::closed;
use crate::closed::present;

closed! {
    /// One task, as a document.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Document {
        /// Names the task; at least eight characters.
        #[schemars(length(min = 8))]
        pub task_id: String,
        /// What kind of work it is.
        pub task_type?: TaskType,
        /// The task this one continues.
        pub parent_task_id?: String,
        /// Who asked for it.
        pub owner_agent: Agent,
        /// The agent that does it.
        pub assigned_agent: Agent,
        /// The instruction and what it refers to.
        pub inputs: Inputs,
        /// What must be there at the end.
        pub required_outputs: Vec<RequiredOutput>,
        /// Where the agent may write.
        #[schemars(length(min = 1), inner(length(min = 1)))]
        pub allowed_paths: Vec<String>,
        /// What the agent must not do.
        pub forbidden_actions: Vec<String>,
        /// What decides about the result.
        #[schemars(length(min = 1))]
        pub acceptance_tests: Vec<AcceptanceTest>,
        /// What the agent may use.
        pub tool_permissions: ToolPermissions,
        /// Tools the agent is given.
        #[schemars(length(min = 1), inner(length(min = 1)))]
        pub mcp_tool_set: Vec<String>,
        /// When to stop, and how often to try.
        pub timeout_retry: TimeoutRetry,
        /// The revision to return to.
        pub rollback: Rollback,
        /// Where more evidence is.
        pub evidence_links: Vec<String>,
        /// Where logs go.
        pub log_refs: LogRefs,
        /// A named set of policies.
        pub policy_pack?: PolicyPack,
        /// Roles the task passes through.
        pub handoff_chain?: HandoffChain,
        /// Whether an empty change is the wanted result.
        pub audit_only?: bool,
        /// Settings of a browser.
        pub browser_policy?: BrowserPolicy,
        /// Settings of the runner.
        pub runtime_options?: RuntimeOptions,
        /// The resolved view of the role.
        pub role_contract?: RoleContract,
        /// Fields that plain version 1 does not have.
        pub x_provost?: Extension,
    }
}

/// What kind of work a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskType {
    Plan,
    Implement,
    Review,
    Test,
    Search,
}

/// The fifteen roles of the format.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    Pm,
    TechLead,
    Worker,
    Reviewer,
    TestRunner,
    Searcher,
    Researcher,
    UiUx,
    Frontend,
    Backend,
    Ai,
    Security,
    Infra,
    Test,
    Ops,
}

closed! {
    /// A participant of a task.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Agent {
        /// The role of the participant.
        pub role: Role,
        /// The id of the agent in that role.
        pub agent_id: String,
        /// The session to continue.
        pub codex_thread_id?: String,
    }
}

/// The instruction and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The instruction.
    #[schemars(length(min = 1))]
    pub spec: String,
    /// Files it refers to.
    pub artifacts: Vec<Artifact>,
}

/// A file that a contract refers to, bound by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    pub name: String,
    pub uri: String,
    #[schemars(regex(pattern = r"^[0-9A-Fa-f]{64}$"))]
    pub sha256: String,
}

/// Something that must exist at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredOutput {
    pub name: String,
    pub r#type: OutputType,
    pub acceptance: String,
}

/// The kind of a required output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputType {
    Patch,
    Commit,
    Report,
    Json,
    File,
}

/// A command that decides about the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptanceTest {
    /// For people.
    pub name: String,
    /// The command, split by shell quoting rules and never passed to a shell.
    pub cmd: String,
    /// Whether its failure is a refusal.
    pub must_pass: bool,
}

/// What the agent may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPermissions {
    pub filesystem: Filesystem,
    #[serde(default)]
    pub shell: Shell,
    pub network: Network,
    pub mcp_tools: Vec<String>,
}

/// What an agent may do to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Filesystem {
    ReadOnly,
    WorkspaceWrite,
}

/// How an agent may use a shell; left out, it may not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shell {
    #[default]
    Deny,
    Untrusted,
    OnRequest,
    Never,
}

impl Shell {
    /// Whether a person may be asked before a command runs.
    pub fn asks(self) -> bool {
        matches!(self, Self::Untrusted | Self::OnRequest)
    }
}

/// Whether an agent may reach the network; later ones permit more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    Deny,
    OnRequest,
    Allow,
}

/// When to stop, and how often to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeoutRetry {
    #[schemars(range(min = 1))]
    pub timeout_sec: u64,
    #[schemars(range(max = 10))]
    pub max_retries: u32,
    pub retry_backoff_sec: u64,
}

closed! {
    /// The revision to return to.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Rollback {
        /// How; workspaces of Provost are private and always dropped.
        pub strategy: RollbackStrategy,
        /// The revision that the work starts from.
        pub baseline_ref: String,
        /// The revision that a revert would restore.
        pub target_ref?: String,
    }
}

/// How a failed task is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RollbackStrategy {
    GitResetHard,
    GitRevertCommit,
    WorktreeDrop,
}

/// Where logs go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogRefs {
    /// The run as the author calls it; the id that Provost assigns is in the manifest.
    pub run_id: String,
    /// Where the author expects the logs.
    pub paths: LogPaths,
}

/// Where the author of a contract expects the logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogPaths {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub codex_jsonl: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub codex_transcript: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub git_diff: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tests_log: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// A named set of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyPack {
    Low,
    Medium,
    High,
}

/// Fields that plain version 1 does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Extension {
    /// Paths that may not be touched, even inside the scope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
    /// Paths that other parts of the same division may change too; the parts run one after the
    /// other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<String>,
    /// The tier of every sandbox: `namespaces`, or `landlock` where there are none.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Hosts and ports that may be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub net: Vec<String>,
    /// Whether sandboxes have their own loopback interface; left out, they have one.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub loopback: Option<bool>,
    /// Kinds of change that are refused unless permitted here.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub permit: Option<Permissions>,
    /// The branch that the result is for.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Who wrote the contract.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What the acceptance commands have to show; left out, that they pass.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub accept_mode: Option<AcceptMode>,
    /// Limits beside the time limit.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub limits: Option<Asked>,
    /// The children that the agent may start; none if left out.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub children: Option<ChildGrant>,
    /// Whether the agent may ask a person, while it works, for a path or a permission that the
    /// contract does not give.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub may_ask: Option<bool>,
    /// Why the agent needs the user's own files and any place of the network. A person key has to
    /// grant that for this run, for at most an hour.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub full_access: Option<String>,
}

impl Document {
    /// Whether the agent may ask for paths and permissions while it works.
    pub fn may_ask(&self) -> bool {
        let extension = self.x_provost.as_ref();
        extension.and_then(|extension| extension.may_ask) == Some(true)
    }

    /// Whether the agent is to have the user's files and any place.
    pub fn has_full_access(&self) -> bool {
        let extension = self.x_provost.as_ref();
        extension.is_some_and(|extension| extension.full_access.is_some())
    }
}

/// What the acceptance commands have to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcceptMode {
    /// That all of them pass.
    #[default]
    Pass,
    /// That each failing test also failed twice on the base, and that no test is missing.
    NoRegression,
}

impl AcceptMode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NoRegression => "no-regression",
        }
    }
}

impl FromStr for AcceptMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Pass, Self::NoRegression];
        let found = all.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| "is neither `pass` nor `no-regression`".to_owned())
    }
}

/// Paths where a kind of change is permitted that is refused otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub oracle: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub governing: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binary: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symlink: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub fewer_tests: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}
