//! One agent: a server process, and the pipe to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Time limit of an answer; other processes may be busy.
const SLOWEST: Duration = Duration::from_mins(1);

pub(super) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Agent {
    /// Starts the server of the agent `name`, and initialises it as clients do.
    pub(super) fn start(
        program: &Path,
        name: &str,
        home: &Path,
        directory: &Path,
        strict: bool,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no server: {error}");
        let mut command = Command::new(program);
        command
            .arg("mcp")
            .current_dir(directory)
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env_remove("PROVOST_ROOT")
            .env_remove("CODECLONE_STRICT_FINISH")
            .env_remove("PROVOST_STRICT_FINISH")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if strict {
            command.env("CODECLONE_STRICT_FINISH", "1");
        }
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no pipe")?;
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut agent = Self {
            child,
            input,
            lines,
            next: 0,
        };
        let client = json!({ "name": name, "version": "1" });
        let greeting = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client,
        });
        agent.ask("initialize", &greeting)?;
        agent.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(agent)
    }

    fn tell(&mut self, message: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the server is gone")?;
        writeln!(input, "{message}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("the server does not listen: {error}"))
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        let line = self
            .lines
            .recv_timeout(SLOWEST)
            .map_err(|_| format!("`{method}` was not answered"))?;
        let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if answer["id"] != json!(id) {
            return Err(format!("an answer to something else: {line}"));
        }
        match answer.get("error") {
            Some(error) => Err(format!("`{method}` was refused: {error}")),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Calls a tool; the inner error is the tool's own error message.
    pub(super) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
    ) -> Result<Result<Value, String>, String> {
        let result = self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )?;
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if result["isError"] == json!(true) {
            return Ok(Err(text));
        }
        let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if result["structuredContent"] != value {
            return Err("text and structure differ".to_owned());
        }
        Ok(Ok(value))
    }

    /// Kills the server as a crash would.
    pub(super) fn crash(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.input = None;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.crash();
    }
}
