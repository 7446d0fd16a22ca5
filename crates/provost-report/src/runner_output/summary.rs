//! Summaries of the form `5 examples, 1 failure, 1 pending`, distinguished by what they count.

use super::javascript::sum;
use super::{Counts, Runner, numbered};

/// The names of tests in one family of runners.
struct Family {
    runner: Runner,
    units: &'static [&'static str],
    /// A word that must occur as well.
    needs: &'static str,
}

const FAMILIES: &[Family] = &[
    Family {
        runner: Runner::Rspec,
        units: &["example", "examples"],
        needs: "failure",
    },
    Family {
        runner: Runner::Jasmine,
        units: &["spec", "specs"],
        needs: "failure",
    },
    Family {
        runner: Runner::Minitest,
        units: &["run", "runs"],
        needs: "assertion",
    },
    Family {
        runner: Runner::Exunit,
        units: &[
            "test",
            "tests",
            "doctest",
            "doctests",
            "property",
            "properties",
            "feature",
            "features",
        ],
        needs: "failure",
    },
];

/// The counts of each family.
pub(super) fn read(lines: &[&str]) -> impl Iterator<Item = (Runner, Counts)> {
    FAMILIES.iter().filter_map(|family| {
        let counts = sum(lines, |line| family.read(line))?;
        Some((family.runner, counts))
    })
}

impl Family {
    fn read(&self, line: &str) -> Option<Counts> {
        let (mut total, mut counts) = (0_u64, Counts::default());
        let mut needed = false;
        for (at, part) in line.split(", ").enumerate() {
            let (count, word) = numbered(part.trim_end_matches('.'))?;
            needed |= word.starts_with(self.needs);
            let words = word.split(" occurred").next().unwrap_or(word);
            match words {
                unit if self.units.contains(&unit) => total = total.saturating_add(count),
                _ if at == 0 => return None,
                "failure" | "failures" | "error" | "errors" | "invalid" => {
                    counts.failed = counts.failed.saturating_add(count);
                }
                "pending" | "pending spec" | "pending specs" | "pendings" | "skips" | "skip"
                | "skipped" | "excluded" | "omissions" | "not run" => {
                    counts.skipped = counts.skipped.saturating_add(count);
                }
                "assertion" | "assertions" | "notifications" | "notification" => {}
                _ => return None,
            }
        }
        let others = counts.failed.saturating_add(counts.skipped);
        counts.passed = total.saturating_sub(others);
        needed.then_some(counts)
    }
}

/// `3 scenarios (1 failed, 2 passed)`
pub(super) fn cucumber(lines: &[&str]) -> Option<Counts> {
    sum(lines, |line| {
        let (total, rest) = numbered(line)?;
        let inner = rest
            .strip_prefix("scenarios")
            .or_else(|| rest.strip_prefix("scenario"))?
            .trim_start();
        let inner = inner.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        if total == 0 {
            return Some(Counts::default());
        }
        let mut counts = Counts::default();
        for part in inner?.split(", ") {
            match numbered(part)? {
                (count, "passed") => counts.passed = count,
                (count, "failed" | "undefined" | "ambiguous") => {
                    counts.failed = counts.failed.saturating_add(count);
                }
                (count, _) => counts.skipped = counts.skipped.saturating_add(count),
            }
        }
        Some(counts)
    })
}
