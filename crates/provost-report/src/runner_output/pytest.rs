//! `pytest`: its last line, with or without the rule around it.

use super::{Counts, numbered};

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for counts in lines.iter().filter_map(|line| summary(line)) {
        found.get_or_insert_default().add(counts);
    }
    found
}

/// `=== 1 failed, 3 passed, 2 skipped, 1 warning in 0.12s ===`, or `no tests ran in 0.01s`
fn summary(line: &str) -> Option<Counts> {
    let line = line.trim_matches('=').trim();
    let (outcomes, time) = line.rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    if !seconds
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    if outcomes == "no tests ran" {
        return Some(Counts::default());
    }
    let mut counts = Counts::default();
    for part in outcomes.split(", ") {
        let (count, word) = numbered(part)?;
        match word {
            "passed" | "xpassed" => counts.passed = counts.passed.saturating_add(count),
            "failed" | "error" | "errors" => counts.failed = counts.failed.saturating_add(count),
            "skipped" | "xfailed" | "deselected" => {
                counts.skipped = counts.skipped.saturating_add(count);
            }
            "warning" | "warnings" | "rerun" => {}
            _ if word.starts_with("subtests ") => {}
            _ => return None,
        }
    }
    Some(counts)
}
