//! What agents tell while they work, in one form for all of them.

use serde::{Deserialize, Serialize};

/// The longest text an event keeps; the stream as it was printed has the rest.
const LONGEST: usize = 4096;

/// One thing an agent told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// It began, or continues what has this name.
    Session {
        /// How the program calls the conversation.
        thread: String,
    },
    /// The model said something.
    Message {
        /// Its words.
        text: String,
    },
    /// The model used a tool.
    Tool { name: String, detail: String },
    /// The model changed a file with a tool made for that.
    FileChange {
        /// Which, as the agent calls it.
        path: String,
    },
    /// What it has spent so far.
    Usage(Usage),
    /// Something went wrong; the agent may go on.
    Error {
        /// Its words.
        text: String,
    },
    /// It is through.
    Final {
        /// Whether by its own word it came to an end and did not give up.
        ok: bool,
        /// Its last words.
        text: String,
    },
}

impl Event {
    /// Whether it shows that the work goes on; a complaint, such as about a retry, does not.
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Message { .. }
            | Self::Tool { .. }
            | Self::FileChange { .. }
            | Self::Usage(_)
            | Self::Final { .. } => true,
            Self::Session { .. } | Self::Error { .. } => false,
        }
    }
}

/// Tokens and money, as the agent counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens the model read, those from a cache among them.
    pub input_tokens: u64,
    /// Tokens of these that came from a cache.
    pub cached_tokens: u64,
    /// Tokens the model wrote.
    pub output_tokens: u64,
    /// Millionths of a US dollar; nothing where the program does not say.
    #[serde(default)]
    pub micro_usd: u64,
}

impl Usage {
    /// Tokens that were new: written, or read and not from a cache.
    pub fn tokens(&self) -> u64 {
        let read = self.input_tokens.saturating_sub(self.cached_tokens);
        read.saturating_add(self.output_tokens)
    }

    /// Both together.
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

/// The beginning of `text`, as long as an event may keep it.
pub(super) fn brief(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
