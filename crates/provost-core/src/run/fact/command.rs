//! Results of sandboxed commands: exit, output, and the tree they ran on.

use serde::{Deserialize, Serialize};

use super::{CacheStart, CacheUse, Layered, WarmRound};
use crate::object::Oid;
use crate::path::RawPath;
use crate::tally::Tally;
use crate::time;
use crate::words;

words! {
    #[derive(PartialOrd, Ord, Deserialize)]
    pub enum Side {
        /// The tree the work started from.
        Base = "base",
        /// The same tree, in a second round.
        BaseAgain = "base_again",
        /// The tree that would land.
        Candidate = "candidate",
        /// The merge of that tree with a target that moved after the seal.
        Merged = "merged",
        /// The tree that would land, with the test files of the base.
        OldTests = "old_tests",
        /// The tree the work started from, with the test files that would land.
        NewTests = "new_tests",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    pub side: Side,
    pub tree: Oid,
    /// Whether an earlier run of the same commands on the same tree in the same sandbox was reused.
    pub cached: bool,
    /// SHA-256 of the sandbox profile, without the build caches.
    pub profile: String,
    /// The prepared layers in the sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layered>,
    /// How it started; absent where the project has no build cache that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheUse>>,
    /// In the contract's order.
    pub commands: Vec<CommandRun>,
    /// Paths of the tree that the commands changed or removed.
    pub altered: Vec<RawPath>,
}

impl TestRun {
    /// Every command that ran for it, including those that made a layer and those of a warm round
    /// that was repeated.
    pub fn everything(&self) -> impl Iterator<Item = &CommandRun> {
        let made = self.layers.iter().filter_map(|layer| layer.made.as_ref());
        let warm = self.refused_warm().into_iter();
        let warm = warm.flat_map(|warm| &warm.commands);
        made.flat_map(|made| &made.commands)
            .chain(warm)
            .chain(&self.commands)
    }

    /// Whether it started on build caches.
    pub fn is_warm(&self) -> bool {
        let start = self.cache.as_ref().map(|cache| cache.start);
        start == Some(CacheStart::Warm)
    }

    /// The warm round that it replaced.
    pub fn refused_warm(&self) -> Option<&WarmRound> {
        self.cache.as_ref()?.refused.as_ref()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// Its name in the contract.
    pub name: String,
    pub argv: Vec<String>,
    pub ending: Ending,
    /// When it started, as RFC 3339; absent in ledgers from before this was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// Duration, in milliseconds.
    pub wall_ms: u64,
    pub stdout: Stream,
    pub stderr: Stream,
    /// How many tests it ran, if its output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
}

impl CommandRun {
    /// When it ended, as RFC 3339, if its start is known.
    pub fn ended(&self) -> Option<String> {
        let began = time::parse(self.began.as_ref()?).ok()?;
        let millis = i64::try_from(self.wall_ms).ok()?;
        Some(time::render(began.saturating_add(millis)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal killed it.
    Signalled(i32),
    /// It reached its wall-clock limit.
    TimedOut,
    OutputLimit,
    MemoryLimit,
    /// It reached its process limit.
    ProcessLimit,
    /// Its workspace exceeded the disk limit.
    DiskLimit,
    /// Its workspace exceeded the limit on the number of files.
    InodeLimit,
    /// It made no progress for too long.
    NoProgress,
    /// It used up its budget.
    Overspent,
    /// Its model did not work.
    NoModel,
    /// It was finished, or its output could not be parsed further.
    Dismissed,
    /// The run was cancelled.
    Cancelled,
    /// The lease on the scope was lost.
    LeaseLost,
    /// It never started: its program does not exist in the sandbox.
    NotStarted,
}

/// One output stream of a sandboxed process, kept as a file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    pub file: String,
    /// Bytes written by the process.
    pub bytes: u64,
    /// Bytes of the file.
    pub kept: u64,
    /// SHA-256 of the file.
    pub sha256: String,
    /// How many secrets were removed; the sizes are of what was left.
    #[serde(default, skip_serializing_if = "none")]
    pub redacted: u64,
    /// Whether it was too long, and its middle is missing in the file.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_whole(cut: &bool) -> bool {
    !*cut
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
pub(super) fn none(count: &u64) -> bool {
    *count == 0
}
