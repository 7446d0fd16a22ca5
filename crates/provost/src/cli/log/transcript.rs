//! `provost log --agent`: what the agents of a run said and did, as a readable transcript.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
#[cfg(feature = "serve")]
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::thread;
use std::time::Duration;

use provost_core::code::Code;
#[cfg(feature = "serve")]
use provost_engine::ports::PortError;
use provost_engine::query::{self, LineKind, RunArchive as _, TranscriptEntry, TranscriptSource};

use crate::answer::{Answer, Failure, Outcome};
use crate::look;
use crate::places::Places;
use crate::show::{Reader, neutralise, print_message};

/// How often the files are read again.
const PERIOD: Duration = Duration::from_millis(200);

/// How many bytes of a line are kept; the rest of a longer one is dropped.
const LONGEST_LINE: usize = 64 * 1024;

/// Prints the transcript of `run_id`; with `follow`, until the run ends.
pub(super) fn show(place: &Places, run_id: &str, follow: bool, reader: Reader) -> Outcome {
    let directory = place.run(run_id);
    let mut files: Vec<Growing> = Vec::new();
    let mut writer = Writer::new(reader);
    let mut anything = false;
    loop {
        // The stage is read before the files, so that lines written meanwhile are still shown.
        let driven = place.is_driven(run_id) && !place.is_sealed(run_id);
        for source in query::transcripts(&query::state(place, run_id)?) {
            for (file, kind) in source.files() {
                if !files.iter().any(|it| it.file == file) {
                    files.push(Growing::new(source.clone(), file, kind));
                }
            }
        }
        if files.is_empty() && !(follow && driven) {
            let failure = Failure::new(Code::NotFound, format!("no agent of {run_id} has started"));
            return Err(failure.hint(format!("provost log {run_id}")));
        }
        let mut text = String::new();
        for file in &mut files {
            let lines = file.lines(&directory, !driven);
            for entry in lines
                .iter()
                .filter_map(|line| file.source.entry(file.kind, line))
            {
                text += &writer.entry(&entry);
            }
        }
        anything |= !text.is_empty();
        if !(anything || follow && driven) {
            let run = query::short_id(run_id);
            print_message(&format!("note: the agent of {run} printed nothing"));
        }
        let written = if follow {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        } else {
            look::page(&text)
        };
        if written.is_err() || !follow || !driven {
            return Ok(Answer::silent());
        }
        thread::sleep(PERIOD);
    }
}

/// At most `most` entries of the transcript of `run_id` from the line `from`, and whether there are
/// more. No line takes more memory than [`LONGEST_LINE`].
#[cfg(feature = "serve")]
pub(crate) fn read_page(
    place: &Places,
    run_id: &str,
    from: usize,
    most: usize,
) -> Result<(Vec<TranscriptEntry>, bool), PortError> {
    let directory = place.run(run_id);
    let mut entries = Vec::new();
    let mut at = 0;
    for source in query::transcripts(&query::state(place, run_id)?) {
        for (name, kind) in source.files() {
            // A file that is not there yet has no lines.
            let Ok(file) = File::open(directory.join(name)) else {
                continue;
            };
            let mut reader = BufReader::new(file);
            while let Some(line) = bounded_line(&mut reader) {
                if at >= from.saturating_add(most) {
                    return Ok((entries, true));
                }
                if at >= from {
                    let line = String::from_utf8_lossy(&line);
                    entries.extend(source.entry(kind, &line));
                }
                at += 1;
            }
        }
    }
    Ok((entries, false))
}

/// The next line, at most [`LONGEST_LINE`] bytes of it; `None` at the end.
#[cfg(feature = "serve")]
fn bounded_line(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut any = false;
    loop {
        let read = reader.fill_buf().ok()?;
        if read.is_empty() {
            return any.then_some(line);
        }
        any = true;
        let end = read.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(read.len());
        let room = LONGEST_LINE.saturating_sub(line.len());
        line.extend_from_slice(&read[..length.min(room)]);
        reader.consume(end.map_or(length, |end| end + 1));
        if end.is_some() {
            return Some(line);
        }
    }
}

/// A file that may still grow.
struct Growing {
    source: TranscriptSource,
    file: String,
    kind: LineKind,
    read: u64,
    /// The beginning of a line whose end is not written yet.
    rest: Vec<u8>,
}

