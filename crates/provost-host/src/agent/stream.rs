//! Listens to an agent at work: follows the file of its stream, writes down what it tells, and
//! answers where it is a server.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_core::agent::Budget;
use provost_core::agent::event::{Event, Usage};
use provost_core::agent::launch;
use provost_core::agent::reader::{Complaint, End, Reader, Sum};
use provost_core::object::hex;
use provost_core::run::effect::Adaptation;
use provost_core::run::fact::{AgentClaims, ResultFile, Stream};
use provost_core::secret::Known;
use rustix::pipe::PipeFlags;
use sha2::{Digest as _, Sha256};

use crate::sandbox::{self, Stdin};

/// What is read at once.
const CHUNK: usize = 256 << 10;

/// How much of a conversation is kept, and can be heard while it goes on.
pub(super) const LONGEST_TALK: u64 = 64 << 20;

/// How long a server that was told everything may take to leave.
const FAREWELL: Duration = Duration::from_secs(5);

/// What is to become of an agent, by what it told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentControl {
    /// It may go on.
    Continue,
    /// It has spent more than it may.
    Overspent,
    /// Its model cannot be worked with.
    NoModel,
    /// It is through, or cannot be understood.
    Dismiss,
}

/// What is said to a server.
#[derive(Debug)]
struct StdinWriter {
    /// Never blocks; nothing once everything was said.
    pipe: Option<OwnedFd>,
    waiting: Vec<u8>,
    /// When everything was said.
    since: Option<Instant>,
}

impl StdinWriter {
    /// Says what goes now.
    fn push(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        while !self.waiting.is_empty() {
            match rustix::io::write(pipe, &self.waiting) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                // It does not listen any more; its end will show.
                Err(_) => return self.pipe = None,
            }
        }
    }
}

/// Follows one agent.
#[derive(Debug)]
pub(crate) struct AgentStream {
    reader: Reader,
    voice: Option<StdinWriter>,
    budget: Budget,
    /// The stream, once the agent has been started.
    stream: Option<File>,
    source: PathBuf,
    events: File,
    name: String,
    written: u64,
    hasher: Sha256,
    /// What must not be written, and how often it would have been.
    known: Known,
    redacted: u64,
    last: String,
    /// How much of the stream was read, and how much of it can be read while it comes.
    heard: u64,
    most: u64,
}

