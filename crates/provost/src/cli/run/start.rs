//! Begins a run whose opening is decided, and drives it as far as it goes.

use provost_core::code::Code;
use provost_core::gate::command::quote;
use provost_core::run::fact::{Names, Opened};
use provost_engine::drive::{self, Source};
use provost_engine::query;
use provost_host::cancel_request::CancelRequest;
use provost_host::{agent, machine, workspace};

use crate::answer::{Failure, Outcome};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::report;
use crate::session::{self, Session};

/// Refuses if the machine lacks what the agent and the reviewer need, before anything starts.
pub(in crate::cli) fn check(opened: &Opened, source: Option<&Source>) -> Result<(), Failure> {
    session::require_person_key(opened)?;
    let has_agent = opened.work.is_none();
    if has_agent {
        machine::outlet(&opened.credentials)?;
    }
    let review = opened.review.as_ref();
    if let Some(review) = review {
        machine::outlet(&review.credentials)?;
    }
    let reviewer = review.and_then(|review| review.adapted.as_ref());
    let agent = opened.adapted.iter().filter(|_| has_agent);
    for adapted in agent.chain(reviewer) {
        agent::find(adapted)?;
    }
    refuse_secrets(opened, source.map_or(&[][..], |source| &source.bytes))
}

/// Refuses arguments that contain a secret before anything starts: they would be sealed verbatim.
pub(in crate::cli) fn refuse_secrets(opened: &Opened, written: &[u8]) -> Result<(), Failure> {
    let known = machine::known(&opened.brokered());
    let words = serde_json::to_vec(opened).map_err(|error| Failure::of(Code::Bug, &error))?;
    if known.is_in(&words) || known.is_in(written) {
        return Err(drive::secret_words().into());
    }
    Ok(())
}

/// Notes runs whose driver died, and those that were approved and have not begun.
pub(in crate::cli) fn report_interrupted(
    place: &Places,
    observer: &ProgressObserver,
) -> Result<(), Failure> {
    for run_id in query::interrupted(place)? {
        let state = query::state(place, &run_id);
        let what = if state.is_ok_and(|state| query::is_approved(&state)) {
            "was approved and has not begun"
        } else {
            "was interrupted"
        };
        let note = format!("note: {run_id} {what}; provost resume {run_id}");
        observer.line(&note);
    }
    Ok(())
}

/// Notes submodules that are empty directories for the agent and the acceptance commands.
fn report_empty(
    place: &Places,
    opened: &Opened,
    observer: &ProgressObserver,
) -> Result<(), Failure> {
    for one in workspace::submodules(&place.repo, &opened.base_tree)? {
        if let Err(reason) = one.objects {
            let path = &one.path;
            observer.line(&format!(
                "note: the submodule {path} is empty in sandboxes, because {reason}; git submodule \
                 update --init {}",
                quote(path.as_str())
            ));
        }
    }
    Ok(())
}

/// Begins the run `names`, whose contract was read from `source` if it was a file.
pub(in crate::cli) fn start(
    place: Places,
    names: &Names,
    opened: Opened,
    source: Option<&Source>,
    mut observer: ProgressObserver,
) -> Outcome {
    let bundle = place.run(&names.run_id);
    report_empty(&place, &opened, &observer)?;
    observer.listen(CancelRequest::of(&place.root, &names.run_id));
    let session = Session::create(place, names)?;
    observer.line(&format!("run {}", names.run_id));
    let state = session.run(names, opened, source, &mut observer);
    observer.clear();
    let state = state?;
    observer.close_request(&state);
    Ok(report::driven(&state, &bundle))
}
