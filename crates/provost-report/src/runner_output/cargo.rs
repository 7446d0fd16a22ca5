//! `cargo test`, one summary for each test binary, and `cargo nextest`, one for all of them.

use super::{Counts, number, numbered};

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for counts in lines
        .iter()
        .filter_map(|line| binary(line).or_else(|| nextest(line)))
    {
        found.get_or_insert_default().add(counts);
    }
    found
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn binary(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, numbers) = rest.split_once(". ")?;
    let mut counts = Counts::default();
    for (count, word) in numbers.split(';').filter_map(numbered) {
        match word {
            "passed" | "measured" => counts.passed = counts.passed.saturating_add(count),
            "failed" => counts.failed = count,
            "ignored" => counts.skipped = count,
            _ => {}
        }
    }
    Some(counts)
}

/// `     Summary [   0.112s] 4 tests run: 3 passed (1 slow), 1 failed, 2 skipped`
fn nextest(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once("] ")?;
    let (total, outcomes) = rest.split_once(" run: ")?;
    let total = total.split(['/', ' ']).next().and_then(number)?;
    let mut counts = Counts::default();
    for (count, word) in outcomes.split(',').filter_map(numbered) {
        match word.split(' ').next() {
            Some("passed") => counts.passed = count,
            Some("skipped") => counts.skipped = count,
            _ => {}
        }
    }
    counts.failed = total.saturating_sub(counts.passed);
    Some(counts)
}
