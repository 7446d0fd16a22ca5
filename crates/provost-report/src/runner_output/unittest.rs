//! `python -m unittest`: how many ran, and their results.

use super::{Counts, number};

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(ran) = ran(line) {
            let outcome = lines[at + 1..].iter().find(|line| !line.is_empty());
            found.get_or_insert_default().add(outcome_of(ran, outcome));
        }
    }
    found
}

/// `Ran 3 tests in 0.001s`
fn ran(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("Ran ")?;
    let (count, rest) = rest.split_once(' ')?;
    let after = rest
        .strip_prefix("tests in ")
        .or_else(|| rest.strip_prefix("test in "))?;
    after.ends_with('s').then(|| number(count))?
}

/// `OK`, `OK (skipped=1)` or `FAILED (failures=1, errors=2)`
fn outcome_of(ran: u64, line: Option<&&str>) -> Counts {
    let mut counts = Counts::default();
    let inner = line
        .and_then(|line| line.split_once(" ("))
        .map(|(_, rest)| rest);
    for part in inner.unwrap_or_default().trim_end_matches(')').split(", ") {
        let Some((name, count)) = part.split_once('=') else {
            continue;
        };
        let count = number(count).unwrap_or_default();
        match name {
            "failures" | "errors" => counts.failed = counts.failed.saturating_add(count),
            "skipped" | "expected failures" => {
                counts.skipped = counts.skipped.saturating_add(count);
            }
            _ => {}
        }
    }
    // An error in a module or a class has no test.
    counts.failed = counts.failed.min(ran);
    let others = counts.failed.saturating_add(counts.skipped);
    counts.passed = ran.saturating_sub(others);
    counts
}
