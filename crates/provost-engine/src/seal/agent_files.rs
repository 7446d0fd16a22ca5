//! The files of a bundle about the agents of a run, one directory for each task: events,
//! transcript and thread.
//!
//! All of them repeat what the ledger and the recorded streams hold, in the form that a reader
//! expects; they decide nothing.

use std::fmt::Write as _;

use provost_core::foreign_text;
use provost_core::run::State;
use provost_core::run::fact::AgentRun;

use super::log;
use crate::ports::{Bundle, PortError};
use crate::query::{LineKind, TranscriptSource, Worker};

/// The most bytes of a transcript; the streams have the rest.
const LARGEST_TRANSCRIPT: usize = 4 << 20;

/// An agent that ended, with its task.
struct EndedAgent<'a> {
    attempt: u32,
    task_id: &'a str,
    run: &'a AgentRun,
}

fn ended(state: &State) -> Vec<EndedAgent<'_>> {
    let past = state.past.iter().filter_map(|past| {
        Some(EndedAgent {
            attempt: past.attempt,
            task_id: &past.task_id,
            run: past.agent.as_ref()?,
        })
    });
    let last = state.agent.iter().map(|run| EndedAgent {
        attempt: state.attempt,
        task_id: state.task_id(),
        run,
    });
    past.chain(last).collect()
}

/// The name of the conversation on the task `task_id`, if its agent reported one.
pub(crate) fn thread<'a>(state: &'a State, task_id: &str) -> Option<&'a str> {
    let all = ended(state).into_iter();
    let of_task = all.filter(|it| it.task_id == task_id);
    let mut threads = of_task.filter_map(|it| it.run.claims.as_ref()?.sum.thread.as_deref());
    threads.next_back()
}

/// The files for every task that an agent worked on.
pub(super) fn files(
    bundle: &dyn Bundle,
    state: &State,
) -> Result<Vec<(String, Vec<u8>)>, PortError> {
    let mut files = Vec::new();
    for agent in ended(state) {
        let name = |file: &str| format!("agent/{}/{file}", agent.task_id);
        let source = TranscriptSource::of(agent.attempt, Worker::Agent, agent.run);
        let text = transcript(bundle, &agent, &source)?;
        files.push((name("transcript.md"), text.into_bytes()));
        if let Some(events) = &source.events {
            files.push((name("events.jsonl"), log(bundle, events)?));
        }
        if let Some(thread) = thread(state, agent.task_id) {
            files.push((name("thread_id.txt"), format!("{thread}\n").into_bytes()));
        }
    }
    Ok(files)
}

/// What the agent said and did, for people. Its words are indented, so that none of them is taken
/// for ours.
fn transcript(
    bundle: &dyn Bundle,
    agent: &EndedAgent<'_>,
    source: &TranscriptSource,
) -> Result<String, PortError> {
    let mut text = format!("# Attempt {} of `{}`\n\n", agent.attempt, agent.task_id);
    text += match source.events {
        Some(_) => "As its program reports it; unverified.\n",
        None => {
            "Tool calls: not observable, because a command reports none. This is what it printed.\n"
        }
    };
    for (file, kind) in source.files() {
        let bytes = log(bundle, file)?;
        if kind != LineKind::Event && !bytes.is_empty() {
            let _ = write!(text, "\n## `{file}`\n\n");
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            let entry = source.entry(kind, line);
            let Some((speaker, words)) = entry.and_then(|entry| entry.words()) else {
                continue;
            };
            if kind == LineKind::Event {
                let _ = write!(text, "\n**{speaker}**\n\n");
            }
            for line in words.lines() {
                let _ = writeln!(text, "    {}", foreign_text::one_line(line));
            }
            if text.len() > LARGEST_TRANSCRIPT {
                let _ = write!(text, "\nThe rest is in `{file}` alone.\n");
                return Ok(text);
            }
        }
    }
    Ok(text)
}
