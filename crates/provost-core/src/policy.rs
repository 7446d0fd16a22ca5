//! The repository's own policy: the rules that `provost.toml` of the base commit adds.
//!
//! It is never read from a working directory: an agent, or a change that has not landed, must not
//! choose the rules it is judged by.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::agent::written::WrittenBudget;
use crate::agent::{self, Agent, SpendLimits};
use crate::approval::Unasked;
use crate::children::ChildGrant;
use crate::children::policy::{self as family, FamilyPolicies};
use crate::contract::limits::Asked;
use crate::document::toml;
use crate::gate::command;
use crate::json::{self, ReadError};
use crate::net::endpoint::Endpoint;
use crate::path::RepoPath;
use crate::prepare::{self, Output, RawStep, Step};
use crate::protect::{EDITION, Extra};
use crate::question::{AskRules, Needs};
use crate::run::fact::{CacheRules, CacheStart, WorkspaceChoice};
use crate::scope::Scope;
use crate::tier::Tier;

mod ask;
pub mod fleet;
pub mod run;
#[cfg(test)]
mod tests;

use ask::WrittenAsk;
use fleet::{FleetKeys, WrittenFleet};
use run::{RunDefaults, WrittenRun};

pub const FILE: &str = "provost.toml";

/// The largest policy that is read, in bytes.
pub const LARGEST: usize = 256 * 1024;

/// The rules that a repository adds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Policy {
    /// Additional protected files.
    pub protect: Extra,
    /// Additional acceptance commands, as argv prefixes.
    pub commands: Vec<Vec<String>>,
    /// Agents by name.
    pub agents: BTreeMap<String, Agent>,
    /// MCP servers that an agent can get, by name, each an argument vector.
    pub servers: BTreeMap<String, Vec<String>>,
    /// The name of the agent that reviews every candidate.
    pub review: Option<String>,
    pub workspace: WorkspaceChoice,
    /// Whether sandboxes have no loopback interface.
    pub loopback_off: bool,
    /// What acceptance commands may start with.
    pub cache: CacheRules,
    /// Layers that are made once, and read by agents and acceptance commands.
    pub prepare: Vec<Step>,
    /// Default limits of contracts.
    pub limits: Asked,
    /// The weakest sandbox that a contract may ask for.
    pub least_tier: Tier,
    /// What contracts from files may ask for without approval.
    pub approve: Unasked,
    /// How the questions of an agent are asked and answered.
    pub ask: AskRules,
    /// What runs and days may cost.
    pub budget: SpendLimits,
    /// Whether the bodies of requests to models, and of their answers, are kept.
    pub record_bodies: bool,
    /// What a contract has that a person types, where no flag says otherwise.
    pub run: RunDefaults,
    /// Whether the hooks of git refuse what is bound to no contract.
    pub hooks_require: bool,
    /// The policies that requests for children can name.
    pub policies: FamilyPolicies,
    /// The children of all parts of a case together.
    pub case_children: Option<ChildGrant>,
    /// Whose tickets, evidence and landings count.
    pub fleet: FleetKeys,
}

/// A policy as written in `provost.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    protect: WrittenProtect,
    commands: WrittenCommands,
    agents: BTreeMap<String, agent::written::Written>,
    mcp: BTreeMap<String, WrittenServer>,
    review: WrittenReview,
    workspace: WrittenWorkspace,
    r#box: Option<WrittenBox>,
    sandbox: Option<WrittenBox>,
    cache: WrittenCache,
    prepare: Vec<RawStep>,
    limits: Asked,
    approve: WrittenApprove,
    ask: WrittenAsk,
    budget: WrittenBudget,
    record: WrittenRecord,
    run: WrittenRun,
    hooks: WrittenHooks,
    fleet: WrittenFleet,
    policies: FamilyPolicies,
    case: WrittenCase,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenCase {
    children: Option<ChildGrant>,
}

/// What a user says for all repositories; nothing here is about a scope or a command.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct UserFile {
    pub budget: SpendLimits,
    /// The agent of runs for which neither a flag nor the repository names one.
    pub agent: Option<String>,
    pub notify: Option<Notify>,
    /// How long the questions of an agent wait, in seconds.
    pub ask_wait_sec: Option<u64>,
    /// What a yes needs; the stricter of this and the policy counts.
    pub needs: Needs,
    /// Whether bodies are kept on this machine, whatever a repository says.
    pub record_bodies: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenUserFile {
    budget: WrittenBudget,
    record: WrittenRecord,
    ask: WrittenAsk,
    approve: WrittenUserApprove,
    notify: Option<Notify>,
    agent: Option<String>,
}

