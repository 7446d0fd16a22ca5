//! Parses the output of `gemini --output-format stream-json`.

use serde_json::Value;

use super::event::{Event, Usage, brief};
use super::reader::{number, spoken, text};

/// The most bytes of one message that are kept; no valid answer is longer.
const LONGEST: usize = 512 << 10;

/// The model's message. It comes in pieces; the event follows when the message is complete.
#[derive(Debug, Default)]
pub(super) struct Speech {
    now: String,
    last: String,
}

pub(super) fn events(line: &Value, speech: &mut Speech) -> Vec<Event> {
    match text(line, "/type") {
        "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "message" if text(line, "/role") == "assistant" => {
            speech.add(text(line, "/content"));
            Vec::new()
        }
        "tool_use" => speech.followed_by(tool(text(line, "/tool_name"), &line["parameters"])),
        "error" => speech.followed_by(Event::Error {
            text: brief(text(line, "/message")),
        }),
        "result" => {
            let mut events: Vec<Event> = speech.pause().into_iter().collect();
            events.push(Event::Usage(usage(&line["stats"])));
            let ok = text(line, "/status") == "success";
            let words = if ok {
                speech.last.as_str()
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

impl Speech {
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

    /// The last message as the answer; text that is not JSON becomes a string.
    pub(super) fn answer(&self) -> Value {
        spoken(&self.last)
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
