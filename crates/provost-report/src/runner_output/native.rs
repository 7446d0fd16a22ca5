//! Runners of further languages: PHP, .NET, Swift, Scala, Zig, C and C++, and Gradle.

use super::javascript::sum;
use super::{Counts, number, numbered};

/// `OK (3 tests, 5 assertions)` or `Tests: 3, Assertions: 5, Failures: 1, Skipped: 1.`
pub(super) fn phpunit(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        if line == "No tests executed!" {
            return Some(Counts::default());
        }
        if let Some(inner) = line.strip_prefix("OK (") {
            let (passed, word) = numbered(inner.split(',').next()?)?;
            let whole = word.starts_with("test") && inner.contains("assertion");
            return whole.then_some(Counts {
                passed,
                ..Counts::default()
            });
        }
        let parts = line.trim_start().strip_prefix("Tests: ")?;
        if let Some((parts, _)) = parts
            .split_once(" (")
            .filter(|_| parts.contains("assertion"))
        {
            return pest(parts);
        }
        let parts = parts.strip_suffix('.')?;
        if !parts.contains("Assertions: ") {
            return None;
        }
        let mut total = 0;
        let mut counts = Counts::default();
        for (at, part) in parts.split(", ").enumerate() {
            let (name, count) = part.split_once(": ").unwrap_or(("Tests", part));
            let count = number(count)?;
            match name {
                _ if at == 0 => total = count,
                "Failures" | "Errors" => counts.failed = counts.failed.saturating_add(count),
                "Skipped" | "Incomplete" => counts.skipped = counts.skipped.saturating_add(count),
                _ => {}
            }
        }
        Some(rest_of(total, counts))
    })
}

