//! Counts the tokens of a model from the provider's replies that pass the proxy.
//!
//! # Invariants
//!
//! - The program that sends requests is not trusted: requests are classified by their path, and
//!   tokens come from the reply alone.
//! - A reply that ends without its count, or that cannot be parsed, is estimated by its bytes,
//!   never counted as zero. Under a limit it uses up all reserved tokens: the model may have written
//!   more than was seen, or work on after it. Only a reply in which the provider says that it failed
//!   is estimated then, too.
//! - A stream gives its count only at its end. Until then its output is estimated by the bytes of
//!   its text.

mod said;

use provost_core::agent::event::Usage;
use provost_core::net::model_api::ModelApi;
use serde_json::{Value, json};

use super::gateway::events::EventReader;
use super::gateway::request_log::{BodyHasher, HashedBody};
use super::held_bytes::HeldBytes;
use said::Said;

/// The longest reply that is parsed; a longer one is estimated.
const LONGEST: usize = 16 << 20;
/// Bytes per token for an estimate; deliberately low, so that the estimate is high.
const BYTES_A_TOKEN: u64 = 3;
/// The longest message of a provider that is repeated.
const LONGEST_WORDS: usize = 300;

/// An error in the form of `api`; on status 429 clients retry.
pub(super) fn error(api: ModelApi, status: u16, message: &str) -> Value {
    let later = status == 429;
    let name = |again: &'static str, never: &'static str| if later { again } else { never };
    match api {
        ModelApi::Messages => {
            let kind = name("rate_limit_error", "permission_error");
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        ModelApi::Responses | ModelApi::Chat => {
            let kind = name("rate_limit_exceeded", "permission_error");
            json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
        }
        ModelApi::Content => {
            let kind = name("RESOURCE_EXHAUSTED", "PERMISSION_DENIED");
            json!({ "error": { "code": status, "message": message, "status": kind } })
        }
    }
}

fn parsed(data: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(data).ok()
}

/// How many bytes of text the model wrote in one message of a stream, or in a whole reply.
fn written(api: ModelApi, value: &Value) -> u64 {
    match api {
        ModelApi::Messages => text(&value["delta"]) + text(&value["content"]),
        ModelApi::Responses => text(&value["delta"]) + text(&value["output"]),
        ModelApi::Chat => text(&value["choices"]),
        ModelApi::Content => text(&value["candidates"]),
    }
}

/// The total length of the strings in `value`, in bytes.
fn text(value: &Value) -> u64 {
    match value {
        Value::String(words) => words.len() as u64,
        Value::Array(items) => items.iter().map(text).sum(),
        Value::Object(fields) => fields.values().map(text).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Meters one reply of a model.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts about a reply, which occur in any combination"
)]
pub(super) struct Meter {
    api: ModelApi,
    status: u16,
    streamed: bool,
    readable: bool,
    /// Whether the length of the reply was announced.
    sized: bool,
    /// The whole body so far, unless it is a stream.
    text: Vec<u8>,
    events: EventReader,
    /// The memory for both, of which all replies share a bounded amount.
    held: HeldBytes,
    /// Makes the digest of the reply, where it is recorded.
    hasher: Option<BodyHasher>,
    /// The header fields of the reply, where bodies are recorded.
    fields: Vec<(String, String)>,
    bytes: u64,
    /// The bytes of streamed text.
    written: u64,
    /// The tokens that are reserved for the exchange, if there is a limit.
    reserved: Option<u64>,
    /// Whether the request named no output limit, so that the reply is cut by an estimate.
    unlimited: bool,
    said: Said,
    /// Whether the reply is complete.
    complete: bool,
    /// Whether the provider says in the reply that it failed.
    failed: bool,
}

/// The count of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) usage: Usage,
    /// Whether some of the tokens are an estimate.
    pub(super) estimated: bool,
    /// Tokens that were written to a cache, which are among those read.
    pub(super) created: u64,
    /// Whether the reply has no count that could be trusted, so that all reserved tokens count.
    pub(super) uncounted: bool,
    /// The provider's message about a failure.
    pub(super) words: Option<String>,
}

impl Meter {
    pub(super) fn new(api: ModelApi) -> Self {
        Self {
            api,
            status: 0,
            streamed: false,
            readable: true,
            sized: false,
            text: Vec::new(),
            events: EventReader::default(),
            held: HeldBytes::default(),
            hasher: None,
            fields: Vec::new(),
            bytes: 0,
            written: 0,
            reserved: None,
            unlimited: false,
            said: Said::default(),
            complete: false,
            failed: false,
        }
    }

    /// For an exchange with `reserved` tokens, `unlimited` if its request names no output limit.
    pub(super) fn within(api: ModelApi, reserved: u64, unlimited: bool) -> Self {
        Self {
            reserved: Some(reserved),
            unlimited,
            ..Self::new(api)
        }
    }

    /// The same meter, which keeps what it has to within `held` and makes a digest with `hasher`.
    pub(super) fn keeping(self, held: HeldBytes, hasher: Option<BodyHasher>) -> Self {
        Self {
            held,
            hasher,
            ..self
        }
    }

    /// The digest of the reply so far; it is made once.
    pub(super) fn digest(&mut self) -> Option<HashedBody> {
        self.hasher.take().map(BodyHasher::finish)
    }

    /// Notes the header fields of the reply.
    pub(super) fn note_fields(&mut self, fields: Vec<(String, String)>) {
        self.fields = fields;
    }

