//! Person keys: what a person approves with, apart from the key that seals runs.
//!
//! The directory of keys holds `person.key`: the public key, and either the seed, encrypted with a
//! passphrase, or the note that an ssh-agent has it. `trusted-persons` lists the public person keys
//! of others whose approvals count, one a line.
//!
//! # Invariants
//!
//! - The seed is on disk only encrypted, and the encryption covers the public key beside it.
//! - A person key is never replaced.

use std::io;
use std::path::PathBuf;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_core::bundle::key::{KeyError, NamedKey, SigningKey};
use provost_core::json;
use provost_core::person_key::fingerprint;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::ssh_agent::{AgentKey, SshAgent};
use super::{Keys, KeysError, place};

const FILE: &str = "person.key";
const TRUSTED: &str = "trusted-persons";

/// The fewest characters of a passphrase.
const SHORTEST: usize = 8;

/// What deriving the key costs: 64 MiB and three passes, as RFC 9106 has it for little memory.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;

/// The most that a file may ask for, so that a damaged one does not exhaust the machine.
const MOST_MEMORY_KIB: u32 = 1024 * 1024;
const MOST_PASSES: u32 = 64;

/// Why a person key cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PersonKeyError {
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("there is a person key already: `{}`", .0.display())]
    Exists(PathBuf),
    #[error("there is no person key")]
    Missing,
    #[error("`{}` is no person key: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("a passphrase has at least {SHORTEST} characters")]
    Short,
    #[error("the passphrase does not open the person key")]
    Passphrase,
    #[error("the person key cannot be encrypted")]
    Encryption,
    #[error("the key cannot be made")]
    Name(#[source] KeyError),
    #[error("SSH_AUTH_SOCK names no ssh-agent")]
    NoAgent,
    #[error("the ssh-agent at `{}` cannot be reached", path.display())]
    Agent { path: PathBuf, source: io::Error },
    #[error("the ssh-agent does not answer")]
    AgentLost(#[source] io::Error),
    #[error("the ssh-agent answers something that is not its protocol")]
    AgentProtocol,
    #[error("the ssh-agent refuses: it has no such key, or its user said no")]
    AgentRefused,
    #[error("the ssh-agent has no Ed25519 key{0}")]
    NoAgentKey(String),
    #[error("the ssh-agent has {0} Ed25519 keys; name the fingerprint of one")]
    ManyAgentKeys(usize),
    #[error("the signature that was made does not fit the key")]
    WrongSignature,
}

/// Where the secret of a person key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PersonKeyPlace {
    /// In a file, encrypted with a passphrase.
    Passphrase,
    SshAgent,
}

/// The person key of this user.
#[derive(Debug, Clone)]
pub struct PersonKey {
    pub named: NamedKey,
    held: Held,
}

/// `person.key`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PersonKeyFile {
    version: u32,
    /// The line of the public key.
    public: String,
    held: Held,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Held {
    SshAgent {},
    Passphrase(Sealed),
}

/// A seed that a passphrase opens: Argon2id makes the key of ChaCha20-Poly1305.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    memory_kib: u32,
    passes: u32,
    salt: String,
    nonce: String,
    /// The seed and the tag, which covers the public line too.
    seed: String,
}

impl PersonKey {
    pub fn place(&self) -> PersonKeyPlace {
        match self.held {
            Held::SshAgent {} => PersonKeyPlace::SshAgent,
            Held::Passphrase(_) => PersonKeyPlace::Passphrase,
        }
    }

    /// Signs `bytes`; `passphrase` is called if one is needed.
    pub fn sign<E: From<PersonKeyError>>(
        &self,
        bytes: &[u8],
        passphrase: impl FnOnce() -> Result<Zeroizing<String>, E>,
    ) -> Result<[u8; 64], E> {
        let key = &self.named.key;
        let signature = match &self.held {
            Held::SshAgent {} => SshAgent::connect()?.sign(key, bytes)?,
            Held::Passphrase(sealed) => {
                let passphrase = passphrase()?;
                sealed.open(&self.named, &passphrase)?.sign(bytes)
            }
        };
        if key.verifies(bytes, &signature) {
            Ok(signature)
        } else {
            Err(PersonKeyError::WrongSignature.into())
        }
    }
}

