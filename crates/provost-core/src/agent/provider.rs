//! Says where the model of an agent is, and which key opens it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Adapter;
use crate::net::credential::{Credential, Transport};
use crate::net::endpoint::{Endpoint, EndpointError};

/// The longest path of an address.
const LONGEST_PATH: usize = 512;

/// Where the model of an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// Its address.
    pub base_url: BaseUrl,
    /// How the agent comes to its key.
    #[serde(default)]
    pub login: Login,
}

/// How an agent comes to the key of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// Not at all: the proxy adds it, outside the sandbox.
    #[default]
    Brokered,
    /// There is none; the agent speaks to its model itself, through a tunnel if it is encrypted.
    None,
}

/// The address that all requests of an agent begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseUrl {
    /// Whether it is encrypted.
    pub transport: Transport,
    /// The place.
    pub endpoint: Endpoint,
    /// What follows the place; empty, or it begins with a slash and does not end with one.
    path: String,
}

/// Why a text is no address of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another form.
    #[error("is not of the form `https://HOST[:PORT][/PATH]`")]
    Form,
    /// Not a place.
    #[error("names no place: the host {0}")]
    Endpoint(#[from] EndpointError),
}

impl BaseUrl {
    /// Reads an address.
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

    /// The address as the agent is told it: plain where the proxy has a key to add.
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

/// Where the makers of an adapter's program have their models, the field that holds a key there,
/// and the variable that people keep it in.
struct Home {
    url: &'static str,
    field: &'static str,
    variable: &'static str,
}

fn home(adapter: Adapter) -> Option<Home> {
    match adapter {
        Adapter::Exec => None,
        Adapter::Codex | Adapter::Mcp => Some(Home {
            url: "https://api.openai.com/v1",
            field: "Authorization: Bearer ",
            variable: "OPENAI_API_KEY",
        }),
        Adapter::Claude => Some(Home {
            url: "https://api.anthropic.com",
            field: "X-Api-Key: ",
            variable: "ANTHROPIC_API_KEY",
        }),
        Adapter::Gemini => Some(Home {
            url: "https://generativelanguage.googleapis.com",
            field: "X-Goog-Api-Key: ",
            variable: "GEMINI_API_KEY",
        }),
    }
}

/// The variable that an adapter's program looks for its key in.
pub fn key_variable(adapter: Adapter) -> Option<&'static str> {
    home(adapter).map(|home| home.variable)
}

/// Where the model of `adapter` is, if nobody says otherwise.
pub fn default(adapter: Adapter) -> Option<BaseUrl> {
    home(adapter).and_then(|home| BaseUrl::parse(home.url).ok())
}

impl Provider {
    /// Whether the proxy can read what passes between an agent and its model, and count it.
    pub fn is_readable(&self) -> bool {
        match self.login {
            Login::Brokered => true,
            Login::None => self.base_url.transport == Transport::Plain,
        }
    }

    /// Whether the makers of the program are at this address, so that whoever chooses the agent
    /// has chosen the place too.
    pub fn is_makers_own(&self, adapter: Adapter) -> bool {
        default(adapter).is_some_and(|own| {
            own.endpoint == self.base_url.endpoint && own.transport == self.base_url.transport
        })
    }

    /// The key that the proxy adds for `adapter` at this place.
    pub fn credential(&self, adapter: Adapter) -> Option<Credential> {
        let home = home(adapter).filter(|_| self.login == Login::Brokered)?;
        let BaseUrl {
            transport,
            endpoint,
            ..
        } = &self.base_url;
        let scheme = scheme(*transport);
        let text = format!("{scheme}://{endpoint} {}${}", home.field, home.variable);
        Credential::parse(&text).ok()
    }
}
