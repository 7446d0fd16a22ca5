//! Tokens of the API: made by the user, hashed at rest, valid for a time.

use provost_core::object::sha256;
use provost_core::time;
use provost_engine::ports::PortError;
use serde::{Deserialize, Serialize};

use crate::door::random_hex;

/// Begins every token, so that scanners for secrets recognise one.
const PREFIX: &str = "provost_api_";

/// What a token permits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    #[default]
    Read,
    /// Reads and commands. What needs the key of a person is never answered by a token.
    Command,
}

impl TokenScope {
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Command => "command",
        }
    }
}

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRow {
    /// The name that the user gave it.
    pub name: String,
    /// The SHA-256 of the token.
    pub sha256: String,
    /// Tokens that were made before there were scopes read.
    #[serde(default)]
    pub scope: TokenScope,
    /// As RFC 3339.
    pub made: String,
    /// As RFC 3339; not valid from then on.
    pub until: String,
}

/// A token that was made just now; the only moment at which it is known.
#[derive(Debug)]
pub struct NewToken {
    pub token: String,
    pub row: TokenRow,
}

/// Makes a token, valid from `now` for `lasts_ms`.
pub fn new_token(
    name: &str,
    scope: TokenScope,
    now: i64,
    lasts_ms: i64,
) -> Result<NewToken, PortError> {
    let token = format!("{PREFIX}{}", random_hex(32)?);
    let row = TokenRow {
        name: name.to_owned(),
        scope,
        sha256: sha256(token.as_bytes()),
        made: time::render(now),
        until: time::render(now.saturating_add(lasts_ms)),
    };
    Ok(NewToken { token, row })
}

impl TokenRow {
    /// Whether `token` is this one, and is valid at `now`. A time that cannot be read is over.
    pub(crate) fn admits(&self, token: &str, now: i64) -> bool {
        let valid = time::parse(&self.until).is_ok_and(|until| now < until);
        valid && self.sha256 == sha256(token.as_bytes())
    }
}