impl Growing {
    fn new(source: TranscriptSource, file: &str, kind: LineKind) -> Self {
        Self {
            source,
            file: file.to_owned(),
            kind,
            read: 0,
            rest: Vec::new(),
        }
    }

    /// The lines that were written since the last call; `all` if nothing more is written.
    fn lines(&mut self, directory: &Path, all: bool) -> Vec<String> {
        let mut bytes = std::mem::take(&mut self.rest);
        let read = File::open(directory.join(&self.file)).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)
        });
        // A file that is not there yet has no lines.
        self.read += read.map_or(0, |length| length as u64);
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let last = lines.pop().unwrap_or_default();
        if all {
            lines.push(last);
        } else {
            self.rest = last.to_vec();
        }
        let text = |line: &&[u8]| {
            let line = &line[..line.len().min(LONGEST_LINE)];
            String::from_utf8_lossy(line).into_owned()
        };
        let lines = lines.iter().filter(|line| !line.is_empty());
        lines.map(text).collect()
    }
}

/// Writes entries as lines.
struct Writer {
    reader: Reader,
    /// The attempt and the worker of the last entry.
    under: Option<(u32, &'static str)>,
    /// The last words, which a program often repeats at its end.
    last: String,
}

impl Writer {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            under: None,
            last: String::new(),
        }
    }

    fn entry(&mut self, entry: &TranscriptEntry) -> String {
        if self.reader == Reader::Program {
            return serde_json::to_string(entry).map_or(String::new(), |line| line + "\n");
        }
        let Some((speaker, words)) = entry.words() else {
            return String::new();
        };
        let words = neutralise(words.trim());
        if words.is_empty() || (words == self.last && speaker == entry.worker.word()) {
            return String::new();
        }
        let under = (entry.attempt, entry.worker.word());
        let mut text = String::new();
        if self.under != Some(under) {
            let gap = if self.under.is_some() { "\n" } else { "" };
            text += &format!("{gap}{} of attempt {}\n", under.1, under.0);
            self.under = Some(under);
        }
        let words = words.replace('\t', "    ");
        self.last.clone_from(&words);
        for (at, line) in words.lines().enumerate() {
            let speaker = if at == 0 { speaker } else { "" };
            text += format!("{speaker:<9} {line}").trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use provost_engine::query::Worker;

    use super::*;

    fn source() -> TranscriptSource {
        TranscriptSource {
            attempt: 1,
            worker: Worker::Agent,
            events: Some("events.jsonl".to_owned()),
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    #[test]
    fn a_transcript_is_readable_and_nothing_in_it_is_obeyed() {
        let mut writer = Writer::new(Reader::Person);
        let lines = [
            r#"{"kind":"session","thread":"t"}"#,
            r#"{"kind":"message","text":"I look\n\tat \u001b[2Jit"}"#,
            r#"{"kind":"tool","name":"shell","detail":"pytest -q"}"#,
            r#"{"kind":"tool_result","ok":false,"text":"1 failed\nE assert"}"#,
            r#"{"kind":"message","text":"All tests pass."}"#,
            r#"{"kind":"final","ok":true,"text":"All tests pass."}"#,
        ];
        let entries = lines.map(|line| source().entry(LineKind::Event, line).unwrap());
        let text: String = entries.iter().map(|entry| writer.entry(entry)).collect();
        insta::assert_snapshot!(text, @r"
        agent of attempt 1
        agent     I look
                      at \u{1b}[2Jit
        tool      shell pytest -q
        result    failed: 1 failed (1 more line)
        agent     All tests pass.
        ");
    }

    #[test]
    fn a_line_is_shown_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let mut file = Growing::new(source(), "events.jsonl", LineKind::Event);
        assert!(file.lines(directory.path(), false).is_empty());
        std::fs::write(&path, "one\ntw").unwrap();
        assert_eq!(file.lines(directory.path(), false), ["one"]);
        std::fs::write(&path, "one\ntwo\nthree").unwrap();
        assert_eq!(file.lines(directory.path(), false), ["two"]);
        assert_eq!(file.lines(directory.path(), true), ["three"]);
    }
}