/// `  Tests:    1 failed, 2 passed (3 assertions)`
fn pest(parts: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for part in parts.split(", ") {
        match numbered(part)? {
            (count, "passed") => counts.passed = count,
            (count, "failed") => counts.failed = count,
            (count, _) => counts.skipped = counts.skipped.saturating_add(count),
        }
    }
    Some(counts)
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - x.dll`, or
/// `Test summary: total: 3, failed: 0, succeeded: 3, skipped: 0, duration: 1.2s`, or a block below
/// `Total tests: 3`.
pub(super) fn dotnet(lines: &[&str]) -> Option<Counts> {
    let named = |text: &str| {
        let mut counts = Counts::default();
        for part in text.split(',') {
            let Some((name, count)) = part.trim().split_once(':') else {
                continue;
            };
            let Some(count) = number(count.trim()) else {
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "failed" => counts.failed = count,
                "passed" | "succeeded" => counts.passed = count,
                "skipped" => counts.skipped = count,
                _ => {}
            }
        }
        counts
    };
    let line = |line: &str| {
        let (head, rest) = line.split_once("!  - ")?;
        let head = head.trim_start();
        let ends = ["Passed", "Failed", "Skipped"].contains(&head);
        (ends && rest.contains("Total:")).then(|| named(rest))
    };
    let last = |line: &str| line.strip_prefix("Test summary: total: ").map(named);
    sum(lines, line)
        .or_else(|| sum(lines, last))
        .or_else(|| {
            let first = lines.iter().position(|line| {
                let total = line.strip_prefix("Total tests: ").and_then(number);
                total.is_some()
            })?;
            Some(named(
                &lines[first..]
                    .iter()
                    .take(5)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(","),
            ))
        })
        .or_else(|| {
            let none = lines
                .iter()
                .any(|line| line.starts_with("No test is available in "));
            none.then(Counts::default)
        })
}

/// `Executed 3 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.1) seconds`, of which
/// the last is the sum, and `Test run with 3 tests in 1 suite passed after 0.001 seconds.`
pub(super) fn swift(lines: &[&str]) -> Option<Counts> {
    let executed = |line: &&str| {
        let (total, rest) = line
            .trim_start()
            .strip_prefix("Executed ")
            .and_then(numbered)?;
        let outcomes = rest.split_once("with ")?.1.split(" (").next()?;
        let mut counts = Counts::default();
        for (count, word) in outcomes.split(" and ").filter_map(numbered) {
            match word {
                "failure" | "failures" => counts.failed = count,
                "test skipped" | "tests skipped" => counts.skipped = count,
                _ => {}
            }
        }
        Some(rest_of(total, counts))
    };
    let testing = |line: &&str| {
        let (_, rest) = line.split_once("Test run with ")?;
        let (total, rest) = numbered(rest)?;
        let ended = rest.contains(" passed after ") || rest.contains(" failed after ");
        let failed = lines.iter().filter(|line| {
            let name = line.trim_start().strip_prefix("✘ Test ");
            name.is_some_and(|name| !name.starts_with("run ") && name.contains(" failed after "))
        });
        let counts = Counts {
            failed: failed.count() as u64,
            ..Counts::default()
        };
        (ended && rest.starts_with("test")).then(|| rest_of(total, counts))
    };
    let xctest = lines.iter().rev().find_map(executed);
    let testing = lines.iter().rev().find_map(testing);
    match (xctest, testing) {
        (Some(mut one), Some(other)) => {
            one.add(other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// `[info] Passed: Total 3, Failed 0, Errors 0, Passed 3`
pub(super) fn sbt(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let (_, rest) = line.strip_prefix('[')?.split_once("ed: Total ")?;
        let mut counts = Counts::default();
        for (name, count) in rest.split(", ").filter_map(super::numbered_last) {
            match name {
                "Failed" | "Errors" => counts.failed = counts.failed.saturating_add(count),
                "Passed" => counts.passed = count,
                _ => counts.skipped = counts.skipped.saturating_add(count),
            }
        }
        Some(counts)
    })
}

/// `Build Summary: 3/3 steps succeeded; 4/5 tests passed; 1 skipped`
pub(super) fn zig(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let parts = line.strip_prefix("Build Summary: ")?;
        let mut found: Option<(u64, Counts)> = None;
        for part in parts.split("; ") {
            if let Some(ratio) = part.strip_suffix(" tests passed") {
                let (passed, total) = ratio.split_once('/')?;
                let counts = Counts {
                    passed: number(passed)?,
                    ..Counts::default()
                };
                found = Some((number(total)?, counts));
            } else if let (Some((_, counts)), Some((count, "skipped"))) =
                (&mut found, numbered(part))
            {
                counts.skipped = count;
            }
        }
        let (total, mut counts) = found?;
        let others = counts.passed.saturating_add(counts.skipped);
        counts.failed = total.saturating_sub(others);
        Some(counts)
    })
}

/// `67% tests passed, 1 tests failed out of 3`, with `***Skipped` behind those left out.
pub(super) fn ctest(lines: &[&str]) -> Option<Counts> {
    let skipped = lines.iter().filter(|line| line.contains("***Skipped"));
    let skipped = skipped.count() as u64;
    sum(lines, |line| {
        if line.starts_with("No tests were found!!!") {
            return Some(Counts::default());
        }
        let (_, rest) = line.split_once("% tests passed, ")?;
        let (failed, total) = rest.split_once(" failed out of ")?;
        let counts = Counts {
            failed: numbered(failed)?.0,
            skipped,
            ..Counts::default()
        };
        Some(rest_of(number(total)?, counts))
    })
}

/// `AppTest > greets() PASSED`, or `3 tests completed, 1 failed, 1 skipped` where some failed.
pub(super) fn gradle(lines: &[&str]) -> Option<Counts> {
    let completed = sum(lines, |line| {
        let (total, rest) = numbered(line)?;
        let others = rest
            .strip_prefix("tests completed")
            .or_else(|| rest.strip_prefix("test completed"))?;
        let mut counts = Counts::default();
        for part in others.split(", ").skip(1) {
            match numbered(part)? {
                (count, "failed") => counts.failed = count,
                (count, "skipped") => counts.skipped = count,
                _ => return None,
            }
        }
        Some(rest_of(total, counts))
    });
    completed.or_else(|| {
        sum(lines, |line| {
            let (name, word) = line.rsplit_once(' ')?;
            let mut counts = Counts::default();
            match word {
                _ if !name.contains(" > ") || name.contains("::") => return None,
                "PASSED" => counts.passed = 1,
                "FAILED" => counts.failed = 1,
                "SKIPPED" => counts.skipped = 1,
                _ => return None,
            }
            Some(counts)
        })
    })
}

/// `[  PASSED  ] 3 tests.` and `[  FAILED  ] 1 test, listed below:`
pub(super) fn googletest(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let (word, rest) = line.strip_prefix("[  ")?.split_once("] ")?;
        let (count, rest) = numbered(rest)?;
        let mut counts = Counts::default();
        match word.trim_end() {
            "PASSED" if rest.starts_with("test") => counts.passed = count,
            "FAILED" if rest.ends_with("listed below:") => counts.failed = count,
            "SKIPPED" if rest.ends_with("listed below:") => counts.skipped = count,
            _ => return None,
        }
        Some(counts)
    })
}

/// `counts` with the rest of `total` as passed.
fn rest_of(total: u64, counts: Counts) -> Counts {
    let others = counts.failed.saturating_add(counts.skipped);
    Counts {
        passed: total.saturating_sub(others),
        ..counts
    }
}
