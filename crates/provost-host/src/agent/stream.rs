//! Reads the stream of a running agent, records its events, and answers it if it is a server.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_core::agent::event::{Event, Usage};
use provost_core::agent::launch;
use provost_core::agent::provider::Provider;
use provost_core::agent::sum::{Complaint, End, Sum};
use provost_core::agent::{Adapted, Budget};
use provost_core::object::hex;
use provost_core::run::effect::Adaptation;
use provost_core::run::fact::{AgentClaims, ResultFile, Stream};
use provost_core::secret::Known;
use rustix::pipe::PipeFlags;
use sha2::{Digest as _, Sha256};

use super::parser::AgentTask;
use super::reader::Reader;
use crate::sandbox::{self, Stdin};

/// How many bytes are read at once.
const CHUNK: usize = 256 << 10;

/// How many bytes of a server's output are kept, and can be read while it runs.
pub(super) const LONGEST_TALK: u64 = 64 << 20;

/// How many of the last tools are shown.
const SHOWN_TOOLS: usize = 3;

/// How long a server may take to exit after the end of its input.
const FAREWELL: Duration = Duration::from_secs(5);

/// Whether an agent continues, by what it printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentControl {
    Continue,
    /// It has spent more than its budget.
    Overspent,
    /// Its model refuses the key or cannot be reached.
    NoModel,
    /// It finished, or broke the protocol.
    Dismiss,
}

/// Writes the standard input of a server.
#[derive(Debug)]
struct StdinWriter {
    /// Never blocks; `None` once everything was written.
    pipe: Option<OwnedFd>,
    waiting: Vec<u8>,
    /// When the last message was written.
    since: Option<Instant>,
}

impl StdinWriter {
    /// Writes as much as the pipe takes without blocking.
    fn push(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        while !self.waiting.is_empty() {
            match rustix::io::write(pipe, &self.waiting) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                // The server closed its input; its exit is noticed elsewhere.
                Err(_) => return self.pipe = None,
            }
        }
    }
}

/// The stream of one agent.
#[derive(Debug)]
pub(crate) struct AgentStream {
    reader: Reader,
    stdin: Option<StdinWriter>,
    budget: Budget,
    /// The stream, once the agent has been started.
    stream: Option<File>,
    source: PathBuf,
    events: File,
    name: String,
    written: u64,
    hasher: Sha256,
    /// Secrets that must not be recorded; `redacted` counts those that were removed.
    known: Known,
    redacted: u64,
    last: String,
    /// The last tools that the agent used, oldest first.
    tools: VecDeque<Event>,
    /// Bytes of the stream that were read, and how many can be read while it grows.
    read: u64,
    most: u64,
}

/// The budget that the program's own claims are compared with.
fn claimed_budget(agent: &Adapted) -> Budget {
    let counted = agent.provider.as_ref().is_some_and(Provider::is_readable);
    if counted {
        Budget::default()
    } else {
        agent.budget
    }
}

impl AgentStream {
    /// Opens the stream that a program writes to `source`; returns the program's standard input
    /// too.
    pub(crate) fn open(
        known: &Adaptation,
        source: PathBuf,
        bundle: &Path,
        secrets: &Known,
    ) -> io::Result<(Self, Stdin)> {
        let (agent, name) = (&known.adapted, known.events.clone());
        let path = bundle.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let task = AgentTask {
            prompt: &known.instruction,
            thread: known.thread.as_deref(),
            answer: known.answer,
        };
        let mut reader = Reader::new(agent, &task);
        let (writer, stdin) = if reader.converses() {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            let writer = StdinWriter {
                pipe: Some(write),
                waiting: Vec::new(),
                since: None,
            };
            (Some(writer), Stdin::Pipe(Arc::new(read)))
        } else {
            let instruction = known.instruction.clone().into_bytes();
            (None, Stdin::Bytes(instruction))
        };
        let kept = match &writer {
            None => sandbox::Limits::default().output_bytes,
            Some(_) => LONGEST_TALK,
        };
        let stream = Self {
            reader: reader.minding(&known.forbidden).watching_for(&known.shapes),
            stdin: writer,
            budget: claimed_budget(agent),
            stream: None,
            source,
            events: File::create(path)?,
            name,
            written: 0,
            hasher: Sha256::new(),
            known: secrets.clone(),
            redacted: 0,
            last: String::new(),
            tools: VecDeque::new(),
            read: 0,
            most: sandbox::head(kept),
        };
        Ok((stream, stdin))
    }

