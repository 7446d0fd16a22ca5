//! Says what a step asks of the machine: everything it needs to know, and nothing else.
//!
//! # Invariants
//!
//! - An effect is a function of the state, so doing it again after a crash is the same effect.
//! - Commits depend on nothing but the ledger.

mod asked;
mod commit_text;

pub use commit_text::CommitText;

use std::collections::BTreeSet;
use std::time::Duration;

use super::fact::{Side, TestRun, WorkspaceChoice};
use super::fix::Evidence;
use crate::agent::Adapted;
use crate::agent::launch::Answer;
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

/// Where the checkout is in a sandbox; always the same, so that build caches fit.
pub const TREE: &str = "/workspace";

/// What a step asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The right to this scope.
    Lease(Scope),
    /// The dependencies of the base.
    Prepare(Prepare),
    /// A private directory.
    Workspace(Workspace),
    /// Probes in the sandboxes that this run will have.
    Selftest(Box<Selftest>),
    /// This agent at work.
    Agent(Box<Agent>),
    /// What it left, as a tree.
    Capture(Capture),
    /// This reviewer at its desk.
    Review(Box<Review>),
    /// A round of the acceptance commands.
    Accept(Accept),
    /// The contract of an attempt that fixes this one, not before its time.
    Fix(Fix),
    /// A branch with the candidate.
    Publish(Publish),
    /// The end of a workspace.
    Clean(Clean),
}

/// The commit that the work of a run starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub commit: Oid,
    pub tree: Oid,
}

/// How a tree is kept: by one commit, and a ref that leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The full name of the ref.
    pub name: String,
    /// What the commit stands on.
    pub parent: Oid,
    /// What it says.
    pub message: String,
    /// When the run began, in seconds since 1970.
    pub seconds: i64,
}

/// The dependencies of a tree, to be made ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepare {
    /// The steps of the policy.
    pub steps: Vec<prepare::Step>,
    /// Where the policy comes from.
    pub base: Base,
    /// The tree whose dependencies they are.
    pub tree: Oid,
    /// The directory of the bundle for what the steps print.
    pub logs: String,
    /// What one step may use: by the policy, because other contracts share what it makes.
    pub limits: Limits,
    /// Whether a step has a loopback of its own, by the policy for the same reason.
    pub loopback: bool,
}

/// A private directory for one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub attempt: u32,
    /// What the work starts from.
    pub base: Base,
    /// What the directory holds: the tree of the base, or of a candidate that is to be fixed.
    pub tree: Oid,
    /// How it is to be made.
    pub choice: WorkspaceChoice,
    /// What the sandboxes around it are made of.
    pub tier: Tier,
}

/// An agent, and the sandbox around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// The run, as the agent may know it.
    pub run_id: String,
    pub attempt: u32,
    /// What the work starts from.
    pub base: Base,
    /// What its workspace began with.
    pub tree: Oid,
    /// What shows why earlier work was refused.
    pub evidence: Vec<Evidence>,
    /// What was prepared for it.
    pub prepare: Prepare,
    /// Its command.
    pub argv: Vec<String>,
    /// Who named that command.
    pub named_by: NamedBy,
    /// How it is spoken to, if it is a program that is known.
    pub adaptation: Option<Adaptation>,
    /// Its contract, as written.
    pub contract: Document,
    /// What its sandbox is made of.
    pub tier: Tier,
    /// What it may not write, whatever its scope is.
    pub walls: WriteProtection,
    /// When it is ended.
    pub time_limit: Duration,
    /// When it is ended for other reasons.
    pub limits: Limits,
    /// The places of the network it may reach.
    pub net: Vec<Endpoint>,
    /// Whether its sandbox has a loopback of its own.
    pub loopback: bool,
    /// Secrets that the proxy adds for it.
    pub credentials: Vec<Credential>,
    /// The file of the bundle for what it prints.
    pub stdout: String,
    /// The file of the bundle for what it complains.
    pub stderr: String,
}

/// A reviewer at its desk.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// Who looks at the candidate.
    pub look: ReadOnlyRun,
    /// The paths that differ, one a line.
    pub changed: String,
    /// The contract, as written.
    pub contract: Document,
    /// What is known of the worker.
    pub worker: Worker,
}

/// Somebody who looks at a tree and says something about it, and the sandbox around it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadOnlyRun {
    /// The run, or the plan, as it may know it.
    pub run_id: String,
    /// What it is called for people.
    pub who: &'static str,
    /// What the work starts from.
    pub base: Base,
    /// What it looks at.
    pub tree: Oid,
    /// How a workspace is to be made.
    pub choice: WorkspaceChoice,
    /// Where it starts; there is nothing in it.
    pub start: &'static str,
    /// Its command.
    pub argv: Vec<String>,
    /// Who named that command.
    pub named_by: NamedBy,
    /// How it is spoken to, if it is a program that is known.
    pub adaptation: Option<Adaptation>,
    /// What its sandbox is made of.
    pub tier: Tier,
    /// When it is ended.
    pub time_limit: Duration,
    /// When it is ended for other reasons.
    pub limits: Limits,
    /// The places of the network it may reach.
    pub net: Vec<Endpoint>,
    /// Whether its sandbox has a loopback of its own.
    pub loopback: bool,
    /// Secrets that the proxy adds for it.
    pub credentials: Vec<Credential>,
    /// The file of the bundle for what it prints.
    pub stdout: String,
    /// The file of the bundle for what it complains.
    pub stderr: String,
}

