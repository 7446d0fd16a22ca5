//! Understands what `gemini --output-format stream-json` prints.

use serde_json::Value;

use super::event::{Event, Usage, brief};
use super::reader::{number, spoken, text};

/// The most of one message that is kept; a longer one is no answer that anybody asked for.
const LONGEST: usize = 512 << 10;

/// What the model says. It comes in pieces, and is told when something else follows.
#[derive(Debug, Default)]
pub(super) struct Speech {
    now: String,
    last: String,
}

/// What one line tells.
pub(super) fn events(line: &Value, speech: &mut Speech) -> Vec<Event> {
    match text(line, "/type") {
        "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "message" if text(line, "/role") == "assistant" => {
            speech.add(text(line, "/content"));
            Vec::new()
        }
        "tool_use" => speech.told(tool(text(line, "/tool_name"), &line["parameters"])),
        "error" => speech.told(Event::Error {
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

    /// The message that has ended, if there was one.
    fn pause(&mut self) -> Option<Event> {
        if self.now.is_empty() {
            return None;
        }
        self.last = std::mem::take(&mut self.now);
        Some(Event::Message {
            text: brief(&self.last),
        })
    }

    fn told(&mut self, event: Event) -> Vec<Event> {
        self.pause().into_iter().chain([event]).collect()
    }

    /// The last message as the answer that was asked for: what is no JSON stays a text.
    pub(super) fn answer(&self) -> Value {
        spoken(&self.last)
    }
}

/// Gemini counts cached tokens among those it read, thoughts only in the sum, and tells no price.
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
