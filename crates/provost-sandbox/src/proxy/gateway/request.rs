//! Reads the requests of four APIs of model providers: what they ask for, offer and reach.
//!
//! Unknown fields pass. A known field of another type, a field whose name differs from a known one
//! only in case or underscores, or a name with other than ASCII characters, makes the request
//! unreadable: a server could read it otherwise.

mod conversation;

use std::collections::{BTreeMap, BTreeSet};

use provost_core::json::{self, ReadError};
use provost_core::net::model_api::{ModelApi, model_in};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub use conversation::{DOCUMENT_TOKENS, IMAGE_TOKENS};

/// What a request asks of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    pub api: ModelApi,
    pub model: String,
    /// The most tokens that an answer may have, if the request says it.
    pub output_limit: Option<u64>,
    /// How many answers it asks for.
    pub answers: u64,
    /// The tokens that it wants for thoughts.
    pub thinking: u64,
    pub streamed: bool,
    /// The names of all tools that it offers; those in groups as `group.name`.
    pub tools: Vec<String>,
    /// What reaches outside of the conversation: fields, and tools that the provider runs.
    pub outward: BTreeSet<String>,
    /// Tokens that are reserved for images and documents, whose bytes do not say what they cost.
    pub media_tokens: u64,
    /// Whether it asks for a cache that lasts longer than usual, which costs more.
    pub long_cache: bool,
    /// The field with which it asks for a service that has other prices.
    pub other_price: Option<String>,
}

/// Why a request cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRequest {
    #[error("the request to the model cannot be read: {0}")]
    Document(#[from] ReadError),
    #[error("the request to the model is no object")]
    NoObject,
    #[error("the field `{0}` of the request to the model can be read in two ways")]
    Twin(String),
    #[error("the request names no model")]
    NoModel,
    #[error("the name of the model has control characters or more than 256 bytes")]
    ModelName,
    #[error("the query `{0}` may take the count of tokens out of the reply")]
    Query(String),
    #[error("the request offers a tool without a name")]
    NamelessTool,
    #[error("the request offers a tool with two names")]
    TwoNames,
    #[error("the request has two output limits")]
    TwoLimits,
}

/// The longest name of a model, in bytes: it is written into the book of what was spent.
const LONGEST_MODEL: usize = 256;

/// Types of tools that a program runs itself; every other type is run by the provider.
const OWN_TYPES: [&str; 8] = [
    "bash",
    "custom",
    "function",
    "local_shell",
    "memory",
    "namespace",
    "shell",
    "text_editor",
];

