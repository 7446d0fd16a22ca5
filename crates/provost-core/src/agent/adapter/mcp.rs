//! An MCP server that takes a prompt.

use serde::{Deserialize, Serialize};

use super::codex::VENDOR;
use super::{AgentAdapter, Start, StreamForm, Vendor};
use crate::agent::Adapted;
use crate::children::SERVER;

/// The default tool that takes a prompt: that of Codex.
pub const TOOL: &str = "codex";

/// The default tool that continues a thread.
pub const REPLY_TOOL: &str = "codex-reply";

/// A server that is an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its command line.
    pub command: Vec<String>,
    /// The tool that takes a prompt.
    pub tool: String,
    /// The tool that takes a prompt and a thread to continue, if the server has it.
    pub reply_tool: String,
}

/// Whether `text` is a valid tool name.
pub fn is_tool(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// The entry that means "no server" in a list that must not be empty.
pub const NONE: &str = "none";

/// The entry that stands for model sampling, which no server gets.
pub const SAMPLING: &str = "sampling";

/// Whether `text` is a valid name of a server for an agent.
pub fn is_server(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let reserved = [NONE, SAMPLING, SERVER].contains(&text);
    (1..=64).contains(&text.len()) && text.bytes().all(plain) && !reserved
}

pub(super) struct Mcp;

impl AgentAdapter for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn start(&self) -> Start {
        Start::Server
    }

    /// That of Codex; a policy may name another place, or none.
    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor {
            api: None,
            subscription: None,
            ..VENDOR
        })
    }

    fn binds_answer(&self) -> bool {
        false
    }

    fn prints(&self, _: &Adapted) -> StreamForm {
        StreamForm::Mcp
    }
}
