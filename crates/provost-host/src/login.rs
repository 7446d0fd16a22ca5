//! Finds the logins that this user has for known programs, and reads them for the proxy.
//!
//! # Invariants
//!
//! - A login file is only read: Provost neither refreshes nor writes one, because a refresh token
//!   is valid once.
//! - It is read anew for each request, so a login that its program renews is used from then on.
//! - Neither an error nor `Debug` shows a secret.
//! - A sandbox holds a dummy of the same shape, which no server takes.

mod file;
mod report;
mod shape;
mod trial;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_core::agent::adapter::Vendor;
use provost_core::agent::provider::{FoundLogins, Login};
use provost_core::agent::{Adapted, Adapter};
use provost_core::code::Code;
use provost_core::net::credential::{Credential, LoginFile, SecretSource};
use provost_engine::ports::PortError;
use provost_fs::beneath::Beneath;

use crate::clock;
use crate::proxy::{ReadSecret, Secret, SecretField, UnusableSecret};
pub use file::LoginError;
pub use report::{LoginReport, Validity};
pub use trial::{LoginTrial, try_login};

/// How often a file that its program may be writing is read, and the time between.
const TRIES: (u32, Duration) = (6, Duration::from_millis(50));

/// The logins of this user, for every known program.
pub fn found() -> FoundLogins {
    let of_program = |adapter: Adapter| {
        let logins = adapter.vendor().map(|vendor| available(&vendor));
        let logins = logins.unwrap_or_default().into_iter();
        logins.map(move |login| (adapter, login))
    };
    FoundLogins(Adapter::programs().flat_map(of_program).collect())
}

/// The logins for the models of `vendor`, in the order in which Claude Code chooses them. Codex
/// itself does not read the variable; a user who sets it chooses it.
fn available(vendor: &Vendor) -> Vec<Login> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let mut logins = Vec::new();
    logins.extend(is_set(vendor.key_variable).then_some(Login::Key));
    let Some(own) = vendor.subscription else {
        return logins;
    };
    let token = own.token_variable.filter(|name| is_set(name));
    logins.extend(token.map(|_| Login::Token));
    match file::read(own.file) {
        Ok(content) => logins.push(content.kind),
        Err(LoginError::Missing { .. } | LoginError::NoPlace) => {}
        // It is chosen, so that the user learns why it cannot be used.
        Err(_) => logins.push(Login::File),
    }
    logins
}

/// `agent` with the login that this user has for it.
#[must_use]
pub fn resolved(agent: &Adapted) -> Adapted {
    agent.clone().with_login(&[], &found())
}

/// The directories of the login files of known programs.
pub(crate) fn places() -> Vec<PathBuf> {
    let files = [LoginFile::Claude, LoginFile::Codex].into_iter();
    let places = files.filter_map(|file| file::place(file).ok());
    places
        .filter_map(|it| Some(it.parent()?.to_owned()))
        .collect()
}

/// The secret of `credential`, for calls of `model` alone if it is the login of that agent.
pub(crate) fn secret(
    credential: &Credential,
    model: Option<&Adapted>,
    learned: &Learned,
) -> Result<Secret, PortError> {
    let provider = model.and_then(|agent| agent.provider.as_ref());
    let provider = provider.filter(|it| it.base_url.endpoint == credential.endpoint);
    let secret = match &credential.source {
        SecretSource::Variable(name) => {
            let value = std::env::var(name).unwrap_or_default();
            Secret::of(credential.clone(), &value).map_err(|error| {
                absent(name, &value).unwrap_or_else(|| {
                    PortError::new(Code::NotFound, format!("credential `${name}`: {error}"))
                })
            })?
        }
        SecretSource::File(file) => {
            let reader = LoginReader {
                credential: credential.clone(),
                file: *file,
                kind: provider.map(|it| it.login),
                learned: learned.clone(),
            };
            // What is wrong is said before anything starts.
            reader.read()?;
            Secret::read(credential.clone(), Arc::new(reader))
        }
    };
    let base = match (provider, &credential.source) {
        (Some(provider), _) => provider.base_url.path(),
        // A login is for calls of a model, whichever agent makes them.
        (None, SecretSource::File(LoginFile::Claude)) => "",
        (None, SecretSource::File(LoginFile::Codex)) => {
            let is_subscription = credential.endpoint.to_string().starts_with("chatgpt.com:");
            if is_subscription {
                "/backend-api/codex"
            } else {
                "/v1"
            }
        }
        (None, SecretSource::Variable(_)) => return Ok(secret),
    };
    Ok(secret.for_model(base))
}

/// The tokens that were read from login files while a sandbox ran.
#[derive(Clone, Default)]
pub(crate) struct Learned(Arc<Mutex<Vec<String>>>);

