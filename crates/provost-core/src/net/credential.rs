//! Which secret the proxy adds to which requests, so that the sandbox never holds it.
//!
//! A credential is written as `https://HOST[:PORT] FIELD: text $NAME`, where `NAME` is a variable
//! in the environment of Provost. Only the name is stored.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, EndpointError};
use super::field_name;

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
    /// The environment variable that holds the secret.
    pub variable: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("is not of the form `https://HOST FIELD: $NAME`")]
    Form,
    #[error("names no place: the host {0}")]
    Endpoint(#[from] EndpointError),
    /// A field that controls the message itself.
    #[error("names a field that no secret can stand in")]
    Field,
    #[error("has no variable `$NAME` at its end")]
    Variable,
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
        let (before, variable) = value.rsplit_once('$').ok_or(CredentialError::Variable)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let first = variable.bytes().next().ok_or(CredentialError::Variable)?;
        if !variable.bytes().all(plain) || first.is_ascii_digit() {
            return Err(CredentialError::Variable);
        }
        if !before.bytes().all(|byte| matches!(byte, b' '..=b'~')) || before.contains('$') {
            return Err(CredentialError::Form);
        }
        Ok(Self {
            endpoint,
            transport,
            field: name.to_owned(),
            before: before.trim_start().to_owned(),
            variable: variable.to_owned(),
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
            variable,
            ..
        } = self;
        write!(out, "{scheme}://{endpoint} {field}: {before}${variable}")
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
        assert_eq!(credential.variable, "API_KEY");
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
            ("https://api.example.com X: A", E::Variable),
            ("https://api.example.com X: $", E::Variable),
            ("https://api.example.com X: $1A", E::Variable),
            ("https://api.example.com X: $A b", E::Variable),
            ("https://api.example.com X: $A$B", E::Form),
            ("https://api.example.com X: a\r\nY: $A", E::Form),
        ];
        for (text, want) in cases {
            assert_eq!(Credential::parse(text), Err(want), "{text}");
        }
    }
}
