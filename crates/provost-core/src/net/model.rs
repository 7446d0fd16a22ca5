//! Counts the tokens of a model by what its provider says in the replies that pass the proxy.
//!
//! # Invariants
//!
//! - Nothing here believes the program that asks: requests are told apart by their path, and tokens
//!   come from the reply alone.
//! - A reply that ends without its count, or that cannot be read, is estimated by its bytes, never
//!   taken for nothing.
//! - A stream says only at its end what it came to. Until then what it wrote is estimated by the
//!   bytes of its text.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::event::Usage;
use crate::code::Code;

/// The longest reply, or line of a stream, that is read; a longer one is estimated.
const LONGEST: usize = 16 << 20;
/// How many bytes make a token where nobody counted, on the careful side.
const BYTES_A_TOKEN: u64 = 3;
/// The longest message of a provider that is repeated.
const LONGEST_WORDS: usize = 300;

/// An interface of model providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Messages, of Anthropic.
    Messages,
    /// Responses, of `OpenAI`.
    Responses,
    /// Chat Completions, of `OpenAI`.
    Chat,
    /// Gemini `generateContent`.
    Content,
}

impl Api {
    /// An error as clients of this interface read one; with status 429 they ask again.
    pub fn error(self, status: u16, message: &str) -> Value {
        let later = status == 429;
        let name = |again: &'static str, never: &'static str| if later { again } else { never };
        match self {
            Self::Messages => {
                let kind = name("rate_limit_error", "permission_error");
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Responses | Self::Chat => {
                let kind = name("rate_limit_exceeded", "permission_error");
                json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
            }
            Self::Content => {
                let kind = name("RESOURCE_EXHAUSTED", "PERMISSION_DENIED");
                json!({ "error": { "code": status, "message": message, "status": kind } })
            }
        }
    }

    /// How many bytes of text the model wrote in one message of a stream.
    fn written(self, value: &Value) -> u64 {
        match self {
            Self::Messages | Self::Responses => text(&value["delta"]),
            Self::Chat => text(&value["choices"]),
            Self::Content => text(&value["candidates"]),
        }
    }
}

/// How many bytes the texts in `value` have together.
fn text(value: &Value) -> u64 {
    match value {
        Value::String(words) => words.len() as u64,
        Value::Array(items) => items.iter().map(text).sum(),
        Value::Object(fields) => fields.values().map(text).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// What a request to a model's place is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It has the model work.
    Work(Api),
    /// It costs no tokens.
    Free,
    /// Nobody knows.
    Unknown,
}

impl Purpose {
    /// The purpose of a request with `method` for `path`, which may have a query.
    pub fn of(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        // Some servers read the method there.
        if query.to_ascii_lowercase().contains("_method") {
            return Self::Unknown;
        }
        let path = path.trim_end_matches('/');
        if matches!(method, "GET" | "HEAD" | "OPTIONS") {
            // The answer to work that went on without anybody to count it.
            let later = path.contains("/responses/") || path.contains("/batches");
            return if later { Self::Unknown } else { Self::Free };
        }
        let ends = |end: &str| path.ends_with(end);
        if method != "POST" {
            return Self::Unknown;
        }
        if ends("/messages/count_tokens") || ends(":countTokens") || ends("/responses/input_tokens")
        {
            Self::Free
        } else if ends("/messages") {
            Self::Work(Api::Messages)
        } else if ends("/responses") || ends("/responses/compact") {
            Self::Work(Api::Responses)
        } else if ends("/chat/completions") {
            Self::Work(Api::Chat)
        } else if ends(":generateContent") || ends(":streamGenerateContent") {
            Self::Work(Api::Content)
        } else {
            Self::Unknown
        }
    }
}

/// Tokens as far as a provider has said them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Said {
    input: Option<u64>,
    /// Beside those: from a cache, or put there.
    cached: Option<u64>,
    created: Option<u64>,
    output: Option<u64>,
    /// Whether no later count can follow.
    is_last: bool,
}

/// Follows one reply of a model.
#[derive(Debug)]
pub struct Meter {
    api: Api,
    status: u16,
    streamed: bool,
    readable: bool,
    /// The line of a stream, or the whole body, so far.
    text: Vec<u8>,
    bytes: u64,
    /// The bytes of the text that came in a stream.
    written: u64,
    /// How many tokens are reserved for the exchange, if they are limited.
    reserved: Option<u64>,
    said: Said,
}

/// What one request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its tokens.
    pub usage: Usage,
    /// Whether some of them are an estimate.
    pub estimated: bool,
    /// What the provider said about a failure.
    pub words: Option<String>,
}