/// What a user says about approvals: nothing that permits more than a repository does.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenUserApprove {
    needs: Needs,
}

/// How a user learns that a run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    Bell,
    Desktop,
    /// A command, word by word; the message is added.
    #[serde(untagged)]
    Command(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenApprove {
    paths: Vec<String>,
    oracle: Vec<String>,
    governing: Vec<String>,
    net: Vec<String>,
    authors: Vec<String>,
    tier: Tier,
    fewer_tests: bool,
    idle_commands: bool,
    needs: Needs,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenBox {
    loopback: Option<bool>,
    least_tier: Tier,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenServer {
    command: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenHooks {
    require: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenRecord {
    bodies: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenReview {
    agent: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenWorkspace {
    kind: WorkspaceChoice,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenCache {
    acceptance: Vec<String>,
    candidate: Option<CacheStart>,
    land: Option<CacheStart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenProtect {
    oracle: Vec<String>,
    governing: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenCommands {
    allow: Vec<String>,
}

/// A problem of a policy that parses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Flaw(String);

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// Not TOML, or not of the fields that a policy has.
    // No `#[from]`: the message has its words, so it is no cause beside it.
    #[error("provost.toml: {0}")]
    Read(ReadError),
    /// A value that breaks a rule.
    #[error("provost.toml: {0}")]
    Flaw(Flaw),
}

impl From<ReadError> for PolicyError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// A problem of the file of a user; the reader of the file names it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum UserFileError {
    Read(#[from] ReadError),
    Flaw(#[from] Flaw),
}

pub fn parse(bytes: &[u8]) -> Result<Policy, PolicyError> {
    json::text(bytes, LARGEST)?;
    let written: Written = json::from_value(toml::parse(bytes)?)?;
    Policy::try_from(written).map_err(PolicyError::Flaw)
}

/// Reads the file of a user.
pub fn parse_user_file(bytes: &[u8]) -> Result<UserFile, UserFileError> {
    let read = || -> Result<WrittenUserFile, ReadError> {
        json::text(bytes, LARGEST)?;
        json::from_value(toml::parse(bytes)?)
    };
    let written = read()?;
    Ok(UserFile {
        budget: budget(written.budget)?,
        agent: run::name("agent", written.agent)?,
        notify: written.notify,
        ask_wait_sec: written.ask.wait_sec()?,
        needs: written.approve.needs,
        record_bodies: written.record.bodies,
    })
}

fn budget(written: WrittenBudget) -> Result<SpendLimits, Flaw> {
    let flaw = |(field, problem)| Flaw(format!("budget.{field} {problem}"));
    written.resolve().map_err(flaw)
}

impl TryFrom<Written> for Policy {
    type Error = Flaw;

    fn try_from(written: Written) -> Result<Self, Flaw> {
        let mut agents = BTreeMap::new();
        for (name, agent) in written.agents {
            let agent = agent.resolve();
            let flaw = |(field, problem)| Flaw(format!("agents.{name}.{field} {problem}"));
            let agent = agent.map_err(flaw)?;
            agents.insert(name, agent);
        }
        let mut servers = BTreeMap::new();
        for (name, server) in written.mcp {
            if !agent::adapter::mcp::is_server(&name) {
                return Err(Flaw(format!(
                    "mcp: `{name}` cannot be the name of a server"
                )));
            }
            let argv = words(&format!("mcp.{name}.command"), &server.command)?;
            servers.insert(name, argv);
        }
        let sandbox = match (written.sandbox, written.r#box) {
            (Some(_), Some(_)) => {
                let flaw = "[box] is the older name of [sandbox]; use one";
                return Err(Flaw(flaw.to_owned()));
            }
            (one, other) => one.or(other).unwrap_or_default(),
        };
        let commands = written.commands.allow.iter();
        let commands = commands.map(|text| words("commands.allow", text));
        Ok(Self {
            protect: Extra {
                edition: EDITION,
                oracle: paths("protect.oracle", &written.protect.oracle)?,
                governing: paths("protect.governing", &written.protect.governing)?,
            },
            commands: commands.collect::<Result<_, _>>()?,
            agents,
            servers,
            review: written.review.agent,
            workspace: written.workspace.kind,
            loopback_off: sandbox.loopback == Some(false),
            hooks_require: written.hooks.require,
            cache: cache(&written.cache)?,
            prepare: prepare::steps(written.prepare).map_err(|flaw| Flaw(flaw.to_string()))?,
            limits: limits(written.limits)?,
            least_tier: sandbox.least_tier,
            ask: ask::rules(&written.ask, written.approve.needs)?,
            approve: approve(written.approve)?,
            budget: budget(written.budget)?,
            record_bodies: written.record.bodies == Some(true),
            run: written.run.resolve()?,
            policies: family_policies(written.policies)?,
            case_children: case_children(written.case)?,
            fleet: written.fleet.resolve()?,
        })
    }
}

fn family_policies(written: FamilyPolicies) -> Result<FamilyPolicies, Flaw> {
    for (id, policy) in &written {
        if let Some(flaw) = family::flaw(id, policy) {
            return Err(Flaw(format!("policies.\"{}\": {flaw}", id.escape_debug())));
        }
    }
    Ok(written)
}

fn case_children(written: WrittenCase) -> Result<Option<ChildGrant>, Flaw> {
    let flaws = written.children.iter().flat_map(ChildGrant::flaws);
    match flaws.into_iter().next() {
        Some((name, flaw)) => Err(Flaw(format!("case.children.{name} {flaw}"))),
        None => Ok(written.children),
    }
}

fn words(field: &str, text: &str) -> Result<Vec<String>, Flaw> {
    let argv = command::split(text).map_err(|flaw| Flaw(format!("{field}: `{text}`: {flaw}")))?;
    if argv.is_empty() {
        return Err(Flaw(format!("{field} is empty")));
    }
    Ok(argv)
}

fn approve(written: WrittenApprove) -> Result<Unasked, Flaw> {
    let place = |entry: &String| {
        Endpoint::parse(entry).map_err(|error| Flaw(format!("approve.net: `{entry}` {error}")))
    };
    Ok(Unasked {
        paths: paths("approve.paths", &written.paths)?,
        oracle: paths("approve.oracle", &written.oracle)?,
        governing: paths("approve.governing", &written.governing)?,
        net: written.net.iter().map(place).collect::<Result<_, _>>()?,
        authors: written.authors,
        tier: written.tier,
        fewer_tests: written.fewer_tests,
        idle_commands: written.idle_commands,
        agents: Vec::new(),
    })
}

fn cache(written: &WrittenCache) -> Result<CacheRules, Flaw> {
    let place = |entry: &String| {
        let flaw = |error| Flaw(format!("cache.acceptance: `{entry}` {error}"));
        Output::try_from(entry.clone()).map_err(flaw)
    };
    let defaults = CacheRules::default();
    let acceptance = written.acceptance.iter().map(place);
    let acceptance: Vec<Output> = acceptance.collect::<Result<_, _>>()?;
    if let Some((one, other)) = prepare::nested(acceptance.iter()) {
        return Err(Flaw(format!(
            "cache.acceptance: `{one}` and `{other}` lie in each other"
        )));
    }
    Ok(CacheRules {
        acceptance,
        candidate: written.candidate.unwrap_or(defaults.candidate),
        land: written.land.unwrap_or(defaults.land),
    })
}

fn limits(asked: Asked) -> Result<Asked, Flaw> {
    match asked.flaws().first() {
        Some((name, flaw)) => Err(Flaw(format!("limits.{name} {flaw}"))),
        None => Ok(asked),
    }
}

/// Protected paths may be where a scope may not, so only their form is checked.
fn paths(field: &str, entries: &[String]) -> Result<Scope, Flaw> {
    let path = |entry: &String| {
        RepoPath::try_from(entry.trim_end_matches('/'))
            .map_err(|error| Flaw(format!("{field}: `{entry}` {error}")))
    };
    let paths = entries.iter().map(path).collect::<Result<_, _>>()?;
    Ok(Scope::of(paths))
}
