//! The inputs of each step: everything it needs to know, and nothing else.
//!
//! # Invariants
//!
//! - An effect is a function of the state, so repeating it after a crash is the same effect.
//! - Commits depend on nothing but the ledger.

mod asked;
mod commit_text;
mod family;

pub use commit_text::{CommitText, subject_and_body};
pub use family::{FamilyOrder, HANDOFF};

use std::collections::BTreeSet;
use std::time::Duration;

use super::fact::{CacheRules, Side, TestRun, WorkspaceChoice};
use super::fix::Evidence;
use crate::agent::Adapted;
use crate::agent::launch::Answer;
use crate::change::Finding;
use crate::contract::Test;
use crate::contract::document::Document;
use crate::contract::limits::Limits;
use crate::gate::diff::Permit;
use crate::net::credential::Credential;
use crate::net::endpoint::Endpoint;
use crate::object::Oid;
use crate::path::RepoPath;
use crate::prepare;
use crate::protect::{self, Extra, Protection};
use crate::review::Worker;
use crate::scope::Scope;
use crate::tier::Tier;

/// The path of the checkout in a sandbox; always the same, so that build caches stay valid.
pub const TREE: &str = "/workspace";

/// A step with its inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Lease this scope.
    Lease(Scope),
    /// Prepare the dependencies of the base.
    Prepare(Prepare),
    /// Make a private directory.
    Workspace(Workspace),
    /// Probe the sandboxes of this run.
    Selftest(Box<Selftest>),
    /// Run this agent.
    Agent(Box<AgentEffect>),
    /// Turn its workspace into a tree.
    Capture(Capture),
    /// Run this reviewer.
    Review(Box<Review>),
    /// Run the acceptance commands.
    Accept(Accept),
    /// Write the contract of a fix attempt, not before its time.
    Fix(Fix),
    /// Publish a branch with the candidate.
    Publish(Publish),
    /// Remove a workspace.
    Clean(Clean),
}

/// The commit that the work of a run starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub commit: Oid,
    pub tree: Oid,
}

/// How a tree is kept: by one commit, and a ref to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The full name of the ref.
    pub name: String,
    pub parent: Oid,
    pub message: String,
    /// When the run started, in seconds since 1970.
    pub seconds: i64,
}

/// The dependencies of a tree, to be prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepare {
    /// The steps of the policy.
    pub steps: Vec<prepare::Step>,
    /// The commit with the policy.
    pub base: Base,
    /// The tree whose dependencies they are.
    pub tree: Oid,
    /// The directory of the bundle for the output of the steps.
    pub logs: String,
    /// The limits of one step: from the policy, because other contracts share its layer.
    pub limits: Limits,
    /// Whether a step has a loopback interface: from the policy, for the same reason.
    pub loopback: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub attempt: u32,
    pub base: Base,
    /// The initial tree: that of the base, or of a candidate to be fixed.
    pub tree: Oid,
    /// How it is made.
    pub choice: WorkspaceChoice,
    /// The tier of the sandboxes around it.
    pub tier: Tier,
}

/// An agent, and its sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEffect {
    /// The id of the run, as the agent sees it.
    pub run_id: String,
    pub attempt: u32,
    pub base: Base,
    /// The initial tree of its workspace.
    pub tree: Oid,
    /// The files that show why earlier work was refused.
    pub evidence: Vec<Evidence>,
    /// Its prepared layers.
    pub prepare: Prepare,
    pub argv: Vec<String>,
    pub named_by: NamedBy,
    /// Its adapter, if it is a known program.
    pub adaptation: Option<Adaptation>,
    /// Its contract, as written.
    pub contract: Document,
    /// The tier of its sandbox.
    pub tier: Tier,
    /// The paths that the kernel keeps it from writing, whatever its scope.
    pub walls: WriteProtection,
    pub time_limit: Duration,
    pub limits: Limits,
    /// How long a connection waits while a person is asked about its place.
    pub hold: Duration,
    /// The network endpoints it may reach.
    pub net: Vec<Endpoint>,
    pub family: FamilyOrder,
    /// Whether its sandbox has a loopback interface.
    pub loopback: bool,
    /// Secrets that the proxy adds for it.
    pub credentials: Vec<Credential>,
    /// The file of the bundle for its standard output.
    pub stdout: String,
    /// The file of the bundle for its standard error.
    pub stderr: String,
}

