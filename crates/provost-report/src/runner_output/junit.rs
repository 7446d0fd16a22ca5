//! The output of `JUnit`: its XML report, the summary of Maven, the tree of its console launcher.

use super::{Counts, number, numbered};

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    report(lines)
        .or_else(|| maven(lines))
        .or_else(|| console(lines))
}

/// An XML report is counted by its cases: the numbers of suites include those of nested suites.
fn report(lines: &[&str]) -> Option<Counts> {
    let first = lines.iter().position(|line| line.contains("<testsuite"))?;
    let mut counts = Counts::default();
    let mut cases: u64 = 0;
    for line in &lines[first..] {
        // Attributes cannot hold `<`, so a tag in a text is one that a case printed in CDATA.
        for tag in line.split('<').skip(1) {
            let name = tag.split([' ', '>', '/']).next();
            match name {
                Some("testcase") => cases += 1,
                Some("failure" | "error") => counts.failed += 1,
                Some("skipped") => counts.skipped += 1,
                _ => {}
            }
        }
    }
    counts.failed = counts.failed.min(cases);
    let others = counts.failed.saturating_add(counts.skipped);
    counts.passed = cases.saturating_sub(others);
    Some(counts)
}

/// `[INFO] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1`: the line without a time is the sum of
/// a module; those with one are its classes.
fn maven(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in lines {
        let Some((_, rest)) = line.split_once("Tests run: ") else {
            continue;
        };
        if rest.contains("Time elapsed") {
            continue;
        }
        let (mut ran, mut counts) = (0, Counts::default());
        for (at, part) in rest.split(", ").enumerate() {
            let (name, count) = part.split_once(": ").unwrap_or(("Tests run", part));
            let Some(count) = number(count.trim_end_matches('.')) else {
                continue;
            };
            match name {
                _ if at == 0 => ran = count,
                "Failures" | "Errors" => counts.failed = counts.failed.saturating_add(count),
                "Skipped" => counts.skipped = count,
                _ => {}
            }
        }
        let others = counts.failed.saturating_add(counts.skipped);
        counts.passed = u64::saturating_sub(ran, others);
        found.get_or_insert_default().add(counts);
    }
    found
}

/// `[         3 tests successful      ]`
fn console(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in lines {
        let inner = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let Some((count, words)) = inner.and_then(numbered) else {
            continue;
        };
        let counts = found.unwrap_or_default();
        found = match words.trim() {
            "tests successful" => Some(Counts {
                passed: count,
                ..counts
            }),
            "tests failed" => Some(Counts {
                failed: count,
                ..counts
            }),
            "tests skipped" => Some(Counts {
                skipped: count,
                ..counts
            }),
            _ => continue,
        };
    }
    found
}
