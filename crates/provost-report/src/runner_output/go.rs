//! `go test`, which names its tests only when asked to (`-v`, `-json`), and else its packages.
//!
//! A test with subtests counts by itself and by each of them, as go counts. Without `-v` only
//! failed tests are named, so packages are counted.

use provost_core::json;

use super::Counts;

/// The tests that were named, if all of them were.
pub(super) fn read(lines: &[&str]) -> Option<Counts> {
    let names_all = |line: &&str| {
        line.starts_with("=== RUN ")
            || matches!(verbose(line), Some(Outcome::Passed | Outcome::Skipped))
            || event(line).is_some()
            || *line == "testing: warning: no tests to run"
    };
    if !lines.iter().any(names_all) {
        return None;
    }
    let mut found: Option<Counts> = None;
    for line in lines {
        let Some(outcome) = verbose(line).or_else(|| event(line)) else {
            // Printed for a package whose tests were all left out.
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

/// `ok  \tp\t0.003s`, `FAIL\tp [build failed]`; one without tests does not count.
pub(super) fn packages(lines: &[&str]) -> Option<Counts> {
    let mut found: Option<Counts> = None;
    for line in lines {
        let Some((word, rest)) = line.split_once('\t') else {
            continue;
        };
        let (name, end) = rest.split_once(['\t', ' ']).unwrap_or((rest, ""));
        let timed = end.starts_with(|letter: char| letter.is_ascii_digit());
        let ended = timed || end.starts_with("(cached)") || end.ends_with("failed]");
        if name.is_empty() || !(ended || end.starts_with("[no test")) {
            continue;
        }
        let is_empty = end.contains("[no tests to run]") || end.starts_with("[no test files]");
        match word.trim_end() {
            "ok" | "?" if is_empty => {
                found.get_or_insert_default();
            }
            "ok" => found.get_or_insert_default().passed += 1,
            "FAIL" => found.get_or_insert_default().failed += 1,
            _ => {}
        }
    }
    found
}

enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// `--- PASS: TestGreeting (0.00s)`, indented for a subtest.
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
    struct Event {
        action: String,
        #[expect(dead_code, reason = "only an event with both is one of a test")]
        package: String,
        test: String,
    }
    if !line.starts_with('{') || !line.contains("\"Action\"") {
        return None;
    }
    let event: Event = json::parse_as(line.as_bytes()).ok()?;
    match event.action.as_str() {
        _ if event.test.is_empty() => None,
        "pass" => Some(Outcome::Passed),
        "fail" => Some(Outcome::Failed),
        "skip" => Some(Outcome::Skipped),
        _ => None,
    }
}
