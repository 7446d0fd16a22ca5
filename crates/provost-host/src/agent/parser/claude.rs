//! What Claude Code prints with `--output-format stream-json`.

use provost_core::agent::Adapted;
use provost_core::agent::event::{Event, Usage, brief};
use serde_json::Value;

use super::prompt::PromptDialogue;
use super::{AgentTask, Breach, Conversation, Line, StreamParser, number, text};

/// Usage so far, message by message; the final line has the total.
#[derive(Debug, Default)]
pub(super) struct ClaudeStream {
    before: Usage,
    message: String,
    current: Usage,
    /// The conversation about commands, if a person is asked.
    dialogue: Option<PromptDialogue>,
}

impl ClaudeStream {
    pub(super) fn begin(agent: &Adapted, task: &AgentTask<'_>) -> Self {
        Self {
            dialogue: PromptDialogue::begin(agent.shell, task.prompt),
            ..Self::default()
        }
    }
}

impl StreamParser for ClaudeStream {
    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        let dialogue = self.dialogue.as_mut()?;
        Some(dialogue)
    }

    fn read(&mut self, line: &Value) -> Result<Line, Breach> {
        if let Some(dialogue) = &mut self.dialogue {
            dialogue.hear(line);
        }
        Ok(Line {
            events: events(line, self),
            // System lines include retries.
            is_progress: matches!(text(line, "/type"), "assistant" | "user" | "stream_event"),
            complaint: complaint(line),
            answer: line.get("structured_output").cloned(),
        })
    }
}

fn events(line: &Value, stream: &mut ClaudeStream) -> Vec<Event> {
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
            events.extend(stream.add(message));
            events
        }
        "user" => {
            let blocks = line["message"]["content"].as_array();
            let blocks = blocks.map_or(&[][..], Vec::as_slice);
            blocks.iter().filter_map(tool_result).collect()
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
fn complaint(line: &Value) -> Option<(Option<u16>, String)> {
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

/// The result of a tool: text, or a list of parts of which the first text counts.
fn tool_result(block: &Value) -> Option<Event> {
    if text(block, "/type") != "tool_result" {
        return None;
    }
    let content = block["content"].as_str();
    Some(Event::ToolResult {
        ok: block["is_error"] != Value::Bool(true),
        text: brief(content.unwrap_or_else(|| text(block, "/content/0/text"))),
    })
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

impl ClaudeStream {
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
