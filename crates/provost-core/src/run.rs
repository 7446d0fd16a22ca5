//! Knows the course of a run: what happened so far, and what comes next.
//!
//! # Invariants
//!
//! - The state is a fold over the facts of a ledger; nothing else is remembered.
//! - [`State::next`] says what comes next and never does it.
//! - A refusal ends the run: nothing that comes after it in the course is done. Only the diff gate
//!   still judges what was captured, and the first refusal stays the answer.
//! - Only an agent is never repeated: it is lost with its driver, and another attempt is opened.
//! - A contract that needs the word of a person waits for it before anything is begun.
//! - An attempt that is fixed stays in the state with its refusal; see [`fix`].

mod consent;
mod cross_tests;
pub mod effect;
pub mod fact;
pub mod fix;
pub mod judge;
pub mod learn;
mod next;
pub mod refs;
pub mod spent;
mod state;
pub mod why;

pub use cross_tests::Round;
pub use next::Next;
pub use state::{BadLedger, Misplaced, Site, State};

use serde::{Deserialize, Serialize};

/// Something that has to be done to the machine in the course of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Get the right to the scope.
    Lease,
    /// Have the dependencies of the base made, where that was not done before.
    Prepare,
    /// Make the private directory of an attempt.
    Workspace,
    /// Let a probe try to get out of the sandbox.
    Selftest,
    /// Let the agent work.
    Agent,
    /// Turn what it left into a tree.
    Capture,
    /// Let somebody else look at the candidate.
    Review,
    /// Run the acceptance commands on the base.
    BaseAcceptance,
    /// Run the acceptance commands on the candidate.
    Acceptance,
    /// Run them on the candidate with the tests of the base; nothing follows from it.
    OldTests,
    /// Run them on the base with the tests of the candidate; nothing follows from it.
    NewTests,
    /// Wait, and write the contract of an attempt that fixes this one.
    Fix,
    /// Leave a branch with exactly the candidate.
    Publish,
    /// Save what is not saved yet, and remove the workspace.
    Clean,
}

/// A question that a pure function answers from the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Does the contract keep every rule?
    Policy,
    /// Did the sandbox hold?
    #[serde(alias = "box")]
    Sandbox,
    /// Did the agent end well?
    Agent,
    /// Does its structured result fit the schema?
    Output,
    /// Is the change within the contract?
    Diff,
    /// Does whoever reviewed the candidate let it through?
    Review,
    /// Did the acceptance commands pass?
    Acceptance,
    /// Is the tree they judged unchanged?
    Tree,
}

impl Gate {
    /// The name in reports and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Sandbox => "sandbox",
            Self::Agent => "agent",
            Self::Output => "output",
            Self::Diff => "diff",
            Self::Review => "review",
            Self::Acceptance => "acceptance",
            Self::Tree => "tree",
        }
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
