//! Counts the tests that a command ran, from the output of its test runner.
//!
//! A command that exits with 0 may have run no test at all, and a change may remove tests that
//! fail. Only summaries and lines that runners print in one fixed form are parsed. A command that
//! prints none of them is not counted, which is not the same as zero.

mod cargo;
mod failed_names;
mod go;
mod javascript;
mod junit;
mod native;
mod node;
mod pytest;
mod summary;
mod tap;
mod unittest;

use std::borrow::Cow;

use provost_core::tally::{Runner, Tally};

/// The numbers of one runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

/// Counts the tests of a command by both of its streams; `None` if no runner can be recognised.
///
/// The streams are parsed separately, because the order between their lines is unknown.
pub fn count(stdout: &[u8], stderr: &[u8]) -> Option<Tally> {
    let mut tally: Option<Tally> = None;
    let texts = [stdout, stderr].map(String::from_utf8_lossy);
    let lines = texts.each_ref().map(|text| {
        let lines = text.lines().map(plain);
        let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
        lines
    });
    for lines in &lines {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for (runner, counts) in read(&lines) {
            let tally = tally.get_or_insert_default();
            if !tally.runners.contains(&runner) {
                tally.runners.push(runner);
            }
            tally.passed = tally.passed.saturating_add(counts.passed);
            tally.failed = tally.failed.saturating_add(counts.failed);
            tally.skipped = tally.skipped.saturating_add(counts.skipped);
        }
    }
    if let Some(tally) = &mut tally {
        let lines: Vec<&str> = lines.iter().flatten().map(String::as_str).collect();
        tally.failed_names = failed_names::read(tally, &lines);
    }
    tally
}

fn read(lines: &[&str]) -> Vec<(Runner, Counts)> {
    let mut found = Vec::new();
    let mut note = |runner, counts: Option<Counts>| found.extend(counts.map(|one| (runner, one)));
    note(Runner::Cargo, cargo::read(lines));
    match go::read(lines) {
        None => note(Runner::GoPackages, go::packages(lines)),
        counts => note(Runner::Go, counts),
    }
    note(Runner::Junit, junit::read(lines));
    note(Runner::Pytest, pytest::read(lines));
    note(Runner::Unittest, unittest::read(lines));
    // node prints its summary below TAP, and the same tests must not count twice.
    match node::read(lines) {
        None => note(Runner::Tap, tap::read(lines)),
        counts => note(Runner::Node, counts),
    }
    for (runner, reader) in READERS {
        note(*runner, reader(lines));
    }
    found.extend(summary::read(lines));
    found
}

/// Parses the numbers of one runner from lines.
type Reader = fn(&[&str]) -> Option<Counts>;

const READERS: &[(Runner, Reader)] = &[
    (Runner::Ava, javascript::ava),
    (Runner::Bun, javascript::bun),
    (Runner::Ctest, native::ctest),
    (Runner::Cucumber, summary::cucumber),
    (Runner::Deno, javascript::deno),
    (Runner::Dotnet, native::dotnet),
    (Runner::Googletest, native::googletest),
    (Runner::Gradle, native::gradle),
    (Runner::Jest, javascript::jest),
    (Runner::Mocha, javascript::mocha),
    (Runner::Phpunit, native::phpunit),
    (Runner::Playwright, javascript::playwright),
    (Runner::Sbt, native::sbt),
    (Runner::Swift, native::swift),
    (Runner::Vitest, javascript::vitest),
    (Runner::Zig, native::zig),
];

/// A line without its colour escape sequences.
pub fn plain(line: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\x1b';
    if !line.contains(ESCAPE) {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split(ESCAPE);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |letter: char| letter.is_ascii_alphabetic();
        let after = part
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(ends));
        text.push_str(after.map_or(part, |(_, rest)| rest));
    }
    Cow::Owned(text)
}

fn number(text: &str) -> Option<u64> {
    // A sign is no part of a count, and `parse` would accept it.
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The number before a space and the word after it.
fn numbered(text: &str) -> Option<(u64, &str)> {
    let (count, word) = text.trim().split_once(' ')?;
    Some((number(count)?, word))
}

/// The word before the last space and the number after it.
fn numbered_last(text: &str) -> Option<(&str, u64)> {
    let (word, count) = text.rsplit_once(' ')?;
    Some((word, number(count)?))
}

#[cfg(test)]
mod tests;
