//! Keys of persons: what they sign when they answer a question, and how that is checked.
//!
//! A person key is an Ed25519 key that is kept apart from the key that seals runs: encrypted with a
//! passphrase, or in an ssh-agent. What it signs has the form of `ssh-keygen -Y sign`, so a signature
//! that was made for another purpose, such as a login, is none here.
//!
//! # Invariants
//!
//! - A signature covers the digest of the question, the answer, its end and its reason.
//! - A key counts only if the caller names it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

use crate::json;
use crate::key::{NamedKey, PublicKey};

/// What the signatures are for, in the form of SSH.
pub const NAMESPACE: &str = "provost-answer";

/// The kind of key, as SSH spells it.
pub const SSH_ED25519: &str = "ssh-ed25519";

const MAGIC: &[u8] = b"SSHSIG";

/// An answer, as a person signs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnswerStatement<'a> {
    /// The digest of the question, which covers the run.
    pub digest: &'a str,
    pub allow: bool,
    /// Until when it is valid, as RFC 3339.
    pub until: &'a str,
    pub reason: &'a str,
}

impl AnswerStatement<'_> {
    /// The statement as canonical JSON.
    pub fn text(&self) -> String {
        json::canonical(&serde_json::to_value(self).unwrap_or_default())
    }

    /// The bytes that a key signs.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        put(&mut bytes, NAMESPACE.as_bytes());
        put(&mut bytes, b"");
        put(&mut bytes, b"sha512");
        put(&mut bytes, &Sha512::digest(self.text().as_bytes()));
        bytes
    }
}

/// The signature of a person key over an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonSignature {
    /// The public key, as `ed25519:` and its bytes in base64.
    pub key: String,
    /// The 64 bytes of the signature in base64.
    pub signature: String,
}

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonSignatureError {
    #[error("its key cannot be read")]
    Key,
    #[error("its key {0} is none of the person keys that count for this question")]
    Unknown(String),
    #[error("the signature does not fit the answer")]
    Wrong,
}

impl PersonSignature {
    pub fn of(key: &PublicKey, signature: &[u8; 64]) -> Self {
        Self {
            key: key.to_string(),
            signature: STANDARD.encode(signature),
        }
    }

    /// The key that made it, as it claims.
    pub fn claimed_key(&self) -> Option<PublicKey> {
        NamedKey::parse(&self.key).ok().map(|named| named.key)
    }

    /// The fingerprint of the key that made it, as it claims.
    pub fn fingerprint(&self) -> String {
        let key = self.claimed_key();
        key.map_or_else(|| "unreadable".to_owned(), |key| fingerprint(&key))
    }

    /// Whether one of `keys` made it over `statement`.
    pub fn verify(
        &self,
        statement: &AnswerStatement<'_>,
        keys: &[String],
    ) -> Result<(), PersonSignatureError> {
        let key = self.claimed_key().ok_or(PersonSignatureError::Key)?;
        let counts = |line: &String| NamedKey::parse(line).is_ok_and(|known| known.key == key);
        if !keys.iter().any(counts) {
            return Err(PersonSignatureError::Unknown(fingerprint(&key)));
        }
        let bytes = STANDARD.decode(&self.signature).unwrap_or_default();
        let bytes = <[u8; 64]>::try_from(bytes).map_err(|_| PersonSignatureError::Wrong)?;
        if key.verifies(&statement.signed_bytes(), &bytes) {
            Ok(())
        } else {
            Err(PersonSignatureError::Wrong)
        }
    }
}

/// The fingerprint of a key, as `ssh-add -l` prints it.
pub fn fingerprint(key: &PublicKey) -> String {
    let digest = Sha256::digest(ssh_blob(key));
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest))
}

/// A public key in the form of the SSH protocol.
pub fn ssh_blob(key: &PublicKey) -> Vec<u8> {
    let mut blob = Vec::new();
    put(&mut blob, SSH_ED25519.as_bytes());
    put(&mut blob, &key.to_bytes());
    blob
}

/// The Ed25519 key in `blob`; `None` if it is of another kind.
pub fn of_ssh_blob(blob: &[u8]) -> Option<PublicKey> {
    let (kind, rest) = take(blob)?;
    let (bytes, rest) = take(rest)?;
    let bytes = <&[u8; 32]>::try_from(bytes).ok()?;
    let whole = kind == SSH_ED25519.as_bytes() && rest.is_empty();
    whole.then(|| PublicKey::from_bytes(bytes).ok()).flatten()
}

/// Appends `text` with its length before it, as SSH writes strings.
pub fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_be_bytes());
    bytes.extend(text);
}

/// The first string of `bytes` as SSH writes them, and what follows it.
pub fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;

    fn statement() -> AnswerStatement<'static> {
        AnswerStatement {
            digest: "ab",
            allow: true,
            until: "2030-01-01T00:00:00.000Z",
            reason: "",
        }
    }

    #[test]
    fn a_signature_counts_for_one_answer_and_for_named_keys() {
        let key = SigningKey::from_seed(&[7; 32], "").unwrap();
        let keys = [key.named().to_string()];
        let made = PersonSignature::of(&key.public(), &key.sign(&statement().signed_bytes()));
        assert_eq!(made.verify(&statement(), &keys), Ok(()));
        let wrong = Err(PersonSignatureError::Wrong);
        for other in [
            AnswerStatement {
                digest: "ac",
                ..statement()
            },
            AnswerStatement {
                allow: false,
                ..statement()
            },
            AnswerStatement {
                until: "2031-01-01T00:00:00.000Z",
                ..statement()
            },
            AnswerStatement {
                reason: "why",
                ..statement()
            },
        ] {
            assert_eq!(made.verify(&other, &keys), wrong, "{other:?}");
        }
        // The same bytes, signed for no purpose.
        let bare = PersonSignature::of(&key.public(), &key.sign(statement().text().as_bytes()));
        assert_eq!(bare.verify(&statement(), &keys), wrong);
        let stranger = SigningKey::from_seed(&[8; 32], "").unwrap();
        let unknown = PersonSignatureError::Unknown(fingerprint(&key.public()));
        let others = [stranger.named().to_string()];
        assert_eq!(made.verify(&statement(), &others), Err(unknown.clone()));
        assert_eq!(made.verify(&statement(), &[]), Err(unknown));
        let claimed = PersonSignature {
            key: others[0].clone(),
            ..made
        };
        assert_eq!(claimed.verify(&statement(), &others), wrong);
    }

    #[test]
    fn a_key_comes_back_from_its_ssh_form() {
        let key = SigningKey::from_seed(&[7; 32], "").unwrap().public();
        assert_eq!(of_ssh_blob(&ssh_blob(&key)), Some(key));
        let mut long = ssh_blob(&key);
        long.push(0);
        let mut other = Vec::new();
        put(&mut other, b"ssh-rsa");
        put(&mut other, &key.to_bytes());
        for blob in [&long[..], &other, b"", &[0, 0, 0, 9, 1]] {
            assert_eq!(of_ssh_blob(blob), None, "{blob:?}");
        }
    }
}
