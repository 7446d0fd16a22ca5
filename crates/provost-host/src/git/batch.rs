//! Reads many objects from one git process.
//!
//! Starting git costs more than reading a few objects, so a process that answered well is kept for
//! the next reader. Objects that are written meanwhile are found: git looks again for what it does
//! not know. It ends with its input, and so with us.

use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use provost_core::object::{Kind, Oid};

use super::run::{Running, unexpected};
use super::{GitError, Repository, system};

/// The largest object we take into memory.
const MOST_BYTES: u64 = 1 << 30;

/// How long a process is used again; its time limit counts from its start.
const FRESH: Duration = Duration::from_mins(1);

/// A process that waits for the next reader.
pub(super) type Idle = Arc<Mutex<Option<Reader>>>;

/// A reader of objects; every object it gives has the id that was asked for.
#[derive(Debug)]
pub struct Batch {
    /// Gone after an error: nobody knows what the process would answer next.
    reader: Option<Reader>,
    idle: Idle,
}

/// The process behind a [`Batch`].
#[derive(Debug)]
pub(super) struct Reader {
    running: Running,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    since: Instant,
}

impl Repository {
    /// A reader of objects, new or used before.
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
        // Where somebody waits already, this one ends.
        if let Ok(mut idle) = self.idle.lock()
            && idle.is_none()
        {
            *idle = self.reader.take();
        }
    }
}

impl Batch {
    /// Reads `oids` in their order and hands each object to `take`.
    pub fn each<'a, E: From<GitError>>(
        &mut self,
        oids: impl IntoIterator<Item = &'a Oid> + Send,
        mut take: impl FnMut(&'a Oid, Kind, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader.take().ok_or_else(|| unexpected("cat-file"))?;
        let read = reader.each(oids, &mut take);
        if read.is_ok() {
            self.reader = Some(reader);
        }
        read
    }

    /// Reads one object of a known kind.
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
    /// Itself, if it is alive and young enough to be used again.
    fn still_fresh(mut self) -> Option<Self> {
        let alive = matches!(self.running.child.try_wait(), Ok(None));
        (alive && self.since.elapsed() < FRESH).then_some(self)
    }

    fn each<'a, E: From<GitError>>(
        &mut self,
        oids: impl IntoIterator<Item = &'a Oid> + Send,
        take: &mut impl FnMut(&'a Oid, Kind, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self {
            running,
            requests,
            answers,
            ..
        } = self;
        let (sender, receiver) = std::sync::mpsc::sync_channel::<&Oid>(4096);
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || ask(requests, oids, &sender))
                .map_err(system("start a thread".to_owned()))?;
            let mut result = Ok(());
            for oid in receiver {
                result = answer(answers, oid)
                    .map_err(E::from)
                    .and_then(|(kind, bytes)| take(oid, kind, bytes));
                if result.is_err() {
                    // Nobody will read the rest: end git, so that the other thread ends too.
                    running.kill();
                    break;
                }
            }
            result
        })
    }
}

/// Writes the requests; a reader that went away shows as missing answers.
fn ask<'a>(
    requests: &mut BufWriter<ChildStdin>,
    oids: impl IntoIterator<Item = &'a Oid>,
    sender: &std::sync::mpsc::SyncSender<&'a Oid>,
) {
    // Answers are held back by git until it is told to flush, so ask in rounds. A round is
    // announced before it is written: somebody must read while git answers, or both wait.
    let mut round = Vec::new();
    let mut oids = oids.into_iter();
    loop {
        round.extend(oids.by_ref().take(1024));
        if round.is_empty() || round.iter().try_for_each(|oid| sender.send(oid)).is_err() {
            return;
        }
        let wrote = round
            .drain(..)
            .try_for_each(|oid| writeln!(requests, "contents {oid}"))
            .and_then(|()| writeln!(requests, "flush"))
            .and_then(|()| requests.flush());
        if wrote.is_err() {
            return;
        }
    }
}

/// Reads one answer and checks that the bytes are what was asked for.
fn answer(answers: &mut BufReader<ChildStdout>, oid: &Oid) -> Result<(Kind, Vec<u8>), GitError> {
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
        // It died: of damage in the object store, or of our time limit.
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
    if bytes.len() as u64 != size + 1 || bytes.pop() != Some(b'\n') {
        return Err(unexpected("cat-file"));
    }
    if oid.format().oid(kind, &bytes)? != *oid {
        return Err(GitError::Forged { oid: oid.clone() });
    }
    Ok((kind, bytes))
}

fn kind_of(word: &str) -> Option<Kind> {
    [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag]
        .into_iter()
        .find(|kind| kind.word() == word)
}
