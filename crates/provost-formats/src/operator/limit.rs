//! Limits on lengths and counts in the operator contracts.

/// The longest objective of a run, in characters.
pub(crate) const LONGEST_OBJECTIVE: usize = 5000;
/// The longest title of a task, in characters.
pub(crate) const LONGEST_TITLE: usize = 500;
/// The shortest time between heartbeats, in seconds.
pub(crate) const SHORTEST_HEARTBEAT: u64 = 5;
/// How many notes a worker may leave.
pub(crate) const MOST_NOTES: usize = 5;
