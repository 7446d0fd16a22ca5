//! What was measured, as a table of ratios.

use std::collections::BTreeMap;
use std::fmt;

/// Times by name, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measures(BTreeMap<String, f64>);

impl Measures {
    /// Whether there is a measure of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The measure, or no number, which keeps no limit.
    pub(super) fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// Reads lines of a name and a number; what is none of that is left out.
pub(super) fn parse(text: &str) -> Measures {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next()?, words.next()?);
        Some((name.to_owned(), value.parse().ok()?))
    };
    Measures(text.lines().filter_map(line).collect())
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is compared with what.
    pub name: String,
    /// What was found.
    pub found: Found,
}

/// What became of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Two medians in microseconds, and the most their ratio may be.
    Ratio {
        /// What we need.
        ours: f64,
        /// What the baseline needs.
        baseline: f64,
        /// The limit; without one the ratio is information.
        limit: Option<f64>,
    },
    /// Nothing, and why.
    Skipped(String),
}

/// The whole table.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    rows: Vec<Row>,
    tolerance: f64,
}

impl Report {
    /// An empty table whose limits are `tolerance` times as wide.
    pub(super) fn new(tolerance: f64) -> Self {
        Self {
            rows: Vec::new(),
            tolerance,
        }
    }

    /// Adds a ratio that has a limit.
    pub(super) fn judge(&mut self, name: &str, ours: f64, baseline: f64, limit: f64) {
        let limit = Some(limit * self.tolerance);
        self.add(
            name,
            Found::Ratio {
                ours,
                baseline,
                limit,
            },
        );
    }

    /// Adds a ratio as information.
    pub(super) fn tell(&mut self, name: &str, ours: f64, baseline: f64) {
        let limit = None;
        self.add(
            name,
            Found::Ratio {
                ours,
                baseline,
                limit,
            },
        );
    }

    /// Adds what could not be measured.
    pub(super) fn skip(&mut self, name: &str, why: &str) {
        self.add(name, Found::Skipped(why.to_owned()));
    }

    fn add(&mut self, name: &str, found: Found) {
        self.rows.push(Row {
            name: name.to_owned(),
            found,
        });
    }

    /// Whether every limit is kept, and every measure was made where all are `required`.
    pub fn holds(&self, required: bool) -> bool {
        self.rows.iter().all(|row| match &row.found {
            Found::Skipped(_) => !required,
            Found::Ratio { .. } => row.found.is_kept() != Some(false),
        })
    }
}

impl Found {
    /// Whether the limit is kept; nothing without a limit. A ratio that is no number is not.
    fn is_kept(&self) -> Option<bool> {
        match self {
            Self::Ratio {
                ours,
                baseline,
                limit,
            } => limit.map(|limit| ours / baseline <= limit),
            Self::Skipped(_) => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["ours", "baseline", "ratio", "limit", "ok"];
        let [ours, baseline, ratio, limit, ok] = head;
        writeln!(
            out,
            "{:36} {ours:>11} {baseline:>11} {ratio:>7} {limit:>7}  {ok}",
            ""
        )?;
        for row in &self.rows {
            write!(out, "{:36} ", row.name)?;
            match &row.found {
                Found::Skipped(why) => writeln!(out, "SKIPPED: {why}")?,
                Found::Ratio {
                    ours,
                    baseline,
                    limit,
                } => {
                    let ratio = ours / baseline;
                    let limit = limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.2}"));
                    let ok = match row.found.is_kept() {
                        Some(true) => "yes",
                        Some(false) => "NO",
                        None => "-",
                    };
                    let (ours, baseline) = (ours / 1e3, baseline / 1e3);
                    writeln!(
                        out,
                        "{ours:8.2} ms {baseline:8.2} ms {ratio:7.2} {limit:>7}  {ok}"
                    )?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_not_kept_is_said() {
        let mut report = Report::new(1.0);
        report.judge("fast", 1.0, 2.0, 0.7);
        report.tell("anything", 9.0, 1.0);
        assert!(report.holds(true));
        report.skip("missing", "why");
        assert!(report.holds(false) && !report.holds(true));
        report.judge("slow", 3.0, 2.0, 0.7);
        assert!(!report.holds(false));
        assert!(report.to_string().contains("SKIPPED: why"));
        let lines: Vec<String> = report.to_string().lines().map(str::to_owned).collect();
        assert!(lines[1].ends_with("yes") && lines[4].ends_with("NO"));
    }

    #[test]
    fn a_wider_limit_is_kept_longer_and_no_number_is_never_kept() {
        let mut report = Report::new(1.5);
        report.judge("slow", 2.0, 2.0, 0.7);
        assert!(report.holds(true));
        report.judge("nothing", f64::NAN, 2.0, 0.7);
        assert!(!report.holds(false));
    }

    #[test]
    fn measures_are_lines_of_a_name_and_a_number() {
        let measures = parse("box 12.5\nappend 3 us\nratio\n\nx y\n");
        assert!(measures.has("append") && !measures.has("x"));
        assert!((measures.of("box") - 12.5).abs() < 1e-9);
        assert!(measures.of("nothing").is_nan());
    }
}
