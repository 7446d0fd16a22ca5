//! The log of the acceptance commands, one JSON object a line.

use provost_core::json;
use provost_core::schema::leaf::Filled;
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use provost_core::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding::{FileFindings, Findings};
use super::text::Moment;

/// One line of `acceptance_run_log.jsonl`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct LogRow {
    #[schemars(with = "Filled")]
    pub command: Option<String>,
    #[schemars(with = "ExitCode")]
    pub exit_code: Option<ExitCode>,
    #[schemars(with = "RowTime")]
    pub started_at: Option<Moment>,
    #[schemars(with = "RowTime")]
    pub ended_at: Option<Moment>,
    /// The end of its standard output.
    #[serde(default)]
    #[schemars(with = "Tail")]
    pub stdout_tail: Option<Value>,
    /// The end of its standard error.
    #[serde(default)]
    #[schemars(with = "Tail")]
    pub stderr_tail: Option<Value>,
}

/// An integer, also if it is written as a float or as text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExitCode {
    Integer(i64),
    Float(f64),
    Text(String),
}

text_schema!(ExitCode, { "type": ["number", "string"], "x-strict": { "type": "integer" } });

impl ExitCode {
    fn value(&self) -> Option<i64> {
        match self {
            Self::Integer(code) => Some(*code),
            Self::Float(code) if code.fract() == 0.0 && code.abs() < 1e9 => {
                format!("{code:.0}").parse().ok()
            }
            Self::Float(_) => None,
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

enum RowTime {}

text_schema!(RowTime, {
    "type": ["string", "number"], "pattern": r"\S",
    "x-strict": { "type": "string", "format": "date-time" }
});

enum Tail {}

text_schema!(Tail, { "x-strict": { "type": ["string", "null"] } });

static ROW: FormatReader<LogRow> = FormatReader::new();

/// A row that says how a command ended.
pub(super) struct Ended {
    /// Without outer blanks.
    pub(super) command: String,
    pub(super) exit_code: i64,
}

/// The rows of a log, as far as they can be read; `published` is the time of the task card.
pub(super) fn rows(
    name: &str,
    bytes: &[u8],
    published: Option<i64>,
    findings: &mut Findings,
) -> Vec<Ended> {
    let mut rows = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("line {}: ", at + 1);
        let mut found = findings.of(name);
        match json::read(line) {
            Ok(node) => {
                let row = found.read(&node, &ROW, &place);
                rows.extend(row.and_then(|row| judge(&row, &place, published, &mut found)));
            }
            Err(error) => {
                let problem = format!("is not JSON without duplicate keys: {error}");
                found.add(place.trim_end_matches(": "), problem);
            }
        }
    }
    rows
}

fn judge(
    row: &LogRow,
    place: &str,
    published: Option<i64>,
    found: &mut FileFindings<'_>,
) -> Option<Ended> {
    let exit_code = row.exit_code.as_ref().map(ExitCode::value);
    if exit_code == Some(None) {
        found.add(&format!("{place}exit_code"), "is not an integer");
    }
    let time = |at: &Option<Moment>| time::parse(at.as_ref()?.text()?).ok();
    let (started, ended) = (time(&row.started_at), time(&row.ended_at));
    if started.zip(ended).is_some_and(|(start, end)| end < start) {
        found.doubt(&format!("{place}ended_at"), "is earlier than started_at");
    }
    if started
        .zip(published)
        .is_some_and(|(start, card)| start < card)
    {
        let problem = "is earlier than the task card";
        found.doubt(&format!("{place}started_at"), problem);
    }
    Some(Ended {
        command: row.command.as_ref()?.trim().to_owned(),
        exit_code: exit_code??,
    })
}
