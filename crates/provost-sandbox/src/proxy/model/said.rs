//! Reads the token counts that providers report in their replies, each in its own form.

use serde_json::Value;

use provost_core::net::model_api::ModelApi;

/// Tokens, as far as a provider has reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) input: Option<u64>,
    /// In addition: read from a cache, or written to it.
    pub(super) cached: Option<u64>,
    pub(super) created: Option<u64>,
    pub(super) output: Option<u64>,
    /// Whether no later count can follow.
    pub(super) is_last: bool,
}

impl Said {
    /// What a message of a reply reports, if it reports anything.
    pub(super) fn of(api: ModelApi, value: &Value) -> Option<Self> {
        match api {
            ModelApi::Messages => messages(value),
            ModelApi::Responses => responses(value),
            ModelApi::Chat => chat(value),
            ModelApi::Content => content(value),
        }
    }
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

/// Anthropic counts tokens read from or written to a cache separately from input tokens. The last
/// count of a stream is in `message_delta`, and covers the whole message.
fn messages(value: &Value) -> Option<Said> {
    let (usage, is_last) = match value["type"].as_str() {
        Some("message_start") => (value.pointer("/message/usage")?, false),
        _ => (value.get("usage")?, true),
    };
    // What a compaction of the conversation cost stands in the list of passes alone.
    let passes = usage["iterations"].as_array();
    let count = |name: &str| {
        let of_all = number(usage, name);
        let of_each = passes.into_iter().flatten();
        let sum = of_each.filter_map(|pass| number(pass, name));
        let sum = sum.reduce(u64::saturating_add);
        of_all.max(sum)
    };
    Some(Said {
        input: count("input_tokens"),
        cached: count("cache_read_input_tokens"),
        created: count("cache_creation_input_tokens"),
        output: count("output_tokens"),
        is_last: is_last && number(usage, "output_tokens").is_some(),
    })
}

/// `OpenAI` counts cached tokens as input tokens. A response that is queued or in progress has no
/// count yet, whatever stands there.
fn responses(value: &Value) -> Option<Said> {
    let response = value.get("response").unwrap_or(value);
    if matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
        return None;
    }
    let usage = response.get("usage").or_else(|| value.get("usage"))?;
    let cached = usage.pointer("/input_tokens_details/cached_tokens");
    among(
        number(usage, "input_tokens")?,
        cached.and_then(Value::as_u64),
        number(usage, "output_tokens")?,
    )
}

/// Some servers report the total so far in every piece.
fn chat(value: &Value) -> Option<Said> {
    let usage = value.get("usage")?;
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
    let said = among(
        number(usage, "prompt_tokens")?,
        cached.and_then(Value::as_u64),
        number(usage, "completion_tokens")?,
    )?;
    let is_piece = value.pointer("/choices/0/delta").is_some();
    let finished = value.pointer("/choices/0/finish_reason");
    Some(Said {
        is_last: !is_piece || finished.is_some_and(|reason| !reason.is_null()),
        ..said
    })
}

/// Gemini reports the total so far in every piece; thoughts, and input of the provider's tools, are
/// counted separately.
fn content(value: &Value) -> Option<Said> {
    let usage = value.get("usageMetadata")?;
    let part = |name: &str| number(usage, name).unwrap_or(0);
    let read = number(usage, "promptTokenCount")?.saturating_add(part("toolUsePromptTokenCount"));
    let written = part("candidatesTokenCount").saturating_add(part("thoughtsTokenCount"));
    // Without a total, a part of the count may be missing.
    let rest = number(usage, "totalTokenCount")?.saturating_sub(read);
    let said = among(
        read,
        number(usage, "cachedContentTokenCount"),
        written.max(rest),
    )?;
    // A stream that breaks off has reported less than it wrote.
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
