//! Lands the whole of a case.

use provost_core::code::Code;
use provost_core::run::refs::branch;
use provost_engine::case::{self, CaseReport, State};
use provost_engine::query;

use super::{How, OpenCase};
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session;
use crate::show::Reader;

/// Lands the whole of the case `id` by one commit.
pub(in crate::cli) fn land(id: &str, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let mut open = OpenCase::open(&place, id)?;
    let mut state = open.state()?;
    let Some(run_id) = state.accepted().map(|end| end.run_id.clone()) else {
        let reason = match &state.finished {
            Some(verdict) => format!("{id} was refused: {}", verdict.reason),
            None => format!("{id} has not finished"),
        };
        return Err(Failure::new(Code::NotAccepted, reason).hint(format!("provost show {id}")));
    };
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    let landed = session::land(place, &run_id, &[], &mut observer);
    observer.clear();
    let landing = landed?.landing;
    let opened = state.opened.clone();
    let place = (landing.target.clone(), landing.commit.clone());
    let how = How::without_agents(reader);
    open.with_ports(&opened, how, |ports, task| {
        case::landed(ports, task, &mut state, place)
    })?;
    remove_branches(&state)?;
    let branch = landing.target.trim_start_matches("refs/heads/");
    let text = format!("landed: {branch} is at {} ({id})\n", landing.commit.short());
    Ok(Answer::data(CaseReport::of(id, &state), text))
}

/// Removes the branches of the parts, whose work has landed. One that moved is not theirs any more,
/// and one that is checked out stays.
fn remove_branches(state: &State) -> Result<(), Failure> {
    let place = Places::find()?;
    let used: Vec<String> = place
        .repo
        .checkouts()?
        .into_iter()
        .filter_map(|it| it.branch)
        .collect();
    for (_, run_id) in state.runs() {
        let name = branch(run_id);
        let published = query::state(&place, run_id)?.published;
        let commit = published.map(|published| published.commit);
        let at = place.repo.ref_value(&name)?;
        if let (Some(at), Some(commit)) = (at, commit)
            && at == commit
            && !used.contains(&name)
        {
            place.repo.delete_ref(&name, &at)?;
        }
    }
    Ok(())
}
