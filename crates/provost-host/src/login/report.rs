//! What is said about a login: its kind, its expiry and the command that helps, never the secret.

use provost_core::agent::Adapted;
use provost_core::agent::adapter::Vendor;
use provost_core::agent::provider::Login;
use provost_core::net::credential::{LoginFile, SecretSource};
use provost_core::time;
use serde::Serialize;

use super::{file, looked_for, settled};
use crate::clock;

/// The login of an agent, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginReport {
    pub login: Login,
    /// What is used, and from where.
    pub from: String,
    /// What the user pays for, as the vendor calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// Whether a login can be used, as far as it is known without a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Validity {
    /// It does not say when it expires.
    Usable,
    Until {
        expires_at: String,
        words: String,
    },
    Unusable {
        reason: String,
        hint: String,
    },
}

impl LoginReport {
    /// The login of `agent`, which is resolved; `None` if it needs none.
    pub fn of(agent: &Adapted) -> Option<Self> {
        let provider = agent.provider.as_ref()?;
        let vendor = agent.adapter.vendor()?;
        let credential = provider.credential(agent.adapter)?;
        let (from, plan, validity) = match credential.source {
            SecretSource::Variable(name) => of_variable(&name, &vendor),
            SecretSource::File(file) => of_file(file),
        };
        Some(Self {
            login: match provider.login {
                Login::Brokered => Login::Key,
                other => other,
            },
            from,
            plan,
            validity,
        })
    }

    /// One line for people.
    pub fn text(&self) -> String {
        let plan = self.plan.as_ref();
        let plan = plan.map_or(String::new(), |plan| format!(" ({plan})"));
        let rest = match &self.validity {
            Validity::Usable => String::new(),
            Validity::Until { words, .. } => format!(", {words}"),
            Validity::Unusable { reason, hint } => return format!("no login: {reason}; {hint}"),
        };
        format!("login by {}{plan}{rest}", self.from)
    }

    pub fn is_usable(&self) -> bool {
        !matches!(self.validity, Validity::Unusable { .. })
    }
}

fn of_variable(name: &str, vendor: &Vendor) -> (String, Option<String>, Validity) {
    let is_set = std::env::var(name).is_ok_and(|value| !value.is_empty());
    let validity = if is_set {
        Validity::Usable
    } else {
        Validity::Unusable {
            reason: looked_for(vendor),
            hint: how_to_log_in(vendor),
        }
    };
    (format!("${name}"), None, validity)
}

fn of_file(which: LoginFile) -> (String, Option<String>, Validity) {
    let path = file::place(which).unwrap_or_default();
    let from = path.display().to_string();
    let now = clock::now_millis();
    let read = settled(which).and_then(|content| {
        content.require_valid(which, &path, now)?;
        Ok(content)
    });
    match read {
        Ok(content) => {
            let validity = content.expires.map(|expires| Validity::Until {
                expires_at: time::render(expires),
                words: when(expires, now),
            });
            (from, content.plan, validity.unwrap_or(Validity::Usable))
        }
        Err(error) => {
            let validity = Validity::Unusable {
                reason: error.to_string(),
                hint: error.hint(),
            };
            (from, None, validity)
        }
    }
}

/// The program that writes `file`.
pub(super) fn program(file: LoginFile) -> &'static str {
    match file {
        LoginFile::Claude => "Claude Code",
        LoginFile::Codex => "Codex",
    }
}

/// The command that makes a new login.
pub(super) fn command(file: LoginFile) -> &'static str {
    match file {
        LoginFile::Claude => "claude auth login",
        LoginFile::Codex => "codex login",
    }
}

/// What helps if the login has expired.
pub(super) fn renewal(file: LoginFile) -> String {
    let start = match file {
        LoginFile::Claude => "claude",
        LoginFile::Codex => "codex",
    };
    let command = command(file);
    format!("start `{start}` once, which renews it, or log in again with `{command}`")
}

/// How a user gets a login for the models of `vendor`.
pub(super) fn how_to_log_in(vendor: &Vendor) -> String {
    let key = format!("export {}=...", vendor.key_variable);
    let Some(own) = vendor.subscription else {
        return key;
    };
    let command = command(own.file);
    let token = own.token_variable.map_or(String::new(), |name| {
        format!("call `claude setup-token` and export {name}, ")
    });
    format!("log in with `{command}`, {token}or {key}")
}

/// When something expires or expired, relative and absolute.
pub(super) fn when(expires: i64, now: i64) -> String {
    let stamp = time::render(expires);
    let (day, hour) = (stamp.get(..10), stamp.get(11..19));
    let absolute = format!(
        "{} {} UTC",
        day.unwrap_or_default(),
        hour.unwrap_or_default()
    );
    let left = expires.saturating_sub(now);
    let span = span(left.unsigned_abs() / 1000);
    if left > 0 {
        format!("expires in {span} ({absolute})")
    } else {
        format!("expired {span} ago ({absolute})")
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
