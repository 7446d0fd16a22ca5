//! Reads many objects from one git process.
//!
//! Starting git costs more than reading a few objects, so a process that answered well is kept for
//! the next reader. It also finds objects written since: git looks again for what it does not
//! know. The process ends when its input closes, so it ends with us.

use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use provost_core::object::{Kind, Oid};

use super::run::{Running, unexpected};
use super::{GitError, Repository, system};

/// The largest object read into memory, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// How many objects are requested at a time. Requests and answers cannot block each other: with
/// `--buffer` git answers nothing before a flush request.
const ROUND: usize = 512;

/// How long a process is reused; less than its time limit for an answer.
const FRESH: Duration = Duration::from_mins(1);

pub(super) type Idle = Arc<Mutex<Option<Reader>>>;

/// A reader of objects; every object it gives has the id that was asked for.
#[derive(Debug)]
pub struct Batch {
    /// None after an error: what the process would answer next is unknown.
    reader: Option<Reader>,
    idle: Idle,
}

#[derive(Debug)]
pub(super) struct Reader {
    running: Running,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    since: Instant,
}

impl Repository {
    /// Reuses the idle process if there is one.
    pub fn batch(&self) -> Result<Batch, GitError> {
        let waiting = self.idle.lock().ok().and_then(|mut idle| idle.take());
        let reader = match waiting.and_then(Reader::still_fresh) {
            Some(reader) => reader,
            None => self.start_reader()?,
        };
        Ok(Batch {
            reader: Some(reader),
            idle: Arc::clone(&self.idle),
        })
    }

    fn start_reader(&self) -> Result<Reader, GitError> {
        let arguments = ["cat-file", "--batch-command", "--buffer"];
        let mut running = self.git.start(&self.at_side(), &arguments)?;
        match (running.child.stdin.take(), running.child.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(Reader {
                running,
                requests: BufWriter::new(requests),
                answers: BufReader::with_capacity(1 << 16, answers),
                since: Instant::now(),
            }),
            _ => Err(unexpected("cat-file")),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // If another process is idle already, this one ends.
        if let Ok(mut idle) = self.idle.lock()
            && idle.is_none()
        {
            *idle = self.reader.take();
        }
    }
}

impl Batch {
    /// Reads `oids` in order and passes each object to `take`.
    pub fn each<'a, E: From<GitError>>(
        &mut self,
        oids: impl IntoIterator<Item = &'a Oid>,
        mut take: impl FnMut(&'a Oid, Kind, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader.take().ok_or_else(|| unexpected("cat-file"))?;
        let read = reader.each(oids, &mut take);
        if read.is_ok() {
            self.reader = Some(reader);
        }
        read
    }

    pub fn one(&mut self, oid: &Oid, kind: Kind) -> Result<Vec<u8>, GitError> {
        let mut found = None;
        self.each([oid], |oid, is, bytes| {
            if is != kind {
                let oid = oid.clone();
                return Err(GitError::WrongKind { oid, wanted: kind });
            }
            found = Some(bytes);
            Ok(())
        })?;
        found.ok_or_else(|| GitError::Missing { oid: oid.clone() })
    }
}

impl Reader {
    /// Itself, if the process is alive and young enough for reuse.
    fn still_fresh(mut self) -> Option<Self> {
        let alive = matches!(self.running.child.try_wait(), Ok(None));
        (alive && self.since.elapsed() < FRESH).then_some(self)
    }

    fn each<'a, E: From<GitError>>(
        &mut self,
        oids: impl IntoIterator<Item = &'a Oid>,
        take: &mut impl FnMut(&'a Oid, Kind, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut oids = oids.into_iter();
        loop {
            let round: Vec<&Oid> = oids.by_ref().take(ROUND).collect();
            if round.is_empty() {
                return Ok(());
            }
            self.running.answered();
            if ask(&mut self.requests, &round).is_err() {
                return Err(self.running.ended().into());
            }
            for oid in round {
                let Some((kind, bytes)) = answer(&mut self.answers, oid)? else {
                    return Err(self.running.ended().into());
                };
                self.running.answered();
                take(oid, kind, bytes)?;
            }
        }
    }
}

/// Writes the requests of one round, ended by a flush: git buffers its answers until then.
fn ask(requests: &mut BufWriter<ChildStdin>, round: &[&Oid]) -> std::io::Result<()> {
    for oid in round {
        writeln!(requests, "contents {oid}")?;
    }
    writeln!(requests, "flush")?;
    requests.flush()
}

/// Reads one answer and checks that the bytes have the requested id; `None` if git ended.
fn answer(
    answers: &mut BufReader<ChildStdout>,
    oid: &Oid,
) -> Result<Option<(Kind, Vec<u8>)>, GitError> {
    let mut line = Vec::new();
    answers
        .by_ref()
        .take(256)
        .read_until(b'\n', &mut line)
        .map_err(system("read from `git cat-file`"))?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (kind, size) = match words.as_slice() {
        [_, "missing"] => return Err(GitError::Missing { oid: oid.clone() }),
        [found, kind, size] if *found == oid.as_str() => {
            let kind = kind_of(kind).ok_or_else(|| unexpected("cat-file"))?;
            let size: u64 = size.parse().map_err(|_| unexpected("cat-file"))?;
            (kind, size)
        }
        [] => return Ok(None),
        _ => return Err(unexpected("cat-file")),
    };
    if size > MOST_BYTES {
        let oid = oid.clone();
        return Err(GitError::TooLarge { oid, size });
    }
    let mut bytes = Vec::new();
    answers
        .by_ref()
        .take(size + 1)
        .read_to_end(&mut bytes)
        .map_err(system("read from `git cat-file`"))?;
    if bytes.len() as u64 <= size {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(unexpected("cat-file"));
    }
    if oid.format().oid(kind, &bytes)? != *oid {
        return Err(GitError::Forged { oid: oid.clone() });
    }
    Ok(Some((kind, bytes)))
}

fn kind_of(word: &str) -> Option<Kind> {
    [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag]
        .into_iter()
        .find(|kind| kind.word() == word)
}
