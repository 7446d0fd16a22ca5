//! A credential with its secret, and the requests that get it.
//!
//! # Invariants
//!
//! - `Debug` prints no secret.
//! - The secret of an agent's login is added to calls of its model alone, known by method and whole
//!   path. The same hosts have calls that mint keys, keep files and change accounts.
//! - A login file is read again for every request, and never written.

use std::fmt;
use std::sync::Arc;

use provost_core::net::credential::{Credential, CredentialError};
use provost_core::net::model_api::ModelCall;

use super::answer::Refusal;
use super::http::request::{Form, Request};

/// Reads a secret that may change while a proxy runs.
pub trait ReadSecret: fmt::Debug + Send + Sync {
    /// The header fields that hold the secret as it is now.
    fn fields(&self) -> Result<Vec<SecretField>, UnusableSecret>;
}

/// A header field, with a secret in its value.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretField {
    pub name: String,
    pub value: String,
}

impl fmt::Debug for SecretField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SecretField({})", self.name)
    }
}

/// Why a secret cannot be used now, without the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableSecret(pub String);

/// A credential with its secret.
#[derive(Debug, Clone)]
pub struct Secret {
    pub(super) credential: Credential,
    value: SecretValue,
    calls: Calls,
}

#[derive(Debug, Clone)]
enum SecretValue {
    Fixed(SecretField),
    Read(Arc<dyn ReadSecret>),
}

/// The requests that get a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Calls {
    All,
    /// Calls of a model whose base address has this path.
    Model(String),
}

impl Secret {
    /// The credential with the secret that its variable holds.
    pub fn of(credential: Credential, secret: &str) -> Result<Self, CredentialError> {
        let field = SecretField {
            name: credential.field.clone(),
            value: credential.value(secret)?,
        };
        Ok(Self {
            credential,
            value: SecretValue::Fixed(field),
            calls: Calls::All,
        })
    }

    /// The credential with a secret that is read for every request.
    pub fn read(credential: Credential, reader: Arc<dyn ReadSecret>) -> Self {
        Self {
            credential,
            value: SecretValue::Read(reader),
            calls: Calls::All,
        }
    }

    /// The same for calls of a model alone, whose base address has the path `base`.
    #[must_use]
    pub fn for_model(self, base: &str) -> Self {
        Self {
            calls: Calls::Model(base.to_owned()),
            ..self
        }
    }

    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The fields to add to `request`; or why the request is refused.
    pub(super) fn fields_for(&self, request: &Request) -> Result<Vec<SecretField>, Refusal> {
        let target = &request.target;
        if let Calls::Model(base) = &self.calls {
            let source = &self.credential.source;
            let path = match &request.form {
                Form::Tunnel => return Err(Refusal::unreadable_login(target, source)),
                Form::Plain(path) => path,
            };
            let call = ModelCall::at(base, &request.method, path);
            if call == ModelCall::Unknown || request.is_ambiguous() {
                return Err(Refusal::no_model_call(target, &request.method, source));
            }
            if request.has_login_in_query() {
                return Err(Refusal::two_logins(target, source));
            }
        }
        if request.form == Form::Tunnel {
            return Ok(Vec::new());
        }
        match &self.value {
            SecretValue::Fixed(field) => Ok(vec![field.clone()]),
            SecretValue::Read(reader) => reader
                .fields()
                .map_err(|UnusableSecret(reason)| Refusal::unusable_login(reason)),
        }
    }

    /// Whether a login that the client sends itself is removed from its requests.
    pub(super) fn is_for_model(&self) -> bool {
        matches!(self.calls, Calls::Model(_))
    }
}