impl Learned {
    fn add(&self, secrets: &[String]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if !all.contains(secret) {
                all.push(secret.clone());
            }
        }
    }

    pub(crate) fn values(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl std::fmt::Debug for Learned {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Learned({})", self.values().len())
    }
}

/// Reads the login file of a program for each request.
#[derive(Debug)]
struct LoginReader {
    credential: Credential,
    file: LoginFile,
    /// The kind of login that the agent was started with, if it is an agent's.
    kind: Option<Login>,
    learned: Learned,
}

impl LoginReader {
    fn read(&self) -> Result<Vec<SecretField>, LoginError> {
        let content = settled(self.file)?;
        self.learned.add(&content.secrets);
        let path = file::place(self.file)?;
        if self.kind.is_some_and(|kind| kind != content.kind) {
            return Err(LoginError::OtherKind {
                path,
                file: self.file,
            });
        }
        content.require_valid(self.file, &path, clock::now_millis())?;
        let value = self.credential.value(&content.token);
        let value = value.map_err(|_| LoginError::NoLogin {
            path,
            file: self.file,
        })?;
        let name = self.credential.field.clone();
        let token = SecretField { name, value };
        let account = content.account.map(|value| SecretField {
            name: shape::ACCOUNT_FIELD.to_owned(),
            value,
        });
        Ok(std::iter::once(token).chain(account).collect())
    }
}

impl ReadSecret for LoginReader {
    fn fields(&self) -> Result<Vec<SecretField>, UnusableSecret> {
        let said = |error: LoginError| UnusableSecret(format!("{error}; {}", error.hint()));
        self.read().map_err(said)
    }
}

/// The login in `file`; waits a moment for a file that its program is just writing.
fn settled(file: LoginFile) -> Result<shape::LoginContent, LoginError> {
    let (tries, pause) = TRIES;
    for _ in 1..tries {
        match file::read(file) {
            Err(LoginError::Torn { .. } | LoginError::Missing { .. }) => std::thread::sleep(pause),
            read => return read,
        }
    }
    file::read(file)
}

/// The tokens in `file`, which must not appear anywhere; none if it cannot be read.
pub(crate) fn secrets(file: LoginFile) -> Vec<String> {
    file::read(file).map_or_else(|_| Vec::new(), |content| content.secrets)
}

/// Writes a dummy of the login that `agent` uses into the `home` of its sandbox, if the program
/// expects a file there.
pub(crate) fn write_dummy(agent: &Adapted, home: &Path) -> Result<(), PortError> {
    let vendor = agent.adapter.vendor();
    let own = vendor.and_then(|vendor| vendor.subscription);
    let Some(own) = own.filter(|_| agent.login() == Login::File) else {
        return Ok(());
    };
    let content = settled(own.file)?;
    let (directory, name) = file::inside(own.file);
    let failed = |error: std::io::Error| {
        let reason = format!("the dummy of a login cannot be written: {error}");
        PortError::new(Code::HostFailed, reason)
    };
    match std::fs::create_dir(home.join(directory)) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(failed(error));
        }
        _ => {}
    }
    // An earlier attempt may have left a link there.
    let home = Beneath::new(home).map_err(|error| failed(error.into()))?;
    let place = home.below(directory.as_bytes());
    let place = place.map_err(|error| failed(error.into()))?;
    place
        .replace(name, content.dummy().as_bytes())
        .map_err(failed)
}

impl From<LoginError> for PortError {
    fn from(error: LoginError) -> Self {
        Self::new(Code::LoginUnusable, error.to_string()).hint(error.hint())
    }
}

/// The refusal where the variable of a known program is not set; `None` for other variables.
fn absent(variable: &str, value: &str) -> Option<PortError> {
    if !value.is_empty() {
        return None;
    }
    let vendors = Adapter::programs().filter_map(|it| Some((it, it.vendor()?)));
    let mut named = vendors.filter(|(_, vendor)| {
        let token = vendor.subscription.and_then(|own| own.token_variable);
        vendor.key_variable == variable || token == Some(variable)
    });
    let (adapter, vendor) = named.next()?;
    let reason = format!("there is no login for {adapter}: {}", looked_for(&vendor));
    Some(PortError::new(Code::LoginUnusable, reason).hint(report::how_to_log_in(&vendor)))
}

/// Where a login for the models of `vendor` was looked for, and not found.
fn looked_for(vendor: &Vendor) -> String {
    let own = vendor.subscription;
    let token = own.and_then(|own| own.token_variable);
    let names = std::iter::once(vendor.key_variable).chain(token);
    let names: Vec<String> = names.map(|name| format!("${name}")).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let variables = format!("{} {are} not set", names.join(" and "));
    let file = own.and_then(|own| file::place(own.file).ok());
    match file.filter(|file| !file.exists()) {
        Some(file) => format!("{variables}, and there is no `{}`", file.display()),
        None => variables,
    }
}