    pub(super) fn take_fields(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.fields)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The end of a reply that is cut: the error in the form of the API, for a stream of events.
    pub(super) fn cut_words(&self) -> Option<String> {
        let words = "TOKEN_LIMIT: the reply used up what is left of the budget";
        let error = error(self.api, 403, words);
        let name = match self.api {
            ModelApi::Messages | ModelApi::Responses => "event: error\n",
            ModelApi::Chat | ModelApi::Content => "",
        };
        self.streamed
            .then(|| format!("\n\n{name}data: {error}\n\n"))
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.reserved.is_some()
    }

    /// Whether the reply already exceeds the reserved tokens, by the larger of what the provider
    /// reported so far and of the estimate: a report may be followed by more text.
    pub(super) fn is_beyond(&self) -> bool {
        let Some(reserved) = self.reserved else {
            return false;
        };
        let Said {
            input,
            created,
            output,
            ..
        } = self.said;
        let output = output.unwrap_or(0).max(self.seen_output());
        // The tokens of the request itself are not estimated here: most of them may come from a
        // cache.
        let input = input.unwrap_or(0).saturating_add(created.unwrap_or(0));
        input.saturating_add(output) > reserved
    }

    /// The tokens that were written so far, by what was seen of them.
    fn seen_output(&self) -> u64 {
        let bytes = match (self.readable, self.streamed) {
            // The provider keeps the output limit of the request.
            _ if !self.unlimited => 0,
            (true, true) => self.written,
            // A reply whose length is announced was written before it was sent: to cut it saves
            // no token, and its count at the end is exact.
            (true, false) if self.sized => 0,
            _ => self.bytes,
        };
        bytes / BYTES_A_TOKEN
    }

    /// The status of the reply; 0 if there was none.
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Processes the head of the reply: its status, the type of its content, and its encoding.
    pub(super) fn head(&mut self, status: u16, kind: &[u8], encoding: Option<&[u8]>) {
        self.status = status;
        let kind = kind.to_ascii_lowercase();
        self.streamed = kind.starts_with(b"text/event-stream");
        let plain = |encoding: &[u8]| encoding.eq_ignore_ascii_case(b"identity");
        self.readable = encoding.is_none_or(plain);
    }

    /// Notes that the head announced the length of the reply.
    pub(super) fn announce_length(&mut self) {
        self.sized = true;
    }

    /// Notes that the whole reply was processed.
    pub(super) fn complete(&mut self) {
        self.complete = true;
    }

    /// Processes a part of the content.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if let Some(hasher) = &mut self.hasher {
            hasher.push(bytes);
        }
        if !self.streamed {
            return self.gather(bytes);
        }
        let mut messages = Vec::new();
        self.events
            .push(bytes, &mut |data| messages.extend(parsed(data)));
        for message in &messages {
            self.read(message);
        }
        if !self.held.hold(self.events.kept()) {
            self.events.give_up();
        }
        self.readable &= !self.events.is_overlong();
    }

    /// Buffers bytes to parse them later; an overlong reply is not parsed at all.
    fn gather(&mut self, bytes: &[u8]) {
        let length = self.text.len().saturating_add(bytes.len());
        if length > LONGEST || !self.held.hold(length) {
            self.readable = false;
        }
        if self.readable {
            self.text.extend_from_slice(bytes);
        } else {
            self.text = Vec::new();
            self.held.release();
        }
    }

    /// Takes the token counts, and the length of the text, from a message of the reply.
    fn read(&mut self, value: &Value) {
        self.written = self.written.saturating_add(written(self.api, value));
        let error = value.pointer("/response/error").or(value.get("error"));
        self.failed |= value["type"] == "error" || error.is_some_and(|error| !error.is_null());
        let Some(said) = Said::of(self.api, value) else {
            return;
        };
        let before = self.said;
        self.said = Said {
            input: said.input.or(before.input),
            cached: said.cached.or(before.cached),
            created: said.created.or(before.created),
            output: said.output.or(before.output),
            is_last: said.is_last || before.is_last,
        };
    }

    /// The count of the exchange, whose request had `sent` bytes.
    pub(super) fn finish(mut self, sent: u64) -> Counted {
        let mut words = None;
        if self.streamed {
            let mut messages = Vec::new();
            self.events
                .finish(&mut |data| messages.extend(parsed(data)));
            for message in &messages {
                self.read(message);
            }
        } else if let Ok(value) = serde_json::from_slice::<Value>(&self.text) {
            match &value {
                Value::Array(parts) => parts.iter().for_each(|part| self.read(part)),
                value => self.read(value),
            }
            words = self.complaint(&value);
        }
        let said = self.said;
        // The model did no work for a refused request.
        let refused = self.status >= 400;
        let guess = |bytes: u64| {
            if refused {
                0
            } else {
                bytes.div_ceil(BYTES_A_TOKEN)
            }
        };
        // No token for text that was written is no count.
        let denied = said.output == Some(0) && self.written > 0;
        let mut output = match said.output {
            _ if denied && said.is_last => guess(self.written),
            Some(output) if said.is_last => output,
            early => guess(self.bytes).max(early.unwrap_or(0)),
        };
        let (cached, created) = (said.cached.unwrap_or(0), said.created.unwrap_or(0));
        let input = said.input.unwrap_or_else(|| guess(sent));
        let whole = said.input.is_some() && said.is_last && !denied;
        let failed = self.complete && self.failed;
        let reserved = self.reserved.filter(|_| !whole && !refused && !failed);
        if let Some(reserved) = reserved {
            let rest = reserved.saturating_sub(input.saturating_add(created));
            let seen = self.seen_output().max(said.output.unwrap_or(0));
            output = rest.max(seen);
        }
        Counted {
            created,
            uncounted: reserved.is_some(),
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

#[cfg(test)]
mod tests;
