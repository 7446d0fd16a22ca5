//! The proxy's own replies, when a request does not reach a server.

use provost_core::code::Code;
use provost_core::net::credential::SecretSource;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_api::ModelApi;

use super::decide;
use super::http::field::HeadError;
use super::model;

/// Why a request did not get a reply of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: Code,
    pub(super) reason: String,
    hint: Option<String>,
    /// The API whose form of errors the client reads.
    api: Option<ModelApi>,
}

impl Refusal {
    fn new(status: u16, code: Code, reason: impl Into<String>) -> Self {
        Self {
            status,
            code,
            reason: reason.into(),
            hint: None,
            api: None,
        }
    }

    /// The place does not answer.
    pub(super) fn unreachable(target: &Endpoint, status: u16, what: &str) -> Self {
        Self::new(
            status,
            Code::NetworkUnreachable,
            format!("`{target}` {what}"),
        )
    }

    /// A person is asked about the place, and has not answered yet.
    pub(super) fn asked(target: &Endpoint) -> Self {
        let reason = format!("`{target}` is not granted, and the user was asked");
        let hint = Some("try again later; a yes lets the next try through".to_owned());
        Self {
            hint,
            ..Self::new(403, Code::NetworkAsked, reason)
        }
    }

    /// A person was asked about the place, and did not say yes.
    pub(super) fn not_permitted(target: &Endpoint, why: &str) -> Self {
        let reason = format!("`{target}` is not granted, and {why}");
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The client sent a request that is not accepted.
    pub(super) fn malformed(status: u16, reason: impl Into<String>) -> Self {
        Self::new(status, Code::InputInvalid, reason)
    }

    /// The place has a credential, and the reply could contain it.
    pub(super) fn echoing(target: &Endpoint, why: &str) -> Self {
        let reason = format!("`{target}` is asked with a credential, and {why}");
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The place has the login of an agent, and this is no call of its model.
    pub(super) fn no_model_call(target: &Endpoint, method: &str, source: &SecretSource) -> Self {
        let login = source.describe();
        let reason = format!(
            "{login} is for calls of the model at `{target}` alone, and this {method} is none"
        );
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The place has the login of an agent, and what an encrypted tunnel asks cannot be read.
    pub(super) fn unreadable_login(target: &Endpoint, source: &SecretSource) -> Self {
        let login = source.describe();
        let reason = format!(
            "{login} is for calls of the model at `{target}` alone, and an encrypted tunnel hides \
             its calls"
        );
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The place has the login of an agent, and the address holds another one.
    pub(super) fn two_logins(target: &Endpoint, source: &SecretSource) -> Self {
        let login = source.describe();
        let reason = format!(
            "{login} is added to requests to `{target}`, and the query of this one may name another \
             login or account"
        );
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The login of the agent is missing, expired or wrong now.
    pub(super) fn unusable_login(reason: String) -> Self {
        Self::new(401, Code::LoginUnusable, reason)
    }

    /// The place has a model, and a server could read another method than the proxy.
    pub(super) fn ambiguous(target: &Endpoint) -> Self {
        let reason =
            format!("requests to `{target}` are counted, and a field names another method");
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// Nothing is left of the agent's tokens, or the request cannot be counted.
    pub(super) fn overspent(api: Option<ModelApi>, reason: String) -> Self {
        let refusal = Self::new(403, Code::TokenLimit, reason);
        Self { api, ..refusal }
    }

    /// All of the agent's remaining tokens are reserved for another request.
    pub(super) fn reserved(api: ModelApi) -> Self {
        let reason = "another request is under way, and what it will cost is not known yet";
        let refusal = Self::new(429, Code::TokenLimit, reason);
        let api = Some(api);
        Self { api, ..refusal }
    }

    /// The request asks a model for what is not granted.
    pub(super) fn not_granted_of_model(api: ModelApi, reason: String) -> Self {
        let refusal = Self::new(403, Code::ModelRequestRefused, reason);
        let api = Some(api);
        Self { api, ..refusal }
    }

    /// The request to a model cannot be read.
    pub(super) fn unreadable(api: ModelApi, status: u16, reason: impl Into<String>) -> Self {
        let refusal = Self::new(status, Code::ModelRequestRefused, reason);
        let api = Some(api);
        Self { api, ..refusal }
    }

    /// The run is replayed, and the request is none that was recorded.
    pub(super) fn offline(target: &Endpoint) -> Self {
        let reason = format!("`{target}` is not reached: the run is replayed without a network");
        Self::new(403, Code::NetworkRefused, reason)
    }

    /// The run is replayed, and no recorded request equals this one.
    pub(super) fn not_recorded(api: ModelApi) -> Self {
        let reason = "no recorded request equals this one";
        let refusal = Self::new(403, Code::ReplayDiffers, reason);
        let api = Some(api);
        Self { api, ..refusal }
    }

    /// There are too many connections at a time.
    pub(super) fn crowded() -> Self {
        let reason = "too many connections at a time";
        Self::new(503, Code::NetworkUnreachable, reason)
    }

    /// Whether the place was granted.
    pub(super) fn was_granted(&self) -> bool {
        self.code == Code::NetworkUnreachable
    }

    /// The reply for the client.
    pub(super) fn render(&self) -> Vec<u8> {
        let Self {
            status,
            code,
            reason,
            hint,
            api,
        } = self;
        let hint = hint.iter().map(|hint| format!("hint: {hint}\n"));
        let words = format!("{code}: {reason}\n{}", hint.collect::<String>());
        let (kind, body) = match api {
            Some(api) => (
                "application/json",
                model::error(*api, *status, words.trim_end()).to_string(),
            ),
            None => ("text/plain; charset=utf-8", words),
        };
        let words = match status {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            408 => "Request Timeout",
            413 => "Content Too Large",
            415 => "Unsupported Media Type",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            _ => "Refused",
        };
        format!(
            "HTTP/1.1 {status} {words}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\nX-Provost-Code: {code}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

impl From<HeadError> for Refusal {
    fn from(error: HeadError) -> Self {
        let status = match error {
            HeadError::TooLarge => 431,
            HeadError::Coding => 501,
            HeadError::Version => 505,
            HeadError::LineEnd
            | HeadError::FirstLine
            | HeadError::Field
            | HeadError::Count(_)
            | HeadError::HostMismatch
            | HeadError::Length
            | HeadError::NotAProxyRequest
            | HeadError::Scheme
            | HeadError::Target
            | HeadError::Upgrade => 400,
        };
        Self::malformed(status, error.to_string())
    }
}

impl From<decide::Refusal> for Refusal {
    fn from(refusal: decide::Refusal) -> Self {
        let (grant, status, code) = match &refusal {
            decide::Refusal::NotGranted(target) => {
                (Some(target.clone()), 403, Code::NetworkRefused)
            }
            decide::Refusal::Private { .. } => (None, 403, Code::NetworkRefused),
            decide::Refusal::Nowhere(_) => (None, 502, Code::NetworkUnreachable),
        };
        let hint = grant.map(|place| {
            format!("grant it with `--net {place}`, or in `x_provost.net` of the contract")
        });
        Self {
            hint,
            ..Self::new(status, code, refusal.to_string())
        }
    }
}
