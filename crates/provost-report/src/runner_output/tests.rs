use super::*;

fn tally(text: &str) -> Option<(Vec<Runner>, u64, u64, u64)> {
    let of = |tally: Tally| (tally.runners, tally.passed, tally.failed, tally.skipped);
    let (out, err) = (count(text.as_bytes(), b""), count(b"", text.as_bytes()));
    assert_eq!(out, err, "{text}");
    out.map(of)
}

/// Output of runners, and the counts: passed, failed, skipped.
const PRINTED: [(&str, Runner, [u64; 3]); 25] = [
    (
        "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... ignored\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests x\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s",
        Runner::Cargo,
        [3, 0, 1],
    ),
    (
        "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
        Runner::Cargo,
        [5, 2, 0],
    ),
    (
        "test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        Runner::Cargo,
        [1, 0, 0],
    ),
    (
        "     Summary [   0.112s] 4 tests run: 3 passed (1 slow), 1 failed, 2 skipped",
        Runner::Cargo,
        [3, 1, 2],
    ),
    (
        "     Summary [   0.112s] 1 test run: 1 passed, 0 skipped",
        Runner::Cargo,
        [1, 0, 0],
    ),
    (
        "     Summary [   9.000s] 4/10 tests run: 3 passed, 1 timed out, 0 skipped",
        Runner::Cargo,
        [3, 1, 0],
    ),
    (
        "=== RUN   TestA\n=== RUN   TestA/part\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/part (0.00s)\n--- SKIP: TestB (0.00s)\n--- FAIL: TestC (0.01s)\nFAIL",
        Runner::Go,
        [2, 1, 1],
    ),
    (
        "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\",\"Elapsed\":0}\n{\"Action\":\"pass\",\"Package\":\"p\",\"Elapsed\":0.1}",
        Runner::Go,
        [1, 0, 0],
    ),
    (
        "testing: warning: no tests to run\nPASS\nok  \tp\t0.002s [no tests to run]",
        Runner::Go,
        [0, 0, 0],
    ),
    (
        "<?xml version=\"1.0\"?>\n<testsuites tests=\"3\"><testsuite name=\"s\" tests=\"3\" failures=\"1\">\n<testcase name=\"a\"/>\n<testcase name=\"b\"><failure message=\"x\">no</failure></testcase>\n<testcase name=\"c\"><skipped/></testcase></testsuite></testsuites>",
        Runner::Junit,
        [1, 1, 1],
    ),
    (
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s - in a.B\n[INFO] Results:\n[INFO] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1",
        Runner::Junit,
        [2, 2, 1],
    ),
    (
        "[         4 tests found           ]\n[         1 tests skipped         ]\n[         3 tests started         ]\n[         2 tests successful      ]\n[         1 tests failed          ]",
        Runner::Junit,
        [2, 1, 1],
    ),
    (
        "TAP version 13\n# Subtest: a\nok 1 - a\n1..1\n# tests 3\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n# duration_ms 40.5",
        Runner::Node,
        [1, 1, 1],
    ),
    (
        "✔ a (0.5ms)\nℹ tests 2\nℹ suites 0\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 12.1",
        Runner::Node,
        [2, 0, 0],
    ),
    ("# tests 0\n# pass 0\n# fail 0", Runner::Node, [0, 0, 0]),
    (
        "..F.\n1 failed, 3 passed in 0.12s",
        Runner::Pytest,
        [3, 1, 0],
    ),
    (
        "=== 1 failed, 3 passed, 2 skipped, 1 xfailed, 1 warning in 62.12s (0:01:02) ===",
        Runner::Pytest,
        [3, 1, 3],
    ),
    ("no tests ran in 0.01s", Runner::Pytest, [0, 0, 0]),
    ("=== 2 deselected in 0.01s ===", Runner::Pytest, [0, 0, 2]),
    ("=== 1 error in 0.01s ===", Runner::Pytest, [0, 1, 0]),
    (
        "1..4\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no disk\nnot ok 4 # todo later",
        Runner::Tap,
        [1, 1, 2],
    ),
    ("ok\nok\n1..2", Runner::Tap, [2, 0, 0]),
    ("1..0 # skipped: nothing here", Runner::Tap, [0, 0, 0]),
    (
        "...s\n----\nRan 4 tests in 0.001s\n\nOK (skipped=1)",
        Runner::Unittest,
        [3, 0, 1],
    ),
    (
        "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, expected failures=1)",
        Runner::Unittest,
        [2, 2, 1],
    ),
];

#[test]
fn what_runners_print_is_counted() {
    for (text, runner, [passed, failed, skipped]) in PRINTED {
        let want = Some((vec![runner], passed, failed, skipped));
        assert_eq!(tally(text), want, "{text}");
    }
}

