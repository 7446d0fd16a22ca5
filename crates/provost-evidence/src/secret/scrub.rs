//! Removes secrets from bytes, whole or streamed.
//!
//! # Invariants
//!
//! - A known value never is in the output, wherever the input was split.
//! - The output does not depend on how the input is split, except for lines that are too long to be
//!   buffered.
//! - No more than a line, or an unfinished private key, is buffered.

use std::borrow::Cow;
use std::ops::Range;

use super::evident::evident;
use super::known::Known;
use super::{REDACTED, shape};

/// The longest line that is buffered, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// The shortest word that is evidently a secret.
const SHORTEST: usize = 15;
/// How far before the end of an overlong line a better place to cut is searched for.
const MARGIN: usize = 4 << 10;

impl Known {
    /// The ranges of secrets in `bytes`: known ones and evident ones.
    pub fn secrets(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = self.find(bytes).into_iter().map(|one| one.0).collect();
        let mut from = 0;
        for chunk in bytes.utf8_chunks() {
            let text = chunk.valid();
            let found = if is_worth(text) {
                evident(text)
            } else {
                Vec::new()
            };
            all.extend(found.into_iter().map(|secret| {
                let Range { start, end } = secret.range;
                from + start..from + end
            }));
            from += text.len() + chunk.invalid().len();
        }
        joined(all)
    }

    /// `bytes` without secrets, and how many there were.
    pub fn scrub<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u64) {
        let secrets = self.secrets(bytes);
        if secrets.is_empty() {
            return (Cow::Borrowed(bytes), 0);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let count = replace(bytes, &secrets, &mut clean);
        (Cow::Owned(clean), count)
    }

    /// `text` without secrets, and how many there were.
    pub fn scrub_text(&self, text: String) -> (String, u64) {
        let secrets = self.secrets(text.as_bytes());
        if secrets.is_empty() {
            return (text, 0);
        }
        let mut clean = Vec::with_capacity(text.len());
        let count = replace(text.as_bytes(), &secrets, &mut clean);
        (String::from_utf8_lossy(&clean).into_owned(), count)
    }

    /// `text` without known values; `None` if it holds none.
    pub fn hide(&self, text: &str) -> Option<String> {
        let found = self.find(text.as_bytes());
        let ranges: Vec<Range<usize>> = found.into_iter().map(|one| one.0).collect();
        let mut clean = Vec::new();
        let count = replace(text.as_bytes(), &ranges, &mut clean);
        (count > 0).then(|| String::from_utf8_lossy(&clean).into_owned())
    }
}

/// Whether any word of `text` is long enough to be evident; most output has none.
fn is_worth(text: &str) -> bool {
    let mut run = 0_usize;
    text.bytes().any(|byte| {
        run = if byte.is_ascii_whitespace() {
            0
        } else {
            run + 1
        };
        run >= SHORTEST
    })
}

/// The ranges in order, with those that touch or overlap merged.
fn joined(mut all: Vec<Range<usize>>) -> Vec<Range<usize>> {
    all.sort_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in all {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// Appends `bytes` to `clean` without the ranges `secrets`, and returns their number.
fn replace(bytes: &[u8], secrets: &[Range<usize>], clean: &mut Vec<u8>) -> u64 {
    let mut from = 0;
    for secret in secrets {
        clean.extend_from_slice(&bytes[from..secret.start]);
        clean.extend_from_slice(REDACTED.as_bytes());
        from = secret.end;
    }
    clean.extend_from_slice(&bytes[from..]);
    secrets.len() as u64
}

/// Removes secrets from a stream.
#[derive(Debug, Default)]
pub struct Scrubber {
    known: Known,
    held: Vec<u8>,
    removed: u64,
}

impl Scrubber {
    pub fn new(known: Known) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// How many secrets were removed so far.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Takes the next bytes; returns the output that is final.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        if !bytes.iter().any(|byte| is_end(*byte)) && self.held.len() < LONGEST_LINE {
            return Vec::new();
        }
        let secrets = self.known.secrets(&self.held);
        let cut = self.cut(&secrets);
        self.give(&secrets, cut)
    }

    /// Returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let secrets = self.known.secrets(&self.held);
        self.give(&secrets, self.held.len())
    }

    /// How many bytes can be written without splitting a secret.
    fn cut(&self, secrets: &[Range<usize>]) -> usize {
        let held = &self.held;
        let lines = held.iter().rposition(|byte| is_end(*byte));
        let mut cut = lines.map_or(0, |at| at + 1);
        if let Some(open) = shape::open_armour(held) {
            cut = cut.min(open);
        }
        if held.len() - cut >= LONGEST_LINE {
            cut = held.len() - MARGIN;
            let margin = &held[cut..];
            cut += margin
                .iter()
                .position(|byte| !is_letter(*byte))
                .unwrap_or(0);
        }
        if let Some(unfinished) = self.known.unfinished(held).filter(|at| *at < cut) {
            // From the beginning of its line, if possible: the line gives a word its meaning.
            let line = held[..unfinished].iter().rposition(|byte| is_end(*byte));
            cut = line.map_or(unfinished, |at| at + 1);
        }
        let inside = |range: &&Range<usize>| range.start < cut && cut < range.end;
        secrets.iter().find(inside).map_or(cut, |range| range.start)
    }

    fn give(&mut self, secrets: &[Range<usize>], cut: usize) -> Vec<u8> {
        let before = secrets.partition_point(|range| range.end <= cut);
        let mut clean = Vec::with_capacity(cut);
        self.removed += replace(&self.held[..cut], &secrets[..before], &mut clean);
        self.held.drain(..cut);
        clean
    }
}

/// Whether a byte ends a line; a progress bar ends its line with a carriage return.
fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+/=%".contains(&byte)
}

#[cfg(test)]
mod tests;
