//! The results of probing the sandboxes of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle::report::Nullable;
use crate::tier::Processes;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxTest {
    pub tier: String,
    /// Which processes are visible inside.
    #[serde(default, skip_serializing_if = "Processes::is_own")]
    pub processes: Processes,
    /// The version of Landlock inside; absent in records from before it could be below 6.
    #[serde(
        default,
        deserialize_with = "crate::closed::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub landlock: Option<u32>,
    /// What this version of Landlock leaves to the other restrictions of the tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_gaps: Vec<String>,
    /// What sandboxes of this tier do not stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<String>,
    /// Whether every probe ran and was stopped, in both sandboxes, except those for a known hole of
    /// the tier.
    pub held: bool,
    pub kernel: String,
    /// The boot id of the machine.
    #[serde(default)]
    pub boot: String,
    /// SHA-256 of the launcher.
    pub launcher: String,
    /// SHA-256 of the profile of the agent, or of the acceptance commands if none is started.
    pub profile: String,
    /// The mechanism for each limit that not every machine can enforce exactly.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// The probes of the agent's sandbox; empty if none is started. In records from before they
    /// were recorded it is empty, too, which passes no gate.
    #[serde(default)]
    pub agent: Probed,
    /// The probes of the acceptance commands' sandbox.
    #[serde(default)]
    pub acceptance: Probed,
    /// The agent that the sandbox is for; absent if none is started, and in records from before it
    /// was recorded.
    #[serde(
        default,
        deserialize_with = "crate::closed::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub program: Option<AgentProgram>,
}

/// What an agent is started with, so that two runs can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentProgram {
    /// What the program answered to `--version`; absent for a command, which is not asked.
    #[serde(
        default,
        deserialize_with = "crate::closed::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub version: Option<String>,
    /// SHA-256 of the variables of its sandbox as canonical JSON, without the id of the run.
    pub environment: String,
}

/// The probes of one sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probed {
    /// SHA-256 of the profile without the parts that differ from run to run and restrict nothing.
    pub shape: String,
    /// Whether it was probed earlier, on the same kernel, boot, launcher and shape.
    pub cached: bool,
    pub attempts: Vec<Probe>,
}

/// One attempt to get out of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    pub name: String,
    /// The restrictions that should stop it.
    pub walls: Vec<String>,
    pub tried: String,
    /// Whether they stopped it.
    pub held: bool,
    /// The error of the kernel, if it refused.
    #[schemars(with = "Nullable<i32>")]
    #[serde(default)]
    pub errno: Option<i32>,
}

impl SandboxTest {
    /// Every probe, with the sandbox it ran in.
    pub fn attempts(&self) -> impl Iterator<Item = (&'static str, &Probe)> {
        let agent = self.agent.attempts.iter().map(|it| ("agent", it));
        let acceptance = self.acceptance.attempts.iter();
        agent.chain(acceptance.map(|it| ("acceptance", it)))
    }
}
