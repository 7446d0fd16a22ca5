//! What a repository adds to the shipped agents and result schemas, as its base commit has it.
//!
//! # Invariants
//!
//! - An addition gives no right: an agent of the repository gets what its role has in the shipped
//!   registry, or less.
//! - A registry or a schema that cannot be used refuses the contract; it is never left out.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Problem;
use super::check::{LARGEST_REFERENCE, ReadFile};
use super::document::{Agent, Artifact, Document};
use super::output::Output;
use crate::agent_registry::{self, AgentRegistry, Defaults, RegisteredAgent, RoleTerms};
use crate::code::Code;
use crate::json;
use crate::object::sha256;
use crate::path::RepoPath;
use crate::schema::own;

/// The registry of a repository.
pub const REGISTRY: &str = "policies/agent_registry.json";

/// The directory of its schemas.
const SCHEMAS: &str = "schemas/";

/// The part of the additions of a repository that one contract uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Additions {
    /// SHA-256 of the registry, if the repository has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_sha256: Option<String>,
    /// Its agents that the contract names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<RegisteredAgent>,
    /// What it says about the role that is assigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<RoleTerms>,
    /// The schema of the result, if it is none of the shipped ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<OwnSchema>,
    /// Why the registry or the schema cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<Problem>,
}

/// A schema of the repository that the result of a contract is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSchema {
    pub uri: String,
    pub sha256: String,
    /// As the file has it.
    pub text: String,
}

impl OwnSchema {
    fn is_named_by(&self, artifact: &Artifact) -> bool {
        self.uri == artifact.uri && self.sha256.eq_ignore_ascii_case(&artifact.sha256)
    }
}

/// Where the additions for a contract come from.
#[derive(Clone, Copy)]
pub enum AdditionsFrom<'a> {
    /// There are none: only what is shipped counts.
    Nowhere,
    /// A run recorded them.
    Record(&'a Additions),
    /// The files of a base commit.
    Base(ReadFile<'a>),
}

impl fmt::Debug for AdditionsFrom<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Nowhere => "Nowhere",
            Self::Record(_) => "Record",
            Self::Base(_) => "Base",
        })
    }
}

impl<'a> AdditionsFrom<'a> {
    pub fn of(self, document: &Document) -> Cow<'a, Additions> {
        match self {
            Self::Nowhere => Cow::Owned(Additions::default()),
            Self::Record(additions) => Cow::Borrowed(additions),
            Self::Base(read) => Cow::Owned(Additions::of(document, read)),
        }
    }
}

/// The schema that `document` binds its result to, with its position among the artifacts.
pub fn bound_schema(document: &Document) -> Option<(usize, &Artifact)> {
    let mut all = document.inputs.artifacts.iter().enumerate();
    all.find(|(_, artifact)| artifact.name.starts_with("output_schema"))
}

/// Whether `artifact` is the shipped schema of the result of `output`.
pub fn is_shipped(artifact: &Artifact, output: Output) -> bool {
    artifact.uri == output.place() && artifact.sha256.eq_ignore_ascii_case(&output.digest())
}

