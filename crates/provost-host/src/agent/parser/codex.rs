//! What `codex exec --json` prints, and the parts that the app server has in common with it.

use provost_core::agent::event::{Event, Usage, brief};
use serde_json::Value;

use super::{Breach, Line, StreamParser, number, text};

#[derive(Debug, Default)]
pub(super) struct CodexStream {
    last_message: String,
}

impl StreamParser for CodexStream {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        let events = events(line, &self.last_message);
        for event in &events {
            if let Event::Message { text } = event {
                text.clone_into(&mut self.last_message);
            }
        }
        let kind = text(line, "/type");
        let is_error = kind == "error";
        let words = text(line, "/message");
        Ok(Line {
            events,
            is_progress: kind.starts_with("item.") && text(line, "/item/type") != "error",
            complaint: complaint(words).filter(|_| is_error),
            answer: answer(&line["item"]),
        })
    }
}

/// `last` is the last message so far.
fn events(line: &Value, last: &str) -> Vec<Event> {
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

/// The message about a model that does not answer: the status, if any, and the words.
pub(super) fn complaint(words: &str) -> Option<(Option<u16>, String)> {
    if !words.starts_with("Reconnecting") && !words.contains("unexpected status ") {
        return None;
    }
    let status = words.split("unexpected status ").nth(1);
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    Some((status, brief(words)))
}

/// The whole message of an item that is one; a string if it is not JSON.
pub(super) fn answer(item: &Value) -> Option<Value> {
    if !matches!(text(item, "/type"), "agent_message" | "agentMessage") {
        return None;
    }
    let words = text(item, "/text");
    Some(serde_json::from_str::<Value>(words).unwrap_or(Value::from(words)))
}

/// The events of a completed item; the app server spells the names in another way.
pub(super) fn item(item: &Value) -> Vec<Event> {
    let tool = |name: &str, detail: &str| {
        vec![Event::Tool {
            name: brief(name),
            detail: brief(detail),
        }]
    };
    match text(item, "/type") {
        "agent_message" | "agentMessage" => vec![Event::Message {
            text: brief(text(item, "/text")),
        }],
        "command_execution" | "commandExecution" => {
            let status = item["exit_code"].as_i64().or(item["exitCode"].as_i64());
            let printed = ["/aggregated_output", "/aggregatedOutput"].map(|name| text(item, name));
            let mut events = tool("shell", text(item, "/command"));
            events.push(Event::ToolResult {
                ok: status.is_none_or(|status| status == 0) && text(item, "/status") != "declined",
                text: brief(&printed.concat()),
            });
            events
        }
        "mcp_tool_call" | "mcpToolCall" => tool(text(item, "/server"), text(item, "/tool")),
        "web_search" | "webSearch" => tool("web_search", text(item, "/query")),
        "file_change" | "fileChange" => {
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
