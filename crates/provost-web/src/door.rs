//! Decides who comes in: one-time codes, sessions and the one host name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::object::sha256;
use provost_engine::ports::PortError;
use serde::{Deserialize, Serialize};

/// How long a link can be followed.
const CODE_LASTS: Duration = Duration::from_mins(1);

/// How long a session lasts.
const SESSION_LASTS: Duration = Duration::from_hours(12);

/// The sessions of one server, in memory: they end with it.
pub(crate) struct Door {
    /// `<16 hex>.localhost`, with the port if there is one.
    host: String,
    code: Mutex<Option<(String, Instant)>>,
    /// The digests of offered codes that opened a session.
    used: Mutex<BTreeSet<String>>,
    /// By the digest of the cookie, so that a lookup compares digests only.
    sessions: Mutex<BTreeMap<String, Visitor>>,
}

/// A code that the user was given by another process, as the server knows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedCode {
    /// The SHA-256 of the code.
    sha256: String,
    /// Milliseconds since 1970; not valid from then on.
    until: i64,
}

/// A fresh code, and what the server has to know of it.
pub fn offered_code(now: i64) -> Result<(String, OfferedCode), PortError> {
    let code = random_hex(16)?;
    let lasts = i64::try_from(CODE_LASTS.as_millis()).unwrap_or_default();
    let offered = OfferedCode {
        sha256: sha256(code.as_bytes()),
        until: now.saturating_add(lasts),
    };
    Ok((code, offered))
}

/// Who has a session.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    until: Instant,
    /// Names the session in records; no secret.
    pub(crate) id: String,
    /// Has to be in every form that this session sends.
    pub(crate) form_token: String,
}

impl Door {
    /// A door for a server at `port`; a socket has none.
    pub(crate) fn new(port: Option<u16>) -> Result<Self, PortError> {
        let name = random_hex(8)? + ".localhost";
        Ok(Self {
            host: port.map_or(name.clone(), |port| format!("{name}:{port}")),
            code: Mutex::default(),
            used: Mutex::default(),
            sessions: Mutex::default(),
        })
    }

    /// The only value of `Host` that is answered.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Names this server among all; no secret.
    pub(crate) fn instance(&self) -> &str {
        self.host.split('.').next().unwrap_or_default()
    }

    /// The only value of `Origin` that may send a form.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    /// A link that opens one session, within a minute.
    pub(crate) fn link(&self) -> Result<String, PortError> {
        let code = random_hex(16)?;
        *lock(&self.code) = Some((sha256(code.as_bytes()), Instant::now() + CODE_LASTS));
        Ok(format!("{}/?code={code}", self.origin()))
    }

    /// The cookie of a new session, if `code` is the one of the link and was not used before.
    pub(crate) fn redeem(&self, code: &str) -> Result<Option<String>, PortError> {
        let mut known = lock(&self.code);
        let digest = sha256(code.as_bytes());
        let good = matches!(&*known, Some((want, until))
            if *want == digest && Instant::now() < *until);
        if !good {
            return Ok(None);
        }
        *known = None;
        drop(known);
        self.open_session().map(Some)
    }

    /// The same for a code that another process offered to the user; it is good once.
    pub(crate) fn redeem_offered(
        &self,
        code: &str,
        offered: &OfferedCode,
        now: i64,
    ) -> Result<Option<String>, PortError> {
        let digest = sha256(code.as_bytes());
        let lasts = i64::try_from(CODE_LASTS.as_millis()).unwrap_or_default();
        let is_now = (0..=lasts).contains(&offered.until.saturating_sub(now));
        if digest != offered.sha256 || !is_now || !lock(&self.used).insert(digest) {
            return Ok(None);
        }
        self.open_session().map(Some)
    }

    fn open_session(&self) -> Result<String, PortError> {
        let cookie = random_hex(32)?;
        let visitor = Visitor {
            until: Instant::now() + SESSION_LASTS,
            id: random_hex(4)?,
            form_token: random_hex(16)?,
        };
        lock(&self.sessions).insert(sha256(cookie.as_bytes()), visitor);
        Ok(cookie)
    }

    /// The session that `cookie` names.
    pub(crate) fn visitor(&self, cookie: &str) -> Option<Visitor> {
        let sessions = lock(&self.sessions);
        let visitor = sessions.get(&sha256(cookie.as_bytes()))?;
        (Instant::now() < visitor.until).then(|| visitor.clone())
    }

    #[cfg(test)]
    pub(crate) fn expire(&self) {
        let past = Instant::now();
        if let Some((_, until)) = &mut *lock(&self.code) {
            *until = past;
        }
        for visitor in lock(&self.sessions).values_mut() {
            visitor.until = past;
        }
    }
}

impl Visitor {
    pub(crate) fn accepts(&self, form_token: &str) -> bool {
        sha256(form_token.as_bytes()) == sha256(self.form_token.as_bytes())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the program, so that no other thread sees what it left.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Random bytes, as hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String, PortError> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)
        .map_err(|error| PortError::new(Code::HostFailed, format!("no random numbers: {error}")))?;
    Ok(provost_core::object::hex(&random))
}
