//! What Gemini CLI prints with `--output-format stream-json`.

use provost_core::agent::event::{Event, Usage, brief};
use serde_json::Value;

use super::{Breach, Line, StreamParser, number, spoken, text};

/// The most bytes of one message that are kept; no valid answer is longer.
const LONGEST: usize = 512 << 10;

/// The model's message. It comes in pieces; the event follows when the message is complete.
#[derive(Debug, Default)]
pub(super) struct GeminiStream {
    now: String,
    last: String,
}

impl StreamParser for GeminiStream {
    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        let kind = text(line, "/type");
        Ok(Line {
            events: events(line, self),
            is_progress: kind == "tool_result" || text(line, "/role") == "assistant",
            complaint: None,
            answer: (kind == "result").then(|| spoken(&self.last)),
        })
    }
}

fn events(line: &Value, stream: &mut GeminiStream) -> Vec<Event> {
    match text(line, "/type") {
        "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "message" if text(line, "/role") == "assistant" => {
            stream.add(text(line, "/content"));
            Vec::new()
        }
        "tool_use" => stream.followed_by(tool(text(line, "/tool_name"), &line["parameters"])),
        "tool_result" => vec![Event::ToolResult {
            ok: text(line, "/status") == "success",
            text: brief(text(line, "/output")),
        }],
        "error" => stream.followed_by(Event::Error {
            text: brief(text(line, "/message")),
        }),
        "result" => {
            let mut events: Vec<Event> = stream.pause().into_iter().collect();
            events.push(Event::Usage(usage(&line["stats"])));
            let ok = text(line, "/status") == "success";
            let words = if ok {
                stream.last.as_str()
            } else {
                text(line, "/error/message")
            };
            let text = brief(words);
            events.push(Event::Final { ok, text });
            events
        }
        _ => Vec::new(),
    }
}

fn tool(name: &str, input: &Value) -> Event {
    match name {
        "write_file" | "replace" => Event::FileChange {
            path: brief(text(input, "/file_path")),
        },
        "run_shell_command" => Event::Tool {
            name: "shell".to_owned(),
            detail: brief(text(input, "/command")),
        },
        _ => Event::Tool {
            name: brief(name),
            detail: brief(&input.to_string()),
        },
    }
}

impl GeminiStream {
    fn add(&mut self, piece: &str) {
        if self.now.len() + piece.len() <= LONGEST {
            self.now.push_str(piece);
        }
    }

    /// Ends the current message; `None` if there was none.
    fn pause(&mut self) -> Option<Event> {
        if self.now.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.now);
        Some(Event::Message {
            text: brief(&self.last),
        })
    }

    fn followed_by(&mut self, event: Event) -> Vec<Event> {
        self.pause().into_iter().chain([event]).collect()
    }
}

/// Gemini counts cached tokens as input tokens, thoughts only in the total, and reports no price.
fn usage(stats: &Value) -> Usage {
    let read = number(stats, "/input_tokens");
    let thought = number(stats, "/total_tokens").saturating_sub(read);
    Usage {
        input_tokens: read,
        cached_tokens: number(stats, "/cached"),
        output_tokens: number(stats, "/output_tokens").max(thought),
        micro_usd: 0,
    }
}
