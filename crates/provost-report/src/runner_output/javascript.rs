//! Runners of JavaScript: Mocha, Jest, Vitest, AVA, Bun, Deno and Playwright.

use super::{Counts, number, numbered};

/// `  3 passing (5ms)`, then `  1 pending` and `  1 failing`.
pub(super) fn mocha(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for (at, line) in lines.iter().enumerate() {
        let Some((passed, rest)) = indented(line) else {
            continue;
        };
        let time = rest.strip_prefix("passing (");
        if !time.is_some_and(|time| time.ends_with(')')) {
            continue;
        }
        let mut counts = Counts {
            passed,
            ..Counts::default()
        };
        for (count, word) in lines[at + 1..].iter().map_while(indented) {
            match word {
                "pending" => counts.skipped = count,
                "failing" => counts.failed = count,
                _ => break,
            }
        }
        found.get_or_insert_default().add(counts);
    }
    found
}

/// `Tests:       1 failed, 1 skipped, 1 todo, 3 passed, 6 total`
pub(super) fn jest(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        if line.starts_with("No tests found, exiting with code") {
            return Some(Counts::default());
        }
        let parts = line.strip_prefix("Tests:")?.trim();
        parts
            .ends_with(" total")
            .then(|| outcomes(parts.split(", ")))?
    })
}

/// `      Tests  1 failed | 3 passed | 1 skipped (5)`
pub(super) fn vitest(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let line = line.trim_start();
        if line.starts_with("No test files found, exiting with code") || line == "Tests  no tests" {
            return Some(Counts::default());
        }
        let (parts, total) = line.strip_prefix("Tests  ")?.rsplit_once(" (")?;
        number(total.strip_suffix(')')?)?;
        outcomes(parts.split(" | "))
    })
}

/// `ok | 3 passed (2 steps) | 0 failed | 1 ignored (5ms)`
pub(super) fn deno(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let rest = line.strip_prefix("ok | ");
        let rest = rest.or_else(|| line.strip_prefix("FAILED | "))?;
        let (parts, time) = rest.rsplit_once(" (")?;
        time.ends_with("s)").then(|| outcomes(parts.split(" | ")))?
    })
}

/// `  3 tests passed`, or `  1 test failed` below a line for each test.
pub(super) fn ava(lines: &[&str]) -> Option<Counts> {
    let mut counts = Counts::default();
    let (mut passed, mut has_end) = (None, false);
    for (count, words) in lines.iter().filter_map(indented) {
        match words {
            "test passed" | "tests passed" => passed = Some(count),
            "test failed" | "tests failed" => counts.failed = count,
            "known failure" | "known failures" | "test skipped" | "tests skipped" | "test todo"
            | "tests todo" => {
                counts.skipped = counts.skipped.saturating_add(count);
                continue;
            }
            _ => continue,
        }
        has_end = true;
    }
    let named = lines.iter().filter(|line| {
        let name = line.strip_prefix("  ✔ ");
        name.is_some_and(|name| !name.starts_with("[expected fail]"))
    });
    counts.passed = passed.unwrap_or_else(|| named.count() as u64);
    has_end.then_some(counts)
}

/// ` 3 pass`, ` 0 fail` and `Ran 3 tests across 1 file. [5.00ms]`
pub(super) fn bun(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for (at, line) in lines.iter().enumerate() {
        let ran = line.strip_prefix("Ran ").and_then(numbered);
        if !ran.is_some_and(|(_, rest)| rest.starts_with("test") && rest.contains(" across ")) {
            continue;
        }
        let mut counts = Counts::default();
        for (count, word) in lines[at.saturating_sub(8)..at]
            .iter()
            .filter_map(|line| numbered(line))
        {
            match word {
                "pass" => counts.passed = count,
                "fail" => counts.failed = count,
                "skip" | "todo" => counts.skipped = counts.skipped.saturating_add(count),
                _ => {}
            }
        }
        found.get_or_insert_default().add(counts);
    }
    found
}

/// `Running 3 tests using 1 worker`, and at the end `  1 failed` and `  2 passed (1.2s)`.
pub(super) fn playwright(lines: &[&str]) -> Option<Counts> {
    let begins = |line: &&str| {
        let rest = line.strip_prefix("Running ").and_then(numbered);
        rest.is_some_and(|(_, rest)| rest.starts_with("test") && rest.contains(" using "))
    };
    let first = lines.iter().position(begins)?;
    let mut counts = Counts::default();
    for (count, word) in lines[first..].iter().filter_map(indented) {
        match word.split(" (").next() {
            Some("passed" | "flaky") => counts.passed = counts.passed.saturating_add(count),
            Some("failed" | "interrupted") => counts.failed = counts.failed.saturating_add(count),
            Some("skipped" | "did not run") => {
                counts.skipped = counts.skipped.saturating_add(count);
            }
            _ => {}
        }
    }
    Some(counts)
}

/// A number and the text after it, behind exactly two spaces.
fn indented<'a>(line: &&'a str) -> Option<(u64, &'a str)> {
    let inner = line.strip_prefix("  ")?;
    let whole = !inner.starts_with(' ');
    whole.then(|| numbered(inner))?
}

/// Numbers with the words that JavaScript runners share; `None` if one has another form.
fn outcomes<'a>(parts: impl Iterator<Item = &'a str>) -> Option<Counts> {
    let mut counts = Counts::default();
    for part in parts {
        let (count, word) = numbered(part)?;
        let word = word.split(" (").next().unwrap_or(word);
        match word {
            "passed" => counts.passed = count,
            "failed" => counts.failed = count,
            "skipped" | "todo" | "ignored" | "expected fail" => {
                counts.skipped = counts.skipped.saturating_add(count);
            }
            "total" | "measured" | "filtered out" => {}
            _ => return None,
        }
    }
    Some(counts)
}

pub(super) fn sum(lines: &[&str], read: impl Fn(&str) -> Option<Counts>) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for counts in lines.iter().filter_map(|line| read(line)) {
        found.get_or_insert_default().add(counts);
    }
    found
}
