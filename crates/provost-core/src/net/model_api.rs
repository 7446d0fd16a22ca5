//! The APIs of model providers, and the exact methods and paths of their calls.
//!
//! # Invariants
//!
//! - A call is known by its method and its whole path. Every other request to the host of a model
//!   is [`ModelCall::Unknown`]: the same hosts have calls that mint keys, keep files or start work
//!   without an answer.
//! - A path that a server could read in two ways (percent signs, dots, empty parts, parameters) is
//!   unknown, and so is a query that names a method.

/// An API of model providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelApi {
    /// Anthropic Messages.
    Messages,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions.
    Chat,
    /// Gemini `generateContent`.
    Content,
}

/// What a request to the host of a model asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCall {
    /// It makes the model work.
    Work(ModelApi),
    /// It has the form of work, and only counts the tokens of it.
    Count(ModelApi),
    /// It lists models.
    Free,
    Unknown,
}

/// The paths before a call, in place of or after the path of a base address.
const VERSIONS: [&str; 4] = ["", "/v1", "/v1beta", "/backend-api/codex"];

/// Method and path of each call, after a version.
const CALLS: [(&str, &str, ModelCall); 7] = [
    ("POST", "/messages", ModelCall::Work(ModelApi::Messages)),
    (
        "POST",
        "/messages/count_tokens",
        ModelCall::Count(ModelApi::Messages),
    ),
    ("POST", "/responses", ModelCall::Work(ModelApi::Responses)),
    (
        "POST",
        "/responses/compact",
        ModelCall::Work(ModelApi::Responses),
    ),
    (
        "POST",
        "/responses/input_tokens",
        ModelCall::Count(ModelApi::Responses),
    ),
    ("POST", "/chat/completions", ModelCall::Work(ModelApi::Chat)),
    ("GET", "/models", ModelCall::Free),
];

/// The verbs of a Gemini model, after `/models/MODEL:`.
const VERBS: [(&str, ModelCall); 3] = [
    ("generateContent", ModelCall::Work(ModelApi::Content)),
    ("streamGenerateContent", ModelCall::Work(ModelApi::Content)),
    ("countTokens", ModelCall::Count(ModelApi::Content)),
];

impl ModelCall {
    /// The call of a request with `method` for `path`, which may have a query, at a host whose base
    /// address has the path `base`.
    pub fn at(base: &str, method: &str, path: &str) -> Self {
        let path = plain(path);
        let call = path.and_then(|path| path.strip_prefix(base));
        call.map_or(Self::Unknown, |call| Self::exact(method, call))
    }

    /// The call of a request to a host whose base address is not known: any path before the call,
    /// and slashes after it. For counting: it finds more calls than [`Self::at`].
    pub fn anywhere(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = path.trim_end_matches('/');
        let Some(path) = unambiguous(path, query) else {
            return Self::Unknown;
        };
        let starts = path.match_indices('/').map(|(start, _)| &path[start..]);
        let mut calls = starts.map(|rest| Self::exact(method, rest));
        let known = calls.find(|call| *call != Self::Unknown);
        known.unwrap_or(Self::Unknown)
    }

    fn exact(method: &str, path: &str) -> Self {
        let mut rests = VERSIONS.iter().filter_map(|it| path.strip_prefix(it));
        let call = |rest: &str| {
            let row = CALLS.iter().find(|row| (row.0, row.1) == (method, rest));
            row.map(|row| row.2).or_else(|| {
                let verb = model_and_verb(rest).filter(|_| method == "POST")?.1;
                let row = VERBS.iter().find(|row| row.0 == verb);
                row.map(|row| row.1)
            })
        };
        rests.find_map(call).unwrap_or(Self::Unknown)
    }
}

/// The model in the path of a Gemini request.
pub fn model_in(path: &str) -> Option<&str> {
    let path = plain(path)?;
    let start = path.rfind("/models/")?;
    model_and_verb(&path[start..]).map(|parts| parts.0)
}

fn model_and_verb(path: &str) -> Option<(&str, &str)> {
    let (model, verb) = path.strip_prefix("/models/")?.split_once(':')?;
    (!model.is_empty() && !model.contains('/')).then_some((model, verb))
}

/// The path without its query, if there is only one way to read it.
fn plain(path: &str) -> Option<&str> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    unambiguous(path, query)
}