#[derive(Debug, Deserialize)]
struct MessagesBody {
    model: String,
    max_tokens: Option<u64>,
    stream: Option<bool>,
    thinking: Option<RawThinking>,
    tools: Option<Vec<RawTool>>,
    mcp_servers: Option<Vec<IgnoredAny>>,
    container: Option<IgnoredAny>,
    batch: Option<IgnoredAny>,
    service_tier: Option<String>,
    speed: Option<String>,
    inference_geo: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RawThinking {
    budget_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ResponsesBody {
    model: String,
    max_output_tokens: Option<u64>,
    stream: Option<bool>,
    tools: Option<Vec<RawTool>>,
    background: Option<bool>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
    container: Option<IgnoredAny>,
    service_tier: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ChatBody {
    model: String,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u64>,
    stream: Option<bool>,
    tools: Option<Vec<RawTool>>,
    functions: Option<Vec<NamedTool>>,
    web_search_options: Option<IgnoredAny>,
    service_tier: Option<String>,
    audio: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct ContentBody {
    #[serde(alias = "generation_config", rename = "generationConfig")]
    config: Option<RawConfig>,
    tools: Option<Vec<ContentTool>>,
    #[serde(alias = "cached_content", rename = "cachedContent")]
    cached: Option<IgnoredAny>,
    #[serde(alias = "service_tier", rename = "serviceTier")]
    service_tier: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct RawConfig {
    #[serde(alias = "max_output_tokens", rename = "maxOutputTokens")]
    most: Option<u64>,
    #[serde(alias = "candidate_count", rename = "candidateCount")]
    candidates: Option<u64>,
    #[serde(alias = "thinking_config", rename = "thinkingConfig")]
    thinking: Option<ContentThinking>,
}

#[derive(Debug, Deserialize)]
struct ContentThinking {
    /// Negative if the model decides.
    #[serde(alias = "thinking_budget", rename = "thinkingBudget")]
    budget: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct ContentTool {
    #[serde(alias = "function_declarations", rename = "functionDeclarations")]
    declared: Option<Vec<NamedTool>>,
    /// Each field is a tool that the provider runs.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct NamedTool {
    name: String,
}

#[derive(Debug, Deserialize)]
struct RawTool {
    name: Option<String>,
    r#type: Option<String>,
    function: Option<NamedTool>,
    custom: Option<NamedTool>,
    tools: Option<Vec<Self>>,
}

/// Reads the request with this `body`, sent to `path`.
pub fn read(api: ModelApi, path: &str, body: &[u8]) -> Result<ModelRequest, UnreadableRequest> {
    let document = json::read(body)?;
    let fields = document.as_object().ok_or(UnreadableRequest::NoObject)?;
    let spelled = spellings(api);
    let plain_names: Vec<String> = spelled.iter().map(|name| plain(name)).collect();
    for (name, _) in fields.iter() {
        let has_twin = || !name.is_ascii() || plain_names.contains(&plain(name));
        if !spelled.contains(&name) && has_twin() {
            return Err(UnreadableRequest::Twin(name.chars().take(64).collect()));
        }
    }
    let mut request = match api {
        ModelApi::Messages => messages(json::from_node(&document)?)?,
        ModelApi::Responses => responses(json::from_node(&document)?)?,
        ModelApi::Chat => chat(json::from_node(&document)?)?,
        ModelApi::Content => {
            let query = path.split_once('?').map_or("", |(_, query)| query);
            if !matches!(query, "" | "alt=sse" | "alt=json") {
                return Err(UnreadableRequest::Query(query.chars().take(64).collect()));
            }
            let model = model_in(path).ok_or(UnreadableRequest::NoModel)?;
            content(model, json::from_node(&document)?)
        }
    };
    for (name, node) in fields.iter() {
        if AT_THE_TOP.contains(&name) {
            continue;
        }
        conversation::refuse_twins(node)?;
        request.long_cache |= conversation::has_long_cache(node);
        if !matches!(name, "tools" | "functions") {
            request.read_part(node)?;
        }
    }
    if request.model.is_empty() {
        return Err(UnreadableRequest::NoModel);
    }
    if request.model.len() > LONGEST_MODEL || request.model.contains(char::is_control) {
        return Err(UnreadableRequest::ModelName);
    }
    Ok(request)
}

/// Fields at the top that hold schemas and notes of the client.
const AT_THE_TOP: [&str; 4] = [
    "metadata",
    "output_config",
    "output_format",
    "response_format",
];

/// Tiers of service at the prices of the table, or below them.
const USUAL_TIERS: [&str; 5] = ["auto", "default", "flex", "standard", "standard_only"];

/// The names that an API has at the top of a request, as it spells them.
fn spellings(api: ModelApi) -> Vec<&'static str> {
    let own: &[&str] = match api {
        ModelApi::Messages => &[
            "max_tokens",
            "thinking",
            "mcp_servers",
            "container",
            "batch",
            "service_tier",
            "speed",
            "inference_geo",
        ],
        ModelApi::Responses => &[
            "max_output_tokens",
            "background",
            "previous_response_id",
            "conversation",
            "prompt",
            "container",
            "input",
            "service_tier",
        ],
        ModelApi::Chat => &[
            "max_tokens",
            "max_completion_tokens",
            "n",
            "functions",
            "web_search_options",
            "service_tier",
            "audio",
        ],
        ModelApi::Content => &[
            "generationConfig",
            "generation_config",
            "cachedContent",
            "cached_content",
            "contents",
            "serviceTier",
            "service_tier",
        ],
    };
    [&["model", "stream", "tools", "messages", "system"], own].concat()
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| *letter != '_');
    // Both, because some servers take `ſ` for `s`.
    let upper = letters.flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
}

impl ModelRequest {
    fn new(api: ModelApi, model: String, streamed: Option<bool>) -> Self {
        Self {
            api,
            model,
            output_limit: None,
            answers: 1,
            thinking: 0,
            streamed: streamed.unwrap_or(false),
            tools: Vec::new(),
            outward: BTreeSet::new(),
            media_tokens: 0,
            long_cache: false,
            other_price: None,
        }
    }

    /// Notes a tier of service that is not among the usual ones.
    fn serve_at(&mut self, tier: Option<String>) {
        let other = tier.filter(|tier| !USUAL_TIERS.contains(&tier.as_str()));
        let other = other.map(|tier| format!("service_tier = {tier}"));
        self.other_price = self.other_price.take().or(other);
    }

    fn reach(&mut self, name: &str, reaches: bool) {
        if reaches {
            self.outward.insert(name.to_owned());
        }
    }

    /// Adds `tools`, whose names come after `group`.
    fn offer(&mut self, group: &str, tools: Vec<RawTool>) -> Result<(), UnreadableRequest> {
        for tool in tools {
            let kind = tool.r#type.as_deref().map(undated);
            let foreign = kind.filter(|kind| !OWN_TYPES.contains(kind));
            let inner = [tool.function, tool.custom].into_iter().flatten();
            let mut names = tool.name.into_iter().chain(inner.map(|inner| inner.name));
            let name = names.next();
            if names.any(|other| name.as_ref() != Some(&other)) {
                return Err(UnreadableRequest::TwoNames);
            }
            if let Some(kind) = foreign {
                self.reach(kind, true);
            }
            let name = name.or_else(|| foreign.map(str::to_owned));
            let name = name.ok_or(UnreadableRequest::NamelessTool)?;
            let name = format!("{group}{name}");
            let is_group = kind == Some("namespace") && tool.tools.is_some();
            self.offer(&format!("{name}."), tool.tools.unwrap_or_default())?;
            if !is_group {
                self.tools.push(name);
            }
        }
        Ok(())
    }
}

/// The type of a tool without the date of its version.
fn undated(kind: &str) -> &str {
    let (front, back) = kind.rsplit_once('_').unwrap_or((kind, ""));
    let dated = back.len() == 8 && back.bytes().all(|byte| byte.is_ascii_digit());
    let kind = if dated { front } else { kind };
    kind.strip_suffix("_preview").unwrap_or(kind)
}

fn messages(body: MessagesBody) -> Result<ModelRequest, UnreadableRequest> {
    let mut request = ModelRequest::new(ModelApi::Messages, body.model, body.stream);
    request.output_limit = body.max_tokens;
    request.thinking = body.thinking.and_then(|it| it.budget_tokens).unwrap_or(0);
    let servers = body.mcp_servers.is_some_and(|servers| !servers.is_empty());
    request.reach("mcp_servers", servers);
    request.reach("container", body.container.is_some());
    request.reach("batch", body.batch.is_some());
    request.serve_at(body.service_tier);
    let speed = body.speed.filter(|speed| speed != "standard");
    let place = body.inference_geo.filter(|place| place != "global");
    let other = speed.map(|speed| format!("speed = {speed}"));
    let other = other.or(place.map(|place| format!("inference_geo = {place}")));
    request.other_price = request.other_price.take().or(other);
    request.offer("", body.tools.unwrap_or_default())?;
    Ok(request)
}

fn responses(body: ResponsesBody) -> Result<ModelRequest, UnreadableRequest> {
    let mut request = ModelRequest::new(ModelApi::Responses, body.model, body.stream);
    request.output_limit = body.max_output_tokens;
    request.reach("background", body.background == Some(true));
    request.reach("previous_response_id", body.previous_response_id.is_some());
    request.reach("conversation", body.conversation.is_some());
    request.reach("prompt", body.prompt.is_some());
    request.serve_at(body.service_tier);
    request.reach("container", body.container.is_some());
    request.offer("", body.tools.unwrap_or_default())?;
    Ok(request)
}

fn chat(body: ChatBody) -> Result<ModelRequest, UnreadableRequest> {
    let mut request = ModelRequest::new(ModelApi::Chat, body.model, body.stream);
    if body.max_tokens.is_some() && body.max_completion_tokens.is_some() {
        return Err(UnreadableRequest::TwoLimits);
    }
    request.output_limit = body.max_completion_tokens.or(body.max_tokens);
    request.answers = body.n.unwrap_or(1).max(1);
    request.reach("web_search", body.web_search_options.is_some());
    request.serve_at(body.service_tier);
    let sound = body.audio.map(|_| "audio".to_owned());
    request.other_price = request.other_price.take().or(sound);
    request.offer("", body.tools.unwrap_or_default())?;
    let functions = body.functions.unwrap_or_default();
    request
        .tools
        .extend(functions.into_iter().map(|it| it.name));
    Ok(request)
}

fn content(model: &str, body: ContentBody) -> ModelRequest {
    let mut request = ModelRequest::new(ModelApi::Content, model.to_owned(), None);
    let config = body.config.unwrap_or_default();
    request.output_limit = config.most;
    request.answers = config.candidates.unwrap_or(1).max(1);
    let thinking = config.thinking.and_then(|thinking| thinking.budget);
    request.thinking = thinking.map_or(0, |budget| u64::try_from(budget).unwrap_or(0));
    request.reach("cached_content", body.cached.is_some());
    request.serve_at(body.service_tier);
    for tool in body.tools.unwrap_or_default() {
        let declared = tool.declared.unwrap_or_default();
        request.tools.extend(declared.into_iter().map(|it| it.name));
        for name in tool.others.into_keys() {
            request.reach(&name, true);
            request.tools.push(name);
        }
    }
    request
}

#[cfg(test)]
mod tests;
