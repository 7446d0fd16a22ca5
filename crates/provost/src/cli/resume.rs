//! `provost resume`: takes over runs whose driver died, and drives them to their seal.

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::net::credential::Credential;
use provost_core::wording::counted;
use provost_engine::query::{self, RunArchive as _, Stage, Surroundings};
use provost_host::cancel_request::CancelRequest;
use serde_json::Value;

use super::net::Again;
use super::{cancel, case};
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::Session;
use crate::show::Reader;
use crate::user_consent::{self, Sent};
use crate::{parts, report};

/// Resume runs whose driver died.
#[derive(Args)]
#[command(after_help = "\
Work of an interrupted agent is salvaged, and the agent is started again from the base commit,
at most three times. Every other step continues where it stopped, and the run is driven to its
seal.")]
pub(super) struct Resume {
    /// The run: its id, a part of it, or `last` [default: every interrupted run].
    run: Option<String>,

    #[command(flatten)]
    again: Again,
}

/// How far to drive a run that is taken over.
pub(super) enum Go<'a> {
    /// To its end, with the named secrets; the first field is the command that the user ran.
    On(&'static str, &'a [Sent]),
    /// The run is ended at once.
    End,
}

pub(super) fn run(resume: &Resume, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let case = resume.run.as_deref().map(|run| place.find_case(run));
    match case.transpose()?.flatten() {
        Some(id) => case::resume(&id, &resume.again.send, reader),
        None => resume_runs(resume, &place, reader),
    }
}

fn resume_runs(resume: &Resume, place: &Places, reader: Reader) -> Outcome {
    let runs = match &resume.run {
        Some(run) => vec![named(place, run)?],
        None => place.runs()?,
    };
    let mut answers = Vec::new();
    let (mut busy, mut waiting, mut foreign) = (0, 0, 0);
    let mut failures: Vec<(String, Failure)> = Vec::new();
    for run_id in runs {
        if place.is_sealed(&run_id) && query::is_own(place, &run_id) {
            continue;
        }
        if query::never_began(place, &run_id) {
            if resume.run.is_some() && !place.is_driven(&run_id) {
                return Err(query::nothing(&run_id).into());
            }
            continue;
        }
        if let Err(error) = query::require_own(place, &run_id) {
            let failure = Failure::from(error);
            if resume.run.is_some() {
                return Err(failure);
            }
            foreign += usize::from(failure.code == Code::RunForeign);
            if failure.code != Code::RunForeign {
                failures.push((run_id, failure));
            }
            continue;
        }
        if query::stage(place, &run_id) == Stage::Waiting {
            // It was not interrupted: it waits for a person's answer.
            waiting += 1;
            if resume.run.is_some() {
                let state = query::state(place, &run_id)?;
                return Ok(report::driven(&state, &place.run(&run_id)));
            }
            continue;
        }
        match take_over(&run_id, &Go::On("resume", &resume.again.send), reader) {
            Ok(answer) => answers.push(answer),
            // Another process drives it: it is not interrupted.
            Err(failure) if failure.code == Code::RunBusy && resume.run.is_none() => busy += 1,
            Err(failure) if resume.run.is_some() => return Err(failure),
            // A run that cannot be resumed does not stop the others.
            Err(failure) => failures.push((run_id, failure)),
        }
    }
    // A single failure is the answer; several are reported with their runs.
    if answers.is_empty()
        && failures.len() == 1
        && let Some((_, failure)) = failures.pop()
    {
        return Err(failure);
    }
    let mut exit = Exit::Yes;
    for (run_id, failure) in failures {
        let mut answer = Answer::from(failure.verdict());
        answer.text = format!("{run_id}: {}", answer.text);
        exit = exit.max(answer.exit);
        answers.push(answer);
    }
    if answers.is_empty() {
        let left = [
            (busy, "active"),
            (waiting, "waiting for approval"),
            (foreign, "not begun by you"),
        ];
        return Ok(nothing_to_resume(&left));
    }
    // The command succeeds when the runs are sealed, whatever their verdict; for one named run, the
    // verdict is the answer.
    let exit = match (&resume.run, answers.as_slice()) {
        (Some(_), [one]) => one.exit,
        _ => exit,
    };
    Ok(together(answers, exit))
}

/// Combines several answers into one.
fn together(answers: Vec<Answer>, exit: Exit) -> Answer {
    let text = answers.iter().map(|answer| answer.text.as_str()).collect();
    let json = Value::Array(answers.into_iter().map(|answer| answer.json).collect());
    Answer { exit, json, text }
}

/// The run that `text` names; a run that is over cannot be resumed.
fn named(place: &Places, text: &str) -> Result<String, Failure> {
    let run_id = place.find_run(text)?;
    if place.is_sealed(&run_id) && query::is_own(place, &run_id) {
        let over = cancel::over(&query::state(place, &run_id)?);
        return Err(over.hint(format!("provost retry {run_id}")));
    }
    Ok(run_id)
}

/// Reports that no run was interrupted, and which runs were `left` alone.
fn nothing_to_resume(left: &[(usize, &str)]) -> Answer {
    let mut text = "nothing to resume".to_owned();
    for (number, what) in left.iter().filter(|(number, _)| *number > 0) {
        text += &format!("; {} {what}", counted(*number, "run"));
    }
    text += "\n";
    Answer::data([(); 0], text)
}

/// Takes over the run `run_id`, and drives it as far as `go` says.
pub(super) fn take_over(run_id: &str, go: &Go<'_>, reader: Reader) -> Result<Answer, Failure> {
    let place = Places::find()?;
    let bundle = place.run(run_id);
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    observer.listen(CancelRequest::of(&place.root, run_id));
    let mut session = Session::open(place, run_id)?;
    if let Go::On(command, named) = go {
        let brokered = session.brokered()?;
        let brokered: Vec<&Credential> = brokered.iter().collect();
        let command = format!("{command} {run_id}");
        user_consent::to_send(run_id, &command, &brokered, named)?;
        session.send(&brokered);
    }
    observer.line(&format!("resuming {run_id}"));
    let state = session.resume(&mut observer);
    observer.clear();
    let state = state?;
    observer.close_request(&state);
    let around = Surroundings {
        part: parts::withheld(&Places::find()?, &state),
        project: report::project(&state),
        ..Surroundings::driven(&state)
    };
    Ok(report::run(&state, &bundle, around))
}
