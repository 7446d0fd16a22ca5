//! Where the model of an agent is, and how the agent logs in there.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Adapter;
use crate::net::credential::{Credential, SecretSource, Transport};
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

/// How an agent authenticates at its model. All but `None` are added by the proxy, outside the
/// sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// In a policy: the first login that the user has. In a run: the key in the vendor's variable.
    #[default]
    Brokered,
    /// The key in the vendor's variable.
    Key,
    /// The token of a subscription, in a variable.
    Token,
    /// The token of a subscription, in the login file of the program.
    File,
    /// The key in the login file of the program.
    FileKey,
    /// No key; the agent speaks to its model directly, through a tunnel if encrypted.
    None,
}

/// The logins that this user has, as the host found them; those of one program in the order in
/// which they are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundLogins(pub Vec<(Adapter, Login)>);

impl FoundLogins {
    /// The login for `adapter` where a policy asks for `wanted`.
    fn choose(&self, adapter: Adapter, wanted: Login) -> Login {
        let own = self.0.iter().filter(|it| it.0 == adapter).map(|it| it.1);
        let fits = |login: &Login| match wanted {
            Login::Brokered => true,
            Login::File => matches!(login, Login::File | Login::FileKey),
            Login::Key | Login::Token | Login::FileKey | Login::None => *login == wanted,
        };
        match own.into_iter().find(fits) {
            // One word for one thing: runs always recorded a key so.
            Some(Login::Key) | None => wanted,
            Some(login) => login,
        }
    }
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
            Login::Brokered | Login::Key | Login::Token | Login::File | Login::FileKey => {
                format!("http://{}{}", self.endpoint, self.path)
            }
            Login::None => self.to_string(),
        }
    }

    /// The path after the host.
    pub fn path(&self) -> &str {
        &self.path
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
            Login::Brokered | Login::Key | Login::Token | Login::File | Login::FileKey => true,
            Login::None => self.base_url.transport == Transport::Plain,
        }
    }

    /// Whether this is the endpoint of the program's vendor, so that choosing the agent implies the
    /// endpoint.
    pub fn is_makers_own(&self, adapter: Adapter) -> bool {
        adapter.default_url(self.login).is_some_and(|own| {
            own.endpoint == self.base_url.endpoint && own.transport == self.base_url.transport
        })
    }

    /// The same place with the login that the user has: that of a credential that the user typed
    /// for it, or one of `found`. The vendor's own place follows the login.
    #[must_use]
    pub(super) fn with_login(
        self,
        adapter: Adapter,
        typed: &[Credential],
        found: &FoundLogins,
    ) -> Self {
        let place = &self.base_url.endpoint;
        let given = typed.iter().find(|it| it.endpoint == *place);
        let login = match (self.login, given) {
            (Login::Brokered, Some(given)) => self.login_of(adapter, &given.source, found),
            (wanted, _) => found.choose(adapter, wanted),
        };
        let is_own = adapter.default_url(self.login).as_ref() == Some(&self.base_url);
        let own = adapter.default_url(login).filter(|_| is_own);
        Self {
            base_url: own.unwrap_or(self.base_url),
            login,
        }
    }

    /// The login that a credential with this `source` is.
    fn login_of(&self, adapter: Adapter, source: &SecretSource, found: &FoundLogins) -> Login {
        let subscription = adapter.vendor().and_then(|vendor| vendor.subscription);
        match (source, subscription) {
            (SecretSource::File(file), Some(own)) if own.file == *file => {
                found.choose(adapter, Login::File)
            }
            (SecretSource::Variable(name), Some(own))
                if own.token_variable == Some(name.as_str()) =>
            {
                Login::Token
            }
            (SecretSource::File(_) | SecretSource::Variable(_), _) => self.login,
        }
    }

    /// The key that the proxy adds for `adapter` at this endpoint.
    pub fn credential(&self, adapter: Adapter) -> Option<Credential> {
        let vendor = adapter.vendor()?;
        let (field, source) = match self.login {
            Login::Brokered | Login::Key => (vendor.key_field, format!("${}", vendor.key_variable)),
            Login::Token => {
                let own = vendor.subscription?;
                (own.field, format!("${}", own.token_variable?))
            }
            Login::File => {
                let own = vendor.subscription?;
                (own.field, format!("@{}", own.file))
            }
            Login::FileKey => (vendor.key_field, format!("@{}", vendor.subscription?.file)),
            Login::None => return None,
        };
        let BaseUrl {
            transport,
            endpoint,
            ..
        } = &self.base_url;
        let scheme = scheme(*transport);
        Credential::parse(&format!("{scheme}://{endpoint} {field}{source}")).ok()
    }
}

#[cfg(test)]
mod tests;