impl Meter {
    /// Follows the reply to a request for `api`.
    pub fn new(api: Api) -> Self {
        Self {
            api,
            status: 0,
            streamed: false,
            readable: true,
            text: Vec::new(),
            bytes: 0,
            written: 0,
            reserved: None,
            said: Said::default(),
        }
    }

    /// The same for an exchange that `reserved` tokens are kept for.
    pub fn within(api: Api, reserved: u64) -> Self {
        Self {
            reserved: Some(reserved),
            ..Self::new(api)
        }
    }

    /// Whether tokens are reserved for the exchange.
    pub fn is_bounded(&self) -> bool {
        self.reserved.is_some()
    }

    /// Whether more came already than is reserved. Once the provider has said the whole, there is
    /// nothing left to keep back.
    pub fn is_beyond(&self) -> bool {
        let Some(reserved) = self.reserved.filter(|_| !self.said.is_last) else {
            return false;
        };
        let Said {
            input,
            created,
            output,
            ..
        } = self.said;
        let seen = if self.readable {
            self.written
        } else {
            self.bytes
        };
        let output = output.unwrap_or(0).max(seen / BYTES_A_TOKEN);
        // What the request itself takes is not guessed here: most of it may come from a cache.
        let input = input.unwrap_or(0).saturating_add(created.unwrap_or(0));
        input.saturating_add(output) > reserved
    }

    /// The status of the reply; 0 if there was none.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Takes the head of the reply: its status, the type of its content, and its encoding.
    pub fn head(&mut self, status: u16, kind: &[u8], encoding: Option<&[u8]>) {
        self.status = status;
        let kind = kind.to_ascii_lowercase();
        self.streamed = kind.starts_with(b"text/event-stream");
        let plain = |encoding: &[u8]| encoding.eq_ignore_ascii_case(b"identity");
        self.readable = encoding.is_none_or(plain);
    }

    /// Takes a part of the content.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if !self.streamed {
            return self.gather(bytes);
        }
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            self.gather(part);
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    /// Keeps bytes as long as they can be read; what is too long is not read at all.
    fn gather(&mut self, bytes: &[u8]) {
        if self.text.len().saturating_add(bytes.len()) > LONGEST {
            self.readable = false;
        }
        if self.readable {
            self.text.extend_from_slice(bytes);
        } else {
            self.text = Vec::new();
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.text);
        if let Some(data) = line.strip_prefix(b"data:")
            && let Ok(value) = serde_json::from_slice::<Value>(data)
        {
            self.written = self.written.saturating_add(self.api.written(&value));
            self.read(&value);
        }
    }

    /// Takes the tokens that a message of the reply says.
    fn read(&mut self, value: &Value) {
        let said = match self.api {
            Api::Messages => messages(value),
            Api::Responses => responses(value),
            Api::Chat => chat(value),
            Api::Content => content(value),
        };
        let Some(said) = said else { return };
        let before = self.said;
        self.said = Said {
            input: said.input.or(before.input),
            cached: said.cached.or(before.cached),
            created: said.created.or(before.created),
            output: said.output.or(before.output),
            is_last: said.is_last || before.is_last,
        };
    }

    /// What the exchange came to, whose request had `sent` bytes.
    pub fn finish(mut self, sent: u64) -> Counted {
        let mut words = None;
        if self.streamed {
            self.end_line();
        } else if let Ok(value) = serde_json::from_slice::<Value>(&self.text) {
            match &value {
                Value::Array(parts) => parts.iter().for_each(|part| self.read(part)),
                value => self.read(value),
            }
            words = self.complaint(&value);
        }
        let said = self.said;
        // A request that a server refused was not worked on.
        let refused = self.status >= 400;
        let guess = |bytes: u64| {
            if refused {
                0
            } else {
                bytes.div_ceil(BYTES_A_TOKEN)
            }
        };
        let output = match said.output {
            Some(output) if said.is_last => output,
            early => guess(self.bytes).max(early.unwrap_or(0)),
        };
        let (cached, created) = (said.cached.unwrap_or(0), said.created.unwrap_or(0));
        let input = said.input.unwrap_or_else(|| guess(sent));
        let whole = said.input.is_some() && said.is_last;
        Counted {
            usage: Usage {
                input_tokens: input.saturating_add(cached).saturating_add(created),
                cached_tokens: cached,
                output_tokens: output,
                micro_usd: 0,
            },
            estimated: !whole && !refused,
            words,
        }
    }

    fn complaint(&self, value: &Value) -> Option<String> {
        let error = value.get(0).unwrap_or(value).get("error")?;
        let words = error["message"].as_str().or(error.as_str())?;
        let shown = words.chars().filter(|letter| !letter.is_control());
        let words: String = shown.take(LONGEST_WORDS).collect();
        (self.status >= 400 && !words.is_empty()).then_some(words)
    }
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

