//! The state machine of a run: its events so far, and its next step.
//!
//! # Invariants
//!
//! - The state is a fold over the facts of a ledger; there is no other memory.
//! - [`State::next`] says what to do next and never does it.
//! - A refusal ends the run: no later step is done. Only the diff gate still judges the captured
//!   work, and the first refusal remains the answer.
//! - Only an agent is never repeated: if its driver dies, the agent is lost and another attempt is
//!   started.
//! - A contract that needs approval waits for it before any step starts.
//! - A refused attempt that is being fixed stays in the state with its refusal; see [`fix`].
//! - A run of work that exists already starts no agent: no step and no gate about one is in its
//!   ledger, and its sandbox is tested after the diff gate.

pub mod cross_tests;
pub mod effect;
pub mod fact;
pub mod fix;
pub mod judge;
pub mod keep_work;
mod next;
pub mod refs;
pub mod search;
pub mod spent;
mod state;

pub use cross_tests::Round;
pub use next::Next;
pub use state::{BadLedger, Misplaced, Site, State};

use serde::{Deserialize, Serialize};

use crate::words;

/// A step of a run that acts on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Lease the scope.
    Lease,
    /// Make the prepared layers of the base, unless they exist.
    Prepare,
    /// Make the private directory of an attempt.
    Workspace,
    /// Probe the sandbox for ways out.
    Selftest,
    /// Run the agent.
    Agent,
    /// Turn the workspace into a tree.
    Capture,
    /// Have another agent review the candidate.
    Review,
    /// Run the acceptance commands on the base.
    BaseAcceptance,
    /// Run them on the base once more, to see which tests fail twice.
    BaseAgain,
    /// Run the acceptance commands on the candidate.
    Acceptance,
    /// Run them on the candidate with the tests of the base; no verdict depends on it.
    OldTests,
    /// Run them on the base with the tests of the candidate; no verdict depends on it.
    NewTests,
    /// Wait, and write the contract of the next fix attempt.
    Fix,
    /// Leave a branch with exactly the candidate.
    Publish,
    /// Save unsaved work, and remove the workspace.
    Clean,
}

words! {
    /// A pure function that judges the facts.
    #[derive(PartialOrd, Ord, Deserialize)]
    pub enum Gate {
        /// Is every server that the contract names integrated: one of the policy, and permitted?
        Integrated = "integrated",
        /// Does no server get to ask the model of the agent?
        Sampling = "sampling",
        /// Does the contract follow every rule?
        Policy = "policy",
        /// Did the sandbox pass its self-test?
        #[serde(alias = "box")]
        Sandbox = "sandbox",
        /// Did the agent succeed?
        Agent = "agent",
        /// Does its structured result match the schema?
        Output = "output",
        /// Is the change within the contract?
        Diff = "diff",
        /// Does the reviewer accept the candidate?
        Review = "review",
        /// Did the acceptance commands pass?
        Acceptance = "acceptance",
        /// Is the tree they tested unchanged?
        Tree = "tree",
    }
}

#[cfg(test)]
pub(crate) mod tests;
