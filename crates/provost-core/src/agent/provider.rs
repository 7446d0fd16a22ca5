//! Where the model of an agent is, and which key it needs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Adapter;
use crate::net::credential::{Credential, Transport};
use crate::net::endpoint::{Endpoint, EndpointError};

/// The longest path of a model's address, in bytes.
const LONGEST_PATH: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    pub base_url: BaseUrl,
    /// How the agent authenticates.
    #[serde(default)]
    pub login: Login,
}

/// How an agent authenticates at its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// The proxy adds the key, outside the sandbox.
    #[default]
    Brokered,
    /// No key; the agent speaks to its model directly, through a tunnel if encrypted.
    None,
}

/// The common prefix of all request URLs of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseUrl {
    pub transport: Transport,
    pub endpoint: Endpoint,
    /// The path after the host; empty, or it starts with a slash and does not end with one.
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("is not of the form `https://HOST[:PORT][/PATH]`")]
    Form,
    #[error("names no place: the host {0}")]
    Endpoint(#[from] EndpointError),
}

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (transport, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://"))
        {
            (Some(rest), _) => (Transport::Tls, rest),
            (_, Some(rest)) => (Transport::Plain, rest),
            (None, None) => return Err(UrlError::Form),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.trim_end_matches('/');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
        let climbs = path.split('/').any(|part| matches!(part, "." | ".."));
        if path.len() > LONGEST_PATH || !path.bytes().all(plain) || climbs {
            return Err(UrlError::Form);
        }
        Ok(Self {
            endpoint: Endpoint::parse_with_default(authority, transport.port())?,
            transport,
            path: path.to_owned(),
        })
    }

    /// The address for the agent: plain HTTP if the proxy adds a key.
    pub fn inside(&self, login: Login) -> String {
        match login {
            Login::Brokered => format!("http://{}{}", self.endpoint, self.path),
            Login::None => self.to_string(),
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = scheme(self.transport);
        write!(out, "{scheme}://{}{}", self.endpoint, self.path)
    }
}

fn scheme(transport: Transport) -> &'static str {
    match transport {
        Transport::Plain => "http",
        Transport::Tls => "https",
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::parse(&text)
    }
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.to_string()
    }
}

impl Provider {
    /// Whether the proxy can read and count the traffic between agent and model.
    pub fn is_readable(&self) -> bool {
        match self.login {
            Login::Brokered => true,
            Login::None => self.base_url.transport == Transport::Plain,
        }
    }

    /// Whether this is the endpoint of the program's vendor, so that choosing the agent implies the
    /// endpoint.
    pub fn is_makers_own(&self, adapter: Adapter) -> bool {
        adapter.default_url().is_some_and(|own| {
            own.endpoint == self.base_url.endpoint && own.transport == self.base_url.transport
        })
    }

    /// The key that the proxy adds for `adapter` at this endpoint.
    pub fn credential(&self, adapter: Adapter) -> Option<Credential> {
        let vendor = adapter.vendor()?;
        if self.login == Login::None {
            return None;
        }
        let BaseUrl {
            transport,
            endpoint,
            ..
        } = &self.base_url;
        let scheme = scheme(*transport);
        let text = format!(
            "{scheme}://{endpoint} {}${}",
            vendor.key_field, vendor.key_variable
        );
        Credential::parse(&text).ok()
    }
}
