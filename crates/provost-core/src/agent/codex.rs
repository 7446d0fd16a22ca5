//! Parses the output of `codex exec --json`.

use serde_json::Value;

use super::event::{Event, Usage, brief};
use super::reader::{number, text};

/// `last` is the last message so far.
pub(super) fn events(line: &Value, last: &str) -> Vec<Event> {
    match text(line, "/type") {
        "thread.started" => vec![Event::Session {
            thread: brief(text(line, "/thread_id")),
        }],
        "item.completed" => item(&line["item"]),
        "turn.completed" => {
            let ok = Event::Final {
                ok: true,
                text: last.to_owned(),
            };
            vec![Event::Usage(usage(&line["usage"])), ok]
        }
        "turn.failed" => vec![Event::Final {
            ok: false,
            text: brief(text(line, "/error/message")),
        }],
        "error" => vec![Event::Error {
            text: brief(text(line, "/message")),
        }],
        _ => Vec::new(),
    }
}

/// The error of a line about a model that does not answer: the status, if any, and the message.
pub(super) fn complaint(line: &Value) -> Option<(Option<u16>, String)> {
    let words = text(line, "/message");
    let about = words.starts_with("Reconnecting") || words.contains("unexpected status ");
    if text(line, "/type") != "error" || !about {
        return None;
    }
    let status = words.split("unexpected status ").nth(1);
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    Some((status, brief(words)))
}

fn item(item: &Value) -> Vec<Event> {
    let tool = |name: &str, detail: &str| {
        vec![Event::Tool {
            name: brief(name),
            detail: brief(detail),
        }]
    };
    match text(item, "/type") {
        "agent_message" => vec![Event::Message {
            text: brief(text(item, "/text")),
        }],
        "command_execution" => tool("shell", text(item, "/command")),
        "mcp_tool_call" => tool(text(item, "/server"), text(item, "/tool")),
        "web_search" => tool("web_search", text(item, "/query")),
        "file_change" => {
            let changes = item["changes"].as_array().map_or(&[][..], Vec::as_slice);
            let path = |change: &Value| Event::FileChange {
                path: brief(text(change, "/path")),
            };
            changes.iter().map(path).collect()
        }
        "error" => vec![Event::Error {
            text: brief(text(item, "/message")),
        }],
        _ => Vec::new(),
    }
}

/// Codex counts cached tokens as input tokens, and reports no price.
fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: number(usage, "/input_tokens"),
        cached_tokens: number(usage, "/cached_input_tokens"),
        output_tokens: number(usage, "/output_tokens"),
        micro_usd: 0,
    }
}
