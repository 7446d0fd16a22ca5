//! Finds the names of tests in the output of a test runner.
//!
//! Only lines of a fixed form are read. They count only if their number is the number of tests that
//! the runner reports.

use provost_core::tally::Tally;

use crate::runner_output;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    /// How long it took, where the runner says so.
    pub(super) millis: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// The tests of a command, if its output names exactly those that were counted.
pub(super) fn of(stdout: &str, stderr: &str, tally: &Tally) -> Option<Vec<Case>> {
    for read in [
        cargo, nextest, go, pytest, unittest, tap, marked, bun, deno, ctest,
    ] {
        for text in [stdout, stderr] {
            let lines = text.lines().map(runner_output::plain);
            // Below its numbers, Mocha repeats the names of the tests that failed.
            let lines = lines.take_while(|line| !line.contains(" passing ("));
            let cases: Vec<Case> = lines.filter_map(|line| read(&line)).collect();
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
        millis: None,
    }
}

impl Case {
    /// The same, with the duration that `text` gives.
    fn timed(mut self, text: &str) -> Self {
        self.millis = millis(text);
        self
    }
}

/// A time such as `19 ms`, `0.10ms`, `1.2s` or `0.00 sec`, in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim_start() {
        "ms" => 1.0,
        "s" | "sec" => 1000.0,
        _ => return None,
    };
    let time: f64 = number.parse().ok()?;
    std::time::Duration::try_from_secs_f64(time * factor / 1000.0)
        .ok()
        .and_then(|time| u64::try_from(time.as_millis()).ok())
}

/// `    ✔ adds two (96ms)`, `  1) fails here`, `  - later`: Mocha, Jest, Vitest, AVA and node.
fn marked(line: &str) -> Option<Case> {
    const MARKS: [(&str, Outcome); 13] = [
        ("✔ [expected fail]", Outcome::Skipped),
        ("✔ ", Outcome::Passed),
        ("✓ ", Outcome::Passed),
        ("√ ", Outcome::Passed),
        ("✘ [fail]: ", Outcome::Failed),
        ("✖ ", Outcome::Failed),
        ("✕ ", Outcome::Failed),
        ("× ", Outcome::Failed),
        ("○ skipped ", Outcome::Skipped),
        ("✎ todo ", Outcome::Skipped),
        ("↓ ", Outcome::Skipped),
        ("﹣ ", Outcome::Skipped),
        ("- ", Outcome::Skipped),
    ];
    let text = line.trim_start();
    let marked = MARKS.iter().find_map(|(mark, outcome)| {
        let name = text.strip_prefix(mark)?;
        Some((name, *outcome))
    });
    let numbered = || {
        let (number, name) = text.split_once(") ")?;
        let counts = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        counts.then_some((name, Outcome::Failed))
    };
    let (name, outcome) = marked.or_else(numbered)?;
    // Vitest marks files as well, with the number of their tests.
    if name.contains(" test)") || name.contains(" tests)") || name.contains(" tests |") {
        return None;
    }
    let in_brackets = name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once(" ("));
    let behind = || name.rsplit_once(' ');
    let timed = in_brackets.or_else(behind);
    Some(match timed.filter(|(_, time)| millis(time).is_some()) {
        Some((name, time)) => case(name, outcome).timed(time),
        None => case(name, outcome),
    })
}

/// `(pass) sum > adds two [0.10ms]`
fn bun(line: &str) -> Option<Case> {
    let (word, name) = line.strip_prefix('(')?.split_once(") ")?;
    let outcome = match word {
        "pass" => Outcome::Passed,
        "fail" => Outcome::Failed,
        "skip" | "todo" => Outcome::Skipped,
        _ => return None,
    };
    let timed = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once(" ["));
    Some(match timed {
        Some((name, time)) => case(name, outcome).timed(time),
        None => case(name, outcome),
    })
}

/// `adds two ... ok (1ms)`
fn deno(line: &str) -> Option<Case> {
    let (name, word) = line.rsplit_once(" ... ")?;
    let (word, time) = word.split_once(" (").unwrap_or((word, ""));
    let outcome = match word {
        _ if line.starts_with(' ') || time.is_empty() => return None,
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Skipped,
        _ => return None,
    };
    Some(case(name, outcome).timed(time.trim_end_matches(')')))
}

