//! A client of MCP servers on a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;

/// A server that was started and initialised; it ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    patience: Duration,
    asked: u64,
    /// How many messages came that answer nothing.
    pub(crate) unasked: usize,
}

impl Server {
    /// Starts `command` for the client `name`; an answer takes up to `patience`.
    pub(crate) fn start(command: &mut Command, name: &str, patience: Duration) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("a server without a pipe".into());
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output)
                .lines()
                .map_while(std::io::Result::ok);
            // Nothing is read once the client is gone.
            for line in lines {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            input,
            lines,
            patience,
            asked: 0,
            unasked: 0,
        };
        let greeting = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": name, "version": "1" },
        });
        server.ask("initialize", &greeting)?;
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn say(&mut self, message: &Value) -> Result {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        loop {
            let line = self.lines.recv_timeout(self.patience);
            let line = line.map_err(|_| format!("`{method}` was not answered"))?;
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] != json!(id) {
                self.unasked += 1;
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(format!("`{method}` was refused: {error}").into()),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    /// The answer of a tool, as the protocol wraps it.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let parameters = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", &parameters)
    }

    /// Kills the server as a crash would.
    pub(crate) fn crash(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}
