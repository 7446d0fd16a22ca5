//! The events of an agent at work, in one form for all programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest text an event keeps; the raw stream has the rest.
const LONGEST: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The agent started, or resumed the conversation `thread`.
    Session {
        /// The program's name for the conversation.
        thread: String,
    },
    Message {
        text: String,
    },
    Tool {
        name: String,
        detail: String,
    },
    /// What the last tool answered.
    ToolResult {
        /// Whether it succeeded, as the program reports it.
        ok: bool,
        text: String,
    },
    /// The model changed a file with an editing tool.
    FileChange {
        /// As the agent reports it.
        path: String,
    },
    /// Total so far.
    Usage(Usage),
    /// An error; the agent may continue.
    Error {
        text: String,
    },
    /// The agent finished.
    Final {
        /// Whether the agent says that it succeeded.
        ok: bool,
        /// Its last message.
        text: String,
    },
}

impl Event {
    /// Whether it shows that the agent is working; an error, such as a retry, does not.
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Message { .. }
            | Self::Tool { .. }
            | Self::ToolResult { .. }
            | Self::FileChange { .. }
            | Self::Usage(_)
            | Self::Final { .. } => true,
            Self::Session { .. } | Self::Error { .. } => false,
        }
    }
}

/// Tokens and money, as the agent counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens the model read, including cached ones.
    pub input_tokens: u64,
    /// The part of `input_tokens` that came from a cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of a US dollar; 0 if the program does not say.
    #[serde(default)]
    pub micro_usd: u64,
}

impl Usage {
    /// Tokens that were new: written, or read and not from a cache.
    pub fn tokens(&self) -> u64 {
        let read = self.input_tokens.saturating_sub(self.cached_tokens);
        read.saturating_add(self.output_tokens)
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }
}

/// `text`, truncated to the length an event may keep.
pub fn brief(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
