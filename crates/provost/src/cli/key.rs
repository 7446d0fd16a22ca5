//! `provost key`: manages the key that seals runs, the person key, and the trusted keys.

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::bundle::key::{self, KeyError, NamedKey};
use provost_core::code::Code;
use provost_core::person_key::fingerprint;
use provost_host::keys::Keys;
use provost_host::keys::person::{PersonKey, PersonKeyPlace};
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::{input, person_signing};

/// The largest file that is read for one public key, in bytes.
const LARGEST: usize = 4096;

/// How a public key is written.
const WRITTEN: &str =
    "a public key is one line that begins with `ed25519:`, as `provost key show` prints it";

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Key {
    /// Create the key that seals your runs, or with --person the key that you approve with.
    New(New),
    /// Show your public keys and the keys you trust.
    Show,
    /// Trust what another key signed.
    Trust(Trust),
}

#[derive(Args)]
#[command(after_help = "\
A person key is asked for where `[approve] needs = \"person-key\"` says so, and for a run that gets
your own files. It is kept encrypted with a passphrase, or stays in your ssh-agent.

Examples:
  provost key new --person --name ada
  provost key new --person --ssh-agent
  provost key new --person --ssh-agent SHA256:…")]
#[expect(clippy::option_option, reason = "the flag may stand without a value")]
pub(super) struct New {
    /// The name of the key.
    #[arg(long, default_value = "")]
    name: String,

    /// Create your person key.
    #[arg(long)]
    person: bool,

    /// Use an Ed25519 key of your ssh-agent: its only one, or that with this fingerprint.
    #[arg(long, value_name = "FINGERPRINT", num_args = 0..=1, require_equals = false,
          requires = "person", conflicts_with = "passphrase_file")]
    ssh_agent: Option<Option<String>>,

    /// The file whose first line is the new passphrase; `-` reads standard input.
    #[arg(long, value_name = "FILE", requires = "person")]
    passphrase_file: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  provost key trust ed25519:…
  provost key trust colleague.pub --name ada")]
pub(super) struct Trust {
    /// The public key, or a file that holds it.
    #[arg(value_name = "PUBKEY")]
    key: String,

    /// Your name for the key [default: the name that its owner gave it].
    #[arg(long)]
    name: Option<String>,

    /// Let approvals with this person key count.
    #[arg(long)]
    person: bool,
}

pub(super) fn run(key: &Key) -> Outcome {
    let keys = Keys::find()?;
    match key {
        Key::New(new) => create(keys, new),
        Key::Show => show(&keys),
        Key::Trust(trust) => add(&keys, trust),
    }
}

fn create(keys: Keys, new: &New) -> Outcome {
    let here = env::current_dir().map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let keys = keys.outside_repository_around(&here)?;
    if new.person {
        return create_person(&keys, new);
    }
    let key = keys.create(&new.name)?;
    let created = CreatedKey {
        key: KeyFacts::of(&key.named()),
        directory: keys.directory().display().to_string(),
    };
    Ok(created.into())
}

fn create_person(keys: &Keys, new: &New) -> Outcome {
    let key = if let Some(wanted) = &new.ssh_agent {
        keys.adopt_person(&new.name, wanted.as_deref())?
    } else {
        if keys.person()?.is_some() {
            let reason = "there is a person key already, and it is never replaced";
            return Err(Failure::new(Code::UsageError, reason).hint("provost key show"));
        }
        let passphrase = person_signing::new_passphrase(new.passphrase_file.as_deref())?;
        keys.create_person(&new.name, &passphrase)?
    };
    let created = CreatedPersonKey {
        person: PersonFacts::of(&key),
        directory: keys.directory().display().to_string(),
    };
    Ok(created.into())
}

fn show(keys: &Keys) -> Outcome {
    let own = keys.own()?;
    let known = KnownKeys {
        directory: keys.directory().display().to_string(),
        own: own.as_ref().map(KeyFacts::of),
        trusted: keys.trusted()?.iter().map(KeyFacts::of).collect(),
        person: keys.person()?.as_ref().map(PersonFacts::of),
        persons: keys.trusted_persons()?.iter().map(KeyFacts::of).collect(),
    };
    Ok(known.into())
}

fn add(keys: &Keys, trust: &Trust) -> Outcome {
    let mut key = parse(&trust.key)?;
    if let Some(name) = &trust.name {
        let line = format!("{} {name}", key.key);
        key = NamedKey::parse(&line).map_err(|error| wrong(&error))?;
    }
    let new = if trust.person {
        keys.trust_person(&key)?
    } else {
        keys.trust(&key)?
    };
    let added = TrustedKey {
        new,
        key: KeyFacts::of(&key),
    };
    Ok(added.into())
}

