//! The end of a log, which usually has the cause of a failure.

use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::foreign_text::neutralise;
use provost_core::run::fact::{AgentRun, CommandRun, Ending, Side, Stream};
use provost_core::run::{Gate, State};
use serde::Serialize;

use super::archive::RunFiles;
use super::transcript;

const LINES: usize = 10;

const LONGEST: usize = 200;

/// How many bytes at the end of a log are read.
const WINDOW: u64 = 16 * 1024;

const LOGS: usize = 4;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Tail {
    pub log: PathBuf,
    /// Its last lines, neutralised.
    pub last_lines: Vec<String>,
}

/// The ends of the logs of what failed: the output of the agent, also of one that changed nothing,
/// or of the acceptance commands.
pub(super) fn of_failure(state: &State, bundle: &Path, files: &dyn RunFiles) -> Vec<Tail> {
    let refused = |gate| {
        let verdict = state.gates.get(&gate);
        verdict.is_some_and(|verdict| !verdict.allow)
    };
    let mut streams: Vec<&Stream> = Vec::new();
    let mut reports: Vec<&AgentRun> = Vec::new();
    let idle = state.refusal.as_ref();
    let idle = idle.is_some_and(|verdict| verdict.code == Code::EmptyDiff);
    if refused(Gate::Agent) || idle {
        reports.extend(&state.agent);
    }
    let review = state.gates.get(&Gate::Review);
    if review.is_some_and(|verdict| verdict.code == Code::ReviewInvalid) {
        reports.extend(state.reviewed.iter().map(|reviewed| &reviewed.run));
    }
    for run in &reports {
        // The stream of a known program is for programs; its events are what people read.
        let stdout = run.claims.is_none().then_some(&run.stdout);
        streams.extend(stdout.into_iter().chain([&run.stderr]));
    }
    if refused(Gate::Acceptance) {
        let runs = state.tests.get(&Side::Candidate);
        let commands = runs.into_iter().flat_map(|run| &run.commands);
        let failed = commands.filter(|ran: &&CommandRun| ran.ending != Ending::Exited(0));
        streams.extend(failed.flat_map(|ran| [&ran.stdout, &ran.stderr]));
    }
    let tail = |stream: &Stream| {
        let bytes = files.end_of(&stream.file, WINDOW)?;
        let last_lines = lines(&String::from_utf8_lossy(&bytes));
        (!last_lines.is_empty()).then(|| Tail {
            log: bundle.join(&stream.file),
            last_lines,
        })
    };
    let known = reports.iter().filter_map(|run| {
        let lines = transcript::last_lines(run, files);
        let claims = run.claims.as_ref().filter(|_| !lines.is_empty())?;
        let first = lines.len().saturating_sub(LINES);
        Some(Tail {
            log: bundle.join(&claims.events.file),
            last_lines: lines[first..].iter().map(|line| shown(line)).collect(),
        })
    });
    known
        .chain(streams.into_iter().filter_map(tail))
        .take(LOGS)
        .collect()
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
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_shown_and_nothing_in_it_is_obeyed() {
        let numbered: Vec<String> = (0..90).map(|number| format!("line {number}")).collect();
        let last = lines(&(numbered.join("\n") + "\n10%\r20%\r\n\x1b[2Jend\n\n\n"));
        assert_eq!(last.len(), LINES);
        assert_eq!(last[7], "line 89");
        assert_eq!(last[8..], ["20%", "\\u{1b}[2Jend"]);
        assert!(lines("\n\n").is_empty());
        assert_eq!(lines(&"x".repeat(100_000))[0].len(), LONGEST);
    }
}
