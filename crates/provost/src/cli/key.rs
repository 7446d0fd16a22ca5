//! `provost key`: manages the key that seals runs, and the trusted keys.

use std::env;
use std::path::Path;

use clap::{Args, Subcommand};
use provost_core::bundle::key::{self, KeyError, NamedKey};
use provost_core::code::Code;
use provost_host::keys::{Keys, KeysError};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::input;

/// The largest file that is read for one public key, in bytes.
const LARGEST: usize = 4096;

/// How a public key is written.
const WRITTEN: &str =
    "a public key is one line that begins with `ed25519:`, as `provost key show` prints it";

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Key {
    /// Create the key that seals your runs.
    New(New),
    /// Show your public key and the keys you trust.
    Show,
    /// Trust what another key signed.
    Trust(Trust),
}

#[derive(Args)]
pub(super) struct New {
    /// The name of the key.
    #[arg(long, default_value = "")]
    name: String,
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
    let key = keys.create(&new.name)?;
    let named = key.named();
    let text = format!(
        "{named}\nkeyid {}\nkept in {}\n",
        named.key.id(),
        keys.directory().display()
    );
    let mut json = facts(&named);
    json["directory"] = json!(keys.directory().display().to_string());
    Ok(Answer::data(json, text))
}

fn show(keys: &Keys) -> Outcome {
    let own = keys.own()?;
    let trusted = keys.trusted()?;
    let mut text = match &own {
        Some(own) => format!("{own}\nkeyid {}\n", own.key.id()),
        None => "no key yet; `provost key new` creates one, and so does the first run\n".into(),
    };
    let others = trusted
        .iter()
        .filter(|key| own.as_ref().is_none_or(|own| own.key != key.key));
    for key in others {
        text += &format!("trusted: {key}\n");
    }
    let json = json!({
        "directory": keys.directory().display().to_string(),
        "own": own.as_ref().map(facts),
        "trusted": trusted.iter().map(facts).collect::<Vec<_>>(),
    });
    Ok(Answer::data(json, text))
}

fn add(keys: &Keys, trust: &Trust) -> Outcome {
    let mut key = parse(&trust.key)?;
    if let Some(name) = &trust.name {
        let line = format!("{} {name}", key.key);
        key = NamedKey::parse(&line).map_err(|error| wrong(&error))?;
    }
    let new = keys.trust(&key)?;
    let text = if new {
        format!("trusted: {key}\n")
    } else {
        format!("already trusted: {key}\n")
    };
    let mut json = facts(&key);
    json["new"] = json!(new);
    Ok(Answer::data(json, text))
}

fn facts(key: &NamedKey) -> Value {
    json!({ "key": key.key.to_string(), "keyid": key.key.id(), "name": key.name })
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

impl From<KeysError> for Failure {
    fn from(error: KeysError) -> Self {
        let code = match error {
            KeysError::Loose { .. }
            | KeysError::Foreign { .. }
            | KeysError::NotRegular { .. }
            | KeysError::InsideRepository { .. }
            | KeysError::Line { .. } => Code::KeyUnsafe,
            KeysError::Exists { .. } | KeysError::Name(_) => Code::UsageError,
            KeysError::NoPlace | KeysError::Random(_) | KeysError::Io { .. } => Code::HostFailed,
        };
        Self::of(code, &error)
    }
}