impl AgentEffect {
    /// Continues the conversation `own` in place of `sealed`, as a replay made it again.
    pub fn continue_as(&mut self, sealed: &str, own: &str) {
        if let Some(thread) = self.adaptation.as_mut().and_then(|it| it.thread.as_mut())
            && thread == sealed
        {
            own.clone_into(thread);
        }
        for word in self.argv.iter_mut().filter(|word| *word == sealed) {
            own.clone_into(word);
        }
    }
}

/// A review of the candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The reviewer and its sandbox.
    pub look: ReadOnlyRun,
    /// The changed paths, one per line.
    pub changed: String,
    /// The contract, as written.
    pub contract: Document,
    /// What is known of the worker.
    pub worker: Worker,
}

/// An agent that reads a tree and answers, such as a reviewer or a planner, and its sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOnlyRun {
    /// The id of the run, or of the plan, as the agent sees it.
    pub run_id: String,
    /// Its role, as a word for people.
    pub who: &'static str,
    pub base: Base,
    /// The tree that it reads.
    pub tree: Oid,
    /// How its workspace is made.
    pub choice: WorkspaceChoice,
    /// Its working directory, which is empty.
    pub start: &'static str,
    pub argv: Vec<String>,
    pub named_by: NamedBy,
    /// Its adapter, if it is a known program.
    pub adaptation: Option<Adaptation>,
    /// The tier of its sandbox.
    pub tier: Tier,
    pub time_limit: Duration,
    pub limits: Limits,
    /// The network endpoints it may reach.
    pub net: Vec<Endpoint>,
    /// Whether its sandbox has a loopback interface.
    pub loopback: bool,
    /// Secrets that the proxy adds for it.
    pub credentials: Vec<Credential>,
    /// The file of the bundle for its standard output.
    pub stdout: String,
    /// The file of the bundle for its standard error.
    pub stderr: String,
}

/// An input file beside the tree, for a read-only agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Its path in the sandbox; all input files of one agent are in one directory.
    pub place: &'static str,
    /// The environment variable with that path.
    pub variable: &'static str,
    pub bytes: Vec<u8>,
}

/// The sandboxes of a run, to be probed before a program runs in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Selftest {
    /// The user of the first one; absent if no agent is started.
    pub agent: Option<AgentEffect>,
    /// The user of the second one.
    pub acceptance: Accept,
    /// The paths that may change.
    pub scope: Scope,
}

/// How a known program gets its task and is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adaptation {
    /// The program and its model.
    pub adapted: Adapted,
    pub instruction: String,
    /// The schema of its final answer.
    pub answer: Answer,
    /// The task of the answer.
    pub task_id: String,
    /// The file of the bundle for its events.
    pub events: String,
    /// The forbidden actions of the contract.
    pub forbidden: Vec<String>,
    /// The forms of commands that its tools may not be used with.
    pub shapes: Vec<String>,
    /// The conversation to continue, if the program can.
    pub thread: Option<String>,
}

impl Adaptation {
    /// The file of the bundle for the rows about its requests to models, beside its events.
    pub fn requests(&self) -> String {
        let (directory, name) = self.events.rsplit_once('/').unwrap_or(("", &self.events));
        let name = name.replacen("events", "model-requests", 1);
        if directory.is_empty() {
            return name;
        }
        format!("{directory}/{name}")
    }

    /// The endpoint of its model.
    pub fn model(&self) -> Option<&Endpoint> {
        let provider = self.adapted.provider.as_ref();
        provider.map(|provider| &provider.base_url.endpoint)
    }
}

/// The contract of a fix attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// When it may start, in milliseconds since 1970.
    pub not_before: i64,
    /// The longest time to wait.
    pub most: Duration,
    /// The files that show why the earlier work was refused.
    pub evidence: Vec<Evidence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The user who started the run; files of the machine that the command names may be mounted.
    Person,
    /// The policy of the repository, which must not choose files of its user.
    Policy,
}