    /// Reads what was printed since the last call, and answers it; returns whether to continue.
    pub(crate) fn listen(&mut self) -> io::Result<AgentControl> {
        if self.stream.is_none() {
            match File::open(&self.source) {
                Ok(stream) => self.stream = Some(stream),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(AgentControl::Continue);
                }
                Err(error) => return Err(error),
            }
        }
        let mut chunk = vec![0; CHUNK];
        while let Some(stream) = &mut self.stream {
            let length = stream.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            self.read += length as u64;
            let events = self.reader.push(&chunk[..length]);
            self.write(&events)?;
        }
        // The proxy counts the tokens, and the price where it can read the traffic.
        let claimed = Usage {
            micro_usd: self.reader.sum().usage.micro_usd,
            ..Usage::default()
        };
        if self.budget.exceeded(&claimed).is_some() {
            return Ok(AgentControl::Overspent);
        }
        self.answer_server()
    }

    /// The commands that the program asks about and that have no answer, by its ids.
    pub(crate) fn asked_commands(&mut self) -> Vec<(String, String)> {
        self.reader.asked_commands()
    }

    /// Answers the question `id`; an error is the reason of a no.
    pub(crate) fn answer_command(&mut self, id: &str, permitted: Result<(), &str>) {
        self.reader.answer_command(id, permitted);
    }

    /// Writes the waiting messages to a server, and closes its input after the last one.
    fn answer_server(&mut self) -> io::Result<AgentControl> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(AgentControl::Continue);
        };
        stdin.waiting.extend(self.reader.take_words());
        stdin.push();
        if self.reader.is_over() {
            stdin.pipe = None;
            let since = *stdin.since.get_or_insert_with(Instant::now);
            let broken = matches!(self.reader.sum().end, Some(End::Broken(_)));
            if broken || since.elapsed() > FAREWELL {
                return Ok(AgentControl::Dismiss);
            }
        } else if self.read >= self.most {
            let events = self.reader.break_off("printed more than can be read");
            self.write(&events)?;
            return Ok(AgentControl::Dismiss);
        }
        Ok(AgentControl::Continue)
    }

    /// Measures progress after `printed` bytes of output. It counts events that show work, and not
    /// complaints about a model that does not answer. Bytes that cannot be read while the stream
    /// grows, because only its end is kept, count as they are.
    pub(crate) fn said(&self, printed: u64) -> u64 {
        let unread = if self.read >= self.most {
            printed.saturating_sub(self.read)
        } else {
            0
        };
        self.reader.sum().progress.saturating_add(unread)
    }

    /// The agent's last complaint about its model, if it has not worked since.
    pub(crate) fn complaint(&self) -> Option<&Complaint> {
        self.reader.complaint()
    }

    /// The last message of the agent, for display.
    pub(crate) fn last_message(&self) -> &str {
        &self.last
    }

    /// The last tools that the agent used, oldest first, for display.
    pub(crate) fn last_tools(&self) -> impl Iterator<Item = &Event> {
        self.tools.iter()
    }

    /// Reads the rest. The agent must be dead, and its stream complete.
    pub(crate) fn finish(&mut self) -> io::Result<AgentClaims> {
        self.listen()?;
        let events = self.reader.finish();
        self.write(&events)?;
        self.events.sync_all()?;
        Ok(AgentClaims {
            events: Stream {
                file: self.name.clone(),
                bytes: self.written,
                kept: self.written,
                sha256: hex(&self.hasher.finalize_reset()),
                redacted: self.redacted,
                cut: false,
            },
            sum: self.sum(),
        })
    }

    /// The sum of all events. Text that was escaped in the stream is decoded here, so it is
    /// scrubbed again.
    fn sum(&self) -> Sum {
        let mut sum = self.reader.sum().clone();
        let clean = |text: &mut String| *text = self.known.scrub_text(std::mem::take(text)).0;
        sum.thread.iter_mut().for_each(clean);
        if let Some(End::GaveUp(words) | End::Broken(words)) = &mut sum.end {
            clean(words);
        }
        sum
    }

    /// The agent's answer as the result of `task_id`, at most `limit` bytes.
    pub(crate) fn result(&self, task_id: &str, limit: u64) -> ResultFile {
        let Some(answer) = self.reader.answer() else {
            return ResultFile::Absent;
        };
        let text = launch::result(task_id, answer).to_string();
        if text.len() as u64 > limit {
            return ResultFile::Unusable("is larger than 256 KiB".to_owned());
        }
        ResultFile::Text(text)
    }

    /// The answer itself, at most `limit` bytes of text.
    pub(crate) fn answer(&self, limit: u64) -> ResultFile {
        let Some(answer) = self.reader.answer() else {
            return ResultFile::Absent;
        };
        let text = answer.to_string();
        if text.len() as u64 > limit {
            return ResultFile::Unusable("is larger than 256 KiB".to_owned());
        }
        ResultFile::Text(text)
    }

    fn write(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            let line = serde_json::to_vec(event)?;
            let (line, redacted) = self.known.scrub(&line);
            self.redacted += redacted;
            let mut line = line.into_owned();
            line.push(b'\n');
            self.events.write_all(&line)?;
            self.hasher.update(&line);
            self.written += line.len() as u64;
            if matches!(event, Event::Tool { .. } | Event::FileChange { .. }) {
                self.tools.push_back(event.clone());
                if self.tools.len() > SHOWN_TOOLS {
                    self.tools.pop_front();
                }
            }
            match event {
                Event::Message { text } | Event::Error { text } => text.clone_into(&mut self.last),
                Event::Tool { .. }
                | Event::FileChange { .. }
                | Event::Session { .. }
                | Event::ToolResult { .. }
                | Event::Usage(_)
                | Event::Final { .. } => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use provost_core::agent::Adapter;

    use super::*;

    #[test]
    fn a_secret_that_was_escaped_in_the_stream_is_not_recorded_decoded() {
        const VALUE: &str = "q7Zp2Lx9Vb4Nw8Rt";
        // A program may escape the same text, so that a search of the stream does not find it.
        let spelled = VALUE.replace('q', "\\u0071");
        let item = format!("{{\"type\":\"agent_message\",\"text\":\"it is {spelled}, so\"}}");
        let text = format!(
            "{{\"type\":\"thread.started\",\"thread_id\":\"{spelled}\"}}\n\
             {{\"type\":\"item.completed\",\"item\":{item}}}\n\
             {{\"type\":\"turn.failed\",\"error\":{{\"message\":\"no {spelled}\"}}}}\n"
        );
        let bundle = tempfile::tempdir().unwrap();
        let stream = bundle.path().join("stdout.log");
        fs::write(&stream, text).unwrap();
        let agent = Adaptation {
            adapted: Adapter::named("codex").and_then(Adapter::plain).unwrap(),
            instruction: String::new(),
            answer: launch::Answer::Free,
            task_id: "task-0001".to_owned(),
            events: "events.jsonl".to_owned(),
            forbidden: Vec::new(),
            shapes: Vec::new(),
            thread: None,
        };
        let known = Known::new([("API_KEY", VALUE)]);
        let (mut stream, _) = AgentStream::open(&agent, stream, bundle.path(), &known).unwrap();
        let claims = stream.finish().unwrap();
        let events = fs::read_to_string(bundle.path().join("events.jsonl")).unwrap();
        assert!(events.contains("it is [redacted], so"), "{events}");
        let all = format!("{events}{claims:?}");
        assert!(!all.contains(VALUE), "{all}");
        assert_eq!(claims.events.redacted, 3);
        assert_eq!(claims.events.bytes, events.len() as u64);
    }
}
