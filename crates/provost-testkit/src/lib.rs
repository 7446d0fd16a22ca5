//! Shared by the tests of all crates: a stage for the real program, and the one rule by which a
//! test is skipped.
//!
//! A test that this machine cannot run calls [`skip`] and returns. Runners hide what a passing test
//! prints, so the line also goes to the file named by `PROVOST_TEST_SKIPPED`; `./test` shows that
//! file at its end. With `PROVOST_TEST_REQUIRE=all`, as in CI, a skip is a failure.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong here is a failed test"
)]

pub mod broken_documents;
pub mod console;
pub mod stage;
pub mod transcript;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

const PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Reports that the running test is skipped, and why.
///
/// # Panics
///
/// If everything is required.
pub fn skip(reason: &str) {
    let required = std::env::var_os("PROVOST_TEST_REQUIRE").is_some_and(|value| value == "all");
    assert!(!required, "PROVOST_TEST_REQUIRE=all, and {reason}");
    omit(reason);
}

/// Like [`skip`], for something that a machine may lack even if everything is required: what CI
/// cannot have.
pub fn omit(reason: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), reason.trim());
    let _ = write!(std::io::stderr(), "skipped: {line}");
    if let Some(list) = std::env::var_os("PROVOST_TEST_SKIPPED") {
        // One write of a short line, which the kernel does not mix with those of other tests.
        let file = File::options().create(true).append(true).open(list);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "the list of skipped tests: {written:?}");
    }
}

/// Whether this machine lacks one of the programs; then the test is skipped.
pub fn lacks(programs: &[&str]) -> bool {
    let is_there = |program: &&&str| {
        let mut places = PATH.iter();
        places.any(|place| Path::new(place).join(program).is_file())
    };
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(program) = missing {
        skip(&format!("there is no {program}"));
    }
    missing.is_some()
}

/// Runs ordinary git in `directory`, which must succeed, and returns its output.
pub fn git<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> String {
    let mut command = Command::new("git");
    unconfigured(&mut command);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end().to_owned()
}

/// Gives git no configuration of this machine, but what all tests need.
fn unconfigured(git: &mut Command) {
    git.env("GIT_CONFIG_NOSYSTEM", "1");
    for option in [
        "protocol.file.allow=always",
        "core.autocrlf=false",
        "gc.auto=0",
    ] {
        git.args(["-c", option]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the test below in a process of its own, with these variables.
    fn run(variables: &[(&str, &str)]) -> bool {
        let program = std::env::current_exe().unwrap();
        let words = ["--exact", "--ignored", "tests::a_test_that_is_left_out"];
        let mut command = Command::new(program);
        command.args(words).env_remove("PROVOST_TEST_REQUIRE");
        command.env_remove("PROVOST_TEST_SKIPPED");
        command.envs(variables.iter().copied());
        command.output().unwrap().status.success()
    }

    #[test]
    #[ignore = "run by the test below"]
    fn a_test_that_is_left_out() {
        assert!(lacks(&["sh", "no-such-program"]));
    }

    #[test]
    fn a_skip_is_listed_and_is_a_failure_where_everything_is_required() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        let place = list.display().to_string();
        assert!(run(&[]));
        assert!(run(&[("PROVOST_TEST_SKIPPED", &place)]));
        let text = std::fs::read_to_string(&list).unwrap();
        std::fs::remove_file(&list).unwrap();
        let want = "tests::a_test_that_is_left_out: there is no no-such-program\n";
        assert_eq!(text, want);
        let all = ("PROVOST_TEST_REQUIRE", "all");
        assert!(!run(&[all]));
        assert!(!run(&[all, ("PROVOST_TEST_SKIPPED", &place)]));
        assert!(!list.exists());
        assert!(!lacks(&["sh"]));
    }
}
