//! The steps of a run, with when each began and how long it took.

use provost_core::record::Record;
use provost_core::run::Step;
use provost_core::run::fact::Fact;
use provost_core::time;
use serde::Serialize;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepSpan {
    pub step: Step,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Milliseconds from the first event of the run.
    pub from_ms: u64,
    /// Milliseconds; for a step that has not ended, so far.
    pub took_ms: u64,
    pub ended: bool,
    /// Whether the step itself failed.
    pub failed: bool,
}

/// The steps that `records` tell of, in their order; `now` in milliseconds since 1970.
pub fn waterfall(records: &[Record], now: i64) -> Vec<StepSpan> {
    let at = |record: &Record| time::parse(&record.event.ts).ok();
    let began = records.first().and_then(at).unwrap_or(now);
    let between = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    let mut attempt = 1;
    let mut spans = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let Ok(fact) = Fact::of(&record.event, record.seq) else {
            continue;
        };
        if let Some(number) = record.event.attempt {
            attempt = number.max(1);
        }
        let Fact::Started { step } = fact else {
            continue;
        };
        let start = at(record).unwrap_or(began);
        let next = records.get(index + 1);
        let failed = next.and_then(|next| Fact::of(&next.event, next.seq).ok());
        spans.push(StepSpan {
            step,
            attempt,
            from_ms: between(began, start),
            took_ms: between(start, next.and_then(at).unwrap_or(now)),
            ended: next.is_some(),
            failed: matches!(failed, Some(Fact::Failed { .. })),
        });
    }
    spans
}
