//! Any command; it gets the contract on its standard input, and its output is not read.

use serde_json::Value;

use super::{AgentAdapter, Breach, Line, Start, StreamParser};
use crate::agent::Adapted;

#[derive(Debug)]
pub(super) struct Command;

impl AgentAdapter for Command {
    fn name(&self) -> &'static str {
        "exec"
    }

    fn start(&self) -> Start {
        Start::Command
    }

    fn binds_answer(&self) -> bool {
        // It gets no instruction that could ask for a schema.
        true
    }

    fn parser(&self, _: &Adapted, _: &str, _: Option<&str>) -> Box<dyn StreamParser> {
        Box::new(Self)
    }
}

impl StreamParser for Command {
    fn read(&mut self, _: &Value) -> Result<Line, Breach> {
        Ok(Line::default())
    }
}
