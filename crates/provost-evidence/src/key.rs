//! The keys that seal a run, and their text form.
//!
//! A key is one line: `ed25519:` and the 32 bytes of the public key in base64, or `ed25519-secret:`
//! and the 32 bytes of the seed, then an optional name after a space. A key has one spelling; weak
//! keys, with which any signature would verify, are refused.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer as _;

use crate::object::sha256;

/// Prefix of a public key's line.
pub const PUBLIC: &str = "ed25519:";

/// Prefix of a secret key's line.
pub const SECRET: &str = "ed25519-secret:";

/// The longest name of a key, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Why a text is not a key. The text is not repeated: it may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key begins with `{0}`")]
    Prefix(&'static str),
    #[error("the key is not 32 bytes in base64")]
    Bytes,
    /// The bytes are no point of the curve, or a weak one.
    #[error("the bytes are no usable Ed25519 key")]
    Point,
    #[error("the name of a key has at most 128 bytes and no control characters")]
    Name,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl PublicKey {
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Point)?;
        if key.is_weak() {
            return Err(KeyError::Point);
        }
        Ok(Self(key))
    }

    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The id by which signatures name the key: the SHA-256 of its bytes.
    pub fn id(&self) -> String {
        sha256(self.0.as_bytes())
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PUBLIC}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey {
    pub key: PublicKey,
    /// Empty if it has none.
    pub name: String,
}

impl NamedKey {
    /// Parses the line of a public key.
    pub fn parse(line: &str) -> Result<Self, KeyError> {
        let (bytes, name) = parse_line(line, PUBLIC)?;
        let key = PublicKey::from_bytes(&bytes)?;
        Ok(Self { key, name })
    }
}

impl fmt::Display for NamedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.key)?;
        if !self.name.is_empty() {
            write!(formatter, " {}", self.name)?;
        }
        Ok(())
    }
}

/// A key that signs. It is erased from memory when dropped, and never shown.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    /// Empty if it has none.
    pub name: String,
}

impl SigningKey {
    /// The key derived from `seed`, 32 unpredictable bytes.
    pub fn from_seed(seed: &[u8; 32], name: &str) -> Result<Self, KeyError> {
        Ok(Self {
            key: ed25519_dalek::SigningKey::from_bytes(seed),
            name: checked_name(name)?,
        })
    }

    /// Parses the line of a secret key.
    pub fn parse(line: &str) -> Result<Self, KeyError> {
        let (seed, name) = parse_line(line, SECRET)?;
        Self::from_seed(&seed, &name)
    }

    /// The line of the secret key, for the key file.
    pub fn secret_line(&self) -> String {
        let seed = STANDARD.encode(self.key.as_bytes());
        format!("{SECRET}{seed} {}", self.name)
            .trim_end()
            .to_owned()
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }

    pub fn named(&self) -> NamedKey {
        NamedKey {
            key: self.public(),
            name: self.name.clone(),
        }
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the signing key of {}", self.public())
    }
}

fn parse_line(line: &str, prefix: &'static str) -> Result<([u8; 32], String), KeyError> {
    let rest = line.strip_prefix(prefix).ok_or(KeyError::Prefix(prefix))?;
    let (text, name) = rest.split_once(' ').unwrap_or((rest, ""));
    let bytes = STANDARD.decode(text).map_err(|_| KeyError::Bytes)?;
    let bytes = bytes.try_into().map_err(|_| KeyError::Bytes)?;
    Ok((bytes, checked_name(name)?))
}

fn checked_name(name: &str) -> Result<String, KeyError> {
    let name = name.trim();
    if name.len() > LONGEST_NAME || name.contains(char::is_control) {
        return Err(KeyError::Name);
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_line() {
        let key = SigningKey::from_seed(&[7; 32], "laptop of Ada").unwrap();
        let again = SigningKey::parse(&key.secret_line()).unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(again.name, "laptop of Ada");
        let public = key.named();
        assert_eq!(NamedKey::parse(&public.to_string()), Ok(public));
        let nameless = SigningKey::from_seed(&[7; 32], "").unwrap();
        assert!(!nameless.secret_line().contains(' '));
        assert!(!format!("{key:?}").contains("BwcHBwcH"));
    }

    #[test]
    fn a_line_that_is_no_key_is_refused() {
        let good = SigningKey::from_seed(&[7; 32], "").unwrap().public();
        let text = good.to_string();
        let body = text.strip_prefix(PUBLIC).unwrap();
        // The last digit of 32 bytes in base64 carries two bits that must be zero.
        let loose = format!("{PUBLIC}{}", {
            let mut digits = body.to_owned().into_bytes();
            let last = digits.len() - 2;
            digits[last] += 1;
            String::from_utf8(digits).unwrap()
        });
        let cases = [
            (String::new(), KeyError::Prefix(PUBLIC)),
            (body.to_owned(), KeyError::Prefix(PUBLIC)),
            (format!("{SECRET}{body}"), KeyError::Prefix(PUBLIC)),
            (format!("{PUBLIC}AAAA"), KeyError::Bytes),
            (text.replace('=', ""), KeyError::Bytes),
            (format!("{text}\n"), KeyError::Bytes),
            (loose, KeyError::Bytes),
            (format!("{text} a\u{1b}b"), KeyError::Name),
            (format!("{text} {}", "a".repeat(129)), KeyError::Name),
            // The point of order one, with which every signature verifies.
            (
                format!(
                    "{PUBLIC}{}",
                    STANDARD.encode([[1].as_slice(), &[0; 31]].concat())
                ),
                KeyError::Point,
            ),
        ];
        for (line, want) in cases {
            assert_eq!(NamedKey::parse(&line), Err(want), "{line:?}");
        }
    }
}
