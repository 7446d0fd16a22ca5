//! `provost log`: prints the events of one run, or follows them.

pub(super) mod transcript;

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use clap::Args;
use provost_core::code::Code;
use provost_core::record::Record;
use provost_engine::query::{self, RunArchive as _, Stage};

use super::runs::Which;
use crate::answer::{Answer, Failure, Outcome};
use crate::parts::CASE;
use crate::places::Places;
use crate::report::go_on;
use crate::show::{Reader, one_line, print_message};

// Print the events of one run.
#[derive(Args)]
pub(super) struct Log {
    #[command(flatten)]
    which: Which,

    /// Follow new events until the run ends.
    #[arg(long)]
    follow: bool,

    /// Print what the agent said and did, as it reports it, instead of the events of the run.
    #[arg(long)]
    agent: bool,
}

pub(super) fn run(log: &Log, reader: Reader) -> Outcome {
    let place = Places::look()?;
    let run_id = match place.find_case(&log.which.run)? {
        Some(id) => id,
        None => place.find_run(&log.which.run)?,
    };
    if log.agent && run_id.starts_with(CASE) {
        let reason = format!("{run_id} is a case, and its runs have the agents");
        return Err(Failure::new(Code::UsageError, reason)
            .hint(format!("provost show {run_id} lists its runs")));
    }
    if log.agent {
        return transcript::show(&place, &run_id, log.follow, reader);
    }
    let mut shown = 0;
    loop {
        // The stage is read before the events, so that events written meanwhile are still shown.
        let sealed = place.is_sealed(&run_id);
        let driven = place.is_driven(&run_id);
        let records = place.records(&run_id)?;
        let mut out = io::stdout().lock();
        for record in &records[shown.min(records.len())..] {
            if writeln!(out, "{}", line(record, reader)).is_err() {
                return Ok(Answer::silent());
            }
        }
        shown = records.len();
        if sealed {
            for record in place.after(&run_id).unwrap_or_default() {
                let _ = writeln!(out, "{}", line(&record, reader));
            }
        }
        drop(out);
        if log.follow && !sealed && !driven {
            let stage = query::stage(&place, &run_id);
            let why = match stage {
                Stage::Waiting => format!("{run_id} waits for approval"),
                _ => format!("no process drives {run_id}"),
            };
            print_message(&format!("{why}\nnext: {}", go_on(&run_id, stage)));
        }
        if sealed || !driven || !log.follow {
            return Ok(Answer::silent());
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn line(record: &Record, reader: Reader) -> String {
    if reader == Reader::Program {
        return record.line();
    }
    let event = &record.event;
    let about = query::describe(record);
    // Some event names of the format are lower case; the column is upper case.
    let name = event.event_type.to_uppercase();
    let text = format!("{:>3}  {}  {name:19}  {about}", record.seq, event.ts);
    one_line(&text)
}