/// `1/3 Test #1: adds_two .........   Passed    0.01 sec`
fn ctest(line: &str) -> Option<Case> {
    let (_, rest) = line.split_once(" Test ")?;
    let (_, rest) = rest.trim_start().strip_prefix('#')?.split_once(": ")?;
    let (name, rest) = rest.split_once(' ')?;
    let rest = rest.trim_start_matches(['.', ' ', '*']);
    let (outcome, word) = [
        ("Passed", Outcome::Passed),
        ("Skipped", Outcome::Skipped),
        ("Failed", Outcome::Failed),
        ("Timeout", Outcome::Failed),
        ("Exception", Outcome::Failed),
    ]
    .into_iter()
    .find_map(|(word, outcome)| rest.starts_with(word).then_some((outcome, word)))?;
    Some(case(name, outcome).timed(&rest[word.len()..]))
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
    let (time, name) = rest.split_once("] ")?;
    let outcome = match word {
        "PASS" => Outcome::Passed,
        "FAIL" => Outcome::Failed,
        _ => return None,
    };
    Some(case(name, outcome).timed(time))
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
    Some(case(name, outcome).timed(time.trim_end_matches(')')))
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
    // The name may contain blanks, and a reason may follow the word.
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
            failed_names: None,
        }
    }

    /// Output of runners for one test that passed, one that failed, and one that was skipped.
    const NAMED: &[(&str, &str)] = &[
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
        (
            "mocha",
            "  sum\n    ✔ adds (96ms)\n    1) fails\n    - later\n\n  1 passing (5ms)\n  1) sum\n",
        ),
        (
            "jest",
            "  sum\n    ✓ adds (19 ms)\n    ✕ fails (14 ms)\n    ○ skipped later\n",
        ),
        (
            "vitest",
            " ✓ a.test.js > adds 2ms\n × a.test.js > fails 24ms\n ↓ a.test.js > later\n",
        ),
        ("ava", "  ✔ adds two\n  ✘ [fail]: fails\n  - [skip] later\n"),
        (
            "bun",
            "(pass) adds [0.10ms]\n(fail) fails [3.00ms]\n(skip) later\n",
        ),
        (
            "deno",
            "adds ... ok (1ms)\nfails ... FAILED (2ms)\nlater ... ignored (0ms)\n",
        ),
        (
            "ctest",
            "1/3 Test #1: a ....   Passed    0.00 sec\n2/3 Test #2: b ...***Failed   0.02 sec\n3/3 Test #3: c ...***Skipped   0.00 sec\n",
        ),
        ("tap", "1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no\n"),
    ];

    #[test]
    fn runners_name_their_tests() {
        for (name, text) in NAMED {
            let skipped = u64::from(*name != "nextest");
            let found = of(text, "", &tally(1, 1, skipped));
            let found = found.unwrap_or_else(|| panic!("{name}"));
            assert_eq!(found[0].outcome, Outcome::Passed, "{name}");
            assert_eq!(found[1].outcome, Outcome::Failed, "{name}");
            // Names count only if they are all there.
            assert_eq!(of(text, "", &tally(2, 1, skipped)), None, "{name}");
        }
        let times = [
            ("19 ms", 19),
            ("1.2s", 1200),
            (" 0.02 sec", 20),
            ("0.4ms", 0),
        ];
        for (text, want) in times {
            assert_eq!(millis(text), Some(want), "{text}");
        }
        for text in ["", "ms", "two", "3 cats", "1.2.3s"] {
            assert_eq!(millis(text), None, "{text}");
        }
        let found = of("    ✔ slow (two) (96ms)\n", "", &tally(1, 0, 0)).unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].millis),
            ("slow (two)", Some(96))
        );
        let found = of("", "ok 1 - says hello\n", &tally(1, 0, 0)).unwrap();
        assert_eq!(found[0].name, "says hello");
    }
}
