//! Signs a payload in a DSSE envelope, and opens envelopes.
//!
//! The signature covers the payload together with its type, so neither can be read as something
//! else. An envelope has one meaning: base64 is parsed strictly, JSON keys must be unique, and the
//! payload is not used before its signature is verified.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{self, ReadError};
use crate::key::{PublicKey, SigningKey};

/// The type of every signed payload: an in-toto statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The largest envelope that is read, in bytes.
pub const LARGEST: usize = 1024 * 1024;

/// The most signatures of one envelope that are read.
pub const MOST_SIGNATURES: usize = 16;

/// An envelope in its stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Envelope {
    pub payload_type: String,
    /// The payload in base64.
    pub payload: String,
    pub signatures: Vec<Signature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Which key made the signature; a hint that decides nothing.
    pub keyid: String,
    /// The 64 bytes in base64.
    pub sig: String,
}

/// A payload with a verified signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub payload: Vec<u8>,
    pub key: PublicKey,
    /// Whether the envelope names that key; only a hint, but always correct in our envelopes.
    pub hint_fits: bool,
}

impl Opened {
    pub fn keyid(&self) -> String {
        self.key.id()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the envelope has {0} bytes; at most {LARGEST} are read")]
    TooLarge(usize),
    #[error("the envelope does not parse")]
    Syntax(#[source] ReadError),
    #[error("the payload is `{0}`, not `{PAYLOAD_TYPE}`")]
    PayloadType(String),
    #[error("`{0}` is not base64 in its one spelling, or not of its length")]
    Base64(&'static str),
    #[error("the envelope carries no signature")]
    Unsigned,
    #[error("the envelope carries {0} signatures; at most {MOST_SIGNATURES} are read")]
    TooManySignatures(usize),
    /// The signature that names a known key was not made by that key.
    #[error("the signature of the key {keyid} does not hold")]
    Wrong { keyid: String },
    /// Every signature names an unknown key.
    #[error("the envelope is signed by a key that is not known here: {keyid}")]
    UnknownKey {
        /// The first key that is named.
        keyid: String,
    },
}

/// The bytes to sign for `payload`: the pre-authentication encoding of DSSE v1.
pub fn encode_for_signing(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

/// Puts `payload`, an in-toto statement, into an envelope signed by `key`.
pub fn sign(payload: &[u8], key: &SigningKey) -> Envelope {
    let signature = key.sign(&encode_for_signing(PAYLOAD_TYPE, payload));
    Envelope {
        payload_type: PAYLOAD_TYPE.to_owned(),
        payload: STANDARD.encode(payload),
        signatures: vec![Signature {
            keyid: key.public().id(),
            sig: STANDARD.encode(signature),
        }],
    }
}

impl Envelope {
    /// Parses an envelope; verifies nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        if bytes.len() > LARGEST {
            return Err(OpenError::TooLarge(bytes.len()));
        }
        json::parse_as(bytes).map_err(OpenError::Syntax)
    }

    /// The envelope as a file: canonical JSON and a newline.
    pub fn render(&self) -> String {
        // Strings and lists of strings; serialising them cannot fail, and an empty text would not
        // parse.
        let value = serde_json::to_value(self).unwrap_or_default();
        json::canonical(&value) + "\n"
    }

    /// The payload without checking the signature; only [`Envelope::open`] verifies it.
    pub fn unverified_payload(&self) -> Result<Vec<u8>, OpenError> {
        STANDARD
            .decode(&self.payload)
            .map_err(|_| OpenError::Base64("payload"))
    }

    /// Opens the envelope if one of `keys` signed it.
    ///
    /// If a signature names one of `keys` and does not verify, opening fails, whatever other
    /// signatures there are.
    pub fn open(&self, keys: &[PublicKey]) -> Result<Opened, OpenError> {
        if self.payload_type != PAYLOAD_TYPE {
            return Err(OpenError::PayloadType(self.payload_type.clone()));
        }
        if self.signatures.len() > MOST_SIGNATURES {
            return Err(OpenError::TooManySignatures(self.signatures.len()));
        }
        let Some(first) = self.signatures.first() else {
            return Err(OpenError::Unsigned);
        };
        let payload = self.unverified_payload()?;
        let message = encode_for_signing(&self.payload_type, &payload);
        let mut signer = None;
        for signature in &self.signatures {
            let bytes = STANDARD
                .decode(&signature.sig)
                .ok()
                .and_then(|bytes| <[u8; 64]>::try_from(bytes).ok())
                .ok_or(OpenError::Base64("signatures[].sig"))?;
            match keys.iter().find(|key| key.verifies(&message, &bytes)) {
                Some(key) => {
                    signer.get_or_insert((*key, signature.keyid == key.id()));
                }
                None if keys.iter().any(|key| key.id() == signature.keyid) => {
                    return Err(OpenError::Wrong {
                        keyid: signature.keyid.clone(),
                    });
                }
                None => {}
            }
        }
        let (key, hint_fits) = signer.ok_or_else(|| OpenError::UnknownKey {
            keyid: first.keyid.clone(),
        })?;
        Ok(Opened {
            payload,
            key,
            hint_fits,
        })
    }
}

/// Parses an envelope and opens it if one of `keys` signed it.
pub fn open(bytes: &[u8], keys: &[PublicKey]) -> Result<Opened, OpenError> {
    Envelope::parse(bytes)?.open(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32], "").unwrap()
    }

