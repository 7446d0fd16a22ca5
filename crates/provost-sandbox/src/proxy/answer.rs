//! The proxy's own replies, when a request does not reach a server.

use provost_core::code::Code;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::model_traffic::ModelApi;

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
    /// The place does not answer.
    pub(super) fn unreachable(target: &Endpoint, status: u16, what: &str) -> Self {
        Self {
            status,
            code: Code::NetworkUnreachable,
            reason: format!("`{target}` {what}"),
            hint: None,
            api: None,
        }
    }

    /// The client sent a request that is not accepted.
    pub(super) fn malformed(status: u16, reason: String) -> Self {
        Self {
            status,
            code: Code::InputInvalid,
            reason,
            hint: None,
            api: None,
        }
    }

    /// The place has a credential, and the reply could contain it.
    pub(super) fn echoing(target: &Endpoint, why: &str) -> Self {
        Self {
            status: 403,
            code: Code::NetworkRefused,
            reason: format!("`{target}` is asked with a credential, and {why}"),
            hint: None,
            api: None,
        }
    }

    /// The place has a model, and a server could read another method than the proxy.
    pub(super) fn ambiguous(target: &Endpoint) -> Self {
        Self {
            status: 403,
            code: Code::NetworkRefused,
            reason: format!("requests to `{target}` are counted, and a field names another method"),
            hint: None,
            api: None,
        }
    }

    /// Nothing is left of the agent's tokens, or the request cannot be counted.
    pub(super) fn overspent(api: Option<ModelApi>, reason: String) -> Self {
        Self {
            status: 403,
            code: Code::TokenLimit,
            reason,
            hint: None,
            api,
        }
    }

    /// All of the agent's remaining tokens are reserved for another request.
    pub(super) fn reserved(api: ModelApi) -> Self {
        let reason = "another request is under way, and what it will cost is not known yet";
        Self {
            status: 429,
            ..Self::overspent(Some(api), reason.to_owned())
        }
    }

    /// There are too many connections at a time.
    pub(super) fn crowded() -> Self {
        Self {
            status: 503,
            code: Code::NetworkUnreachable,
            reason: "too many connections at a time".to_owned(),
            hint: None,
            api: None,
        }
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
            403 => "Forbidden",
            408 => "Request Timeout",
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
            status,
            code,
            reason: refusal.to_string(),
            hint,
            api: None,
        }
    }
}
