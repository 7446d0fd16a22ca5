//! Shows the end of a log, which usually has the cause of a failure.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::run::fact::{CommandRun, Ending, Side, Stream};
use provost_core::run::{Gate, State};
use serde::Serialize;

use crate::show::neutralise;

const LINES: usize = 10;

const WIDTH: usize = 200;

/// How many bytes at the end of a log are read.
const WINDOW: u64 = 16 * 1024;

const LOGS: usize = 4;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Tail {
    pub(crate) log: PathBuf,
    /// Its last lines, neutralised.
    pub(crate) last_lines: Vec<String>,
}

/// The ends of the logs of what failed: the output of the agent, also of one that changed nothing,
/// or of the acceptance commands.
pub(crate) fn of_failure(state: &State, bundle: &Path) -> Vec<Tail> {
    let refused = |gate| {
        let verdict = state.gates.get(&gate);
        verdict.is_some_and(|verdict| !verdict.allow)
    };
    let mut streams: Vec<&Stream> = Vec::new();
    let idle = state.refusal.as_ref();
    let idle = idle.is_some_and(|verdict| verdict.code == Code::EmptyDiff);
    if refused(Gate::Agent) || idle {
        let agent = state.agent.iter();
        streams.extend(agent.flat_map(|agent| [&agent.stdout, &agent.stderr]));
    }
    let review = state.gates.get(&Gate::Review);
    if review.is_some_and(|verdict| verdict.code == Code::ReviewInvalid) {
        let reviewed = state.reviewed.iter().map(|reviewed| &reviewed.run);
        streams.extend(reviewed.flat_map(|run| [&run.stdout, &run.stderr]));
    }
    if refused(Gate::Acceptance) {
        let runs = state.tests.get(&Side::Candidate);
        let commands = runs.into_iter().flat_map(|run| &run.commands);
        let failed = commands.filter(|ran: &&CommandRun| ran.ending != Ending::Exited(0));
        streams.extend(failed.flat_map(|ran| [&ran.stdout, &ran.stderr]));
    }
    streams
        .into_iter()
        .filter_map(|stream| read(&bundle.join(&stream.file)))
        .take(LOGS)
        .collect()
}

/// The end of the log at `path`; nothing if it is empty or cannot be read.
fn read(path: &Path) -> Option<Tail> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let from = length.saturating_sub(WINDOW);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(WINDOW).read_to_end(&mut bytes).ok()?;
    let last_lines = lines(&String::from_utf8_lossy(&bytes));
    (!last_lines.is_empty()).then(|| Tail {
        log: path.to_owned(),
        last_lines,
    })
}

fn lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let first = lines.len().saturating_sub(LINES);
    lines[first..].iter().map(|line| shown(line)).collect()
}

/// One line as a terminal would show it at the end, without escapes.
fn shown(line: &str) -> String {
    let last = line.trim_end_matches('\r').rsplit('\r').next();
    let text = neutralise(last.unwrap_or_default()).replace('\t', "    ");
    text.chars().take(WIDTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_shown_and_nothing_in_it_is_obeyed() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let numbered: Vec<String> = (0..9000).map(|number| format!("line {number}")).collect();
        let text = numbered.join("\n") + "\n";
        std::fs::write(&log, text + "10%\r20%\r\n\x1b[2Jend\n\n\n").unwrap();
        let tail = read(&log).unwrap();
        assert_eq!(tail.last_lines.len(), LINES);
        assert_eq!(tail.last_lines[7], "line 8999");
        assert_eq!(tail.last_lines[8..], ["20%", "\u{fffd}[2Jend"]);
        std::fs::write(&log, "\n\n").unwrap();
        assert_eq!(read(&log), None);
        assert_eq!(read(&directory.path().join("gone")), None);
        std::fs::write(&log, "x".repeat(100_000)).unwrap();
        assert_eq!(read(&log).unwrap().last_lines[0].len(), WIDTH);
    }
}