impl Sealed {
    fn new(key: &SigningKey, seed: &[u8; 32], passphrase: &str) -> Result<Self, PersonKeyError> {
        if passphrase.chars().count() < SHORTEST {
            return Err(PersonKeyError::Short);
        }
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(KeysError::Random);
        let (mut salt, mut nonce) = ([0; 16], [0; 12]);
        random(&mut salt)?;
        random(&mut nonce)?;
        let cipher = cipher(passphrase, &salt, MEMORY_KIB, PASSES)?;
        let mut sealed = seed.to_vec();
        let public = key.named().to_string();
        cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(public.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| PersonKeyError::Encryption)?;
        Ok(Self {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            salt: STANDARD.encode(salt),
            nonce: STANDARD.encode(nonce),
            seed: STANDARD.encode(sealed),
        })
    }

    fn open(&self, named: &NamedKey, passphrase: &str) -> Result<SigningKey, PersonKeyError> {
        let bytes = |text: &str| {
            STANDARD
                .decode(text)
                .map_err(|_| PersonKeyError::Passphrase)
        };
        let nonce: [u8; 12] = bytes(&self.nonce)?
            .try_into()
            .map_err(|_| PersonKeyError::Passphrase)?;
        let cipher = cipher(
            passphrase,
            &bytes(&self.salt)?,
            self.memory_kib,
            self.passes,
        )?;
        let mut sealed = Zeroizing::new(bytes(&self.seed)?);
        let public = named.to_string();
        let seed = cipher
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(public.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| PersonKeyError::Passphrase)?;
        let seed = <[u8; 32]>::try_from(&*seed).map_err(|_| PersonKeyError::Passphrase)?;
        let seed = Zeroizing::new(seed);
        SigningKey::from_seed(&seed, &named.name).map_err(PersonKeyError::Name)
    }
}

/// The cipher whose key `passphrase` derives.
fn cipher(
    passphrase: &str,
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
) -> Result<LessSafeKey, PersonKeyError> {
    if memory_kib > MOST_MEMORY_KIB || passes > MOST_PASSES {
        return Err(PersonKeyError::Passphrase);
    }
    let params = Params::new(memory_kib, passes, 1, Some(32));
    let params = params.map_err(|_| PersonKeyError::Encryption)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, key.as_mut())
        .map_err(|_| PersonKeyError::Encryption)?;
    let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_ref());
    Ok(LessSafeKey::new(
        key.map_err(|_| PersonKeyError::Encryption)?,
    ))
}

