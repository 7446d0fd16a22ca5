//! `provost cancel`: ends a run, whoever drives it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::run::State;
use provost_core::run::fact::Cancel;
use provost_host::clock;

use super::resume;
use crate::answer::{Answer, Failure, Outcome};
use crate::cancel_request::CancelRequest;
use crate::history::{self, Beside};
use crate::places::Places;
use crate::show::Reader;
use crate::{report, session};

/// How long the driver of a run may take to end it.
const PATIENCE: Duration = Duration::from_mins(2);

/// End a run, whoever drives it.
#[derive(Args)]
#[command(after_help = "\
Its sandbox is ended with everything in it, what was done is kept, and the run is sealed with who ended
it and when. A run that nobody drives is taken over for that. A result that is there already stays.

Example:
  provost cancel last --reason 'the wrong branch'")]
pub(super) struct Ended {
    /// The run: its id, a part of it, or `last`.
    run: String,

    /// Why, for whoever reads the evidence.
    #[arg(long, value_name = "WHY", default_value = "")]
    reason: String,
}

pub(super) fn run(ended: &Ended, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let run_id = place.find_run(&ended.run)?;
    if history::is_sealed(&place, &run_id) {
        return Err(over(&history::state(&place, &run_id)?));
    }
    if history::never_began(&place, &run_id) && !history::is_driven(&place, &run_id) {
        return Err(history::nothing(&run_id));
    }
    history::require_own(&place, &run_id)?;
    let wishes = CancelRequest::of(&place, &run_id);
    wishes.leave(&Cancel {
        by: Some(session::person()?),
        at: clock::now(),
        reason: ended.reason.clone(),
    })?;
    let state = end(&place, &run_id, reader)?;
    wishes.forget();
    match &state.finished {
        Some(verdict) if verdict.code == Code::Cancelled => {
            let beside = Beside::driven(&state);
            let answer = report::run(&state, &place.run(&run_id), &beside);
            // The answer of the run is no, as was asked for.
            let exit = Exit::Yes;
            Ok(Answer { exit, ..answer })
        }
        _ => Err(over(&state)),
    }
}

/// Waits until whoever drives the run has ended it; if nobody does, does that itself.
fn end(place: &Places, run_id: &str, reader: Reader) -> Result<State, Failure> {
    let since = Instant::now();
    while !history::is_sealed(place, run_id) {
        if !history::is_driven(place, run_id) {
            // Its agent is not started again, so it sends nothing.
            match resume::take_over(run_id, &resume::Go::End, reader) {
                // Somebody else was faster, and is told as well.
                Err(failure) if failure.code == Code::RunBusy => {}
                Err(failure) => return Err(failure),
                Ok(_) => continue,
            }
        }
        if since.elapsed() > PATIENCE {
            let reason = format!("{run_id} was told to end and has not ended yet");
            let failure = Failure::new(Code::RunBusy, reason);
            return Err(failure.hint(format!("provost log {run_id} --follow")));
        }
        sleep(Duration::from_millis(20));
    }
    history::state(place, run_id)
}

/// What is said to somebody who is too late.
pub(super) fn over(state: &State) -> Failure {
    let run = &state.names.run_id;
    let end = match &state.finished {
        Some(verdict) if verdict.allow => "it was accepted".to_owned(),
        Some(verdict) => format!("it ended with {}", verdict.code),
        None => "it has its seal".to_owned(),
    };
    let reason = format!("{run} is over already: {end}");
    Failure::new(Code::RunOver, reason).hint(format!("provost show {run}"))
}
