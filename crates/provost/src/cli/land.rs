//! `provost land`: moves the target to exactly what was accepted.

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_engine::land::{Landed, When};
use serde_json::json;

use super::net::Again;
use crate::answer::{Answer, Outcome};
use crate::history;
use crate::place::Place;
use crate::progress::Onlooker;
use crate::report;
use crate::session;
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

    #[command(flatten)]
    again: Again,
}

pub(super) fn run(land: &Land, reader: Reader) -> Outcome {
    let place = Place::find()?;
    let run_id = place.find_run(&land.run)?;
    let go_on = history::go_on(&run_id, history::stage(&place, &run_id));
    let state = history::state(&place, &run_id).ok();
    let mut onlooker = Onlooker::new(reader == Reader::Program);
    let landed = session::land(place, &run_id, &land.again.send, &mut onlooker);
    onlooker.clear();
    let Landed { landing, when } = landed.map_err(|failure| match failure.code {
        Code::RunUnfinished => failure.hint(go_on),
        _ => failure,
    })?;
    let branch = landing.target.trim_start_matches("refs/heads/");
    let commit = landing.commit.short();
    let mut text = match when {
        When::Now => format!("landed: {branch} is at {commit} ({run_id})\n"),
        When::Before => format!("landed before: {branch} holds {commit} ({run_id})\n"),
    };
    text += &state.as_ref().map(report::tested::lead).unwrap_or_default();
    let mut json = json!(landing);
    json["run_id"] = json!(run_id);
    json["before"] = json!(when == When::Before);
    Ok(Answer {
        exit: Exit::Yes,
        json,
        text,
    })
}
