//! `[fleet]`: the keys whose tickets, evidence and landings count for this repository.

use std::collections::BTreeMap;

use provost_evidence::key::{NamedKey, PublicKey};
use serde::Deserialize;
use serde_json::Value;

use super::{Flaw, LARGEST, PolicyError};
use crate::document::toml;
use crate::json;
use crate::object::sha256;
use crate::words;

words! {
    /// What a key of the fleet is for.
    pub enum FleetRole {
        /// Signs tickets.
        Submitter = "submitters",
        /// Seals the evidence of runs.
        Worker = "workers",
        /// Signs landings.
        Lander = "landers",
    }
}

/// The keys of `[fleet]`, by role and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetKeys {
    /// The name of the repository in tickets; empty if it has no fleet.
    pub repository: String,
    pub submitters: BTreeMap<String, PublicKey>,
    pub workers: BTreeMap<String, PublicKey>,
    pub landers: BTreeMap<String, PublicKey>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenFleet {
    repository: String,
    submitters: BTreeMap<String, String>,
    workers: BTreeMap<String, String>,
    landers: BTreeMap<String, String>,
}

impl FleetKeys {
    pub fn of(&self, role: FleetRole) -> &BTreeMap<String, PublicKey> {
        match role {
            FleetRole::Submitter => &self.submitters,
            FleetRole::Worker => &self.workers,
            FleetRole::Lander => &self.landers,
        }
    }

    pub fn lists(&self, role: FleetRole, key: &PublicKey) -> bool {
        self.of(role).values().any(|listed| listed == key)
    }
}

impl WrittenFleet {
    pub(super) fn resolve(self) -> Result<FleetKeys, Flaw> {
        let named = |text: &str| {
            text.bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
        };
        if !named(&self.repository) || self.repository.len() > 64 {
            let flaw = "fleet.repository has up to 64 letters, digits, `-`, `_` and `.`";
            return Err(Flaw(flaw.to_owned()));
        }
        let keys = |role: FleetRole, written: BTreeMap<String, String>| {
            let key = |(name, line): (String, String)| match NamedKey::parse(&line) {
                Ok(parsed) => Ok((name, parsed.key)),
                Err(error) => Err(Flaw(format!("fleet.{role}.{name}: {error}"))),
            };
            written
                .into_iter()
                .map(key)
                .collect::<Result<BTreeMap<_, _>, Flaw>>()
        };
        Ok(FleetKeys {
            submitters: keys(FleetRole::Submitter, self.submitters)?,
            workers: keys(FleetRole::Worker, self.workers)?,
            landers: keys(FleetRole::Lander, self.landers)?,
            repository: self.repository,
        })
    }
}

/// SHA-256 of the rules in the policy `bytes`, without the keys of the fleet: a key that is added
/// or revoked changes who may act, and not what a run is held to.
pub fn rules_digest(bytes: &[u8]) -> Result<String, PolicyError> {
    json::text(bytes, LARGEST)?;
    let mut rules = toml::parse(bytes)?;
    if let Value::Object(fields) = &mut rules {
        fields.remove("fleet");
    }
    Ok(sha256(json::canonical(&rules).as_bytes()))
}

#[cfg(test)]
mod tests {
    use provost_evidence::key::SigningKey;

    use super::super::parse;
    use super::*;

    fn line(seed: u8) -> String {
        SigningKey::from_seed(&[seed; 32], "")
            .unwrap()
            .public()
            .to_string()
    }

    #[test]
    fn keys_are_listed_by_role() {
        let text = format!(
            "[fleet]\nrepository = \"demo\"\n[fleet.workers]\nalpha = \"{}\"\n",
            line(1)
        );
        let fleet = parse(text.as_bytes()).unwrap().fleet;
        let key = NamedKey::parse(&line(1)).unwrap().key;
        assert!(fleet.lists(FleetRole::Worker, &key));
        assert!(!fleet.lists(FleetRole::Lander, &key));
    }

    #[test]
    fn what_is_no_key_or_no_name_is_refused() {
        let cases = [
            (
                "[fleet.workers]\na = \"x\"\n",
                "fleet.workers.a: a key begins with `ed25519:`",
            ),
            (
                "[fleet]\nrepository = \"a b\"\n",
                "fleet.repository has up to",
            ),
            ("[fleet.watchers]\n", "watchers"),
        ];
        for (text, want) in cases {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn the_digest_of_the_rules_ignores_the_keys_and_nothing_else() {
        let rules = b"[approve]\npaths = [\"src\"]\n";
        let keyed = format!(
            "[approve]\npaths = [\"src\"]\n[fleet.workers]\na = \"{}\"\n",
            line(2)
        );
        let other = b"[approve]\npaths = [\"doc\"]\n";
        let digest = rules_digest(rules).unwrap();
        assert_eq!(rules_digest(keyed.as_bytes()).unwrap(), digest);
        assert_ne!(rules_digest(other).unwrap(), digest);
    }
}