#[test]
fn output_without_a_count_is_not_zero() {
    let cases = [
        "",
        "all good",
        "ok  \tand more\tof it",
        "3 passing cars",
        "Tests: we like them",
        "3 examples of this, 2 of that",
        "5 tests were hard, 2 failures",
        "ok | fine",
        "ok 1 - a line without a plan",
        "test result: looks fine",
        "we had 3 passed in 2 rounds",
        "Ran 3 laps in 10s",
        "# tests 3",
        "{\"Action\":\"pass\"}",
        "--- PASS: but no time",
        "12 cats in 3s",
    ];
    for text in cases {
        assert_eq!(tally(text), None, "{text}");
    }
}

#[test]
fn several_runners_add_up() {
    let text = "2 passed in 0.12s\n1 passed in 0.2s\nRan 1 test in 0.1s\n\nOK";
    let runners = vec![Runner::Pytest, Runner::Unittest];
    assert_eq!(tally(text), Some((runners, 4, 0, 0)));
}

#[test]
fn any_bytes_and_any_numbers_are_read() {
    let huge = "9".repeat(40);
    let text = format!("{huge} passed, {huge} failed in 1s\n{huge} passed in 1s");
    let (_, passed, failed, _) = tally(&text).unwrap();
    assert_eq!((passed, failed), (u64::MAX, u64::MAX));
    assert_eq!(count(b"\xff\xfe1 passed in 1s", b"\x1b[\x1b"), None);
    for text in [
        "1..",
        "not ok",
        "Ran ",
        "[]",
        "[ tests failed]",
        "<",
        "Summary [] run: ",
    ] {
        let _ = tally(text);
    }
}