fn unambiguous<'a>(path: &'a str, query: &str) -> Option<&'a str> {
    // Some servers read the method there.
    let query = query.to_ascii_lowercase().replace("%5f", "_");
    if query.contains("_method") {
        return None;
    }
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~:".contains(&byte);
    let parts = path.strip_prefix('/')?.split('/');
    let mut odd = parts.filter(|part| matches!(*part, "" | "." | ".."));
    (path.bytes().all(usual) && odd.next().is_none()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: ModelCall = ModelCall::Work(ModelApi::Messages);
    const RESPONSES: ModelCall = ModelCall::Work(ModelApi::Responses);
    const CHAT: ModelCall = ModelCall::Work(ModelApi::Chat);
    const CONTENT: ModelCall = ModelCall::Work(ModelApi::Content);

    #[test]
    fn a_call_is_known_by_its_method_and_its_whole_path() {
        use ModelCall::{Count, Free, Unknown};
        let cases = [
            ("POST", "/v1/messages", MESSAGES),
            ("POST", "/v1/messages?beta=true", MESSAGES),
            (
                "POST",
                "/v1/messages/count_tokens",
                Count(ModelApi::Messages),
            ),
            ("POST", "/v1/responses", RESPONSES),
            ("POST", "/responses", RESPONSES),
            ("POST", "/v1/responses/compact", RESPONSES),
            (
                "POST",
                "/v1/responses/input_tokens",
                Count(ModelApi::Responses),
            ),
            ("POST", "/backend-api/codex/responses", RESPONSES),
            ("POST", "/v1/chat/completions", CHAT),
            ("POST", "/v1beta/models/m-1.5:generateContent", CONTENT),
            (
                "POST",
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                CONTENT,
            ),
            (
                "POST",
                "/v1beta/models/m:countTokens",
                Count(ModelApi::Content),
            ),
            ("GET", "/v1/models", Free),
            ("GET", "/v1beta/models?pageSize=9", Free),
            ("GET", "/backend-api/codex/models", Free),
            ("GET", "/v1/messages", Unknown),
            ("PUT", "/v1/messages", Unknown),
            ("post", "/v1/messages", Unknown),
            ("POST", "/v1//messages", Unknown),
            ("POST", "/v1/./messages", Unknown),
            ("POST", "/v1/x/../messages", Unknown),
            ("POST", "/v1/messages;a", Unknown),
            ("POST", "/v1/%6dessages", Unknown),
            ("POST", "/v1/messages?_method=GET", Unknown),
            ("POST", "/v1/messages/batches", Unknown),
            ("POST", "/v1/files", Unknown),
            ("GET", "/v1/models/../files/f1", Unknown),
            ("GET", "/v1/responses/resp_1?stream=true", Unknown),
            ("OPTIONS", "/v1/models", Unknown),
            ("POST", "/v1beta/models/a/b:generateContent", Unknown),
            ("POST", "/v1beta/models/:generateContent", Unknown),
            ("POST", "/v1beta/models/m:batchGenerateContent", Unknown),
            ("POST", "/api/oauth/claude_cli/create_api_key", Unknown),
            ("POST", "", Unknown),
            ("GET", "/", Unknown),
        ];
        for (method, path, want) in cases {
            assert_eq!(ModelCall::at("", method, path), want, "{method} {path}");
            assert_eq!(ModelCall::anywhere(method, path), want, "{method} {path}");
        }
    }

    #[test]
    fn a_base_address_comes_before_the_call() {
        let call = |base: &str, path: &str| ModelCall::at(base, "POST", path);
        assert_eq!(call("/v1", "/v1/responses"), RESPONSES);
        assert_eq!(call("/team/a", "/team/a/v1/messages"), MESSAGES);
        assert_eq!(call("/team/a", "/team/b/v1/messages"), ModelCall::Unknown);
        assert_eq!(call("", "/team/a/v1/messages"), ModelCall::Unknown);
        let anywhere = ModelCall::anywhere("POST", "/team/a/v1/messages");
        assert_eq!(anywhere, MESSAGES);
        assert_eq!(call("", "/v1/messages/"), ModelCall::Unknown);
        let closed = ModelCall::anywhere("POST", "/v1/messages/?a=/");
        assert_eq!(closed, MESSAGES);
    }

    #[test]
    fn the_model_of_a_gemini_request_is_in_its_path() {
        let path = "/v1beta/models/gemini-2.5-pro:generateContent?alt=sse";
        assert_eq!(model_in(path), Some("gemini-2.5-pro"));
        assert_eq!(model_in("/v1/messages"), None);
    }
}
