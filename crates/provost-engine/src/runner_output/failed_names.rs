//! The names of the tests that failed, for runners that print each of them in one fixed form.

use provost_core::tally::{Runner, Tally};

/// The most names that are recorded of one command.
const MOST: usize = 1000;

/// The longest name, in bytes.
const LONGEST: usize = 500;

/// The runners whose failed tests have names.
const NAMING: [Runner; 5] = [
    Runner::Cargo,
    Runner::Go,
    Runner::Pytest,
    Runner::Tap,
    Runner::Unittest,
];

/// The names in `lines`, sorted, if they are those of all failed tests of `tally`: as many as it
/// counts, and no two are equal. Which of two equal names failed could not be told.
pub(super) fn read(tally: &Tally, lines: &[&str]) -> Option<Vec<String>> {
    let known = tally.runners.iter().all(|runner| NAMING.contains(runner));
    if tally.failed == 0 || !known {
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
        // `test module::case ... FAILED`
        Runner::Cargo => line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?,
        // `    --- FAIL: TestGreeting/empty (0.00s)`
        Runner::Go => {
            let rest = line.trim_start().strip_prefix("--- FAIL: ")?;
            rest.rsplit_once(" (")?.0
        }
        // `FAILED tests/test_a.py::test_b - AssertionError`, or `ERROR tests/test_a.py`
        Runner::Pytest => {
            let rest = line
                .strip_prefix("FAILED ")
                .or(line.strip_prefix("ERROR "))?;
            rest.split(" - ").next()?
        }
        // `not ok 3 - says hello`
        Runner::Tap => {
            let rest = line.strip_prefix("not ok ")?;
            let (number, name) = rest.split_once(" - ")?;
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let directive = name.rsplit_once('#').map(|(_, text)| text.trim_start());
            let is_left_out = directive.is_some_and(|text| {
                let text = text.to_ascii_lowercase();
                text.starts_with("skip") || text.starts_with("todo")
            });
            (is_number && !is_left_out).then_some(name)?
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

#[cfg(test)]
mod tests {
    use super::super::count;

    fn names(output: &str) -> Option<Vec<String>> {
        count(output.as_bytes(), b"")?.failed_names
    }

    #[test]
    fn failed_tests_are_named_where_the_runner_names_all_of_them() {
        let cargo = "test a::one ... ok\ntest a::two ... FAILED\ntest three ... FAILED\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let pytest = "FAILED tests/t.py::test_b[1] - assert 1 == 2\nERROR tests/u.py - boom\n\
            1 failed, 3 passed, 1 error in 0.12s";
        let go = "=== RUN   TestA\n    --- FAIL: TestA/x (0.00s)\n--- FAIL: TestA (0.00s)\n\
            --- PASS: TestB (0.00s)\nFAIL";
        let tap = "1..3\nok 1 - one\nnot ok 2 - two words\nnot ok 3 - later # TODO";
        let unittest = "FAIL: test_a (t.T.test_a)\n-----\nRan 2 tests in 0.001s\n\n\
            FAILED (failures=1)";
        let cases = [
            (cargo, vec!["a::two", "three"]),
            (pytest, vec!["tests/t.py::test_b[1]", "tests/u.py"]),
            (go, vec!["TestA", "TestA/x"]),
            (tap, vec!["two words"]),
            (unittest, vec!["test_a (t.T.test_a)"]),
        ];
        for (output, want) in cases {
            let want: Vec<String> = want.into_iter().map(str::to_owned).collect();
            assert_eq!(names(output), Some(want), "{output}");
        }
    }

    #[test]
    fn names_that_do_not_account_for_every_failure_are_no_names() {
        let result = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured";
        let cases = [
            (
                "one name for two failures",
                format!("test a ... FAILED\n{result}"),
            ),
            (
                "twice the same",
                format!("test a ... FAILED\ntest a ... FAILED\n{result}"),
            ),
            (
                "a name too many",
                format!("test a ... FAILED\ntest b ... FAILED\ntest c ... FAILED\n{result}"),
            ),
            ("no name", "2 failed, 1 passed in 0.1s".to_owned()),
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