    #[test]
    fn what_was_signed_comes_back() {
        let bytes = sign(b"{}", &key(1)).render();
        let opened = open(bytes.as_bytes(), &[key(2).public(), key(1).public()]).unwrap();
        assert_eq!(opened.payload, b"{}");
        assert_eq!(opened.key, key(1).public());
        assert!(opened.hint_fits);
    }

    #[test]
    fn another_implementation_made_the_same_bytes() {
        // Made with the Ed25519 of OpenSSL through Python, from the seed of 32 bytes 9.
        let vector = include_str!("dsse/vector.json");
        let public = key(9).public();
        assert_eq!(
            public.to_string(),
            "ed25519:/RckOFqgx1tk+3jNYC+h2ZH96/drE8WO1wLqyDXp9hg="
        );
        let opened = open(vector.as_bytes(), &[public]).unwrap();
        assert_eq!(sign(&opened.payload, &key(9)).render(), vector);
    }

    #[test]
    fn the_encoding_is_that_of_the_standard() {
        assert_eq!(
            encode_for_signing("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn every_changed_byte_is_seen() {
        let good = sign(br#"{"a":1}"#, &key(1)).render().into_bytes();
        let keys = [key(1).public()];
        for place in 0..good.len() - 1 {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[place] ^= 1 << bit;
                let opened = open(&bad, &keys);
                // The hint is not signed; a change can only make it wrong.
                let seen = opened.as_ref().map_or(true, |opened| !opened.hint_fits);
                assert!(seen, "byte {place}, bit {bit}: {opened:?}");
            }
        }
    }

    type Change<'a> = &'a dyn Fn(&mut Envelope);

    #[test]
    fn an_envelope_that_does_not_hold_says_why() {
        let good = sign(b"{}", &key(1));
        let with = |change: &dyn Fn(&mut Envelope)| {
            let mut envelope = good.clone();
            change(&mut envelope);
            envelope.open(&[key(1).public()]).unwrap_err().to_string()
        };
        let foreign = key(2).public().id();
        let own = key(1).public().id();
        let cases: [(Change<'_>, String); 8] = [
            (&|e| e.signatures.clear(), "no signature".into()),
            (
                &|e| e.payload_type = "text/plain".into(),
                "`text/plain`".into(),
            ),
            (
                &|e| e.payload = "e30".into(),
                "`payload` is not base64".into(),
            ),
            (
                &|e| e.payload = "e31=".into(),
                "`payload` is not base64".into(),
            ),
            (
                &|e| e.signatures[0].sig = "AAAA".into(),
                "`signatures[].sig`".into(),
            ),
            (
                &|e| e.payload = STANDARD.encode("{ }"),
                format!("{own} does not hold"),
            ),
            (
                &|e| *e = sign(b"{}", &key(2)),
                format!("not known here: {foreign}"),
            ),
            (
                &|e| e.signatures = vec![e.signatures[0].clone(); 17],
                "17 signatures".into(),
            ),
        ];
        for (change, want) in cases {
            let got = with(change);
            assert!(got.contains(&want), "{got} / {want}");
        }
        assert!(matches!(
            open(&vec![b' '; LARGEST + 1], &[]),
            Err(OpenError::TooLarge(_))
        ));
        assert!(matches!(
            open(br#"{"payload":"","payload":""}"#, &[]),
            Err(OpenError::Syntax(_))
        ));
    }

    #[test]
    fn a_second_signature_does_not_cover_for_a_wrong_one() {
        let mut envelope = sign(b"{}", &key(1));
        envelope.signatures.extend(sign(b"{ }", &key(2)).signatures);
        let (one, two) = (key(1).public(), key(2).public());
        assert!(envelope.open(&[one]).is_ok());
        assert!(matches!(
            envelope.open(&[one, two]),
            Err(OpenError::Wrong { .. })
        ));
    }
}