impl Additions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What `document` uses of the files that `read` reads.
    pub fn of(document: &Document, read: ReadFile<'_>) -> Self {
        let mut found = Self::default();
        if let Err(problem) = found.take_agents(document, read) {
            let problem = format!("needs `{REGISTRY}` of the base commit, which {problem}");
            found.add(Code::AgentUnknown, "/assigned_agent", problem);
        }
        if let Some((at, artifact)) = bound_schema(document)
            && !is_shipped(artifact, Output::of(document.assigned_agent.role))
            && let Err((field, problem)) = found.take_schema(artifact, read)
        {
            let path = format!("/inputs/artifacts/{at}/{field}");
            found.add(Code::OutputSchemaUnbound, &path, problem);
        }
        found
    }

    fn add(&mut self, code: Code, path: &str, problem: String) {
        self.flaws.push(Problem::new(code, path, problem));
    }

    fn take_agents(&mut self, document: &Document, read: ReadFile<'_>) -> Result<(), String> {
        let bytes = RepoPath::try_from(REGISTRY).ok();
        let bytes = bytes.and_then(|path| read(&path));
        let Some(bytes) = bytes.filter(|bytes| !agent_registry::is_shipped(bytes)) else {
            return Ok(());
        };
        if bytes.len() > LARGEST_REFERENCE {
            return Err(format!("has more than {LARGEST_REFERENCE} bytes"));
        }
        let registry: AgentRegistry = json::parse_as(&bytes)
            .map_err(|error| format!("does not fit `provost schema agent_registry`: {error}"))?;
        let author = document.x_provost.as_ref();
        let author = author.and_then(|extension| extension.author.as_deref());
        let ids = [
            Some(document.owner_agent.agent_id.as_str()),
            Some(document.assigned_agent.agent_id.as_str()),
            author,
        ];
        let is_named = |one: &RegisteredAgent| ids.contains(&Some(one.agent_id.as_str()));
        self.registry_sha256 = Some(sha256(&bytes));
        self.agents = registry.agents.into_iter().filter(is_named).collect();
        let mut terms = registry.role_contracts.unwrap_or_default();
        self.terms = terms.remove(&document.assigned_agent.role);
        Ok(())
    }

    fn take_schema(
        &mut self,
        artifact: &Artifact,
        read: ReadFile<'_>,
    ) -> Result<(), (&'static str, String)> {
        let path = RepoPath::try_from(artifact.uri.as_str()).ok();
        let path = path.filter(|path| path.as_str().starts_with(SCHEMAS));
        // The rules of the contract report a schema that is not there.
        let Some(bytes) = path.and_then(|path| read(&path)) else {
            return Ok(());
        };
        if bytes.len() > LARGEST_REFERENCE {
            let problem = format!("is a file of more than {LARGEST_REFERENCE} bytes");
            return Err(("uri", problem));
        }
        let digest = sha256(&bytes);
        if !artifact.sha256.eq_ignore_ascii_case(&digest) {
            let problem = format!("does not match the file of the base commit, which has {digest}");
            return Err(("sha256", problem));
        }
        let unusable = |why: String| ("uri", format!("is a schema that cannot be used: {why}"));
        let text = String::from_utf8(bytes).map_err(|_| unusable("it is no text".to_owned()))?;
        own::check(&text).map_err(unusable)?;
        self.schema = Some(OwnSchema {
            uri: artifact.uri.clone(),
            sha256: digest,
            text,
        });
        Ok(())
    }

    /// Whether an agent is registered in this role, here or in the shipped registry.
    pub fn knows(&self, agent: &Agent) -> bool {
        agent_registry::knows(&agent.agent_id, agent.role) || self.entries(agent).next().is_some()
    }

    /// Whether the repository has an agent of this name.
    pub fn names(&self, agent_id: &str) -> bool {
        self.agents.iter().any(|one| one.agent_id == agent_id)
    }

    fn entries<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a RegisteredAgent> {
        let same =
            |one: &&RegisteredAgent| one.agent_id == agent.agent_id && one.role == agent.role;
        self.agents.iter().filter(same)
    }

    /// The most that `agent` may have: what its role has, and no more than its own entry says.
    pub fn most(&self, agent: &Agent) -> Option<Defaults> {
        let role = agent_registry::defaults(agent.role)?.clone();
        Some(self.entries(agent).fold(role, |most, entry| Defaults {
            sandbox: most.sandbox.min(entry.defaults.sandbox),
            approval_policy: most.approval_policy.min(entry.defaults.approval_policy),
            network: most.network.min(entry.defaults.network),
        }))
    }

    /// Whether every registry that lists the tools of `agent` lists `tool`.
    pub fn permits_tool(&self, agent: &Agent, tool: &str) -> bool {
        let own = self.entries(agent).filter_map(|entry| {
            let capabilities = entry.capabilities.as_ref()?;
            capabilities.mcp_tools.as_deref()
        });
        let mut lists = agent_registry::tools(&agent.agent_id)
            .into_iter()
            .chain(own);
        lists.all(|tools| tools.iter().any(|one| one == tool))
    }

    /// The repository's schema that `document` binds its result to.
    pub fn bound(&self, document: &Document) -> Option<&OwnSchema> {
        let (_, artifact) = bound_schema(document)?;
        self.names_schema(artifact).then_some(self.schema.as_ref()?)
    }

    /// Whether `artifact` is the schema of the repository.
    pub(super) fn names_schema(&self, artifact: &Artifact) -> bool {
        let schema = self.schema.as_ref();
        schema.is_some_and(|schema| schema.is_named_by(artifact))
    }
}
