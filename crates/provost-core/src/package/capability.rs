//! What an agent is given to use, and what effects using it can have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Id, Key};
use crate::bundle::report::Sha256;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tool of the agent itself.
    Tool,
    /// A tool of an MCP server.
    McpTool,
    /// A resource of an MCP server.
    McpResource,
    /// Something that may be discovered and become a tool.
    ToolDiscoveryCandidate,
    /// Another agent.
    AgentAsTool,
    ExtensionAction,
    /// Control over a stream.
    StreamControl,
    /// An action in a live session.
    RealtimeAction,
}

/// The strongest thing that using a capability can do, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It reads.
    Read,
    /// It changes files.
    Write,
    /// It sends a result somewhere.
    Deliver,
    /// It reaches other machines.
    Network,
    /// It runs programs.
    Process,
    /// It starts or controls other agents.
    Delegate,
    /// Its effect is not confirmed.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Unique in the package.
    pub id: Id,
    pub kind: Kind,
    /// The stated effect; see [`Capability::effect`].
    #[serde(default)]
    effect: Effect,
    /// The digest of the description for which the effect was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema_sha256: Option<Sha256>,
}

impl Key for Capability {
    fn key(&self) -> &Id {
        &self.id
    }
}

impl Capability {
    /// A capability whose effect is not confirmed.
    pub fn unknown(id: Id, kind: Kind) -> Self {
        Self {
            id,
            kind,
            effect: Effect::Unknown,
            schema_sha256: None,
        }
    }

    /// The strongest effect it can have.
    ///
    /// What a server or an extension says about itself counts only for the description it was said
    /// about; without that digest its effect is unknown. Starting an agent is never less than
    /// [`Effect::Delegate`].
    pub fn effect(&self) -> Effect {
        let pinned = self.schema_sha256.is_some();
        match self.kind {
            Kind::Tool | Kind::StreamControl => self.effect,
            Kind::AgentAsTool => self.effect.max(Effect::Delegate),
            Kind::McpTool | Kind::McpResource | Kind::ExtensionAction | Kind::RealtimeAction
                if pinned =>
            {
                self.effect
            }
            Kind::McpTool | Kind::McpResource | Kind::ExtensionAction | Kind::RealtimeAction => {
                Effect::Unknown
            }
            // What will be discovered is unknown before.
            Kind::ToolDiscoveryCandidate => Effect::Unknown,
        }
    }
}
