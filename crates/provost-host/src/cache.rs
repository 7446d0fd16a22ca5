//! Names of the directories in the cache of a repository.

/// Workspaces, one directory per run.
pub const WORKSPACES: &str = "ws";
/// Pristine checkouts, by tree.
pub const CHECKOUTS: &str = "lower";
/// Prepared layers, by the digest of their inputs.
pub const LAYERS: &str = "layer";
/// Build caches of trusted commits, by what they were made by.
pub const BUILDS: &str = "build";
/// Results of acceptance commands on the base trees of runs.
pub const RESULTS: &str = "tests";
/// Logs of preparation steps that no run asked for.
pub const PREPARED: &str = "prepared";
/// Self-tests that passed, by boot of the machine.
pub const SANDBOXES: &str = provost_sandbox::REMEMBERED;
/// Directories that are being removed; also in the runtime root.
pub const REMOVED: &str = "removed";
/// Marks that overlays work here, since this boot of the machine.
pub const OVERLAYS_WORK: &str = "overlay-works";
