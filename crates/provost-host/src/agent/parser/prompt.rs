//! The permission prompts of Claude Code, as messages on its standard streams.
//!
//! Seen with Claude Code 2.1.325: `can_use_tool` on standard output asks, and a `control_response`
//! on standard input answers. Standard input stays open until the result has come.

use std::collections::BTreeMap;

use provost_core::contract::document::Shell;
use serde_json::{Value, json};

use super::{Conversation, text};

/// The tool whose use a person is asked about; the sandbox decides about all others.
const SHELL: &str = "Bash";

/// The conversation with a program that asks.
#[derive(Debug)]
pub(super) struct PromptDialogue {
    out: Vec<u8>,
    /// Questions without an answer, by their ids: the input of the tool.
    open: BTreeMap<String, Value>,
    over: bool,
}

impl PromptDialogue {
    /// Begins with the task; `None` if the program gets it as plain text and asks nothing.
    pub(super) fn begin(shell: Shell, task: &str) -> Option<Self> {
        if !shell.asks() {
            return None;
        }
        let mut dialogue = Self {
            out: Vec::new(),
            open: BTreeMap::new(),
            over: false,
        };
        let message = json!({ "role": "user", "content": task });
        dialogue.send(&json!({ "type": "user", "message": message }));
        Some(dialogue)
    }

    fn send(&mut self, message: &Value) {
        self.out.extend(message.to_string().into_bytes());
        self.out.push(b'\n');
    }

    pub(super) fn hear(&mut self, line: &Value) {
        match text(line, "/type") {
            "result" => self.over = true,
            "control_request" => {
                let (id, request) = (text(line, "/request_id"), &line["request"]);
                match (text(request, "/subtype"), text(request, "/tool_name")) {
                    ("can_use_tool", SHELL) => {
                        self.open.insert(id.to_owned(), request["input"].clone());
                    }
                    ("can_use_tool", _) => self.permit(id, &request["input"]),
                    _ => {
                        let response = json!({ "subtype": "error", "request_id": id,
                                               "error": "not offered" });
                        self.send(&json!({ "type": "control_response", "response": response }));
                    }
                }
            }
            _ => {}
        }
    }

    fn permit(&mut self, id: &str, input: &Value) {
        self.decide(id, &json!({ "behavior": "allow", "updatedInput": input }));
    }

    fn decide(&mut self, id: &str, decision: &Value) {
        let response = json!({ "subtype": "success", "request_id": id, "response": decision });
        self.send(&json!({ "type": "control_response", "response": response }));
    }
}

impl Conversation for PromptDialogue {
    fn take_words(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn close(&mut self) {
        self.over = true;
        self.out.clear();
    }

    fn asked_commands(&self) -> Vec<(String, String)> {
        let open = self.open.iter();
        open.map(|(id, input)| (id.clone(), text(input, "/command").to_owned()))
            .collect()
    }

    fn answer_command(&mut self, id: &str, permitted: Result<(), &str>) {
        let Some(input) = self.open.remove(id) else {
            return;
        };
        match permitted {
            Ok(()) => self.permit(id, &input),
            Err(reason) => {
                let message = format!("the command was not permitted: {reason}");
                self.decide(id, &json!({ "behavior": "deny", "message": message }));
            }
        }
    }
}
