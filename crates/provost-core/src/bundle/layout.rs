//! Names of the bundle's files that more than one part of the program uses.

use serde::{Deserialize, Serialize};

/// The naming scheme of a bundle; bundles of every format stay verifiable.
///
/// Events, gates and codes are read by the names of every format and written by those of the
/// newest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub enum BundleFormat {
    /// The sandbox is called `box`. The first event names no format.
    #[default]
    One,
    /// The sandbox is called `sandbox`.
    Two,
}

impl BundleFormat {
    /// The format of new runs.
    pub const NEWEST: Self = Self::Two;

    /// The word for the sandbox, in names of files and fields.
    pub fn sandbox(self) -> &'static str {
        match self {
            Self::One => "box",
            Self::Two => "sandbox",
        }
    }

    /// The file with the results of the sandbox self-test.
    pub fn selftest(self) -> &'static str {
        match self {
            Self::One => "box/selftest.json",
            Self::Two => "sandbox/selftest.json",
        }
    }

    /// The file with the network traffic of the sandboxes.
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

/// The digests of all sealed files.
pub const MANIFEST: &str = "manifest.json";
pub const LEDGER: &str = "events.jsonl";
/// The signed statement; the run is sealed once it exists.
pub const ATTESTATION: &str = "attestation.dsse.json";
/// The ledger of what happened after the seal.
pub const AFTER: &str = "after.jsonl";
/// The lock of the driver; it names the process that drove last.
pub const DRIVER_LOCK: &str = "driver.lock";

pub const CONTRACT: &str = "contract.json";
/// What a planner was asked; the first file of a record about a plan.
pub const REQUEST: &str = "request.json";
/// The patch.
pub const PATCH: &str = "patch.diff";
/// The changed paths.
pub const CHANGED: &str = "diff_name_only.txt";
/// The base commit.
pub const BASELINE: &str = "git/baseline_commit.txt";
/// A copy of the patch, beside the other facts of git.
pub const PATCH_COPY: &str = "git/patch.diff";
/// A copy of the changed paths.
pub const CHANGED_COPY: &str = "git/diff_name_only.txt";
/// The trace id that joins this run's records across tools.
pub const TRACE: &str = "trace/trace_id.txt";
/// The environment of the run: versions and settings.
pub const META: &str = "meta.json";
/// Where the agent worked.
pub const WORKED_IN: &str = "worktree_ref.txt";
/// The acceptance commands, as they were run.
pub const TEST_COMMANDS: &str = "tests/command.txt";
/// Their standard output.
pub const TEST_OUTPUT: &str = "tests/stdout.log";
/// Their standard error.
pub const TEST_ERRORS: &str = "tests/stderr.log";
/// The git objects that prove the patch.
pub const PACK: &str = "git/objects.pack";
pub const TASK_RESULT: &str = "reports/task_result.json";
pub const WORK_REPORT: &str = "reports/work_report.json";
pub const REVIEW_REPORT: &str = "reports/review_report.json";
pub const TEST_REPORT: &str = "reports/test_report.json";
pub const EVIDENCE_REPORT: &str = "reports/evidence_report.json";
/// The schema that the result of the agent is bound to.
pub const OUTPUT_SCHEMA: &str = "artifacts/output_schema.json";
/// The structured result, as the agent left it.
pub const AGENT_RESULT: &str = "artifacts/agent_result.json";
/// What a search found.
pub const EVIDENCE_BUNDLE: &str = "reports/evidence_bundle.json";

/// Files in the directory of a run that its manifest cannot name: the manifest itself, the
/// signature over it, the ledger after the seal, and the lock.
///
/// Verification checks the content of each, because no digest covers it.
pub const BESIDE: [&str; 4] = [MANIFEST, ATTESTATION, AFTER, DRIVER_LOCK];

/// The most bytes of a change, before and after together.
///
/// Its patch is a file of the bundle, which every verifier reads.
pub const MOST_CHANGED: u64 = 48 << 20;
/// The largest file of a bundle: a patch has up to twice the bytes of its change, plus names.
pub const LARGEST_FILE: u64 = 3 * MOST_CHANGED;
/// The most bytes of the patches of all attempts but the last one, together; beyond that, those of
/// the oldest attempts are left out.
pub const MOST_EARLIER: u64 = LARGEST_FILE;
/// The most bytes of all files of a bundle: the patch is stored up to five times, those of earlier
/// attempts twice, beside all objects.
pub const MOST_BYTES: u64 = 6 * LARGEST_FILE + 2 * MOST_EARLIER;

/// The directory of files that are written after the seal, each named by a record of [`AFTER`].
pub const LATER: &str = "after/";

/// Whether `name` is a file that may be written after the seal.
pub fn is_later(name: &str) -> bool {
    name.starts_with(LATER)
}
