//! Names the files of a bundle that more than one part of the program has to know.

use serde::{Deserialize, Serialize};

/// The names that files and fields of a bundle have; a bundle of any format verifies for ever.
///
/// Events, gates and codes are read by the names of every format and written by those of the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub enum BundleFormat {
    /// The sandbox is called `box`. Its first event names no format.
    #[default]
    One,
    /// The sandbox is called `sandbox`.
    Two,
}

impl BundleFormat {
    /// What new runs are written in.
    pub const NEWEST: Self = Self::Two;

    /// The word for the sandbox, in names of files and fields.
    pub fn sandbox(self) -> &'static str {
        match self {
            Self::One => "box",
            Self::Two => "sandbox",
        }
    }

    /// The file that says what the attacks on the sandboxes came to.
    pub fn selftest(self) -> &'static str {
        match self {
            Self::One => "box/selftest.json",
            Self::Two => "sandbox/selftest.json",
        }
    }

    /// The file that says what was asked of the network.
    pub fn network(self) -> &'static str {
        match self {
            Self::One => "box/network.json",
            Self::Two => "sandbox/network.json",
        }
    }
}

impl From<BundleFormat> for u32 {
    fn from(format: BundleFormat) -> Self {
        match format {
            BundleFormat::One => 1,
            BundleFormat::Two => 2,
        }
    }
}

impl TryFrom<u32> for BundleFormat {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            other => Err(format!("bundle format {other} is newer than this program")),
        }
    }
}

/// The digests of everything that was sealed.
pub const MANIFEST: &str = "manifest.json";
/// The ledger of the run.
pub const LEDGER: &str = "events.jsonl";
/// The signed statement; once it is there the run is sealed.
pub const ATTESTATION: &str = "attestation.dsse.json";
/// The ledger of what came after the seal.
pub const AFTER: &str = "after.jsonl";
/// The lock of the driver, which holds who drove last.
pub const DRIVER_LOCK: &str = "driver.lock";

pub const CONTRACT: &str = "contract.json";
/// The difference.
pub const PATCH: &str = "patch.diff";
/// The paths that differ.
pub const CHANGED: &str = "diff_name_only.txt";
/// The commit the work began from.
pub const BASELINE: &str = "git/baseline_commit.txt";
/// The difference once more, beside the other facts of git.
pub const PATCH_COPY: &str = "git/patch.diff";
/// The paths that differ once more.
pub const CHANGED_COPY: &str = "git/diff_name_only.txt";
/// What calls of this run are found by elsewhere.
pub const TRACE: &str = "trace/trace_id.txt";
/// What the run was made with.
pub const META: &str = "meta.json";
/// Where the agent worked.
pub const WORKED_IN: &str = "worktree_ref.txt";
/// The acceptance commands, as they were run.
pub const TEST_COMMANDS: &str = "tests/command.txt";
/// What they printed.
pub const TEST_OUTPUT: &str = "tests/stdout.log";
/// What they complained of.
pub const TEST_ERRORS: &str = "tests/stderr.log";
/// The objects that prove the difference.
pub const PACK: &str = "git/objects.pack";
/// What the task came to.
pub const TASK_RESULT: &str = "reports/task_result.json";
/// What was done.
pub const WORK_REPORT: &str = "reports/work_report.json";
/// Who looked at it.
pub const REVIEW_REPORT: &str = "reports/review_report.json";
/// What the tests said.
pub const TEST_REPORT: &str = "reports/test_report.json";
pub const EVIDENCE_REPORT: &str = "reports/evidence_report.json";

/// What lies in the directory of a run and cannot be named in its manifest: the manifest itself,
/// what is signed over it, what comes after the seal, and the lock.
///
/// Everything here is looked into by verification, because no digest covers it.
pub const BESIDE: [&str; 4] = [MANIFEST, ATTESTATION, AFTER, DRIVER_LOCK];

/// The most bytes a change has, before and after it together.
///
/// Its patch is a file of the bundle, and everybody who verifies the bundle reads it.
pub const MOST_CHANGED: u64 = 48 << 20;
/// The largest file of a bundle: a patch has up to twice the bytes of its change, and names.
pub const LARGEST_FILE: u64 = 3 * MOST_CHANGED;
/// The most bytes that the patches of all attempts but the last one have together; of more, those of
/// the oldest attempts are left out.
pub const MOST_EARLIER: u64 = LARGEST_FILE;
/// What all files of a bundle have together: the patch lies there four times, beside those of earlier
/// attempts and the objects of all.
pub const MOST_BYTES: u64 = 5 * LARGEST_FILE + MOST_EARLIER;

/// The directory of files that are written after the seal, each named by a record of [`AFTER`].
pub const LATER: &str = "after/";

/// Whether `name` is a file that may be written after the seal.
pub fn is_later(name: &str) -> bool {
    name.starts_with(LATER)
}