/// Output of further runners, and the counts: passed, failed, skipped.
const MORE: [(&str, Runner, [u64; 3]); 43] = [
    (
        "\n\n  sum\n    ✔ adds two\n    1) fails here\n    - later\n    ✔ slow one (96ms)\n    inner\n      ✔ nested\n\n\n  3 passing (151ms)\n  1 pending\n  1 failing\n\n  1) sum\n       fails here:",
        Runner::Mocha,
        [3, 1, 1],
    ),
    ("  .!,..\n\n  3 passing (97ms)\n", Runner::Mocha, [3, 0, 0]),
    ("  0 passing (3ms)\n", Runner::Mocha, [0, 0, 0]),
    (
        "\u{1b}[92m \u{1b}[0m\u{1b}[32m 1 passing\u{1b}[0m\u{1b}[90m (2s)\u{1b}[0m",
        Runner::Mocha,
        [1, 0, 0],
    ),
    (
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 1 todo, 1 passed, 4 total\nSnapshots:   0 total\nTime:        2.392 s\nRan all test suites.",
        Runner::Jest,
        [1, 1, 2],
    ),
    (
        "Test Suites: 2 passed, 2 total\nTests:       5 passed, 5 total",
        Runner::Jest,
        [5, 0, 0],
    ),
    (
        "No tests found, exiting with code 0",
        Runner::Jest,
        [0, 0, 0],
    ),
    (
        " Test Files  1 failed (1)\n      Tests  1 failed | 1 passed | 1 skipped (3)\n   Start at  15:04:40",
        Runner::Vitest,
        [1, 1, 1],
    ),
    (
        "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[32m2 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (2)\u{1b}[39m",
        Runner::Vitest,
        [2, 0, 0],
    ),
    (
        "No test files found, exiting with code 0",
        Runner::Vitest,
        [0, 0, 0],
    ),
    (
        "  - [skip] later\n  - [todo] x\n  ✔ adds two\n  ✘ [fail]: fails here\n  ✔ [expected fail] known\n  ─\n\n  1 test failed\n  1 known failure\n  1 test skipped\n  1 test todo",
        Runner::Ava,
        [1, 1, 3],
    ),
    (
        "  ✔ a › b\n  ✔ a › c\n  ─\n\n  2 tests passed",
        Runner::Ava,
        [2, 0, 0],
    ),
    (
        "ok | 3 passed | 0 failed | 1 ignored (5ms)",
        Runner::Deno,
        [3, 0, 1],
    ),
    (
        "FAILED | 1 passed (2 steps) | 1 failed (12ms)",
        Runner::Deno,
        [1, 1, 0],
    ),
    (
        "bun test v1.1.0\n\na.test.ts:\n(pass) sum > adds [0.10ms]\n(fail) sum > fails\n\n 1 pass\n 1 skip\n 1 fail\n 2 expect() calls\nRan 3 tests across 1 file. [5.00ms]",
        Runner::Bun,
        [1, 1, 1],
    ),
    (
        "Running 4 tests using 2 workers\n  ✓  1 a.spec.ts:3:5 › x (1.2s)\n\n  1 failed\n    a.spec.ts:9:5 › y ──\n  1 skipped\n  2 passed (3.1s)",
        Runner::Playwright,
        [2, 1, 1],
    ),
    (
        "Finished in 0.01 seconds (files took 0.1 seconds to load)\n5 examples, 1 failure, 1 pending",
        Runner::Rspec,
        [3, 1, 1],
    ),
    (
        "0 examples, 0 failures, 1 error occurred outside of examples",
        Runner::Rspec,
        [0, 1, 0],
    ),
    ("1 example, 0 failures", Runner::Rspec, [1, 0, 0]),
    (
        "3 specs, 1 failure, 1 pending spec",
        Runner::Jasmine,
        [1, 1, 1],
    ),
    (
        "3 runs, 5 assertions, 1 failures, 0 errors, 1 skips",
        Runner::Minitest,
        [1, 1, 1],
    ),
    (
        "3 tests, 5 assertions, 1 failures, 0 errors, 0 pendings, 1 omissions, 0 notifications",
        Runner::Exunit,
        [1, 1, 1],
    ),
    (
        "1 doctest, 3 tests, 1 failure, 1 excluded, 1 skipped",
        Runner::Exunit,
        [1, 1, 2],
    ),
    ("3 tests, 0 failures", Runner::Exunit, [3, 0, 0]),
    (
        "3 scenarios (1 failed, 2 passed)\n9 steps (1 failed, 8 passed)",
        Runner::Cucumber,
        [2, 1, 0],
    ),
    ("OK (3 tests, 5 assertions)", Runner::Phpunit, [3, 0, 0]),
    (
        "FAILURES!\nTests: 4, Assertions: 5, Failures: 1, Errors: 1, Skipped: 1.",
        Runner::Phpunit,
        [1, 2, 1],
    ),
    ("No tests executed!", Runner::Phpunit, [0, 0, 0]),
    (
        "  Tests:    1 failed, 1 skipped, 2 passed (3 assertions)",
        Runner::Phpunit,
        [2, 1, 1],
    ),
    (
        "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 5 ms - x.dll (net8.0)",
        Runner::Dotnet,
        [3, 0, 1],
    ),
    (
        "Test summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 1.2s",
        Runner::Dotnet,
        [2, 1, 0],
    ),
    (
        "Total tests: 3\n     Passed: 2\n     Failed: 1\n Total time: 1.2 Seconds",
        Runner::Dotnet,
        [2, 1, 0],
    ),
    (
        "Test Suite 'A' passed\n\t Executed 2 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds\nTest Suite 'All tests' failed\n\t Executed 5 tests, with 1 test skipped and 1 failure (0 unexpected) in 0.1 (0.1) seconds",
        Runner::Swift,
        [3, 1, 1],
    ),
    (
        "✔ Test run with 3 tests in 1 suite passed after 0.001 seconds.",
        Runner::Swift,
        [3, 0, 0],
    ),
    (
        "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3",
        Runner::Sbt,
        [3, 0, 0],
    ),
    (
        "[error] Failed: Total 4, Failed 1, Errors 1, Passed 1, Skipped 1",
        Runner::Sbt,
        [1, 2, 1],
    ),
    (
        "Build Summary: 3/4 steps succeeded; 1 failed; 3/5 tests passed; 1 skipped; 1 failed",
        Runner::Zig,
        [3, 1, 1],
    ),
    (
        "1/2 Test #1: a ....   Passed    0.00 sec\n2/3 Test #2: b ...***Skipped   0.00 sec\n67% tests passed, 1 tests failed out of 3",
        Runner::Ctest,
        [1, 1, 1],
    ),
    ("No tests were found!!!", Runner::Ctest, [0, 0, 0]),
    (
        "AppTest > greets() PASSED\n\nAppTest > fails() FAILED\n\n2 tests completed, 1 failed",
        Runner::Gradle,
        [1, 1, 0],
    ),
    (
        "AppTest > greets() PASSED\nAppTest > other() SKIPPED\nBUILD SUCCESSFUL in 3s",
        Runner::Gradle,
        [1, 0, 1],
    ),
    (
        "[==========] 4 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 3 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.b",
        Runner::Googletest,
        [3, 1, 0],
    ),
    (
        "ok  \texample.com/a\t0.003s\nok  \texample.com/b\t(cached)\tcoverage: 5.0% of statements\n--- FAIL: TestX (0.00s)\n    x_test.go:4: no\nFAIL\nFAIL\texample.com/c\t0.002s\n?   \texample.com/d\t[no test files]\nok  \texample.com/e\t0.001s [no tests to run]\nFAIL\texample.com/f [build failed]\nFAIL",
        Runner::GoPackages,
        [2, 2, 0],
    ),
];

#[test]
fn what_further_runners_print_is_counted() {
    for (text, runner, [passed, failed, skipped]) in MORE {
        let want = Some((vec![runner], passed, failed, skipped));
        assert_eq!(tally(text), want, "{text}");
    }
}

/// A fix of a failing test is no loss of tests, although only failures are named without `-v`.
#[test]
fn go_counts_packages_where_it_names_no_tests() {
    let red = "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tp\t0.002s\nFAIL";
    let green = "ok  \tp\t0.002s";
    let count = |text: &str| count(text.as_bytes(), b"").unwrap();
    assert_eq!((count(red).ran(), count(green).ran()), (1, 1));
    assert_eq!(
        (count(red).unit(), count(green).unit()),
        ("package", "package")
    );
    assert_eq!(
        count("=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tp\t0.1s").unit(),
        "test"
    );
    assert_eq!(count("?   \tp\t[no test files]").ran(), 0);
}