impl NamedBy {
    pub fn of(typed: bool) -> Self {
        if typed { Self::Person } else { Self::Policy }
    }
}

/// The paths that the kernel keeps an agent from writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteProtection {
    forbid: Scope,
    permit: Permit,
    extra: Extra,
}

impl WriteProtection {
    /// Whether `path` is write-protected.
    pub fn cover(&self, path: &RepoPath) -> bool {
        if self.forbid.covers(path) {
            return true;
        }
        match protect::classify(path, &self.extra) {
            None => false,
            Some(Protection::Control) => true,
            Some(Protection::Oracle) => !self.permit.oracle.covers(path),
            Some(Protection::Governing) => !self.permit.governing.covers(path),
        }
    }
}

/// The workspace of an agent, to be turned into a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    pub attempt: u32,
    /// The tree it is compared with.
    pub base: Oid,
    /// How the tree is kept.
    pub keep: Keep,
    /// How the two trees for cross-tests are kept: with the base's tests, and with the changed
    /// ones.
    pub crossed: [Keep; 2],
    /// The tree to take instead of a workspace, if the work exists already.
    pub existing: Option<ExistingTree>,
}

/// The tree of work that exists already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingTree {
    pub tree: Oid,
    /// What it could not represent when it was captured.
    pub findings: Vec<Finding>,
}

/// A round of the acceptance commands on exactly one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accept {
    /// The role of that tree in the run.
    pub side: Side,
    pub tree: Oid,
    pub base: Base,
    /// How its workspace is made.
    pub choice: WorkspaceChoice,
    /// The tier of their sandboxes.
    pub tier: Tier,
    /// In this order.
    pub tests: Vec<Test>,
    /// The time limit of one command.
    pub time_limit: Duration,
    /// The other limits of one command.
    pub limits: Limits,
    /// The prepared layers of the tree.
    pub prepare: Prepare,
    /// Whether a command has a loopback interface.
    pub loopback: bool,
    /// The directory of the bundle for their output.
    pub logs: String,
    /// The build caches of the project.
    pub cache: Box<CacheOrder>,
    /// Earlier rounds from the chains of this run; a round with the same tree, commands and sandbox
    /// is not repeated.
    pub evidence: Vec<TestRun>,
}

/// How a round may use build caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOrder {
    pub start: AskedStart,
    /// What the policy says.
    pub rules: CacheRules,
    /// Whether the caches that the round leaves may serve later rounds.
    pub keep: bool,
    /// The branch whose commits are trusted, as a full ref name.
    pub target: Option<String>,
    pub protect: Extra,
}

/// How a round is asked to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedStart {
    /// On build caches, if every rule permits it.
    Warm,
    /// Without them, for this reason.
    Cold(&'static str),
    /// Without them, because the same round started warm and would be refused.
    Repeat,
}

/// A branch with exactly the candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub tree: Oid,
    /// The branch and its one commit.
    pub keep: Keep,
}

/// The removal of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    pub attempt: u32,
    pub extent: Extent,
    /// How work is saved first, if there can be any that no ref keeps.
    pub salvage: Option<Salvage>,
    /// Directories that stay until a person has looked at them.
    pub stay: BTreeSet<String>,
}

/// How much of a run is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The attempt alone: another one continues in the same home.
    Attempt,
    Run,
}

/// How work that does not land is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// The initial tree of the workspace.
    pub base: Oid,
    /// The captured tree, which a ref already keeps.
    pub captured: Option<Oid>,
    /// How any other tree is kept.
    pub keep: Keep,
}

/// The candidate of a run, to be merged with a moved target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The common ancestor.
    pub base: Oid,
    /// The tree of the candidate.
    pub candidate: Oid,
    /// The text of the merge commit.
    pub words: CommitText,
    /// When the run started, in seconds since 1970.
    pub seconds: i64,
    /// The ref prefix for merges of this run.
    pub refs: String,
}

/// Why a step has no inputs: it is not possible in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoEffect {
    #[error("the contract was not judged")]
    NoContract,
    #[error("there is no candidate")]
    NoCandidate,
    #[error("there is no reviewer")]
    NoReviewer,
    #[error("there is nothing to fix")]
    NothingToMend,
}
