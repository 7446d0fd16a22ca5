//! The tools that the broker offers, and which of them an agent has.

use schemars::JsonSchema;
use serde::Deserialize;

use super::grant::ChildGrant;
use crate::contract::document::Document;
use crate::words;

/// The name of the MCP server that offers them; no policy can use it.
pub const SERVER: &str = "provost";

/// The command of that server, inside a sandbox.
pub const BROKER_COMMAND: [&str; 3] = ["/run/provost/self", "child", "mcp"];

words! {
    /// A tool for children, which an agent has whose contract grants some.
    pub enum ChildTool {
        Start = "child_start",
        Message = "child_message",
        Wait = "child_wait",
        Cancel = "child_cancel",
        List = "child_list",
    }
}

words! {
    /// A tool for messages between a parent and its children; an agent has it only if its package
    /// keeps it.
    #[derive(PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
    pub enum MessageTool {
        SendMessage = "send_message",
        ReplyToClarification = "reply_to_clarification",
        AskParent = "ask_parent",
        ReadParentMessages = "read_parent_messages",
        Monitor = "monitor",
    }
}

impl MessageTool {
    /// The id of the capability in packages.
    pub fn capability(self) -> String {
        format!("tool.subagent_{}", self.name())
    }

    /// Who can use it at all.
    fn side(self) -> ToolSide {
        match self {
            Self::SendMessage | Self::AskParent | Self::ReadParentMessages => ToolSide::Child,
            Self::ReplyToClarification | Self::Monitor => ToolSide::Parent,
        }
    }
}

/// The two ends of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSide {
    Parent,
    Child,
}

/// The names of the tools that the agent of `contract` has; `is_child` if another agent started it.
pub fn broker_tools(contract: &Document, is_child: bool) -> Vec<&'static str> {
    let extension = contract.x_provost.as_ref();
    let grant = extension.and_then(|extension| extension.children.as_ref());
    let Some(grant) = grant else {
        return Vec::new();
    };
    let children = ChildTool::ALL.iter().filter(|_| grant.count > 0);
    let has = |tool: &&MessageTool| match tool.side() {
        ToolSide::Parent => grant.count > 0,
        ToolSide::Child => is_child,
    };
    let kept = kept(grant).iter().filter(has).map(|tool| tool.name());
    children.map(|tool| tool.name()).chain(kept).collect()
}

/// The message tools that `grant` lets a family keep.
pub(super) fn kept(grant: &ChildGrant) -> &[MessageTool] {
    grant.messages.as_deref().unwrap_or_default()
}
