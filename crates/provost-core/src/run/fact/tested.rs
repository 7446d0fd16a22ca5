//! What probes found out about the sandboxes of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tier::Processes;

/// What probes found out about the sandboxes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxTest {
    pub tier: String,
    /// Whose processes are seen inside.
    #[serde(default, skip_serializing_if = "Processes::is_own")]
    pub processes: Processes,
    /// What sandboxes of this tier do not stop, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<String>,
    /// Whether every probe was there and held, in both sandboxes, but for those that show a hole of the
    /// tier.
    pub held: bool,
    pub kernel: String,
    /// Which start of the machine.
    #[serde(default)]
    pub boot: String,
    /// SHA-256 of the launcher.
    pub launcher: String,
    /// SHA-256 of the agent's profile.
    pub profile: String,
    /// What holds each limit that not every machine can hold exactly.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// What was tried in the agent's sandbox. Records from before it was told hold nothing here, which
    /// passes no gate.
    #[serde(default)]
    pub agent: Probed,
    /// What was tried in the sandbox of the acceptance commands.
    #[serde(default)]
    pub acceptance: Probed,
}

/// What was tried in one sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// SHA-256 of the profile without what differs from run to run and makes no wall.
    pub shape: String,
    /// Whether it was tried earlier, on the same kernel, start, launcher and shape.
    pub cached: bool,
    pub attempts: Vec<Probe>,
}

/// One attempt to get out of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub name: String,
    /// The walls in its way.
    pub walls: Vec<String>,
    pub tried: String,
    /// Whether the walls held.
    pub held: bool,
    /// What the kernel answered, if it refused.
    pub errno: Option<i32>,
}

impl SandboxTest {
    /// Every attempt, with the sandbox it was made in.
    pub fn attempts(&self) -> impl Iterator<Item = (&'static str, &Probe)> {
        let agent = self.agent.attempts.iter().map(|it| ("agent", it));
        let acceptance = self.acceptance.attempts.iter();
        agent.chain(acceptance.map(|it| ("acceptance", it)))
    }
}
