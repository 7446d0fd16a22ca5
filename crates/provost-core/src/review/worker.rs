//! What a reviewer gets about the worker: its result, how it ended, and the output of commands.
//!
//! The acceptance commands run after the review. So their output is that on the base, of an earlier
//! attempt, or on the candidate when a merge is reviewed. All of it is data.

use serde_json::{Value, json};

use crate::run::State;
use crate::run::fact::{CommandRun, ResultFile, Side, TestRun};
use crate::run::judge::render_ending;

/// The largest part of one log that a reviewer gets, in bytes, counted from its end.
pub const LOG: usize = 32 << 10;

/// The largest number of logs that a reviewer gets.
const MOST: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// As one document.
    pub facts: Value,
    /// The logs, by their path in the bundle; the end of each is shown.
    pub logs: Vec<String>,
}

impl Worker {
    /// What is known at this point of the run.
    pub fn of(state: &State) -> Self {
        let agent = state.agent.as_ref();
        let result = agent.map(|agent| match &agent.result {
            ResultFile::Text(text) => json!(text),
            ResultFile::Absent | ResultFile::Unusable(_) => Value::Null,
        });
        let before = state.past.last();
        let earlier = before.and_then(|past| Some((past.attempt, past.tests.as_ref()?)));
        let now = [Side::Base, Side::Candidate].into_iter();
        let now = now.filter_map(|side| Some((state.attempt, state.tests.get(&side)?)));
        let ran: Vec<(u32, &TestRun)> = earlier.into_iter().chain(now).collect();
        let rows = ran.iter().flat_map(|(attempt, run)| {
            run.commands
                .iter()
                .map(|ran| command(*attempt, run.side, ran))
        });
        let facts = json!({
            "attempt": state.attempt,
            "ending": agent.map(|agent| agent.ending),
            "wall_ms": agent.map(|agent| agent.wall_ms),
            "result": result.unwrap_or_default(),
            "refused_before": before.map(|past| &past.refusal.reason),
            "commands": rows.collect::<Vec<Value>>(),
        });
        let own = agent
            .into_iter()
            .flat_map(|agent| [&agent.stdout, &agent.stderr]);
        let commands = ran.iter().flat_map(|(_, run)| &run.commands);
        let commands = commands.flat_map(|ran| [&ran.stdout, &ran.stderr]);
        let kept = own.chain(commands).filter(|stream| stream.kept > 0);
        Self {
            facts,
            logs: kept.take(MOST).map(|stream| stream.file.clone()).collect(),
        }
    }
}

fn command(attempt: u32, side: Side, ran: &CommandRun) -> Value {
    json!({
        "attempt": attempt, "side": side, "name": ran.name, "argv": ran.argv,
        "ending": render_ending(ran.ending), "tests": ran.tally,
        "stdout": ran.stdout.file, "stderr": ran.stderr.file,
    })
}
