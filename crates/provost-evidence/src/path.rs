//! Paths in a repository.
//!
//! [`RepoPath`] is what people, contracts and verdicts use: text that cannot escape. [`RawPath`] is
//! what git and the kernel use: bytes. A raw path that does not convert is a finding for the diff
//! gate, never an entry to skip.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest path, in bytes; the kernel's own limit.
pub const LONGEST: usize = 4096;

/// A path inside the repository: relative, `/`-separated, UTF-8, never escaping.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("is empty")]
    Empty,
    #[error("is absolute")]
    Absolute,
    #[error("has a `..` component")]
    Climbs,
    #[error("has an empty or `.` component")]
    Unnormalised,
    #[error("holds a control character or a backslash")]
    BadCharacter,
    #[error("is not UTF-8")]
    NotText,
    #[error("is longer than 4096 bytes")]
    TooLong,
}

impl TryFrom<String> for RepoPath {
    type Error = PathError;

    fn try_from(raw: String) -> Result<Self, PathError> {
        if raw.is_empty() {
            return Err(PathError::Empty);
        }
        if raw.len() > LONGEST {
            return Err(PathError::TooLong);
        }
        if raw.contains('\\') || raw.contains(char::is_control) {
            return Err(PathError::BadCharacter);
        }
        if raw.starts_with('/') {
            return Err(PathError::Absolute);
        }
        for part in raw.split('/') {
            match part {
                ".." => return Err(PathError::Climbs),
                "" | "." => return Err(PathError::Unnormalised),
                _ => {}
            }
        }
        Ok(Self(raw))
    }
}

impl TryFrom<&str> for RepoPath {
    type Error = PathError;

    fn try_from(raw: &str) -> Result<Self, PathError> {
        raw.to_owned().try_into()
    }
}

impl TryFrom<&RawPath> for RepoPath {
    type Error = PathError;

    fn try_from(raw: &RawPath) -> Result<Self, PathError> {
        std::str::from_utf8(&raw.0)
            .map_err(|_| PathError::NotText)?
            .try_into()
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl RepoPath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last component.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The components, outermost first.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Whether this path is `other` or below it, on a component boundary.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0
            .strip_prefix(&other.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A path as git and the kernel use it.
///
/// As text, and so in JSON, a byte that a [`RepoPath`] may not hold is written `\xNN`; every raw
/// path has one such text and is parsed back from it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RawPath(Vec<u8>);

impl RawPath {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// This directory's entry `name`; the empty path is the root.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes)
    }
}

impl From<&RepoPath> for RawPath {
    fn from(path: &RepoPath) -> Self {
        Self(path.0.clone().into_bytes())
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() || character == '\\' {
                    let mut bytes = [0; 4];
                    for byte in character.encode_utf8(&mut bytes).bytes() {
                        write!(formatter, "\\x{byte:02x}")?;
                    }
                } else {
                    write!(formatter, "{character}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(formatter, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RawPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

impl From<RawPath> for String {
    fn from(path: RawPath) -> Self {
        path.to_string()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has a backslash that is not `\\xNN`")]
pub struct BadEscape;

impl TryFrom<String> for RawPath {
    type Error = BadEscape;

    fn try_from(text: String) -> Result<Self, BadEscape> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut pieces = text.split('\\');
        bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
        for piece in pieces {
            let hex = piece
                .strip_prefix('x')
                .and_then(|rest| rest.get(..2))
                .ok_or(BadEscape)?;
            bytes.push(u8::from_str_radix(hex, 16).map_err(|_| BadEscape)?);
            bytes.extend_from_slice(&piece.as_bytes()[3..]);
        }
        Ok(Self(bytes))
    }
}

/// Whether `text` is valid as one component of Provost's file names.
pub fn is_segment(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.len() <= 128
        && text.bytes().all(allowed)
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
        && !text.contains("..")
}

/// Whether `text` is a valid file name on every system, with the same meaning: letters, digits,
/// `.`, `_` and `-`, and no device name of Windows.
pub fn is_portable_name(text: &str) -> bool {
    let stem = text
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    let numbered = |device: &str| {
        let number = stem.strip_prefix(device);
        number.is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
    };
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL");
    is_segment(text) && !text.ends_with('.') && !device && !numbered("COM") && !numbered("LPT")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_portable_name_is_one_file_everywhere() {
        for name in [
            "p1",
            "phase-2.1",
            "a_b",
            "1",
            "console",
            "com",
            "com10",
            "lpt",
        ] {
            assert!(super::is_portable_name(name), "{name}");
        }
        let no = [
            "",
            ".",
            "..",
            ".git",
            "-x",
            "a..b",
            "a/b",
            "a b",
            "a:b",
            "p1.",
            "caf\u{e9}",
            "git~1",
            "CON",
            "con.txt",
            "nul",
            "Aux.yaml",
            "prn",
            "COM1",
            "lpt9.log",
        ];
        for name in no {
            assert!(!super::is_portable_name(name), "{name}");
        }
    }

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_that_could_escape_is_refused() {
        let cases = [
            ("", PathError::Empty),
            ("/etc", PathError::Absolute),
            ("a/../b", PathError::Climbs),
            ("..", PathError::Climbs),
            ("a//b", PathError::Unnormalised),
            ("./a", PathError::Unnormalised),
            ("a/", PathError::Unnormalised),
            ("a\\b", PathError::BadCharacter),
            ("a\0b", PathError::BadCharacter),
            ("a\nb", PathError::BadCharacter),
            ("a\u{85}b", PathError::BadCharacter),
        ];
        for (raw, want) in cases {
            assert_eq!(RepoPath::try_from(raw), Err(want), "{raw:?}");
        }
    }

    #[test]
    fn within_stops_at_component_boundaries() {
        let path = |text: &str| RepoPath::try_from(text).unwrap();
        assert!(path("app/sub/c").is_within(&path("app/sub")));
        assert!(path("app").is_within(&path("app")));
        assert!(!path("app2/x").is_within(&path("app")));
        assert!(!path("app").is_within(&path("app/sub")));
    }

    proptest! {
        #[test]
        fn a_raw_path_comes_back_from_its_text(bytes: Vec<u8>) {
            let path = RawPath::new(bytes);
            prop_assert_eq!(RawPath::try_from(path.to_string()), Ok(path));
        }

        #[test]
        fn a_repository_path_is_its_own_text(text in "[a-zé ./]{1,20}") {
            if let Ok(path) = RepoPath::try_from(text.as_str()) {
                prop_assert_eq!(RawPath::from(&path).to_string(), text);
            }
        }
    }
}
