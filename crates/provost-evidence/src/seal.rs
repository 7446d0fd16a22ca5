//! Compares a directory of files with the statement that seals it.
//!
//! # Invariants
//!
//! - Files that differ from their own statement were altered, whatever key signed it.
//! - A seal has one spelling, so that a change of any byte is detected.

use std::collections::BTreeMap;

use crate::dsse::{Envelope, OpenError};
use crate::files::Files;
use crate::key::PublicKey;
use crate::object::sha256;
use crate::path::RawPath;

/// The result of opening an envelope.
#[derive(Debug)]
pub struct Seal {
    /// The statement. With an unknown key it only serves to find differences.
    pub payload: Vec<u8>,
    /// The key that signed it, if it is known.
    pub signed: Result<PublicKey, OpenError>,
    /// Whether every byte of it is as Provost writes a seal.
    pub exact: bool,
}

impl Seal {
    /// Opens the envelope `bytes`, whether one of `keys` signed it or another.
    pub fn open(bytes: &[u8], keys: &[PublicKey]) -> Result<Self, OpenError> {
        let envelope = Envelope::parse(bytes)?;
        let exact = envelope.render().as_bytes() == bytes && envelope.signatures.len() == 1;
        match envelope.open(keys) {
            Ok(opened) => Ok(Self {
                payload: opened.payload,
                signed: Ok(opened.key),
                exact: exact && opened.hint_fits,
            }),
            // Whatever key signed it: files that differ from their own statement were altered.
            Err(error @ OpenError::UnknownKey { .. }) => Ok(Self {
                payload: envelope.unverified_payload()?,
                signed: Err(error),
                exact,
            }),
            Err(error) => Err(error),
        }
    }
}

/// How files differ from what a statement names, each a name and what is wrong with it.
#[derive(Debug, Default)]
pub struct Differences {
    pub altered: Vec<(String, &'static str)>,
    pub missing: Vec<(String, &'static str)>,
}

impl Differences {
    /// Compares `files` with `named`, names and SHA-256 digests in hexadecimal. The statement does
    /// not cover names that are `outside`.
    pub fn between(
        files: &dyn Files,
        named: &BTreeMap<&str, &str>,
        outside: impl Fn(&str) -> bool,
    ) -> Self {
        let mut differences = Self::default();
        let there = files.names();
        for name in &there {
            let text = name.to_string();
            if outside(&text) {
                continue;
            }
            let problem = match named.get(text.as_str()) {
                None => "was not there when it was sealed",
                Some(want) => match files.read(name) {
                    Ok(bytes) if sha256(&bytes).eq_ignore_ascii_case(want) => continue,
                    Ok(_) => "is not what was sealed",
                    Err(_) => "cannot be read",
                },
            };
            differences.altered.push((text, problem));
        }
        for name in named.keys() {
            if !there.contains(&RawPath::new(*name)) {
                differences.missing.push(((*name).to_owned(), "is missing"));
            }
        }
        differences
    }

    /// All of them, altered files first.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let all = self.altered.iter().chain(&self.missing);
        all.map(|(name, problem)| (name.as_str(), *problem))
    }
}
