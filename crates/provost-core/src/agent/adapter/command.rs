//! Any command; it gets the contract on its standard input, and its output is not read.

use super::{AgentAdapter, Start, StreamForm};
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

    fn prints(&self, _: &Adapted) -> StreamForm {
        StreamForm::Any
    }
}