impl Keys {
    /// Makes the person key `name`, encrypted with `passphrase`.
    pub fn create_person(&self, name: &str, passphrase: &str) -> Result<PersonKey, PersonKeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut()).map_err(KeysError::Random)?;
        let key = SigningKey::from_seed(&seed, name).map_err(PersonKeyError::Name)?;
        let sealed = Sealed::new(&key, &seed, passphrase)?;
        self.put_person(key.named(), Held::Passphrase(sealed))
    }

    /// Takes a key of the ssh-agent as the person key: the one with this fingerprint, or its only
    /// Ed25519 key.
    pub fn adopt_person(
        &self,
        name: &str,
        wanted: Option<&str>,
    ) -> Result<PersonKey, PersonKeyError> {
        let known = SshAgent::connect()?.keys()?;
        let is_wanted = |it: &&AgentKey| wanted.is_none_or(|wanted| fingerprint(&it.key) == wanted);
        let found: Vec<&AgentKey> = known.iter().filter(is_wanted).collect();
        let [found] = found[..] else {
            let which = wanted.map_or_else(String::new, |it| format!(" `{it}`"));
            return Err(match found.len() {
                0 => PersonKeyError::NoAgentKey(which),
                many => PersonKeyError::ManyAgentKeys(many),
            });
        };
        let name = if name.is_empty() {
            &found.comment
        } else {
            name
        };
        let line = format!("{} {name}", found.key);
        let named = NamedKey::parse(line.trim_end()).map_err(PersonKeyError::Name)?;
        self.put_person(named, Held::SshAgent {})
    }

    fn put_person(&self, named: NamedKey, held: Held) -> Result<PersonKey, PersonKeyError> {
        place::make(self.directory())?;
        let path = self.directory().join(FILE);
        let file = PersonKeyFile {
            version: 1,
            public: named.to_string(),
            held,
        };
        let text = serde_json::to_string_pretty(&file).map_err(|error| PersonKeyError::File {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        match self.place(FILE, &(text + "\n"), 0o600) {
            Err(KeysError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                Err(PersonKeyError::Exists(path))
            }
            placed => {
                placed?;
                let held = file.held;
                Ok(PersonKey { named, held })
            }
        }
    }

    /// The person key of this user, if there is one.
    pub fn person(&self) -> Result<Option<PersonKey>, PersonKeyError> {
        let Some(text) = self.read(FILE, 0o600)? else {
            return Ok(None);
        };
        let wrong = |reason: String| PersonKeyError::File {
            path: self.directory().join(FILE),
            reason,
        };
        let file: PersonKeyFile =
            json::parse_as(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        if file.version != 1 {
            return Err(wrong(format!("version {} is not known", file.version)));
        }
        let named = NamedKey::parse(&file.public).map_err(|error| wrong(error.to_string()))?;
        let held = file.held;
        Ok(Some(PersonKey { named, held }))
    }

    /// The person keys whose approvals count: the user's own, and those on the list.
    pub fn trusted_persons(&self) -> Result<Vec<NamedKey>, PersonKeyError> {
        let own = self.person()?.map(|own| own.named);
        let mut keys: Vec<NamedKey> = own.into_iter().collect();
        for key in self.list(TRUSTED)? {
            if !keys.iter().any(|known| known.key == key.key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Lets approvals by `key` count; returns whether it was new.
    pub fn trust_person(&self, key: &NamedKey) -> Result<bool, PersonKeyError> {
        if self.trusted_persons()?.iter().any(|it| it.key == key.key) {
            return Ok(false);
        }
        self.append(TRUSTED, key)?;
        Ok(true)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use super::*;

    /// The bytes of a public key.
    pub(in crate::keys) const POINT: [u8; 32] = [
        0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a, 0x92, 0xb7, 0x0a, 0xa7, 0x4d, 0x1b, 0x7e,
        0xbc, 0x9c, 0x98, 0x2c, 0xcf, 0x2e, 0xc4, 0x96, 0x8c, 0xc0, 0xcd, 0x55, 0xf1, 0x2a, 0xf4,
        0x66, 0x0c,
    ];

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the form of a passphrase that is asked for"
    )]
    fn said(words: &str) -> Result<Zeroizing<String>, PersonKeyError> {
        Ok(Zeroizing::new(words.to_owned()))
    }

    #[test]
    fn a_passphrase_opens_the_key_and_a_changed_file_does_not() {
        let scratch = tempfile::tempdir().unwrap();
        let keys = Keys::at(scratch.path().join("keys"));
        assert!(keys.person().unwrap().is_none());
        let short = keys.create_person("ann", "1234567");
        assert!(matches!(short, Err(PersonKeyError::Short)));
        let made = keys.create_person("ann", "correct horse").unwrap();
        let again = keys.create_person("ann", "correct horse");
        assert!(matches!(again, Err(PersonKeyError::Exists(_))), "{again:?}");
        let found = keys.person().unwrap().unwrap();
        assert_eq!(found.named, made.named);
        assert_eq!(
            keys.trusted_persons().unwrap(),
            std::slice::from_ref(&made.named)
        );
        let signature = found.sign(b"yes", || said("correct horse")).unwrap();
        assert!(made.named.key.verifies(b"yes", &signature));
        let wrong = found.sign(b"yes", || said("correct house"));
        assert!(
            matches!(wrong, Err(PersonKeyError::Passphrase)),
            "{wrong:?}"
        );

        let path = keys.directory().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("secret"), "{text}");
        // Another name in the public line: the encryption covers it.
        fs::write(&path, text.replacen(" ann", " eve", 1)).unwrap();
        let altered = keys.person().unwrap().unwrap();
        let refused = altered.sign(b"yes", || said("correct horse"));
        assert!(matches!(refused, Err(PersonKeyError::Passphrase)));
    }
}