/// A file that lies beside the tree for whoever looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// Where it is in the sandbox; all papers of one look are in one directory.
    pub place: &'static str,
    /// The variable that names that place.
    pub variable: &'static str,
    pub bytes: Vec<u8>,
}

/// The sandboxes of a run, to be tried before anybody works in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Selftest {
    /// Who will have the one.
    pub agent: Agent,
    /// What will have the other.
    pub acceptance: Accept,
    /// Where the agent may write.
    pub scope: Scope,
}

/// How a program that is known is told its task and understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adaptation {
    /// The program and its model.
    pub adapted: Adapted,
    /// What it is told.
    pub instruction: String,
    /// Whether its last words are its result.
    pub answer: Answer,
    /// The task that they are about.
    pub task_id: String,
    /// The file of the bundle for what it did.
    pub events: String,
    /// What the contract asks it not to do.
    pub forbidden: Vec<String>,
    /// The conversation that it goes on with, if it can be told one.
    pub thread: Option<String>,
}

impl Adaptation {
    /// The place of its model.
    pub fn model(&self) -> Option<&Endpoint> {
        let provider = self.adapted.provider.as_ref();
        provider.map(|provider| &provider.base_url.endpoint)
    }
}

/// The contract of an attempt that fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// When it may begin, in milliseconds since 1970.
    pub not_before: i64,
    /// How long that may be from now at most.
    pub most: Duration,
    /// What shows why the earlier work was refused.
    pub evidence: Vec<Evidence>,
}

/// Who named the command of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The person who began the run; files of the machine that it names may be let in.
    Person,
    /// The policy of the repository, which must not choose files of its user.
    Policy,
}

impl NamedBy {
    /// Who named a command that was `typed` or not.
    pub(crate) fn of(typed: bool) -> Self {
        if typed { Self::Person } else { Self::Policy }
    }
}

/// What the kernel keeps an agent from writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteProtection {
    forbid: Scope,
    permit: Permit,
    extra: Extra,
}

impl WriteProtection {
    /// Whether `path` is behind them.
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

/// What an agent left, to become a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    pub attempt: u32,
    /// The tree it is compared with.
    pub base: Oid,
    /// How the tree is kept.
    pub keep: Keep,
    /// How those are kept that hold one half of the change: old tests, and new ones.
    pub crossed: [Keep; 2],
}

/// A round of the acceptance commands on exactly one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accept {
    /// Which tree that is in the course of the run.
    pub side: Side,
    pub tree: Oid,
    /// What the work started from.
    pub base: Base,
    /// How a workspace is to be made.
    pub choice: WorkspaceChoice,
    /// What their sandboxes are made of.
    pub tier: Tier,
    /// The commands, in this order.
    pub tests: Vec<Test>,
    /// When one of them is ended.
    pub time_limit: Duration,
    /// When it is ended for other reasons.
    pub limits: Limits,
    /// What is prepared for the tree.
    pub prepare: Prepare,
    /// Whether a command has a loopback of its own.
    pub loopback: bool,
    /// The directory of the bundle for what they print.
    pub logs: String,
    /// Rounds that the chains of this run vouch for; one of the same tree, commands and sandbox is not
    /// made twice.
    pub evidence: Vec<TestRun>,
}

/// A branch with exactly the candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// The candidate.
    pub tree: Oid,
    /// The branch and its one commit.
    pub keep: Keep,
}

/// The end of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    pub attempt: u32,
    /// What goes.
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

/// How work is saved that does not land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// The tree the workspace began with.
    pub base: Oid,
    /// The tree that was captured from it and is kept already.
    pub captured: Option<Oid>,
    /// How any other tree is kept.
    pub keep: Keep,
}

/// The candidate of a run, to be merged with a target that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The commit both sides come from.
    pub base: Oid,
    /// The tree of the candidate.
    pub candidate: Oid,
    /// What the commit of the merge says.
    pub words: CommitText,
    /// When the run began, in seconds since 1970.
    pub seconds: i64,
    /// Where refs keep merges of this run.
    pub refs: String,
}

/// Why a step asks for nothing: it cannot stand where it was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoEffect {
    /// The policy gate has not allowed the contract.
    #[error("the contract was not judged")]
    NoContract,
    /// Nothing was captured.
    #[error("there is no candidate")]
    NoCandidate,
    /// Nobody is to review.
    #[error("there is no reviewer")]
    NoReviewer,
    /// Nothing is to be fixed.
    #[error("there is nothing to fix")]
    NothingToMend,
}
