//! Finds the names of tests in what a test runner printed.
//!
//! Only lines are read that runners print in one fixed form. They count only if there are as many
//! of them as the runner says there were tests.

use provost_core::tally::Tally;

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

/// What became of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// The tests of a command, if its output names exactly those that were counted.
pub(super) fn of(stdout: &str, stderr: &str, tally: &Tally) -> Option<Vec<Case>> {
    for read in [cargo, nextest, go, pytest, unittest, tap] {
        for text in [stdout, stderr] {
            let cases: Vec<Case> = text.lines().filter_map(read).collect();
            if !cases.is_empty() && fits(&cases, tally) {
                return Some(cases);
            }
        }
    }
    None
}

fn fits(cases: &[Case], tally: &Tally) -> bool {
    let count = |outcome: Outcome| cases.iter().filter(|one| one.outcome == outcome).count() as u64;
    count(Outcome::Passed) == tally.passed
        && count(Outcome::Failed) == tally.failed
        && count(Outcome::Skipped) == tally.skipped
}

fn case(name: &str, outcome: Outcome) -> Case {
    Case {
        name: name.trim().to_owned(),
        outcome,
    }
}

/// `test module::name ... ok`
fn cargo(line: &str) -> Option<Case> {
    let (name, word) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match word.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Skipped,
        _ => return None,
    };
    Some(case(name, outcome))
}

/// `        PASS [   0.004s] crate module::name`
fn nextest(line: &str) -> Option<Case> {
    let (word, rest) = line.trim_start().split_once(" [")?;
    let (_, name) = rest.split_once("] ")?;
    let outcome = match word {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        _ => return None,
    };
    Some(case(name, outcome))
}

/// `--- PASS: TestGreeting (0.00s)`
fn go(line: &str) -> Option<Case> {
    let (word, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    let outcome = match word {
        _ if !time.ends_with("s)") => return None,
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    Some(case(name, outcome))
}

/// `tests/test_greet.py::test_name PASSED                      [ 50%]`
fn pytest(line: &str) -> Option<Case> {
    const WORDS: [(&str, Outcome); 6] = [
        (" PASSED", Outcome::Passed),
        (" XPASS", Outcome::Passed),
        (" FAILED", Outcome::Failed),
        (" ERROR", Outcome::Failed),
        (" SKIPPED", Outcome::Skipped),
        (" XFAIL", Outcome::Skipped),
    ];
    // The name may hold blanks, and a reason may follow the word.
    WORDS.iter().find_map(|(word, outcome)| {
        let (name, rest) = line.split_once(word)?;
        let whole = rest.is_empty() || rest.starts_with(' ');
        (whole && name.contains("::")).then(|| case(name, *outcome))
    })
}

/// `test_name (module.Class.test_name) ... ok`
fn unittest(line: &str) -> Option<Case> {
    let (name, word) = line.rsplit_once(" ... ")?;
    let outcome = match word.split(' ').next()? {
        _ if !name.starts_with("test") || !name.contains(" (") => return None,
        "ok" => Outcome::Passed,
        "FAIL" | "ERROR" => Outcome::Failed,
        "skipped" | "expected" => Outcome::Skipped,
        _ => return None,
    };
    Some(case(name, outcome))
}

/// `ok 1 - name # SKIP why`
fn tap(line: &str) -> Option<Case> {
    let (passed, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return None,
    };
    let (name, directive) = match rest.rsplit_once('#') {
        Some((name, directive)) => (name, directive.trim_start().to_ascii_lowercase()),
        None => (rest, String::new()),
    };
    let outcome = if directive.starts_with("skip") || directive.starts_with("todo") {
        Outcome::Skipped
    } else if passed {
        Outcome::Passed
    } else {
        Outcome::Failed
    };
    let digits = |letter: char| letter.is_ascii_digit();
    let name = name
        .trim_start_matches(digits)
        .trim_start_matches([' ', '-']);
    Some(case(name, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            runners: Vec::new(),
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn runners_name_their_tests() {
        let cases = [
            (
                "cargo",
                "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored, slow\n",
            ),
            (
                "nextest",
                "        PASS [   0.004s] x a::b\n        FAIL [   0.1s] x c\n",
            ),
            (
                "go",
                "=== RUN X\n--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b (0.1s)\n--- SKIP: C (0s)\n",
            ),
            (
                "pytest",
                "t.py::a PASSED  [ 33%]\nt.py::b[x y] FAILED [66%]\nt.py::c SKIPPED (w) [9%]\n",
            ),
            (
                "unittest",
                "test_a (m.C.test_a) ... ok\ntest_b (m.C) ... FAIL\ntest_c (m.C) ... skipped 'x'\n",
            ),
            ("tap", "1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no\n"),
        ];
        for (name, text) in cases {
            let skipped = u64::from(name != "nextest");
            let found = of(text, "", &tally(1, 1, skipped));
            let found = found.unwrap_or_else(|| panic!("{name}"));
            assert_eq!(found[0].outcome, Outcome::Passed, "{name}");
            assert_eq!(found[1].outcome, Outcome::Failed, "{name}");
            // Names count only if they are all there.
            assert_eq!(of(text, "", &tally(2, 1, skipped)), None, "{name}");
        }
        let found = of("", "ok 1 - says hello\n", &tally(1, 0, 0)).unwrap();
        assert_eq!(found[0].name, "says hello");
    }
}
