//! MCP client that measures how long the answers of a server take.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::BenchError;
use super::sample::micros;

/// How long a server may live, in seconds, so that one that hangs ends.
const PATIENCE: &str = "600";

/// A server that was started and initialised.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    /// Starts `command` and initialises it.
    pub(super) fn start(command: &Command) -> Result<Self, BenchError> {
        let mut limited = Command::new("timeout");
        limited.arg(PATIENCE).arg(command.get_program());
        limited.args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                limited.env(name, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            limited.current_dir(directory);
        }
        let mut child = limited
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(BenchError("a server without a pipe".to_owned()));
        };
        let mut server = Self {
            child,
            input,
            output: BufReader::new(output),
            asked: 0,
        };
        let greeting = json!({
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        server.ask("initialize", &greeting)?;
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, BenchError> {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(BenchError(format!("{method}: the server went away")));
            }
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer["id"] == json!(id) {
                return Ok(answer["result"].clone());
            }
        }
    }

    /// The answer of a tool, and how long it took.
    pub(super) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
    ) -> Result<(Value, f64), BenchError> {
        let begin = Instant::now();
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.ask("tools/call", &params)?;
        let elapsed = micros(begin.elapsed());
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let said = serde_json::from_str(text).unwrap_or_default();
        Ok((said, elapsed))
    }

    fn say(&mut self, message: &Value) -> Result<(), BenchError> {
        writeln!(self.input, "{message}")?;
        self.input.flush()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
