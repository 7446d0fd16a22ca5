//! Which secret the proxy adds to which requests, so that the sandbox never holds it.
//!
//! A credential is written as `https://HOST[:PORT] FIELD: text $NAME`, where `NAME` is a variable
//! in the environment of Provost, or as `https://HOST[:PORT] FIELD: text @PROGRAM`, where the
//! secret is in the login file of that program. Only the name is stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, EndpointError};
use super::field_name;
use crate::words;

pub use crate::secret::DUMMY;

/// How the proxy connects to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Plain,
    Tls,
}

impl Transport {
    /// The default port.
    pub fn port(self) -> u16 {
        match self {
            Self::Plain => 80,
            Self::Tls => 443,
        }
    }
}

/// A header field that the proxy adds to requests for one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Credential {
    pub endpoint: Endpoint,
    /// How the proxy connects to it; the sandbox always speaks plain HTTP to the proxy.
    pub transport: Transport,
    pub field: String,
    /// The text before the secret.
    before: String,
    pub source: SecretSource,
}

/// Where the secret of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable in the environment of Provost.
    Variable(String),
    /// The login file of a program, in the home of the user.
    File(LoginFile),
}

words! {
    /// A program whose login file can be read.
    pub enum LoginFile {
        Claude = "claude",
        Codex = "codex",
    }
}

impl SecretSource {
    fn parse(text: &str) -> Option<Self> {
        if let Some(program) = text.strip_prefix('@') {
            return LoginFile::parse(program).map(Self::File);
        }
        let variable = text.strip_prefix('$')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = variable.bytes().next()?;
        let named = variable.bytes().all(plain) && !first.is_ascii_digit();
        named.then(|| Self::Variable(variable.to_owned()))
    }

    /// The variable, if it is one.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::File(_) => None,
        }
    }

    /// How an argument names it.
    pub fn argument(&self) -> String {
        match self {
            Self::Variable(name) => name.clone(),
            Self::File(file) => format!("@{file}"),
        }
    }

    /// What is sent, in words for the user.
    pub fn describe(&self) -> String {
        match self {
            Self::Variable(name) => format!("the key in ${name}"),
            Self::File(LoginFile::Claude) => "the login of Claude Code".to_owned(),
            Self::File(LoginFile::Codex) => "the login of Codex".to_owned(),
        }
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(out, "${name}"),
            Self::File(file) => write!(out, "@{file}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("is not of the form `https://HOST FIELD: $NAME` or `https://HOST FIELD: @PROGRAM`")]
    Form,
    #[error("names no place: the host {0}")]
    Endpoint(#[from] EndpointError),
    /// A field that controls the message itself.
    #[error("names a field that no secret can stand in")]
    Field,
    #[error("has no variable `$NAME`, `@claude` or `@codex` at its end")]
    Source,
    /// The variable has a value that a header cannot hold.
    #[error("the variable is not set, or holds what no field can hold")]
    Secret,
}

impl Credential {
    pub fn parse(text: &str) -> Result<Self, CredentialError> {
        let (place, line) = text.split_once(' ').ok_or(CredentialError::Form)?;
        let (transport, authority) = match (
            place.strip_prefix("https://"),
            place.strip_prefix("http://"),
        ) {
            (Some(authority), _) => (Transport::Tls, authority),
            (_, Some(authority)) => (Transport::Plain, authority),
            (None, None) => return Err(CredentialError::Form),
        };
        let endpoint = Endpoint::parse_with_default(authority, transport.port())?;
        let (name, value) = line.split_once(':').ok_or(CredentialError::Form)?;
        let name = field_name::token(name.as_bytes()).ok_or(CredentialError::Field)?;
        if field_name::is_structural(name) {
            return Err(CredentialError::Field);
        }
        let at = value.rfind(['$', '@']).ok_or(CredentialError::Source)?;
        let (before, source) = value.split_at(at);
        let source = SecretSource::parse(source).ok_or(CredentialError::Source)?;
        if !before.bytes().all(|byte| matches!(byte, b' '..=b'~')) || before.contains('$') {
            return Err(CredentialError::Form);
        }
        Ok(Self {
            endpoint,
            transport,
            field: name.to_owned(),
            before: before.trim_start().to_owned(),
            source,
        })
    }

    /// The value of the field, with the secret.
    pub fn value(&self, secret: &str) -> Result<String, CredentialError> {
        let shown = secret.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if secret.is_empty() || !shown {
            return Err(CredentialError::Secret);
        }
        Ok(format!("{}{secret}", self.before))
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            Transport::Plain => "http",
            Transport::Tls => "https",
        };
        let Self {
            endpoint,
            field,
            before,
            source,
            ..
        } = self;
        write!(out, "{scheme}://{endpoint} {field}: {before}{source}")
    }
}

impl FromStr for Credential {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, CredentialError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Credential {
    type Error = CredentialError;

    fn try_from(text: String) -> Result<Self, CredentialError> {
        Self::parse(&text)
    }
}

impl From<Credential> for String {
    fn from(credential: Credential) -> Self {
        credential.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_names_a_place_a_field_and_a_variable() {
        let text = "https://api.example.com Authorization: Bearer $API_KEY";
        let credential = Credential::parse(text).unwrap();
        assert_eq!(credential.endpoint.to_string(), "api.example.com:443");
        assert_eq!(credential.source.variable(), Some("API_KEY"));
        assert_eq!(credential.value("s3cret").unwrap(), "Bearer s3cret");
        let spelled = credential.to_string();
        let want = "https://api.example.com:443 Authorization: Bearer $API_KEY";
        assert_eq!(spelled, want);
        assert_eq!(Credential::parse(&spelled), Ok(credential.clone()));
        for bad in ["", "a b", "a\r\nX: y", "a\n", "é"] {
            assert_eq!(
                credential.value(bad),
                Err(CredentialError::Secret),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_credential_may_name_the_login_file_of_a_program() {
        let text = "https://chatgpt.com:443 Authorization: Bearer @codex";
        let credential = Credential::parse(text).unwrap();
        assert_eq!(credential.source, SecretSource::File(LoginFile::Codex));
        assert_eq!(credential.to_string(), text);
        assert_eq!(credential.value("t0ken").unwrap(), "Bearer t0ken");
    }

    #[test]
    fn what_is_no_credential_is_refused() {
        use CredentialError as E;
        let cases = [
            ("", E::Form),
            ("api.example.com X: $A", E::Form),
            ("https://api.example.com", E::Form),
            ("https://api.example.com X $A", E::Form),
            (
                "https://*.example.com X: $A",
                E::Endpoint(EndpointError::Wildcard),
            ),
            (
                "https://api.example.com/v1 X: $A",
                E::Endpoint(EndpointError::More),
            ),
            ("https://api.example.com Host: $A", E::Field),
            ("https://api.example.com Connection: $A", E::Field),
            ("https://api.example.com X Y: $A", E::Field),
            ("https://api.example.com X: A", E::Source),
            ("https://api.example.com X: $", E::Source),
            ("https://api.example.com X: $1A", E::Source),
            ("https://api.example.com X: $A b", E::Source),
            ("https://api.example.com X: $A$B", E::Form),
            ("https://api.example.com X: $A@codex", E::Form),
            ("https://api.example.com X: @", E::Source),
            ("https://api.example.com X: @gemini", E::Source),
            ("https://api.example.com X: @codex ", E::Source),
            ("https://api.example.com X: a\r\nY: $A", E::Form),
        ];
        for (text, want) in cases {
            assert_eq!(Credential::parse(text), Err(want), "{text}");
        }
    }
}