#[derive(Serialize)]
struct KeyFacts {
    key: String,
    keyid: String,
    name: String,
    /// The key with its name, as it is passed on.
    #[serde(skip)]
    line: String,
}

impl KeyFacts {
    fn of(named: &NamedKey) -> Self {
        Self {
            key: named.key.to_string(),
            keyid: named.key.id(),
            name: named.name.clone(),
            line: named.to_string(),
        }
    }
}

#[derive(Serialize)]
struct PersonFacts {
    #[serde(flatten)]
    key: KeyFacts,
    /// As `ssh-add -l` prints it.
    fingerprint: String,
    place: PersonKeyPlace,
}

impl PersonFacts {
    fn of(key: &PersonKey) -> Self {
        Self {
            key: KeyFacts::of(&key.named),
            fingerprint: fingerprint(&key.named.key),
            place: key.place(),
        }
    }

    fn text(&self) -> String {
        let place = match self.place {
            PersonKeyPlace::Passphrase => "encrypted with a passphrase",
            PersonKeyPlace::SshAgent => "in your ssh-agent",
        };
        let line = &self.key.line;
        format!(
            "person key: {line}\nfingerprint {}, {place}\n",
            self.fingerprint
        )
    }
}

#[derive(Serialize)]
struct CreatedPersonKey {
    person: PersonFacts,
    directory: String,
}

impl Answered for CreatedPersonKey {
    fn text(&self) -> String {
        format!("{}kept in {}\n", self.person.text(), self.directory)
    }
}

#[derive(Serialize)]
struct CreatedKey {
    #[serde(flatten)]
    key: KeyFacts,
    directory: String,
}

impl Answered for CreatedKey {
    fn text(&self) -> String {
        let (KeyFacts { line, keyid, .. }, directory) = (&self.key, &self.directory);
        format!("{line}\nkeyid {keyid}\nkept in {directory}\n")
    }
}

#[derive(Serialize)]
struct KnownKeys {
    directory: String,
    own: Option<KeyFacts>,
    trusted: Vec<KeyFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<PersonFacts>,
    /// The person keys whose approvals count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    persons: Vec<KeyFacts>,
}

impl Answered for KnownKeys {
    fn text(&self) -> String {
        let mut text = match &self.own {
            Some(own) => format!("{}\nkeyid {}\n", own.line, own.keyid),
            None => {
                "no key yet; `provost key new` creates one, and so does the first run\n".to_owned()
            }
        };
        let is_own = |key: &&KeyFacts| self.own.as_ref().is_some_and(|own| own.key == key.key);
        for key in self.trusted.iter().filter(|key| !is_own(key)) {
            text += &format!("trusted: {}\n", key.line);
        }
        let own = self.person.as_ref();
        text += &own.map(PersonFacts::text).unwrap_or_default();
        let is_own = |key: &&KeyFacts| own.is_some_and(|own| own.key.key == key.key);
        for key in self.persons.iter().filter(|key| !is_own(key)) {
            text += &format!("trusted person: {}\n", key.line);
        }
        text
    }
}

#[derive(Serialize)]
struct TrustedKey {
    #[serde(flatten)]
    key: KeyFacts,
    /// Whether it was not trusted before.
    new: bool,
}

impl Answered for TrustedKey {
    fn text(&self) -> String {
        let already = if self.new { "" } else { "already " };
        format!("{already}trusted: {}\n", self.key.line)
    }
}

/// Reads a public key from its text or from a file.
pub(super) fn parse(argument: &str) -> Result<NamedKey, Failure> {
    if argument.starts_with(key::PUBLIC) {
        return NamedKey::parse(argument.trim_end()).map_err(|error| wrong(&error));
    }
    let file = Path::new(argument);
    if !argument.is_empty() && file.symlink_metadata().is_err() {
        let reason = format!("`{argument}` is neither a public key nor a file that holds one");
        return Err(Failure::new(Code::InputUnreadable, reason).hint(WRITTEN));
    }
    let bytes = input::read(file, LARGEST)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim_end();
    NamedKey::parse(line).map_err(|error| wrong(&error))
}

fn wrong(error: &KeyError) -> Failure {
    Failure::of(Code::UsageError, error).hint(WRITTEN)
}
