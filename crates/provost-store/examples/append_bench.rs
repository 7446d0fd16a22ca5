//! Measures durable appends against the bare cost of the disk: one write and one sync.
//!
//! Prints the median of both in microseconds and the ratio of their rates. The two alternate,
//! append by append, so that a change in load affects both. The first argument is the directory to
//! write in, by default the current one; the second is the number of appends.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use provost_core::record::{Event, Head, Level};
use provost_store::ledger::FileLedger;
use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments
        .next()
        .map_or_else(|| PathBuf::from("."), PathBuf::from);
    let count: usize = match arguments.next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => 400,
    };
    let scratch = tempfile::tempdir_in(directory)?;
    let mut ledger = FileLedger::create(&scratch.path().join("events.jsonl"), Head::genesis())?;
    let mut bare = File::options()
        .create_new(true)
        .append(true)
        .open(scratch.path().join("bare"))?;

    let line = Head::genesis().append(event()).line() + "\n";
    let (mut appends, mut floors) = (Vec::new(), Vec::new());
    for turn in 0..2 * count.max(1) {
        // Both go first equally often, because the previous call affects the disk.
        let begin = Instant::now();
        if matches!(turn % 4, 0 | 3) {
            ledger.append(event())?;
            appends.push(begin.elapsed());
        } else {
            bare.write_all(line.as_bytes())?;
            bare.sync_data()?;
            floors.push(begin.elapsed());
        }
    }
    let (append, floor) = (median(appends), median(floors));
    let text = format!(
        "append {:.1} us\nwrite+fdatasync {:.1} us\nratio {:.2}\n",
        append.as_secs_f64() * 1e6,
        floor.as_secs_f64() * 1e6,
        floor.as_secs_f64() / append.as_secs_f64()
    );
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn event() -> Event {
    let facts = [
        ("step", Value::from("acceptance")),
        ("command", Value::from(vec!["cargo", "test", "--workspace"])),
        ("exit_code", Value::from(0)),
    ];
    Event {
        ts: "2026-01-01T00:00:00.000Z".into(),
        level: Level::Info,
        event_type: "STEP_FINISHED".into(),
        run_id: "run_20260101_000000_0123456789ab".into(),
        task_id: Some("task-1".into()),
        attempt: Some(1),
        payload: Map::from_iter(facts.map(|(name, value)| (name.to_owned(), value))),
        trace_id: "0123456789abcdef0123456789abcdef".into(),
    }
}
