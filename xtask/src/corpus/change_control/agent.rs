//! One agent: a server process, and the pipe to it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Result;
use crate::mcp_client::Server;

/// Time limit of an answer; other processes may be busy.
const SLOWEST: Duration = Duration::from_mins(1);

pub(super) struct Agent(Server);

impl Agent {
    /// Starts the server of the agent `name`, and initialises it as clients do.
    pub(super) fn start(
        program: &Path,
        name: &str,
        home: &Path,
        directory: &Path,
        strict: bool,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .arg("mcp")
            .current_dir(directory)
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env_remove("PROVOST_ROOT")
            .env_remove("CODECLONE_STRICT_FINISH")
            .env_remove("PROVOST_STRICT_FINISH");
        if strict {
            command.env("CODECLONE_STRICT_FINISH", "1");
        }
        Ok(Self(Server::start(&mut command, name, SLOWEST)?))
    }

    /// Calls a tool; the inner error is the tool's own error message.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Result<Value, String>> {
        let result = self.0.call(tool, arguments)?;
        if self.0.unasked > 0 {
            return Err("an answer to something else".into());
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        if result["isError"] == json!(true) {
            return Ok(Err(text.to_owned()));
        }
        let value: Value = serde_json::from_str(text)?;
        if result["structuredContent"] != value {
            return Err("text and structure differ".into());
        }
        Ok(Ok(value))
    }

    /// Kills the server as a crash would.
    pub(super) fn crash(&mut self) {
        self.0.crash();
    }
}