impl AgentStream {
    /// Listens to a program whose stream grows at `source`, and gives what it is to read.
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
        let call = launch::call(agent, &known.instruction, known.thread.as_deref());
        let (reader, voice, stdin) = match call {
            None => {
                let instruction = known.instruction.clone().into_bytes();
                (Reader::new(agent.adapter), None, Stdin::Bytes(instruction))
            }
            Some(call) => {
                let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
                rustix::io::ioctl_fionbio(&write, true)?;
                let voice = StdinWriter {
                    pipe: Some(write),
                    waiting: Vec::new(),
                    since: None,
                };
                let stdin = Stdin::Pipe(Arc::new(read));
                (Reader::speaking(call), Some(voice), stdin)
            }
        };
        let kept = match &voice {
            None => sandbox::Limits::default().output_bytes,
            Some(_) => LONGEST_TALK,
        };
        let ears = Self {
            reader: reader.minding(&known.forbidden),
            voice,
            budget: agent.budget,
            stream: None,
            source,
            events: File::create(path)?,
            name,
            written: 0,
            hasher: Sha256::new(),
            known: secrets.clone(),
            redacted: 0,
            last: String::new(),
            heard: 0,
            most: sandbox::head(kept),
        };
        Ok((ears, stdin))
    }

    /// Takes what has come since, and answers it; says what is to become of the agent.
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
            self.heard += length as u64;
            let events = self.reader.push(&chunk[..length]);
            self.write(&events)?;
        }
        // Tokens are counted where they pass; only the price is the program's own word.
        let claimed = Usage {
            micro_usd: self.reader.sum().usage.micro_usd,
            ..Usage::default()
        };
        if self.budget.exceeded(&claimed).is_some() {
            return Ok(AgentControl::Overspent);
        }
        self.speak()
    }

    /// Says what there is to say, and then that nothing more comes.
    fn speak(&mut self) -> io::Result<AgentControl> {
        let Some(voice) = &mut self.voice else {
            return Ok(AgentControl::Continue);
        };
        voice.waiting.extend(self.reader.take_words());
        voice.push();
        if self.reader.is_over() {
            voice.pipe = None;
            let since = *voice.since.get_or_insert_with(Instant::now);
            let broken = matches!(self.reader.sum().end, Some(End::Broken(_)));
            if broken || since.elapsed() > FAREWELL {
                return Ok(AgentControl::Dismiss);
            }
        } else if self.heard >= self.most {
            let events = self.reader.break_off("said more than can be heard");
            self.write(&events)?;
            return Ok(AgentControl::Dismiss);
        }
        Ok(AgentControl::Continue)
    }

    /// What stands for its progress after it has printed so many bytes: what shows work, and not
    /// complaints about a model that does not answer. What cannot be read while it comes, because
    /// only the end of a long stream is kept, counts as it is.
    pub(crate) fn said(&self, printed: u64) -> u64 {
        let unheard = if self.heard >= self.most {
            printed.saturating_sub(self.heard)
        } else {
            0
        };
        self.reader.sum().progress.saturating_add(unheard)
    }

    /// What it said about its model since work last went on.
    pub(crate) fn complaint(&self) -> Option<&Complaint> {
        self.reader.complaint()
    }

    /// The last thing it told, for the eye.
    pub(crate) fn last_words(&self) -> &str {
        &self.last
    }

    /// Takes the rest. The agent must be dead, and its stream whole.
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

    /// What it comes to. Text that was escaped in the stream is plain now, and looked at again.
    fn sum(&self) -> Sum {
        let mut sum = self.reader.sum().clone();
        let clean = |text: &mut String| *text = self.known.scrub_text(std::mem::take(text)).0;
        sum.thread.iter_mut().for_each(clean);
        if let Some(End::GaveUp(words) | End::Broken(words)) = &mut sum.end {
            clean(words);
        }
        sum
    }

    /// The result that stands for the answer of the agent to `task_id`, no longer than `limit`.
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

    /// The answer itself, as text no longer than `limit`.
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
            match event {
                Event::Message { text } | Event::Error { text } => text.clone_into(&mut self.last),
                Event::Tool { name, detail } => self.last = format!("{name}: {detail}"),
                Event::FileChange { path } => self.last = format!("writes {path}"),
                Event::Session { .. } | Event::Usage(_) | Event::Final { .. } => {}
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
    fn what_was_escaped_in_the_stream_is_not_told_in_plain_words() {
        const VALUE: &str = "q7Zp2Lx9Vb4Nw8Rt";
        // As a program may spell the same text, so that nobody finds it in the stream.
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
            adapted: Adapter::Codex.plain().unwrap(),
            instruction: String::new(),
            answer: launch::Answer::Free,
            task_id: "task-0001".to_owned(),
            events: "events.jsonl".to_owned(),
            forbidden: Vec::new(),
            thread: None,
        };
        let known = Known::new([("API_KEY", VALUE)]);
        let (mut ears, _) = AgentStream::open(&agent, stream, bundle.path(), &known).unwrap();
        let told = ears.finish().unwrap();
        let events = fs::read_to_string(bundle.path().join("events.jsonl")).unwrap();
        assert!(events.contains("it is [redacted], so"), "{events}");
        let all = format!("{events}{told:?}");
        assert!(!all.contains(VALUE), "{all}");
        assert_eq!(told.events.redacted, 3);
        assert_eq!(told.events.bytes, events.len() as u64);
    }
}
