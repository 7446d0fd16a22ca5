use super::*;

fn tally(text: &str) -> Option<(Vec<Runner>, u64, u64, u64)> {
    let of = |tally: Tally| (tally.runners, tally.passed, tally.failed, tally.skipped);
    let (out, err) = (count(text.as_bytes(), b""), count(b"", text.as_bytes()));
    assert_eq!(out, err, "{text}");
    out.map(of)
}

/// What runners print, and what is counted: passed, failed, skipped.
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
fn what_nobody_counts_is_not_none() {
    let cases = [
        "",
        "all good",
        "ok  \texample.com/p\t0.003s",
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
