//! `provost land`: moves the target to exactly what was accepted.

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::history;
use crate::place::Place;
use crate::progress::Onlooker;
use crate::session::Session;
use crate::show::Reader;

/// Put an accepted result on the branch it is meant for.
#[derive(Args)]
#[command(after_help = "\
Exactly what was accepted lands, in one commit. A target that moved meanwhile is merged, and the
diff gate and the acceptance commands judge the merge. A checkout of the target has to be clean.
The branch provost/RUN goes away once its own commit has landed.

Example:
  provost land last")]
pub(super) struct Land {
    /// The run: its id, a part of it, or `last`.
    run: String,
}

pub(super) fn run(land: &Land, reader: Reader) -> Outcome {
    let place = Place::find()?;
    let run_id = place.find_run(&land.run)?;
    let state = history::state(&place, &run_id)?;
    if !history::is_sealed(&place, &run_id) {
        return Err(
            Failure::new(Code::RunUnfinished, format!("{run_id} has not ended"))
                .hint(history::go_on(&run_id, history::is_driven(&place, &run_id))),
        );
    }
    history::require_whole(&place, &run_id)?;
    let mut onlooker = Onlooker::new(reader == Reader::Program);
    let landed = Session::open(place, &run_id)?.land(&state, &mut onlooker);
    onlooker.clear();
    let landed = landed?;
    let branch = landed.target.trim_start_matches("refs/heads/");
    let text = format!(
        "landed: {branch} is at {} ({run_id})\n",
        landed.commit.short()
    );
    let mut json = json!(landed);
    json["run_id"] = json!(run_id);
    Ok(Answer {
        exit: Exit::Yes,
        json,
        text,
    })
}
