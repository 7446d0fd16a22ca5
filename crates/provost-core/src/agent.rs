//! Adapters: how each known agent program is started, given its task, and read.
//!
//! # Invariants
//!
//! - An adapter turns the program's own sandbox and prompts off, because Provost's sandbox contains
//!   it. Every tool that would act outside the sandbox is off: the provider's web search, agents of
//!   its own.
//! - What an agent prints is data, read within limits. Lines that cannot be parsed are counted.
//! - A key never enters the sandbox: the agent speaks plain HTTP to the proxy, which adds the key
//!   outside.

pub mod background;
mod claude;
mod codex;
pub mod event;
mod gemini;
pub mod instruction;
pub mod launch;
pub mod mcp;
pub mod provider;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod written;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use event::Usage;
use provider::Provider;

/// A program that Provost can start and read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    /// Any command; it gets the contract on its standard input.
    #[default]
    Exec,
    /// Codex, by `codex exec`.
    Codex,
    /// Claude Code, by `claude --print`.
    Claude,
    /// Gemini CLI, by `gemini --output-format stream-json`.
    Gemini,
    /// An MCP server that takes a prompt; the policy names the command that starts it.
    Mcp,
}

impl Adapter {
    /// The adapters whose program has a name of its own.
    pub const NAMED: [Self; 3] = [Self::Codex, Self::Claude, Self::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    /// The program to look up in PATH; `None` if the policy names the command.
    pub fn program(self) -> Option<&'static str> {
        match self {
            Self::Exec | Self::Mcp => None,
            Self::Codex => Some("codex"),
            Self::Claude => Some("claude"),
            Self::Gemini => Some("gemini"),
        }
    }

    /// The npm package that ships the program.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Self::Exec | Self::Mcp => None,
            Self::Codex => Some("@openai/codex"),
            Self::Claude => Some("@anthropic-ai/claude-code"),
            Self::Gemini => Some("@google/gemini-cli"),
        }
    }

    /// The agent for this adapter when no policy configures one.
    pub fn plain(self) -> Option<Adapted> {
        Some(Adapted {
            adapter: self,
            model: None,
            provider: Some(Provider {
                base_url: provider::default(self)?,
                login: provider::Login::default(),
            }),
            server: None,
            tools: BTreeMap::new(),
            budget: Budget::default(),
        })
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// How an agent is started and what it may spend, as a policy says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// A command, as an argument vector.
    Command(Vec<String>),
    /// A program with an adapter.
    Adapted(Adapted),
}

/// An agent with an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapted {
    pub adapter: Adapter,
    /// The model, if not the program's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the model is; only an MCP server may leave it unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<mcp::Server>>,
    /// The MCP servers that it gets, by name, each an argument vector; it has no others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Budget::is_open")]
    pub budget: Budget,
}

impl Adapted {
    /// The program to look up in PATH; a command is looked up inside the sandbox.
    pub fn program(&self) -> Option<&'static str> {
        self.adapter.program()
    }

    /// The command that starts an MCP server.
    pub fn own_command(&self) -> Option<&[String]> {
        self.server.as_ref().map(|server| server.command.as_slice())
    }
}

/// What an agent may spend in one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens that are new to the model, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a US dollar, if the program reports a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
}

impl Budget {
    fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The part of the budget that `usage` exceeds, as text for the user.
    pub fn exceeded(&self, usage: &Usage) -> Option<String> {
        if let Some(most) = self.tokens
            && usage.tokens() > most
        {
            let spent = usage.tokens();
            return Some(format!("spent {spent} tokens of {most}"));
        }
        if let Some(most) = self.micro_usd
            && usage.micro_usd > most
        {
            let [spent, most] = [usage.micro_usd, most].map(dollars);
            return Some(format!("spent {spent} of {most}"));
        }
        None
    }
}

/// Formats an amount for people.
pub fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let (whole, parts) = text.split_at(text.len() - 4);
    format!("${whole}{}", parts.trim_end_matches('0'))
}

/// Whether `text` is a valid model name; it becomes an argument of a program.
pub fn is_model(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-[]".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}
