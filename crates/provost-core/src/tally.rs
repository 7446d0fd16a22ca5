//! How many tests an acceptance command ran, and which runners said so.
//!
//! `provost-engine` counts them from what the command printed. A command that prints no known
//! summary has no tally, which is not the same as zero.

use serde::{Deserialize, Serialize};

/// A program that runs tests and prints how many there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    Cargo,
    Go,
    /// `go test` without `-v`, which names packages and no tests.
    GoPackages,
    Junit,
    Node,
    Pytest,
    Tap,
    Unittest,
    Ava,
    Bun,
    Ctest,
    Cucumber,
    Deno,
    Dotnet,
    Exunit,
    Googletest,
    Gradle,
    Jasmine,
    Jest,
    Minitest,
    Mocha,
    Phpunit,
    Playwright,
    Rspec,
    Sbt,
    Swift,
    Vitest,
    Zig,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub runners: Vec<Runner>,
    pub passed: u64,
    pub failed: u64,
    /// Tests that were skipped, or were expected to fail.
    pub skipped: u64,
    /// The names of all tests that failed, sorted; absent if the output does not name each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_names: Option<Vec<String>>,
}

impl Tally {
    pub fn ran(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    /// What was counted: tests, or packages if the output names no test.
    pub fn unit(&self) -> &'static str {
        let packages = self.runners.iter().all(|it| *it == Runner::GoPackages);
        if packages && !self.runners.is_empty() {
            "package"
        } else {
            "test"
        }
    }
}