/// Anthropic counts what comes from a cache, or is put there, beside what is read. The last count
/// of a stream is in `message_delta`, and stands for the whole message.
fn messages(value: &Value) -> Option<Said> {
    let (usage, is_last) = match value["type"].as_str() {
        Some("message_start") => (value.pointer("/message/usage")?, false),
        _ => (value.get("usage")?, true),
    };
    Some(Said {
        input: number(usage, "input_tokens"),
        cached: number(usage, "cache_read_input_tokens"),
        created: number(usage, "cache_creation_input_tokens"),
        output: number(usage, "output_tokens"),
        is_last: is_last && number(usage, "output_tokens").is_some(),
    })
}

/// `OpenAI` counts cached tokens among those that are read.
fn responses(value: &Value) -> Option<Said> {
    let usage = value
        .pointer("/response/usage")
        .or_else(|| value.get("usage"))?;
    let cached = usage.pointer("/input_tokens_details/cached_tokens");
    among(
        number(usage, "input_tokens")?,
        cached.and_then(Value::as_u64),
        number(usage, "output_tokens")?,
    )
}

fn chat(value: &Value) -> Option<Said> {
    let usage = value.get("usage")?;
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
    among(
        number(usage, "prompt_tokens")?,
        cached.and_then(Value::as_u64),
        number(usage, "completion_tokens")?,
    )
}

/// Gemini says in every piece what it comes to so far; thoughts, and what tools of the provider
/// read, are counted apart.
fn content(value: &Value) -> Option<Said> {
    let usage = value.get("usageMetadata")?;
    let part = |name: &str| number(usage, name).unwrap_or(0);
    let read = number(usage, "promptTokenCount")?.saturating_add(part("toolUsePromptTokenCount"));
    let written = part("candidatesTokenCount").saturating_add(part("thoughtsTokenCount"));
    let rest = part("totalTokenCount").saturating_sub(read);
    let said = among(
        read,
        number(usage, "cachedContentTokenCount"),
        written.max(rest),
    )?;
    // A stream that breaks off has said less than it wrote.
    let finished = value.pointer("/candidates/0/finishReason").is_some();
    let blocked = value.get("promptFeedback").is_some();
    Some(Said {
        is_last: finished || blocked,
        ..said
    })
}

#[expect(clippy::unnecessary_wraps, reason = "all readers answer in this form")]
fn among(read: u64, cached: Option<u64>, written: u64) -> Option<Said> {
    let cached = cached.unwrap_or(0).min(read);
    Some(Said {
        input: Some(read - cached),
        cached: Some(cached),
        created: None,
        output: Some(written),
        is_last: true,
    })
}

/// What passed between an agent and its model, as the proxy saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Tokens, of everything in the sandbox together.
    pub usage: Usage,
    /// How many requests had the model work.
    pub requests: u64,
    /// How many of them ended without a count, and are estimated by their bytes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub estimated: u64,
    /// How many more were refused because nothing was left of the budget.
    #[serde(default, skip_serializing_if = "is_none")]
    pub refused: u64,
    /// Whether it was encrypted, so that nothing could be counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// Why no work was possible any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Why a model cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The rule.
    pub code: Code,
    /// In words.
    pub reason: String,
}

#[cfg(test)]
mod tests;
