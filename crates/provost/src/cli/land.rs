//! `provost land`: moves the target to exactly what was accepted.

mod several;

use clap::Args;
use provost_core::code::Code;
use provost_core::gate::command;
use provost_engine::bundle::after::Landing;
use provost_engine::land::{Landed, When};
use provost_engine::query;
use serde::Serialize;

use super::case;
use super::net::Again;
use crate::answer::{Answered, Failure, Outcome};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::report;
use crate::session;
use crate::show::Reader;

/// Land accepted results on their target branches.
#[derive(Args)]
#[command(after_help = "\
Exactly the accepted result lands, in one commit: you are its author, the agent a co-author, and
trailers name the run and its bundle. It is signed if your global git configuration says so. If the
target has moved, the result is merged, and the diff gate and the acceptance commands judge the
merge. In a checkout of the target, only the files that the landing touches must be clean.
The branch provost/RUN is removed once the run has landed.

Several runs land one after the other, in the order given; --all takes every accepted run that has
not landed, oldest first. A run that is refused is skipped, and so are parts of the same chain.

Examples:
  provost land last
  provost land --all")]
pub(super) struct Land {
    /// The runs: ids, parts of them, or `last`.
    #[arg(value_name = "RUN", required_unless_present = "all")]
    runs: Vec<String>,

    /// Land every accepted run that has not landed, oldest first.
    #[arg(long, conflicts_with = "runs")]
    all: bool,

    #[command(flatten)]
    again: Again,
}

pub(super) fn run(land: &Land, reader: Reader) -> Outcome {
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    let place = Places::find()?;
    match land.runs.as_slice() {
        [one] if !land.all => {
            if let Some(id) = place.find_case(one)? {
                return case::land(&id, reader);
            }
            let run_id = place.find_run(one)?;
            one_run(place, run_id, land, &mut observer).map(Into::into)
        }
        _ => several::run(&place, land, &mut observer),
    }
}

fn one_run(
    place: Places,
    run_id: String,
    land: &Land,
    observer: &mut ProgressObserver,
) -> Result<LandedRun, Failure> {
    let go_on = report::go_on(&run_id, query::stage(&place, &run_id));
    let state = query::state(&place, &run_id).ok();
    let landed = session::land(place, &run_id, &land.again.send, observer);
    observer.clear();
    let target = state.as_ref().and_then(|state| state.opened.target.clone());
    let Landed { landing, when } = landed.map_err(|failure| match failure.code {
        Code::RunUnfinished => failure.hint(go_on),
        _ => advised(failure, &run_id, &target.unwrap_or_default()),
    })?;
    let changed = state.as_ref().and_then(query::changed_tests);
    Ok(LandedRun {
        landing,
        run_id,
        before: when == When::Before,
        tests: changed.map(|changed| report::changed_tests(&changed.words)),
    })
}

#[derive(Serialize)]
struct LandedRun {
    #[serde(flatten)]
    landing: Landing,
    run_id: String,
    /// Whether it had landed already.
    before: bool,
    /// The changed tests, in words.
    #[serde(skip)]
    tests: Option<String>,
}

impl Answered for LandedRun {
    fn text(&self) -> String {
        let branch = self.landing.target.trim_start_matches("refs/heads/");
        let (commit, run_id) = (self.landing.commit.short(), &self.run_id);
        let text = if self.before {
            format!("landed before: {branch} holds {commit} ({run_id})\n")
        } else {
            format!("landed: {branch} is at {commit} ({run_id})\n")
        };
        text + self.tests.as_deref().unwrap_or_default()
    }
}

/// The failure of a landing, with the command that helps.
fn advised(failure: Failure, run_id: &str, target: &str) -> Failure {
    let branch = command::quote(target.trim_start_matches("refs/heads/"));
    let hint = match failure.code {
        Code::NotAccepted => format!("provost why {run_id}"),
        Code::AcceptanceFailed | Code::LandConflict if !target.is_empty() => format!(
            "`provost retry {run_id} --base {branch}` starts the agent from the current target"
        ),
        Code::CheckoutDirty => {
            format!("commit or stash the changes, then provost land {run_id}")
        }
        Code::SigningFailed => {
            format!("see `provost explain SIGNING_FAILED`, then provost land {run_id}")
        }
        _ => return failure,
    };
    match failure.hint {
        Some(_) => failure,
        None => failure.hint(hint),
    }
}
