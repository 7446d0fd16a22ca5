//! The names of what the cache of a repository holds.

/// Workspaces, one directory a run.
pub const WORKSPACES: &str = "ws";
/// Pristine checkouts, by tree.
pub const CHECKOUTS: &str = "lower";
/// Prepared layers, by what they follow from.
pub const LAYERS: &str = "layer";
/// What the acceptance commands said about trees that runs started from.
pub const RESULTS: &str = "tests";
/// Logs of steps of preparation that no run asked for.
pub const PREPARED: &str = "prepared";
/// Self-tests that held, by the start of the machine.
pub const SANDBOXES: &str = "sandboxes";
/// Directories on the way out; also in the runtime root.
pub const REMOVED: &str = "removed";
/// Says that overlays work here, since this start of the machine.
pub const OVERLAYS_WORK: &str = "overlay-works";
