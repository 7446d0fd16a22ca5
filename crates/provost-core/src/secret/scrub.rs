//! Takes secrets out of bytes, whole or as they come.
//!
//! # Invariants
//!
//! - A known value never is in what is given out, wherever the bytes were split on their way in.
//! - However the bytes are split, what is given out is the same, but for lines that are too long to
//!   wait for their end.
//! - No more than a line, or an open private key, is held back.

use std::borrow::Cow;
use std::ops::Range;

use super::evident::evident;
use super::known::Known;
use super::{REDACTED, shape};

/// The longest line whose end is waited for.
const LONGEST_LINE: usize = 1 << 20;
/// The shortest word that shows by itself that it is a secret.
const SHORTEST: usize = 15;
/// How far before the end of a line that is too long a better place to cut it is looked for.
const MARGIN: usize = 4 << 10;

impl Known {
    /// Where secrets stand in `bytes`, known ones and those that show by themselves what they are.
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

    /// `text` without known values; nothing if it holds none.
    pub fn hide(&self, text: &str) -> Option<String> {
        let found = self.find(text.as_bytes());
        let ranges: Vec<Range<usize>> = found.into_iter().map(|one| one.0).collect();
        let mut clean = Vec::new();
        let count = replace(text.as_bytes(), &ranges, &mut clean);
        (count > 0).then(|| String::from_utf8_lossy(&clean).into_owned())
    }
}

/// Whether anything in `text` is long enough to be evident; most of what programs print is not.
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

/// The same ranges in order, with those that touch or overlap as one.
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

/// Adds `bytes` to `clean` without what stands at `secrets`; answers how many those are.
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

/// Takes secrets out of a stream.
#[derive(Debug, Default)]
pub struct Scrubber {
    known: Known,
    held: Vec<u8>,
    removed: u64,
}

impl Scrubber {
    /// One that knows these values.
    pub fn new(known: Known) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// How many secrets were taken out so far.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Takes the next bytes; gives what can be given out by now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        if !bytes.iter().any(|byte| is_end(*byte)) && self.held.len() < LONGEST_LINE {
            return Vec::new();
        }
        let secrets = self.known.secrets(&self.held);
        let cut = self.cut(&secrets);
        self.give(&secrets, cut)
    }

    /// Gives the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let secrets = self.known.secrets(&self.held);
        self.give(&secrets, self.held.len())
    }

    /// How much can be given out without tearing a secret apart.
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
            // From the beginning of its line, where possible: what a word means is told by that.
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

/// Whether a byte ends a line; a bar that moves ends its line by going back to its beginning.
fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+/=%".contains(&byte)
}

#[cfg(test)]
mod tests;
