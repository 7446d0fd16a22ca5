//! What sandboxed commands did: how they ended, what they printed, and on which tree.

use serde::{Deserialize, Serialize};

use super::Layered;
use crate::object::Oid;
use crate::path::RawPath;
use crate::tally::Tally;
use crate::time;

/// Which tree the acceptance commands ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The tree the work started from.
    Base,
    /// The tree that would land.
    Candidate,
    /// The merge of that tree with a target that moved after the seal.
    Merged,
    /// The tree that would land, with the test files of the base.
    OldTests,
    /// The tree the work started from, with the test files that would land.
    NewTests,
}

/// One run of all acceptance commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    pub side: Side,
    /// On exactly this tree.
    pub tree: Oid,
    /// Whether an earlier run of the same commands on the same tree in the same sandbox is repeated.
    pub cached: bool,
    /// SHA-256 of the sandbox profile.
    pub profile: String,
    /// The prepared layers in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layered>,
    /// The commands, in the contract's order.
    pub commands: Vec<CommandRun>,
    /// Paths of the tree that the commands changed or removed.
    pub altered: Vec<RawPath>,
}

impl TestRun {
    /// Every command that ran for it, also those that made a layer.
    pub fn everything(&self) -> impl Iterator<Item = &CommandRun> {
        let made = self.layers.iter().filter_map(|layer| layer.made.as_ref());
        made.flat_map(|made| &made.commands).chain(&self.commands)
    }
}

/// One run of one acceptance command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// Its name in the contract.
    pub name: String,
    /// What was executed.
    pub argv: Vec<String>,
    pub ending: Ending,
    /// When it began, as RFC 3339; ledgers from before this was measured have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// How long it took.
    pub wall_ms: u64,
    /// What it printed.
    pub stdout: Stream,
    /// What it complained.
    pub stderr: Stream,
    /// How many tests it ran, where its output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
}

impl CommandRun {
    /// When it ended, as RFC 3339, where it is known when it began.
    pub fn ended(&self) -> Option<String> {
        let began = time::parse(self.began.as_ref()?).ok()?;
        let millis = i64::try_from(self.wall_ms).ok()?;
        Some(time::render(began.saturating_add(millis)))
    }
}

/// How a sandboxed process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// At its wall-clock limit.
    TimedOut,
    OutputLimit,
    MemoryLimit,
    /// At its limit of processes.
    ProcessLimit,
    /// Its workspace took more of the disk than its limit.
    DiskLimit,
    /// Its workspace held more files than its limit.
    InodeLimit,
    /// It got nowhere for too long.
    NoProgress,
    /// At the end of what it may spend.
    Overspent,
    /// Because its model could not be worked with.
    NoModel,
    /// Because it was through, or nothing that it said could be understood any more.
    Dismissed,
    /// Because somebody cancelled the run.
    Cancelled,
    /// Because the lease on the scope was lost.
    LeaseLost,
    /// It never began: its program is not in the sandbox.
    NotStarted,
}

/// One stream of a sandboxed process, kept as a file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The file in the bundle.
    pub file: String,
    /// Bytes written by the process.
    pub bytes: u64,
    /// Bytes of the file.
    pub kept: u64,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Secrets that were taken out of it; the numbers are of what was left.
    #[serde(default, skip_serializing_if = "none")]
    pub redacted: u64,
    /// Whether it was too long, and its middle is missing in the file.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub cut: bool,
}

/// Whether nothing is missing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_whole(cut: &bool) -> bool {
    !*cut
}

/// Whether nothing was counted.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
pub(super) fn none(count: &u64) -> bool {
    *count == 0
}
