//! Keeps what the agents of this user spend, by day, in the user's state directory.
//!
//! `spend/2026-11-18.jsonl` has a line for each reservation of that day (UTC), written before its
//! request is forwarded, and one for its settlement. A reservation without a settlement counts in
//! full: the process may have been killed in between.
//!
//! # Invariants
//!
//! - What is left is computed, and a reservation is written, under an exclusive lock on the file of
//!   the day, so that agents of several processes do not pass a limit together. The wait for it is
//!   limited: a process that is stopped while it holds the lock stops no other one.
//! - A reservation is on disk before its request is forwarded. So a last line that a crash cut is a
//!   reservation whose request was not forwarded, or a settlement whose reservation still counts.
//!   What of a reservation can be read of it counts all the same.
//! - Another line that cannot be read is never taken for nothing: under a limit nothing is reserved
//!   then.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use provost_core::agent::{Budget, SpendLimits};
use provost_core::json;
use provost_engine::ports::PortError;
use provost_fs::lock::{self, FileLock, Hold};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::proxy::gateway::budget::{Amount, Grant};
use crate::proxy::gateway::spend_book::{SpendBook, SpendRow};
use crate::user_file;

/// The directory in the user's state.
const DIRECTORY: &str = "spend";
/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many days back a run may have begun.
const DAYS_OF_A_RUN: usize = 31;

/// One line: a reservation, or its settlement with the same `id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpendLine {
    pub id: String,
    pub at: String,
    pub run: String,
    pub agent: String,
    pub model: String,
    pub tokens: u64,
    pub micro_usd: u64,
    /// Whether this is what the request cost, not what was reserved for it.
    pub settled: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// The file of spending, for one agent of one run.
#[derive(Debug)]
pub(crate) struct SpendFiles {
    directory: PathBuf,
    run: String,
    agent: String,
    limits: SpendLimits,
    next: AtomicU64,
}

impl SpendFiles {
    /// In the state directory `state`, which exists.
    pub(crate) fn at(state: &Path, run: &str, agent: &str, limits: SpendLimits) -> Self {
        Self {
            directory: state.join(DIRECTORY),
            run: run.to_owned(),
            agent: agent.to_owned(),
            limits,
            next: AtomicU64::new(0),
        }
    }

    /// The file, locked, without a line that a crash cut.
    fn open(&self, file: &str) -> io::Result<FileLock> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_link)
            .open(self.directory.join(file))?;
        let locked = lock::wait(PATIENCE, || {
            FileLock::try_on(file.try_clone()?, Hold::Alone)
        })?;
        let locked = locked
            .ok_or_else(|| io::Error::other("another process has locked today's spending file"))?;
        repair(locked.file())?;
        Ok(locked)
    }

    /// What is left, by the lines of today in `file` and those of the run on other days.
    fn left(&self, name: &str, file: &File) -> io::Result<Grant> {
        if self.limits.is_open() {
            return Ok(Grant::default());
        }
        let today = folded(&read(file)?)?;
        let mut run = sum(today.values().filter(|line| line.run == self.run));
        if !self.limits.run.is_open() {
            for other in files(&self.directory)?.iter().rev().take(DAYS_OF_A_RUN) {
                if other != name {
                    let lines = folded(&fs::read(self.directory.join(other))?)?;
                    let lines = lines.values().filter(|line| line.run == self.run);
                    run = run.plus(sum(lines));
                }
            }
        }
        let day = sum(today.values());
        Ok(smaller(
            left_of(self.limits.day, day),
            left_of(self.limits.run, run),
        ))
    }

    fn line(&self, (id, model): (&str, &str), amount: Amount, settled: bool) -> SpendLine {
        SpendLine {
            id: id.to_owned(),
            at: clock::now(),
            run: self.run.clone(),
            agent: self.agent.clone(),
            model: model.to_owned(),
            tokens: amount.tokens,
            micro_usd: amount.micro_usd,
            settled,
            estimated: false,
        }
    }

    fn try_reserve(
        &self,
        model: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> io::Result<Option<SpendRow>> {
        let now = clock::now();
        let name = format!("{}.jsonl", now.get(..10).unwrap_or("unknown"));
        let locked = self.open(&name)?;
        let file = locked.file();
        let left = self.left(&name, file)?;
        let Some(amount) = choose(left) else {
            return Ok(None);
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}.{}.{now}.{number}", self.run, std::process::id());
        append(file, &self.line((&id, model), amount, false))?;
        // Also without a limit: later agents of the day may have one.
        file.sync_data()?;
        Ok(Some(SpendRow {
            file: name,
            id,
            model: model.to_owned(),
        }))
    }
}

