//! `keys`: who may submit, work and land, as lines of `provost.toml` that people commit.

use std::path::Path;

use clap::{Subcommand, ValueEnum};
use provost_core::code::Code;
use provost_core::policy::{self, fleet::FleetRole};
use provost_evidence::key::NamedKey;

use crate::failure::{FleetFailure, FleetResult, host};

#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// List the keys in provost.toml of this checkout.
    List,
    /// Add a key to provost.toml of this checkout; it counts once that is committed.
    Enroll {
        #[arg(value_name = "ROLE")]
        role: RoleWord,
        name: String,
        /// The public key, as `provost key show` prints it.
        #[arg(value_name = "PUBKEY")]
        key: String,
        /// The name of the repository in tickets, if [fleet] has none yet.
        #[arg(long, value_name = "NAME")]
        repository: Option<String>,
    },
    /// Remove a key from provost.toml of this checkout.
    Revoke {
        #[arg(value_name = "ROLE")]
        role: RoleWord,
        name: String,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RoleWord {
    Submitters,
    Workers,
    Landers,
}

impl RoleWord {
    fn role(self) -> FleetRole {
        match self {
            Self::Submitters => FleetRole::Submitter,
            Self::Workers => FleetRole::Worker,
            Self::Landers => FleetRole::Lander,
        }
    }
}

/// Carries out a command about keys, and returns what it prints.
pub fn keys(command: &KeysCommand) -> FleetResult<String> {
    let path = Path::new(policy::FILE);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(host("reading provost.toml")(error)),
    };
    match command {
        KeysCommand::List => list(&text),
        KeysCommand::Enroll {
            role,
            name,
            key,
            repository,
        } => {
            let line = NamedKey::parse(key)
                .map_err(|error| FleetFailure::of(Code::InputInvalid, "reading the key", &error))?;
            let new = with_key(
                &text,
                role.role(),
                name,
                &line.key.to_string(),
                repository.as_deref(),
            );
            write(path, &new)?;
            Ok(format!(
                "added {name} to [fleet.{}]; commit provost.toml\n",
                role.role()
            ))
        }
        KeysCommand::Revoke { role, name } => {
            let new = without_key(&text, role.role(), name).ok_or_else(|| {
                let reason = format!("[fleet.{}] has no `{name}`", role.role());
                FleetFailure::new(Code::NotFound, reason).hint("provost-fleet keys list")
            })?;
            write(path, &new)?;
            Ok(format!(
                "removed {name} from [fleet.{}]; commit provost.toml\n",
                role.role()
            ))
        }
    }
}

fn parsed(text: &str) -> FleetResult<policy::Policy> {
    policy::parse(text.as_bytes())
        .map_err(|error| FleetFailure::of(Code::InputInvalid, "reading the policy", &error))
}

fn write(path: &Path, text: &str) -> FleetResult<()> {
    parsed(text)?;
    let durable = provost_fs::atomic::Durability::Synced;
    provost_fs::atomic::replace(path, text.as_bytes(), 0o644, durable)
        .map_err(host("writing provost.toml"))
}

fn list(text: &str) -> FleetResult<String> {
    let fleet = parsed(text)?.fleet;
    let mut shown = format!("repository {}\n", fleet.repository);
    for role in FleetRole::ALL {
        for (name, key) in fleet.of(role) {
            shown += &format!("{role} {name} {key}\n");
        }
    }
    Ok(shown)
}

fn header(role: FleetRole) -> String {
    format!("[fleet.{role}]")
}

fn with_key(
    text: &str,
    role: FleetRole,
    name: &str,
    key: &str,
    repository: Option<&str>,
) -> String {
    let mut text = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(repository) = repository
        && !text.lines().any(|line| line.trim() == "[fleet]")
    {
        text += &format!("\n[fleet]\nrepository = \"{repository}\"\n");
    }
    let row = format!("{name} = \"{key}\"\n");
    let header = header(role);
    match text.lines().position(|line| line.trim() == header) {
        Some(at) => {
            let lines = text.split_inclusive('\n');
            let head: String = lines.clone().take(at + 1).collect();
            head + &row + &lines.skip(at + 1).collect::<String>()
        }
        None => text + &format!("\n{header}\n{row}"),
    }
}

fn without_key(text: &str, role: FleetRole, name: &str) -> Option<String> {
    let (mut inside, mut found) = (false, false);
    let keep = |line: &&str| {
        if line.trim_start().starts_with('[') {
            inside = line.trim() == header(role);
        }
        let is_it = inside
            && line
                .split('=')
                .next()
                .is_some_and(|word| word.trim() == name);
        found |= is_it;
        !is_it
    };
    let kept: String = text.split_inclusive('\n').filter(keep).collect();
    found.then_some(kept)
}
