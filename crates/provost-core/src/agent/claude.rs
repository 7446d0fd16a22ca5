//! Parses the output of `claude --print --output-format stream-json`.

use serde_json::Value;

use super::event::{Event, Usage, brief};
use super::reader::{number, text};

/// Usage so far, message by message; the final line has the total.
#[derive(Debug, Default)]
pub(super) struct Tally {
    before: Usage,
    message: String,
    current: Usage,
}

pub(super) fn events(line: &Value, tally: &mut Tally) -> Vec<Event> {
    match text(line, "/type") {
        "system" if text(line, "/subtype") == "init" => vec![Event::Session {
            thread: brief(text(line, "/session_id")),
        }],
        "system" => {
            let error = complaint(line).map(|(_, text)| Event::Error { text });
            error.into_iter().collect()
        }
        "assistant" => {
            let message = &line["message"];
            let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
            let mut events: Vec<Event> = blocks.iter().filter_map(block).collect();
            events.extend(tally.add(message));
            events
        }
        "result" => {
            let ok = line["is_error"] == Value::Bool(false) && text(line, "/subtype") == "success";
            let words = match text(line, "/result") {
                "" => text(line, "/subtype"),
                words => words,
            };
            let spent = Usage {
                micro_usd: micro(&line["total_cost_usd"]),
                ..usage(&line["usage"])
            };
            let text = brief(words);
            vec![Event::Usage(spent), Event::Final { ok, text }]
        }
        _ => Vec::new(),
    }
}

/// The error of a line about a model that does not answer: the status, if any, and the message.
pub(super) fn complaint(line: &Value) -> Option<(Option<u16>, String)> {
    if text(line, "/subtype") != "api_retry" {
        return None;
    }
    let status = line["error_status"].as_u64();
    let status = status.and_then(|status| u16::try_from(status).ok());
    let answer = match status {
        Some(status) => format!("the model answered {status}"),
        None => "the model does not answer".to_owned(),
    };
    let (now, most) = (number(line, "/attempt"), number(line, "/max_retries"));
    Some((
        status,
        format!("{answer}; it is asked again, {now} of {most} times"),
    ))
}

fn block(block: &Value) -> Option<Event> {
    match text(block, "/type") {
        "text" => Some(Event::Message {
            text: brief(text(block, "/text")),
        }),
        "tool_use" => Some(tool(text(block, "/name"), &block["input"])),
        _ => None,
    }
}

fn tool(name: &str, input: &Value) -> Event {
    match name {
        "Edit" | "Write" => Event::FileChange {
            path: brief(text(input, "/file_path")),
        },
        "NotebookEdit" => Event::FileChange {
            path: brief(text(input, "/notebook_path")),
        },
        "Bash" => Event::Tool {
            name: "shell".to_owned(),
            detail: brief(text(input, "/command")),
        },
        _ => Event::Tool {
            name: brief(name),
            detail: brief(&input.to_string()),
        },
    }
}

impl Tally {
    /// A message is printed in parts, each with the usage of the whole message so far.
    fn add(&mut self, message: &Value) -> Option<Event> {
        let spent = usage(message.get("usage")?);
        let name = text(message, "/id");
        if name != self.message {
            self.before = self.before.plus(self.current);
            name.clone_into(&mut self.message);
        }
        self.current = spent;
        Some(Event::Usage(self.before.plus(self.current)))
    }
}

/// Claude counts tokens read from or written to a cache separately from input tokens.
fn usage(usage: &Value) -> Usage {
    let cached = number(usage, "/cache_read_input_tokens");
    let parts = [
        number(usage, "/input_tokens"),
        number(usage, "/cache_creation_input_tokens"),
        cached,
    ];
    Usage {
        input_tokens: parts.into_iter().fold(0, u64::saturating_add),
        cached_tokens: cached,
        output_tokens: number(usage, "/output_tokens"),
        micro_usd: 0,
    }
}

/// Dollars as millionths, rounded up.
fn micro(dollars: &Value) -> u64 {
    let amount = (dollars.as_f64().unwrap_or(0.0) * 1e6).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of what is beyond the ends gives the ends"
    )]
    let micro = amount as u64;
    micro
}
