//! Results of the measurements, as a table of ratios.

use std::collections::BTreeMap;
use std::fmt;

use super::sample::Sample;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measures(BTreeMap<String, Sample>);

impl Measures {
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The measure, or NaN, which meets no limit.
    pub(super) fn of(&self, name: &str) -> Sample {
        self.0.get(name).copied().unwrap_or(Sample::NOTHING)
    }
}

/// Parses lines of a name, a median in microseconds and optionally the quartiles around it; other
/// lines are ignored.
pub(super) fn parse(text: &str) -> Measures {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<f64>().ok();
        let mut sample = Sample::exactly(number()?);
        if let (Some(low), Some(high)) = (number(), number()) {
            (sample.low, sample.high) = (low, high);
        }
        Some((name, sample))
    };
    Measures(text.lines().filter_map(line).collect())
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is compared with what.
    pub name: String,
    pub found: Found,
}

/// Result of a measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Two times, and the most the ratio of their medians may be.
    Ratio {
        /// Time of Provost.
        ours: Sample,
        /// Time of the baseline.
        baseline: Sample,
        /// The limit; without one the ratio is information.
        limit: Option<f64>,
    },
    /// Not measured, and why.
    Skipped(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    rows: Vec<Row>,
    notes: Vec<String>,
    tolerance: f64,
}

impl Report {
    /// An empty table whose limits are `tolerance` times as wide.
    pub(super) fn new(tolerance: f64) -> Self {
        Self {
            rows: Vec::new(),
            notes: Vec::new(),
            tolerance,
        }
    }

    /// Adds a ratio that has a limit.
    pub(super) fn judge(&mut self, name: &str, ours: Sample, baseline: Sample, limit: f64) {
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
    pub(super) fn tell(&mut self, name: &str, ours: Sample, baseline: Sample) {
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

    /// Adds a note about the measurement itself.
    pub(super) fn say(&mut self, words: &str) {
        self.notes.push(words.to_owned());
    }

    /// Adds a measure that could not be made.
    pub(super) fn skip(&mut self, name: &str, why: &str) {
        self.add(name, Found::Skipped(why.to_owned()));
    }

    fn add(&mut self, name: &str, found: Found) {
        self.rows.push(Row {
            name: name.to_owned(),
            found,
        });
    }

    /// Whether every limit is met, and every measure was made if all are `required`.
    pub fn holds(&self, required: bool) -> bool {
        self.rows.iter().all(|row| match &row.found {
            Found::Skipped(_) => !required,
            Found::Ratio { .. } => row.found.is_kept() != Some(false),
        })
    }
}

impl Found {
    /// Whether the limit is met; `None` without a limit. NaN meets none.
    fn is_kept(&self) -> Option<bool> {
        match self {
            Self::Ratio {
                ours,
                baseline,
                limit,
            } => limit.map(|limit| ours.median / baseline.median <= limit),
            Self::Skipped(_) => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["ours", "baseline", "ratio", "limit"];
        let [ours, baseline, ratio, limit] = head;
        let name = "";
        writeln!(
            out,
            "{name:36} {ours:>16} {baseline:>16} {ratio:>7} {limit:>6}"
        )?;
        for row in &self.rows {
            writeln!(out, "{:36} {}", row.name, row.found)?;
        }
        for note in &self.notes {
            writeln!(out, "{note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, baseline, limit) = match self {
            Self::Skipped(why) => return write!(out, "not measured: {why}"),
            Self::Ratio {
                ours,
                baseline,
                limit,
            } => (ours, baseline, limit),
        };
        let ratio = number(ours.median / baseline.median);
        let limit = limit.map_or_else(|| "-".to_owned(), number);
        let (ours, baseline) = (duration(ours), duration(baseline));
        write!(out, "{ours:>16} {baseline:>16} {ratio:>7} {limit:>6}")?;
        match self.is_kept() {
            Some(true) => write!(out, "  PASS"),
            Some(false) => write!(out, "  MISSED"),
            None => Ok(()),
        }
    }
}

/// A ratio with as many decimal places as it needs.
fn number(value: f64) -> String {
    if value < 0.1 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

/// A median with its spread, if known.
fn duration(sample: &Sample) -> String {
    let median = sample.median;
    let time = if median < 1e3 {
        format!("{median:.1} us")
    } else {
        format!("{:.2} ms", median / 1e3)
    };
    let spread = sample.spread() * 100.0;
    if spread > 0.0 {
        format!("{time} ±{spread:2.0}%")
    } else {
        format!("{time}     ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(values: [f64; 2]) -> [Sample; 2] {
        values.map(Sample::exactly)
    }

    #[test]
    fn a_limit_that_is_not_kept_is_said() {
        let mut report = Report::new(1.0);
        let [one, two] = exactly([1.0, 2.0]);
        report.judge("fast", one, two, 0.7);
        report.tell("anything", two, one);
        assert!(report.holds(true));
        report.skip("missing", "why");
        assert!(report.holds(false) && !report.holds(true));
        report.judge("slow", two, one, 0.7);
        assert!(!report.holds(false));
        report.say("a load");
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("PASS") && lines[2].ends_with('-'));
        assert!(lines[3].ends_with("not measured: why") && lines[4].ends_with("MISSED"));
        assert_eq!(lines[5], "a load");
    }

    #[test]
    fn a_wider_limit_is_kept_longer_and_no_number_is_never_kept() {
        let mut report = Report::new(1.5);
        let [one, other] = exactly([2.0, 2.0]);
        report.judge("slow", one, other, 0.7);
        assert!(report.holds(true));
        report.judge("nothing", Sample::NOTHING, other, 0.7);
        assert!(!report.holds(false));
    }

    #[test]
    fn measures_are_lines_of_a_name_and_numbers() {
        let measures = parse("sandbox 12.5 10 14\nappend 3 us\nratio\n\nx y\n");
        assert!(measures.has("append") && !measures.has("x"));
        let start = measures.of("sandbox");
        assert_eq!((start.low, start.median, start.high), (10.0, 12.5, 14.0));
        assert_eq!(measures.of("append"), Sample::exactly(3.0));
        assert!(measures.of("nothing").median.is_nan());
    }

    #[test]
    fn a_spread_is_shown_where_there_is_one() {
        let mut report = Report::new(1.0);
        let wide = Sample::of(vec![900.0, 1000.0, 1100.0, 1200.0]);
        report.tell("wide", wide, Sample::exactly(100_000.0));
        let text = report.to_string();
        assert!(text.contains("1.10 ms ± 9%"), "{text}");
        assert!(
            text.contains("100.00 ms  ") && text.contains("0.0110"),
            "{text}"
        );
    }
}
