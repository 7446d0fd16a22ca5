//! `fleet.toml`: what this machine says about servers, hubs and agents. A ticket names them, and
//! never says where they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::code::Code;
use serde::{Deserialize, Serialize};

use crate::failure::{FleetFailure, FleetResult};

/// The largest file of settings that is read, in bytes.
const LARGEST: u64 = 256 * 1024;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    /// The name of this machine in reports.
    #[serde(default = "machine")]
    pub name: String,
    /// The Temporal server.
    #[serde(default = "local_server")]
    pub server: String,
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The program `provost`.
    #[serde(default = "program")]
    pub provost: PathBuf,
    /// Where clones of hubs and records of attempts are.
    #[serde(default)]
    pub state: Option<PathBuf>,
    #[serde(default)]
    pub hubs: BTreeMap<String, HubSettings>,
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSettings>,
    #[serde(default)]
    pub intervals: Intervals,
    /// A file that gets measurements in the text format of Prometheus.
    #[serde(default)]
    pub metrics: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubSettings {
    pub url: String,
}

/// An agent: a name that `provost run --agent` knows, or a command.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AgentSettings {
    Agent(String),
    Cmd(String),
}

/// How long things take, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Intervals {
    /// Between two heartbeats of a worker.
    pub heartbeat_ms: u64,
    /// A worker without a heartbeat for so long has lost its attempt.
    pub heartbeat_timeout_ms: u64,
    /// The limit of one attempt, whatever its heartbeats say.
    pub attempt_ms: u64,
    /// Between two looks at a queue of leases.
    pub poll_ms: u64,
    /// The limit of one command of git.
    pub git_ms: u64,
    /// How long a worker tries to reach the hub.
    pub hub_ms: u64,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            heartbeat_ms: 10_000,
            heartbeat_timeout_ms: 180_000,
            attempt_ms: 4 * 3_600_000,
            poll_ms: 2_000,
            git_ms: 120_000,
            hub_ms: 3_600_000,
        }
    }
}

impl Intervals {
    pub fn heartbeat(self) -> Duration {
        Duration::from_millis(self.heartbeat_ms.max(50))
    }

    pub fn poll(self) -> Duration {
        Duration::from_millis(self.poll_ms.max(50))
    }

    pub fn git(self) -> Duration {
        Duration::from_millis(self.git_ms.max(1_000))
    }
}

fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn local_server() -> String {
    "http://127.0.0.1:7233".to_owned()
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn program() -> PathBuf {
    let beside = std::env::current_exe().ok();
    let beside = beside.map(|program| program.with_file_name("provost"));
    beside
        .filter(|program| program.is_file())
        .unwrap_or_else(|| "provost".into())
}

/// A directory of this user, by the rules of XDG.
pub fn user_directory(variable: &str, otherwise: &str) -> FleetResult<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let found = named.or_else(|| home.map(|home| home.join(otherwise)));
    found.filter(|path| path.is_absolute()).ok_or_else(|| {
        let reason = format!("neither {variable} nor HOME names an absolute directory");
        FleetFailure::new(Code::HostFailed, reason)
    })
}

/// The file of settings: `named`, or `PROVOST_FLEET_CONFIG`, or the one of this user.
fn place(named: Option<&Path>) -> FleetResult<PathBuf> {
    let variable = || std::env::var_os("PROVOST_FLEET_CONFIG").map(PathBuf::from);
    match named.map(Path::to_owned).or_else(variable) {
        Some(path) => Ok(path),
        None => Ok(user_directory("XDG_CONFIG_HOME", ".config")?.join("provost/fleet.toml")),
    }
}

impl FleetSettings {
    pub fn read(named: Option<&Path>) -> FleetResult<Self> {
        let path = place(named)?;
        let shown = path.display();
        let unfit = |reason: String| {
            FleetFailure::new(Code::WorkerUnfit, reason)
                .hint("provost explain WORKER_UNFIT; `provost-fleet dev` writes an example")
        };
        let bytes = provost_fs::regular_file::read(&path, LARGEST)
            .map_err(|error| unfit(format!("`{shown}` cannot be read: {error}")))?
            .ok_or_else(|| unfit(format!("there is no `{shown}`")))?;
        let text = String::from_utf8(bytes).map_err(|_| unfit(format!("`{shown}` is not text")))?;
        toml::from_str(&text).map_err(|error| unfit(format!("`{shown}`: {error}")))
    }

    /// Where clones and records of attempts are.
    pub fn state(&self) -> FleetResult<PathBuf> {
        match &self.state {
            Some(path) => Ok(path.clone()),
            None => Ok(user_directory("XDG_STATE_HOME", ".local/state")?.join("provost/fleet")),
        }
    }

    pub fn hub(&self, name: &str) -> FleetResult<&HubSettings> {
        self.hubs.get(name).ok_or_else(|| {
            let reason = format!("fleet.toml of this machine names no hub `{name}`");
            FleetFailure::new(Code::WorkerUnfit, reason)
        })
    }

    /// The words that make `provost run` start the agent `name`.
    pub fn agent(&self, name: &str) -> FleetResult<[String; 2]> {
        match self.agents.get(name) {
            Some(AgentSettings::Agent(agent)) => Ok(["--agent".to_owned(), agent.clone()]),
            Some(AgentSettings::Cmd(command)) => Ok(["--agent-cmd".to_owned(), command.clone()]),
            None => {
                let reason = format!("fleet.toml of this machine names no agent `{name}`");
                Err(FleetFailure::new(Code::WorkerUnfit, reason))
            }
        }
    }
}