impl SpendBook for SpendFiles {
    fn reserve(
        &self,
        model: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> io::Result<Option<SpendRow>> {
        let mut chosen = false;
        let reserved = self.try_reserve(model, &mut |left| {
            chosen = true;
            choose(left)
        });
        match reserved {
            // Without a limit a file that cannot be written is no reason to stop.
            Err(_) if self.limits.is_open() => {
                if !chosen {
                    choose(Grant::default());
                }
                Ok(None)
            }
            reserved => reserved,
        }
    }

    fn settle(&self, row: &SpendRow, spent: Amount, estimated: bool) {
        let line = SpendLine {
            estimated,
            ..self.line((&row.id, &row.model), spent, true)
        };
        // If it cannot be written, the reservation counts.
        let _ = self
            .open(&row.file)
            .and_then(|locked| append(locked.file(), &line));
    }
}

/// The limits of a policy and those of the user, whichever is smaller.
pub(crate) fn limits_of(policy: SpendLimits) -> Result<SpendLimits, PortError> {
    Ok(policy.and(user_file::read()?.budget))
}

/// Every line that counts of the user's spending: settlements, and reservations without one.
pub fn all(state: &Path) -> io::Result<Vec<SpendLine>> {
    let directory = state.join(DIRECTORY);
    let mut all = Vec::new();
    for name in files(&directory)? {
        all.extend(folded(&fs::read(directory.join(name))?)?.into_values());
    }
    Ok(all)
}

/// The names of the files, oldest first.
fn files(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
    let mut names = names.collect::<io::Result<Vec<String>>>()?;
    names.retain(|name| Path::new(name).extension().is_some_and(|it| it == "jsonl"));
    names.sort();
    Ok(names)
}

fn read(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn append(mut file: &File, line: &SpendLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Removes a last line that a crash cut, and writes what it reserved as a whole line.
fn repair(mut file: &File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    if last == *b"\n" {
        return Ok(());
    }
    let bytes = read(file)?;
    let (whole, cut) = cut_line(&bytes);
    file.set_len(whole.len() as u64)?;
    // A settlement that was cut is left out: its reservation counts.
    let known = folded(whole).unwrap_or_default();
    match SpendLine::of_cut(cut) {
        Some(line) if !known.contains_key(&line.id) => append(file, &line),
        _ => Ok(()),
    }
}

/// The whole lines, and what comes after them.
fn cut_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.split_at(end.map_or(0, |end| end + 1))
}

impl SpendLine {
    /// The reservation that the beginning of a line says, as far as it has its amount.
    fn of_cut(text: &[u8]) -> Option<Self> {
        /// How a line of a reservation ends, as it is written.
        const END: &str = ",\"micro_usd\":0,\"settled\":false}";
        let line = (0..=END.len()).find_map(|from| {
            let whole = [text, &END.as_bytes()[from..]].concat();
            json::parse_as::<Self>(&whole).ok()
        });
        line.filter(|line| !line.settled)
    }
}

/// The line that counts of each reservation.
fn folded(bytes: &[u8]) -> io::Result<BTreeMap<String, SpendLine>> {
    let mut lines: BTreeMap<String, SpendLine> = BTreeMap::new();
    let (whole, cut) = cut_line(bytes);
    for text in whole
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let line: SpendLine = json::parse_as(text)
            .map_err(|error| io::Error::other(format!("a line of spending: {error}")))?;
        lines.insert(line.id.clone(), line);
    }
    if let Some(line) = SpendLine::of_cut(cut) {
        lines.entry(line.id.clone()).or_insert(line);
    }
    Ok(lines)
}

fn sum<'a>(lines: impl Iterator<Item = &'a SpendLine>) -> Amount {
    let amount = |line: &SpendLine| Amount {
        tokens: line.tokens,
        micro_usd: line.micro_usd,
    };
    lines.fold(Amount::default(), |sum, line| sum.plus(amount(line)))
}

fn left_of(limit: Budget, spent: Amount) -> Grant {
    let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
    Grant {
        tokens: left(limit.tokens, spent.tokens),
        micro_usd: left(limit.micro_usd, spent.micro_usd),
    }
}

fn smaller(one: Grant, other: Grant) -> Grant {
    let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
    Grant {
        tokens: least(one.tokens, other.tokens),
        micro_usd: least(one.micro_usd, other.micro_usd),
    }
}

#[cfg(test)]
mod tests;
