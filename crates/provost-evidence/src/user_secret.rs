//! Distinguishes files that this user wrote from files of other origin.
//!
//! A checkout can contain files that look like anything Provost keeps: runs, approvals, chains. A
//! file that Provost wrote for a user carries a code made with a secret that is outside every
//! repository.
//!
//! # Invariants
//!
//! - A secret is never printed, and never part of evidence.
//! - Codes are compared in constant time.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A secret of one user on one machine.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// The purpose of a code; a code for another purpose is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A record of a ledger.
    Record,
    /// A directory with Provost's state.
    Root,
    /// An answer that another process than the driver of a run left.
    Answer,
}

impl Purpose {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Record => b"provost record v1\0",
            Self::Root => b"provost root v1\0",
            Self::Answer => b"provost answer v1\0",
        }
    }
}

impl Secret {
    pub fn of(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn parse(text: &str) -> Option<Self> {
        hex_bytes(text).map(Self)
    }

    /// The secret as the one line of its file.
    pub fn line(&self) -> String {
        hex(&self.0)
    }

    /// The code of `text` for `purpose`, in hexadecimal.
    pub fn mac(&self, purpose: Purpose, text: &[u8]) -> String {
        hex(&self.over(purpose, text).finalize().into_bytes())
    }

    /// Whether `mac` is the code of `text` for `purpose`.
    pub fn made(&self, mac: &str, purpose: Purpose, text: &[u8]) -> bool {
        let given = hex_bytes(mac);
        given.is_some_and(|given| self.over(purpose, text).verify_slice(&given).is_ok())
    }

    fn over(&self, purpose: Purpose, text: &[u8]) -> Hmac<Sha256> {
        // The block of the hash is longer than the secret; the rest is zeros, as HMAC defines.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        Hmac::<Sha256>::new(&block.into())
            .chain_update(purpose.name())
            .chain_update(text)
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| DIGITS[usize::from(half)]).collect()
}

/// 32 bytes in lowercase hexadecimal.
fn hex_bytes(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_bound_to_secret_purpose_and_text() {
        let secret = Secret::of([1; 32]);
        let mac = secret.mac(Purpose::Root, b"text");
        assert!(secret.made(&mac, Purpose::Root, b"text"));
        assert!(!secret.made(&mac, Purpose::Record, b"text"));
        assert!(!secret.made(&mac, Purpose::Root, b"texts"));
        assert!(!Secret::of([2; 32]).made(&mac, Purpose::Root, b"text"));
        for wrong in [&mac[..62], "", &mac.to_uppercase(), &format!("{mac}00")] {
            assert!(!secret.made(wrong, Purpose::Root, b"text"), "{wrong}");
        }
    }

    #[test]
    fn a_code_is_that_of_rfc_2104() {
        let mut plain = sha2::Sha256::default();
        let pad = |with: u8| [[1 ^ with; 32], [with; 32]].concat();
        sha2::Digest::update(&mut plain, pad(0x36));
        sha2::Digest::update(&mut plain, b"provost root v1\0text");
        let inner = sha2::Digest::finalize(plain);
        let mut outer = sha2::Sha256::default();
        sha2::Digest::update(&mut outer, pad(0x5c));
        sha2::Digest::update(&mut outer, inner);
        let want = hex(&sha2::Digest::finalize(outer));
        assert_eq!(Secret::of([1; 32]).mac(Purpose::Root, b"text"), want);
    }

    #[test]
    fn a_secret_reads_back_and_is_not_shown() {
        let secret = Secret::of([0xab; 32]);
        assert_eq!(Secret::parse(&secret.line()), Some(secret.clone()));
        assert_eq!(Secret::parse("ab"), None);
        assert!(!format!("{secret:?}").contains("ab"));
    }
}
