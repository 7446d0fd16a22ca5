//! `provost cancel`: cancels a run, whichever process drives it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::run::State;
use provost_core::run::fact::Cancel;
use provost_engine::query::{self, RunArchive as _};
use provost_host::cancel_request::CancelRequest;
use provost_host::clock;

use super::{case, resume};
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::Reader;
use crate::{report, session};

/// How long the driver of a run may take to end it.
const PATIENCE: Duration = Duration::from_mins(2);

/// Cancel a run, whichever process drives it.
#[derive(Args)]
#[command(after_help = "\
The sandbox of the run is ended with every process in it, work done so far is kept, and the run is
sealed with the name of the canceller and the time. A run without a driver is taken over and sealed.
A result that exists already stays.

Example:
  provost cancel last --reason 'the wrong branch'")]
pub(super) struct Ended {
    /// The run: its id, a part of it, or `last`.
    run: String,

    /// The reason, recorded in the evidence.
    #[arg(long, value_name = "WHY", default_value = "")]
    reason: String,
}

pub(super) fn run(ended: &Ended, reader: Reader) -> Outcome {
    let place = Places::find()?;
    if let Some(id) = place.find_case(&ended.run)? {
        return case::cancel(&id, &ended.reason, reader);
    }
    let run_id = place.find_run(&ended.run)?;
    if place.is_sealed(&run_id) {
        return Err(over(&query::state(&place, &run_id)?));
    }
    if query::never_began(&place, &run_id) && !place.is_driven(&run_id) {
        return Err(query::nothing(&run_id).into());
    }
    query::require_own(&place, &run_id)?;
    let request = CancelRequest::of(&place.root, &run_id);
    request.leave(&Cancel {
        by: Some(session::person()?),
        at: clock::now(),
        reason: ended.reason.clone(),
    })?;
    let state = end(&place, &run_id, reader)?;
    request.forget();
    match &state.finished {
        Some(verdict) if verdict.code == Code::Cancelled => {
            let answer = report::driven(&state, &place.run(&run_id));
            // The verdict of the run is a refusal, as the user asked.
            let exit = Exit::Yes;
            Ok(Answer { exit, ..answer })
        }
        _ => Err(over(&state)),
    }
}

/// Waits until the driver has ended the run; a run without a driver is taken over and ended here.
fn end(place: &Places, run_id: &str, reader: Reader) -> Result<State, Failure> {
    let since = Instant::now();
    while !place.is_sealed(run_id) {
        if !place.is_driven(run_id) {
            // The agent is not started again, so no secret is sent.
            match resume::take_over(run_id, &resume::Go::End, reader) {
                // Another process took the run over first; it reads the same request.
                Err(failure) if failure.code == Code::RunBusy => {}
                Err(failure) => return Err(failure),
                Ok(_) => continue,
            }
        }
        if since.elapsed() > PATIENCE {
            let reason = format!("{run_id} was asked to end and has not ended yet");
            let failure = Failure::new(Code::RunBusy, reason);
            return Err(failure.hint(format!("provost log {run_id} --follow")));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(query::state(place, run_id)?)
}

/// The failure for a request that comes after the end of the run.
pub(super) fn over(state: &State) -> Failure {
    let run = &state.names.run_id;
    let end = match &state.finished {
        Some(verdict) if verdict.allow => "it was accepted".to_owned(),
        Some(verdict) => format!("it ended with {}", verdict.code),
        None => "it is sealed".to_owned(),
    };
    let reason = format!("{run} is over already: {end}");
    Failure::new(Code::RunOver, reason).hint(format!("provost show {run}"))
}
