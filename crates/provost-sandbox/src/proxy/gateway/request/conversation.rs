//! Finds in the parts of a request what its top does not show: tools, media, and what a provider
//! fetches or keeps.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use provost_core::json::{self, Node};

use super::{ModelRequest, UnreadableRequest, plain};

/// Tokens that are reserved for an image beside its bytes: a large one costs about 5 000.
pub const IMAGE_TOKENS: u64 = 5_000;
/// The same for a document, a sound or a film: a hundred pages, of which each is read as text and
/// as an image, or an hour of sound.
pub const DOCUMENT_TOKENS: u64 = 120_000;

/// Types of parts that are images.
const IMAGES: [&str; 4] = ["computer_screenshot", "image", "image_url", "input_image"];
/// Types of parts that are other media.
const DOCUMENTS: [&str; 5] = [
    "document",
    "file",
    "input_audio",
    "input_file",
    "input_video",
];

/// Fields with what tools get and declare, and with schemas: data, whatever names are in it.
const DATA: [&str; 18] = [
    "args",
    "arguments",
    "input",
    "input_examples",
    "input_schema",
    "json_schema",
    "labels",
    "metadata",
    "output_schema",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "responseSchema",
    "response_format",
    "response_json_schema",
    "response_schema",
    "schema",
];

/// Names below the top of a request that decide what it offers, reaches and costs.
const NESTED: [&str; 28] = [
    "budget_tokens",
    "cache_control",
    "candidateCount",
    "candidate_count",
    "custom",
    "fileData",
    "fileUri",
    "file_data",
    "file_id",
    "file_uri",
    "file_url",
    "function",
    "functionDeclarations",
    "function_declarations",
    "image_url",
    "inlineData",
    "inline_data",
    "maxOutputTokens",
    "max_output_tokens",
    "mimeType",
    "mime_type",
    "name",
    "source",
    "tools",
    "ttl",
    "type",
    "url",
    "thinkingBudget",
];

/// The same names without what twins differ in.
static PLAIN: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| NESTED.iter().map(|name| plain(name)).collect());

/// Refuses names below the top that a server could read as others.
pub(super) fn refuse_twins(node: &Node<'_>) -> Result<(), UnreadableRequest> {
    for item in node.as_list().unwrap_or_default() {
        refuse_twins(item)?;
    }
    let Some(fields) = node.as_object() else {
        return Ok(());
    };
    for (name, value) in fields.iter() {
        let is_usual = NESTED.contains(&name) || DATA.contains(&name);
        // A name that is much longer is no twin of a short one; no API has names beyond ASCII.
        let is_twin = || !name.is_ascii() || PLAIN.contains(&plain(name));
        if !is_usual && name.len() < 64 && is_twin() {
            return Err(UnreadableRequest::Twin(name.to_owned()));
        }
        if !DATA.contains(&name) {
            refuse_twins(value)?;
        }
    }
    Ok(())
}

/// Whether any part, of a tool too, is to be cached for longer than five minutes.
pub(super) fn has_long_cache(node: &Node<'_>) -> bool {
    let Some(fields) = node.as_object() else {
        let items = node.as_list().unwrap_or_default();
        return items.iter().any(has_long_cache);
    };
    let cache = fields.get("cache_control").and_then(Node::as_object);
    let ttl = cache.and_then(|cache| cache.get("ttl")?.as_str());
    let inner = |(name, value): (&str, &Node<'_>)| !DATA.contains(&name) && has_long_cache(value);
    ttl.is_some_and(|ttl| ttl != "5m") || fields.iter().any(inner)
}

impl ModelRequest {
    /// Reads the part `node` of the request, and all parts in it.
    pub(super) fn read_part(&mut self, node: &Node<'_>) -> Result<(), UnreadableRequest> {
        for item in node.as_list().unwrap_or_default() {
            self.read_part(item)?;
        }
        let Some(fields) = node.as_object() else {
            return Ok(());
        };
        let word = |name: &str| fields.get(name).and_then(Node::as_str);
        let kind = word("type");
        let has = |names: &[&str]| names.iter().any(|name| fields.get(name).is_some());
        if let Some(tools) = fields
            .get("tools")
            .filter(|tools| tools.as_list().is_some())
        {
            if kind == Some("mcp_list_tools") {
                self.reach("mcp", true);
            } else {
                self.offer("", json::from_node(tools)?)?;
            }
        }
        self.reach("previous_response_id", kind == Some("item_reference"));
        let kept = ["file_id", "fileUri", "file_uri"];
        let kept = kept.iter().any(|name| word(name).is_some());
        self.reach("file_id", kept);
        self.reach("url", is_fetched(node));
        let mime = word("mimeType").or(word("mime_type"));
        let is = |kinds: &[&str]| kind.is_some_and(|kind| kinds.contains(&kind));
        if is(&IMAGES) || has(&["image_url"]) || mime.is_some_and(|it| it.starts_with("image/")) {
            self.media_tokens = self.media_tokens.saturating_add(IMAGE_TOKENS);
        } else if is(&DOCUMENTS) && !is_text(node)
            || mime.is_some_and(|it| !it.starts_with("text/"))
        {
            self.media_tokens = self.media_tokens.saturating_add(DOCUMENT_TOKENS);
        }
        for (name, value) in fields.iter() {
            if !DATA.contains(&name) && name != "tools" {
                self.read_part(value)?;
            }
        }
        Ok(())
    }
}

/// Whether the provider gets what this part names by a URL.
fn is_fetched(node: &Node<'_>) -> bool {
    let Some(fields) = node.as_object() else {
        return false;
    };
    let word = |name: &str| fields.get(name).and_then(Node::as_str);
    let elsewhere = |url: &str| {
        let start = url.trim_start().get(..5);
        !start.is_some_and(|start| start.eq_ignore_ascii_case("data:"))
    };
    let image = fields.get("image_url").and_then(|image| {
        let inner = image.as_object().and_then(|image| image.get("url"));
        inner.unwrap_or(image).as_str()
    });
    let source = word("type") == Some("url") && fields.get("url").is_some();
    source || word("file_url").is_some() || image.is_some_and(elsewhere)
}

/// Whether a document holds its text as it is, so that its bytes say what it costs.
fn is_text(node: &Node<'_>) -> bool {
    let source = node.as_object().and_then(|fields| fields.get("source"));
    let kind = source.and_then(Node::as_object);
    let kind = kind.and_then(|source| source.get("type")?.as_str());
    matches!(kind, Some("text" | "content"))
}
