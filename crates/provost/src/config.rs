//! Reads `provost.toml`, the repository's own policy, from the base commit.
//!
//! It is never read from a working directory: an agent, or a change that is not landed yet, must
//! not choose the rules it is judged by.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::gate::command;
use provost_core::object::Oid;
use provost_core::path::{RawPath, RepoPath};
use provost_core::protect::Extra;
use provost_core::run::fact::WorkspaceChoice;
use provost_core::scope::Scope;
use provost_host::git::Repository;
use serde::Deserialize;

use crate::answer::Failure;

/// The largest policy we read, in bytes.
pub(crate) const LARGEST: usize = 256 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawConfig {
    protect: RawProtect,
    commands: RawCommands,
    agents: BTreeMap<String, RawAgent>,
    workspace: RawWorkspace,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawWorkspace {
    kind: WorkspaceChoice,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProtect {
    oracle: Vec<String>,
    governing: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCommands {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAgent {
    command: String,
}

/// What a repository adds to the rules.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// Further protected files.
    pub(crate) protect: Extra,
    /// Further acceptance commands, as argv prefixes.
    pub(crate) commands: Vec<Vec<String>>,
    /// Agents by name.
    pub(crate) agents: BTreeMap<String, Vec<String>>,
    /// How workspaces are made.
    pub(crate) workspace: WorkspaceChoice,
}

impl Config {
    /// The policy in the tree `base`; a tree without one adds nothing.
    pub(crate) fn at(repo: &Repository, base: &Oid) -> Result<Self, Failure> {
        let files = repo
            .read_tree(base)
            .map_err(|error| Failure::of(Code::GitFailed, &error))?;
        let Some(file) = files.get(&RawPath::new(*b"provost.toml")) else {
            return Ok(Self::default());
        };
        let bytes = repo
            .blob(&file.oid)
            .map_err(|error| Failure::of(Code::GitFailed, &error))?;
        Self::parse(&bytes)
    }

    /// Reads a policy.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        if bytes.len() > LARGEST {
            return Err(wrong(&format!("has more than {LARGEST} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("is not UTF-8"))?;
        let raw: RawConfig = toml::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let mut agents = BTreeMap::new();
        for (name, agent) in raw.agents {
            let argv = words(&format!("agents.{name}.command"), &agent.command)?;
            agents.insert(name, argv);
        }
        let commands = raw
            .commands
            .allow
            .iter()
            .map(|text| words("commands.allow", text));
        Ok(Self {
            protect: Extra {
                oracle: paths("protect.oracle", &raw.protect.oracle)?,
                governing: paths("protect.governing", &raw.protect.governing)?,
            },
            commands: commands.collect::<Result<_, _>>()?,
            agents,
            workspace: raw.workspace.kind,
        })
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(Code::InputInvalid, format!("provost.toml: {what}"))
}

fn words(field: &str, text: &str) -> Result<Vec<String>, Failure> {
    let argv = command::split(text).map_err(|flaw| wrong(&format!("{field}: `{text}`: {flaw}")))?;
    if argv.is_empty() {
        return Err(wrong(&format!("{field} is empty")));
    }
    Ok(argv)
}

/// Protected paths may lie where a scope may not, so only their form is checked.
fn paths(field: &str, entries: &[String]) -> Result<Scope, Failure> {
    let path = |entry: &String| {
        RepoPath::try_from(entry.trim_end_matches('/'))
            .map_err(|error| wrong(&format!("{field}: `{entry}` {error}")))
    };
    Ok(Scope::of(
        entries.iter().map(path).collect::<Result<_, _>>()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_adds_to_the_rules() {
        let config = Config::parse(
            b"[protect]\noracle = [\"spec/\"]\n[commands]\nallow = [\"make test\"]\n\
              [agents.mine]\ncommand = \"my-agent --fast 'a b'\"\n\
              [workspace]\nkind = \"overlay\"\n",
        )
        .unwrap();
        assert_eq!(config.commands, [["make", "test"]]);
        assert_eq!(config.workspace, WorkspaceChoice::Overlay);
        assert_eq!(config.agents["mine"], ["my-agent", "--fast", "a b"]);
        assert_eq!(config.protect.oracle.entries().len(), 1);
    }

    #[test]
    fn a_policy_that_does_not_parse_is_refused() {
        let cases: [&[u8]; 7] = [
            b"surprise = 1",
            b"[workspace]\nkind = \"fast\"",
            b"[protect]\noracle = [\"../x\"]",
            b"[commands]\nallow = [\"'unclosed\"]",
            b"[agents.x]\ncommand = \"\"",
            b"\xff",
            b"[protect]\n[protect]\n",
        ];
        for bytes in cases {
            assert!(
                Config::parse(bytes).is_err(),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}
