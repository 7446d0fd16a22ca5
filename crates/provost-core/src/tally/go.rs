//! `go test`, which names its tests only when asked to (`-v`, `-json`).
//!
//! A test with parts counts by itself and by each of them, as go counts.

use super::Counts;

pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in lines {
        let Some(outcome) = verbose(line).or_else(|| event(line)) else {
            // Said of a package whose tests were all left out.
            if *line == "testing: warning: no tests to run" {
                found.get_or_insert_default();
            }
            continue;
        };
        let counts = found.get_or_insert_default();
        match outcome {
            Outcome::Passed => counts.passed += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::Skipped => counts.skipped += 1,
        }
    }
    found
}

enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// `--- PASS: TestGreeting (0.00s)`, indented for a part of a test.
fn verbose(line: &str) -> Option<Outcome> {
    let rest = line.trim_start().strip_prefix("--- ")?;
    let (word, rest) = rest.split_once(": ")?;
    if !rest.ends_with("s)") {
        return None;
    }
    match word {
        "PASS" => Some(Outcome::Passed),
        "FAIL" => Some(Outcome::Failed),
        "SKIP" => Some(Outcome::Skipped),
        _ => None,
    }
}

/// `{"Time":"…","Action":"pass","Package":"p","Test":"TestGreeting","Elapsed":0}`
fn event(line: &str) -> Option<Outcome> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Event<'a> {
        action: &'a str,
        #[expect(dead_code, reason = "only an event with both is one of a test")]
        package: &'a str,
        #[serde(borrow)]
        test: std::borrow::Cow<'a, str>,
    }
    if !line.starts_with('{') || !line.contains("\"Action\"") {
        return None;
    }
    let event: Event<'_> = serde_json::from_str(line).ok()?;
    match event.action {
        _ if event.test.is_empty() => None,
        "pass" => Some(Outcome::Passed),
        "fail" => Some(Outcome::Failed),
        "skip" => Some(Outcome::Skipped),
        _ => None,
    }
}
