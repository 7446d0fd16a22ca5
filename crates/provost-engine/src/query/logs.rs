//! The logs of a run, and what of it is not in its bundle because it is secret.

use provost_core::run::fact::{AgentRun, Stream, TestRun, Withheld};
use provost_core::run::{Round, State};
use serde::{Serialize, Serializer};

#[derive(Debug)]
pub struct LogFile {
    pub file: String,
    pub bytes: u64,
}

impl Serialize for LogFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.file)
    }
}

/// What of a run is not in its bundle, because it is secret.
#[derive(Debug, Serialize)]
pub struct SecretsView {
    pub removed: Vec<RemovedSecrets>,
    /// What is left out of the bundle altogether.
    pub withheld: Option<Withheld>,
}

#[derive(Debug, Serialize)]
pub struct RemovedSecrets {
    /// The file, or another place in words.
    pub from: String,
    pub removed: u64,
}

/// All agents and reviewers, of all attempts.
fn workers(state: &State) -> impl Iterator<Item = &AgentRun> {
    let past = state.past.iter();
    let past = past.flat_map(|past| {
        past.agent
            .iter()
            .chain(past.reviewed.iter().map(|it| &it.run))
    });
    let agent = past.chain(&state.agent);
    agent.chain(state.reviewed.iter().map(|reviewed| &reviewed.run))
}

/// The logs of the run that are not empty.
pub(super) fn logs(state: &State) -> impl Iterator<Item = &Stream> {
    let agent = workers(state);
    let agent = agent.flat_map(|agent| [&agent.stdout, &agent.stderr]);
    let refused = state.past.iter().filter_map(|past| past.tests.as_ref());
    let crossed = state.crossed.values().filter_map(Round::ran);
    let commands = refused.chain(state.tests.values()).chain(crossed);
    let commands = commands.flat_map(TestRun::everything);
    let commands = commands.flat_map(|ran| [&ran.stdout, &ran.stderr]);
    agent.chain(commands).filter(|stream| stream.kept > 0)
}

pub(super) fn log_file(stream: &Stream) -> LogFile {
    LogFile {
        file: stream.file.clone(),
        bytes: stream.kept,
    }
}

pub(super) fn secrets(state: &State) -> SecretsView {
    let reports = workers(state).filter_map(|agent| agent.claims.as_ref());
    let events = reports.map(|report| &report.events);
    let some = |stream: &&Stream| stream.redacted > 0;
    let streams = logs(state).chain(events).filter(some);
    let streams = streams.map(|stream| (stream.file.as_str(), stream.redacted));
    let results = workers(state).filter(|agent| agent.redacted > 0);
    let results = results.map(|agent| ("the result that was left", agent.redacted));
    let removed = |(from, removed): (&str, u64)| RemovedSecrets {
        from: from.to_owned(),
        removed,
    };
    let withheld = state.captured.as_ref().map(|captured| &captured.withheld);
    SecretsView {
        removed: streams.chain(results).map(removed).collect(),
        withheld: withheld.filter(|it| !it.is_nothing()).cloned(),
    }
}
