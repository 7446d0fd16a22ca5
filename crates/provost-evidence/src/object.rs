//! Git object ids and how they are computed.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// The hash function of a repository's object ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectFormat {
    /// 40 hexadecimal digits.
    Sha1,
    /// 64 hexadecimal digits.
    Sha256,
}

/// The id of a git object: 40 or 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an object id of 40 or 64 lower-case hexadecimal digits")]
pub struct BadOid(pub String);

impl schemars::JsonSchema for Oid {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Oid".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$" })
    }
}

impl TryFrom<String> for Oid {
    type Error = BadOid;

    fn try_from(text: String) -> Result<Self, BadOid> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(text.len(), 40 | 64) && text.bytes().all(hex) {
            Ok(Self(text))
        } else {
            Err(BadOid(text))
        }
    }
}

impl TryFrom<&str> for Oid {
    type Error = BadOid;

    fn try_from(text: &str) -> Result<Self, BadOid> {
        text.to_owned().try_into()
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Oid {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Determined by its length.
    pub fn format(&self) -> ObjectFormat {
        if self.0.len() == 40 {
            ObjectFormat::Sha1
        } else {
            ObjectFormat::Sha256
        }
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }

    /// The id as the bytes a tree object holds.
    pub fn to_bytes(&self) -> Vec<u8> {
        let digit = |byte: u8| {
            if byte.is_ascii_digit() {
                byte - b'0'
            } else {
                byte - b'a' + 10
            }
        };
        self.0
            .as_bytes()
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    }

    /// The id for these bytes; `None` unless there are 20 or 32.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        hex(bytes).try_into().ok()
    }
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| {
        char::from(if value < 10 {
            b'0' + value
        } else {
            b'a' + value - 10
        })
    };
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0x0f));
    }
    text
}

/// SHA-256 of `bytes` in hexadecimal, the digest of all evidence.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    /// The word git writes before an object.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// Bytes with a SHA-1 collision attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes carry a SHA-1 collision attack")]
pub struct Collision;

impl ObjectFormat {
    pub fn oid(self, kind: Kind, bytes: &[u8]) -> Result<Oid, Collision> {
        let header = format!("{} {}\0", kind.word(), bytes.len());
        match self {
            Self::Sha1 => {
                let mut hasher = sha1_checked::Sha1::new();
                sha1_checked::Digest::update(&mut hasher, header.as_bytes());
                sha1_checked::Digest::update(&mut hasher, bytes);
                let result = hasher.try_finalize();
                if result.has_collision() {
                    return Err(Collision);
                }
                Ok(Oid(hex(result.hash())))
            }
            Self::Sha256 => {
                let mut hasher = sha2::Sha256::new();
                hasher.update(header.as_bytes());
                hasher.update(bytes);
                Ok(Oid(hex(&hasher.finalize())))
            }
        }
    }

    /// The digest that git puts at the end of a pack or an index with these `bytes`.
    pub fn checksum(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => {
                let builder = sha1_checked::Sha1::builder().detect_collision(false);
                let mut hasher = builder.build();
                sha1_checked::Digest::update(&mut hasher, bytes);
                hasher.try_finalize().hash().to_vec()
            }
            Self::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
        }
    }

    /// The length of an id in bytes.
    pub fn width(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// The mode of a tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    #[serde(rename = "100644")]
    File,
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link; the blob is its target.
    #[serde(rename = "120000")]
    Symlink,
    /// A commit of another repository.
    #[serde(rename = "160000")]
    Gitlink,
    #[serde(rename = "040000")]
    Tree,
}

impl Mode {
    /// The digits a tree object holds.
    pub fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
            Self::Tree => "40000",
        }
    }

    /// The mode written as `digits` in a tree object, in an index or by `ls-tree`.
    ///
    /// Old repositories hold `100664`, which git reads as a regular file.
    pub fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            b"100644" | b"100664" => Some(Self::File),
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Gitlink),
            b"40000" | b"040000" => Some(Self::Tree),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let oid = |format: ObjectFormat, bytes: &[u8]| format.oid(Kind::Blob, bytes).unwrap();
        assert_eq!(
            oid(ObjectFormat::Sha1, b"hello\n").as_str(),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        assert_eq!(
            oid(ObjectFormat::Sha256, b"hello\n").as_str(),
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"
        );
    }

    #[test]
    fn an_id_comes_back_from_its_bytes() {
        let oid = ObjectFormat::Sha1.oid(Kind::Tree, b"").unwrap();
        assert_eq!(Oid::from_bytes(&oid.to_bytes()), Some(oid));
        assert_eq!(Oid::from_bytes(b"short"), None);
        assert!(Oid::try_from("CE013625030BA8DBA906F756967F9E9CA394464A").is_err());
    }
}
