//! Answers requests about controlled changes, the same way for MCP and for the command line.

mod answer;
mod service;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use provost_change::service::{ChangeError, Session};
use provost_change::tools::Request;
use provost_change::tools::arguments::ArgumentError;
use provost_core::code::Code;
use provost_core::lease::Owner;
use provost_engine::ports::PortError;
use provost_host::clock;
use serde::Serialize;
use serde_json::Value;

pub use answer::ToolAnswer;
pub use service::ChangeService;

use crate::answer::Failure;

/// Why a request gets no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The request is wrong; nothing was done.
    Request(String),
    Failure(Failure),
}

/// What a tool answers instead of its payload.
#[derive(Debug, Serialize)]
pub struct TroublePayload {
    error: TroubleFields,
}

#[derive(Debug, Serialize)]
struct TroubleFields {
    code: &'static str,
    /// Absent for a wrong request; `null` for a failure without a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Value>,
    message: String,
}

impl Trouble {
    /// The trouble as the payload of a tool.
    pub fn payload(&self) -> TroublePayload {
        let error = match self {
            Self::Request(words) => TroubleFields {
                code: Code::InputInvalid.name(),
                hint: None,
                message: words.clone(),
            },
            Self::Failure(failure) => {
                let verdict = failure.verdict();
                TroubleFields {
                    code: verdict.code.name(),
                    hint: Some(Value::from(failure.hint.clone())),
                    message: verdict.reason,
                }
            }
        };
        TroublePayload { error }
    }

    /// The trouble as the failure of a command.
    pub fn failure(self) -> Failure {
        match self {
            Self::Request(words) => Failure::new(Code::InputInvalid, words),
            Self::Failure(failure) => failure,
        }
    }
}

impl From<ArgumentError> for Trouble {
    fn from(error: ArgumentError) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<PortError> for Trouble {
    fn from(error: PortError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<ChangeError> for Trouble {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Request(words) => Self::Request(words),
            ChangeError::Port(error) => error.into(),
        }
    }
}

/// The nearest directory at or above `place` that is the top of a checkout.
fn nearest(place: &Path) -> Option<&Path> {
    let is_top = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
    place.ancestors().find(is_top)
}

/// Who sends the requests.
#[derive(Debug, Clone)]
pub enum Identity {
    /// A process that lives as long as its agent.
    Process(Owner),
    /// A name, for agents that call as many short processes.
    Named(String),
    /// The process that starts us again and again, such as a shell.
    Caller(Owner),
}

impl Identity {
    fn owner(&self) -> Owner {
        match self {
            Self::Process(owner) | Self::Caller(owner) => owner.clone(),
            Self::Named(name) => Owner::of_session(name),
        }
    }

    /// The name under which analyses of this identity are kept; nothing if they end with the
    /// process.
    fn kept_as(&self) -> Option<String> {
        match self {
            Self::Process(_) => None,
            Self::Named(name) => Some(format!("named {name}")),
            Self::Caller(owner) => Some(format!(
                "caller {} {} {} {}",
                owner.host, owner.boot, owner.pid, owner.started
            )),
        }
    }
}

/// The registries in which the leases of this process are renewed.
pub type Kept = Arc<Mutex<Vec<PathBuf>>>;

/// The checkouts that requests may be about.
enum Serves {
    /// Any that the caller names: the user typed it.
    Any,
    /// The one that the server was started in.
    One(PathBuf),
    /// The server was started outside of every repository.
    None,
}

/// The change session of one agent, with the repositories it works in.
pub struct ChangeSession {
    identity: Identity,
    session: Session,
    services: Vec<ChangeService>,
    registries: Kept,
    serves: Serves,
    /// The directory of requests that name none.
    root: String,
}

impl ChangeSession {
    /// The session of `identity`, which calls itself `label`.
    pub fn new(identity: Identity, label: &str) -> Self {
        let variable = |name: &str| {
            let read = |prefix: &str| std::env::var(format!("{prefix}_{name}")).ok();
            read("PROVOST").or_else(|| read("CODECLONE"))
        };
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
        let strict = variable("STRICT_FINISH").is_some_and(|text| {
            ["1", "true", "yes", "on"].contains(&text.trim().to_lowercase().as_str())
        });
        let session = Session {
            me: identity.owner(),
            label: label.to_owned(),
            epoch: clock::now_millis() / 1000,
            ttl: number("INTENT_TTL_SECONDS"),
            lease: number("INTENT_LEASE_SECONDS"),
            strict_finish: strict,
        };
        Self {
            identity,
            session,
            services: Vec::new(),
            registries: Kept::default(),
            serves: Serves::Any,
            root: ".".to_owned(),
        }
    }

    /// Restricts the session to the checkout that this process was started in.
    pub fn bind(&mut self) {
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        let top = here
            .ok()
            .and_then(|here| nearest(&here).map(Path::to_owned));
        self.serves = top.map_or(Serves::None, Serves::One);
    }

    /// Refuses a `place` outside of the checkout that this session serves.
    fn require_bound(&self, place: &Path) -> Result<(), Trouble> {
        let only = match &self.serves {
            Serves::Any => return Ok(()),
            Serves::One(top) if nearest(place) == Some(top) => return Ok(()),
            // There is nothing to serve or to write, and the tools say so.
            Serves::None if nearest(place).is_none() => return Ok(()),
            Serves::One(top) => format!("it serves `{}` alone", top.display()),
            Serves::None => "it was started in no repository".to_owned(),
        };
        Err(Trouble::Request(format!(
            "`root` is not the checkout that this server was started in: {only}; \
             start another `provost mcp` there"
        )))
    }

    pub fn rename(&mut self, label: String) {
        self.session.label = label;
    }

    /// The registries in which leases are renewed.
    pub fn registries(&self) -> Kept {
        Arc::clone(&self.registries)
    }

    pub fn call(&mut self, request: &Request) -> Result<ToolAnswer, Trouble> {
        tools::call(self, request)
    }

    /// The service for the root `root`, and that root relative to the top of its repository.
    fn at(&mut self, root: &str) -> Result<(usize, String), Trouble> {
        let place = Path::new(root)
            .canonicalize()
            .map_err(|error| Trouble::Request(format!("`root` cannot be used: {error}")))?;
        self.require_bound(&place)?;
        if let Some(at) = self
            .services
            .iter()
            .position(|service| place.starts_with(service.top()))
        {
            // A repository inside of another one has its own service.
            let service = &self.services[at];
            if service.is_nearest(&place) {
                let below = service.below(&place)?;
                return Ok((at, below));
            }
        }
        let service = ChangeService::open(&place, self.identity.kept_as().as_deref())?;
        let below = service.below(&place)?;
        if let Some(at) = self
            .services
            .iter()
            .position(|known| known.top() == service.top())
        {
            return Ok((at, below));
        }
        let mut kept = self
            .registries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.push(service.registry_path());
        drop(kept);
        self.services.push(service);
        Ok((self.services.len() - 1, below))
    }

    /// The same session, in the directory `root`.
    #[must_use]
    pub fn in_root(mut self, root: &str) -> Self {
        root.clone_into(&mut self.root);
        self
    }

    /// The service that knows an intent or a run; else that of the session's directory.
    fn knowing(&mut self, intent: Option<&str>, run: Option<&str>) -> Result<usize, Trouble> {
        for (at, service) in self.services.iter_mut().enumerate() {
            if service.knows(&self.session, intent, run) {
                return Ok(at);
            }
        }
        match self.services.len() {
            0 => Ok(self.at(&self.root.clone())?.0),
            count => Ok(count - 1),
        }
    }
}
