//! Listens to an agent at work: follows the file of its stream, and writes down what it tells.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use provost_core::agent::event::Event;
use provost_core::agent::launch;
use provost_core::agent::reader::{End, Reader, Sum};
use provost_core::agent::{Adapted, Budget};
use provost_core::object::hex;
use provost_core::run::fact::{ResultFile, Stream, Told};
use provost_core::secret::Known;
use sha2::{Digest as _, Sha256};

use crate::boxes;

/// What is read at once.
const CHUNK: usize = 256 << 10;

/// Follows one agent.
#[derive(Debug)]
pub(crate) struct Ears {
    reader: Reader,
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

impl Ears {
    /// Listens to `agent`, whose stream grows at `source`; events go to `name` in the bundle.
    pub(crate) fn open(
        agent: &Adapted,
        source: PathBuf,
        bundle: &Path,
        name: String,
        known: &Known,
    ) -> io::Result<Self> {
        let path = bundle.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(Self {
            reader: Reader::new(agent.adapter),
            budget: agent.budget,
            stream: None,
            source,
            events: File::create(path)?,
            name,
            written: 0,
            hasher: Sha256::new(),
            known: known.clone(),
            redacted: 0,
            last: String::new(),
            heard: 0,
            most: boxes::head(boxes::Limits::default().output_bytes),
        })
    }

    /// Takes what has come since; answers whether the agent has spent more than it may.
    pub(crate) fn listen(&mut self) -> io::Result<bool> {
        if self.stream.is_none() {
            match File::open(&self.source) {
                Ok(stream) => self.stream = Some(stream),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
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
        Ok(self.budget.exceeded(&self.reader.sum().usage).is_some())
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

    /// The last thing it told, for the eye.
    pub(crate) fn last_words(&self) -> &str {
        &self.last
    }

    /// Takes the rest. The agent must be dead, and its stream whole.
    pub(crate) fn finish(&mut self) -> io::Result<Told> {
        self.listen()?;
        let events = self.reader.finish();
        self.write(&events)?;
        self.events.sync_all()?;
        Ok(Told {
            events: Stream {
                file: self.name.clone(),
                bytes: self.written,
                kept: self.written,
                sha256: hex(&self.hasher.finalize_reset()),
                redacted: self.redacted,
            },
            sum: self.sum(),
        })
    }

    /// What it comes to. Text that was escaped in the stream is plain now, and looked at again.
    fn sum(&self) -> Sum {
        let mut sum = self.reader.sum().clone();
        let clean = |text: &mut String| *text = self.known.scrub_text(std::mem::take(text)).0;
        sum.thread.iter_mut().for_each(clean);
        if let Some(End::GaveUp(words)) = &mut sum.end {
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
        let agent = Adapter::Codex.plain().unwrap();
        let known = Known::new([("API_KEY", VALUE)]);
        let name = "events.jsonl".to_owned();
        let mut ears = Ears::open(&agent, stream, bundle.path(), name, &known).unwrap();
        let told = ears.finish().unwrap();
        let events = fs::read_to_string(bundle.path().join("events.jsonl")).unwrap();
        assert!(events.contains("it is [redacted], so"), "{events}");
        let all = format!("{events}{told:?}");
        assert!(!all.contains(VALUE), "{all}");
        assert_eq!(told.events.redacted, 3);
        assert_eq!(told.events.bytes, events.len() as u64);
    }
}
