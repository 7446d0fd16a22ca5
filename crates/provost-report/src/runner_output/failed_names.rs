//! The names of the tests that failed, for runners that print each of them in one fixed form.

use provost_core::tally::{Runner, Tally};

/// The most names that are recorded of one command.
const MOST: usize = 1000;

/// The longest name, in bytes.
const LONGEST: usize = 500;

/// The runners whose names say which file or module a test is in. Tests of two binaries of cargo, two
/// packages of Go or two files of TAP may have one name, so a failure of one could excuse the other.
const NAMING: [Runner; 2] = [Runner::Pytest, Runner::Unittest];

/// What a runner prints that did not run all tests.
const STOPPED: [&str; 2] = ["stopping after ", "Interrupted: "];

/// The names in `lines`, sorted, if they are those of all failed tests of `tally`: as many as it
/// counts, and no two are equal. Which of two equal names failed could not be told.
pub(super) fn read(tally: &Tally, lines: &[&str]) -> Option<Vec<String>> {
    let known = tally.runners.iter().all(|runner| NAMING.contains(runner));
    let stopped = |line: &&str| line.starts_with('!') && STOPPED.iter().any(|it| line.contains(it));
    if tally.failed == 0 || !known || lines.iter().any(stopped) {
        return None;
    }
    let mut names: Vec<String> = lines
        .iter()
        .filter_map(|line| tally.runners.iter().find_map(|runner| name(*runner, line)))
        .map(str::to_owned)
        .collect();
    names.sort();
    let found = names.len();
    names.dedup();
    let is_whole = found == names.len() && u64::try_from(found) == Ok(tally.failed);
    let is_short = found <= MOST && names.iter().all(|name| name.len() <= LONGEST);
    (is_whole && is_short).then_some(names)
}

/// The name of the failed test that `line` of `runner` reports.
fn name(runner: Runner, line: &str) -> Option<&str> {
    let found = match runner {
        // `FAILED tests/test_a.py::test_b - AssertionError`, or `ERROR tests/test_a.py`
        Runner::Pytest => {
            let rest = line
                .strip_prefix("FAILED ")
                .or(line.strip_prefix("ERROR "))?;
            pytest_id(rest)?
        }
        // `FAIL: test_add (tests.test_calc.CalcTest.test_add)`
        Runner::Unittest => {
            let rest = line
                .strip_prefix("FAIL: ")
                .or(line.strip_prefix("ERROR: "))?;
            rest.ends_with(')').then_some(rest)?
        }
        _ => return None,
    };
    Some(found.trim()).filter(|name| !name.is_empty())
}

/// The id before the message; parameters in brackets may hold the same dash.
fn pytest_id(text: &str) -> Option<&str> {
    let dash = text.find(" - ").unwrap_or(text.len());
    if !text[..dash].contains('[') {
        return Some(&text[..dash]);
    }
    let mut ends = text.match_indices("] - ");
    match (ends.next(), ends.next()) {
        (Some((at, _)), None) => Some(&text[..=at]),
        (None, _) => text.ends_with(']').then_some(text),
        // Which of them ends the id cannot be told.
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::count;

    fn names(output: &str) -> Option<Vec<String>> {
        count(output.as_bytes(), b"")?.failed_names
    }

    #[test]
    fn failed_tests_are_named_where_the_runner_names_all_of_them() {
        let pytest = "FAILED tests/t.py::test_b[x - 1] - assert 1 == 2\nERROR tests/u.py - boom\n\
            1 failed, 3 passed, 1 error in 0.12s";
        let unittest = "FAIL: test_a (t.T.test_a)\n-----\nRan 2 tests in 0.001s\n\n\
            FAILED (failures=1)";
        let cases = [
            (pytest, vec!["tests/t.py::test_b[x - 1]", "tests/u.py"]),
            (unittest, vec!["test_a (t.T.test_a)"]),
        ];
        for (output, want) in cases {
            let want: Vec<String> = want.into_iter().map(str::to_owned).collect();
            assert_eq!(names(output), Some(want), "{output}");
        }
    }

    #[test]
    fn names_that_do_not_account_for_every_failure_are_no_names() {
        let result = "2 failed, 1 passed in 0.1s";
        let cases = [
            (
                "one name for two failures",
                format!("FAILED t.py::a - x\n{result}"),
            ),
            (
                "twice the same",
                format!("FAILED t.py::a - x\nFAILED t.py::a - y\n{result}"),
            ),
            (
                "a name too many",
                format!("FAILED t.py::a\nFAILED t.py::b\nFAILED t.py::c\n{result}"),
            ),
            (
                "an id that may end in two places",
                format!("FAILED t.py::a[x] - 1] - assert\nFAILED t.py::b - x\n{result}"),
            ),
            (
                "not all tests ran",
                format!(
                    "FAILED t.py::a\nFAILED t.py::b\n!!! stopping after 2 failures !!!\n{result}"
                ),
            ),
            ("no name", result.to_owned()),
            (
                "names that two binaries may share",
                "test a ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured"
                    .to_owned(),
            ),
            (
                "names that two packages may share",
                "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL".to_owned(),
            ),
            (
                "names that two files may share",
                "1..2\nok 1 - one\nnot ok 2 - two".to_owned(),
            ),
            (
                "a runner without names",
                "Tests:       2 failed, 1 passed, 3 total".to_owned(),
            ),
        ];
        for (name, output) in cases {
            assert_eq!(names(&output), None, "{name}");
        }
        let green = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(names(green), None, "nothing failed");
    }
}
