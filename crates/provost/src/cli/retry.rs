//! `provost retry`: retries a run that is over.

mod wider;

use clap::Args;
use provost_core::bundle::key::PublicKey;
use provost_core::code::Code;
use provost_core::run::fact::Names;
use provost_engine::bundle::verify;
use provost_engine::opening::{RetryRequest, Wider, again, continued};
use provost_engine::query::{self, Stage};
use provost_host::bundle::Directory;
use provost_host::origin::GitOrigin;
use provost_host::{clock, ids};

use super::case;
use super::run::{objective, start, workspace};
use super::verify::trusted;
use crate::answer::{Failure, Outcome};
use crate::parts;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::report;
use crate::session;
use crate::show::Reader;
use crate::user_consent;

/// Retry a run that is over, or judge its work again.
#[derive(Args)]
#[command(after_help = "\
This is a new run that names the old one, with the same contract, agent and reviewer. It starts from
the same commit, or from the revision of --base, and under the policy there. What needed an approval
needs one again.

With --keep-work no agent is started: the work that the run captured is judged again, by the same
gates under a wider contract, after a refusal by the diff, review or acceptance gate.

With WORDS the agent starts again, from the files that the run left and with the words added to its
task. What it leaves is judged against the same base.

Examples:
  provost retry last
  provost retry last 'also handle empty input'
  provost retry RUN --base main
  provost retry RUN --keep-work --allow='src/extra.py'")]
pub(super) struct Retry {
    /// The run: its id, a part of it, or `last`.
    run: String,

    /// What else is to be done: the agent starts from the files that the run left.
    #[arg(value_name = "WORDS", value_parser = objective, conflicts_with_all = ["keep_work", "base"])]
    words: Option<String>,

    /// The revision to start from [default: the commit that the run started from].
    #[arg(long, value_name = "REV", conflicts_with = "keep_work")]
    base: Option<String>,

    /// Judge the work that the run captured again, and start no agent.
    #[arg(long)]
    keep_work: bool,

    #[command(flatten)]
    wider: wider::WiderFlags,

    #[command(flatten)]
    again: super::net::Again,
}

pub(super) fn run(retry: &Retry, reader: Reader) -> Outcome {
    let place = Places::find()?;
    if let Some(id) = place.find_case(&retry.run)? {
        return case::retry(&id, &retry.again.send, reader);
    }
    let before = place.find_run(&retry.run)?;
    let stage = query::stage(&place, &before);
    let first = query::state(&place, &before)?;
    if stage != Stage::Sealed {
        let (code, what) = match stage {
            Stage::Running => (Code::RunBusy, "is active"),
            Stage::Waiting => (Code::RunUnfinished, "waits for approval"),
            Stage::Interrupted | Stage::Sealed if query::is_approved(&first) => {
                (Code::RunUnfinished, "was approved and has not begun")
            }
            Stage::Interrupted | Stage::Sealed => (Code::RunUnfinished, "was interrupted"),
        };
        let failure = Failure::new(code, format!("{before} {what}"));
        return Err(failure.hint(report::go_on(&before, stage)));
    }
    query::require_own(&place, &before)?;
    intact(&place, &before)?;
    parts::refuse_retry(&place, &first)?;
    let wanted = RetryRequest {
        base: retry.base.clone(),
        workspace: workspace()?,
        owner: session::owner()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let wider = retry.wider.wider();
    let opened = if retry.keep_work {
        wider::opened(&place, &first, wider, wanted)?
    } else if wider == Wider::default() {
        let origin = GitOrigin(&place.repo);
        match &retry.words {
            Some(words) => continued(&origin, &first, words, wanted)?,
            None => again(&origin, &first, wanted)?,
        }
    } else {
        let reason = "a wider contract is for work that is kept; without that, `provost run` it";
        return Err(Failure::new(Code::UsageError, reason).hint("add --keep-work"));
    };
    let command = format!("retry {before}");
    user_consent::to_send(&before, &command, &opened.brokered(), &retry.again.send)?;
    user_consent::to_retry(&place, &opened)?;
    start::check(&opened, None)?;
    let names = Names {
        run_id: ids::run_id(clock::now_millis())?,
        task_id: opened.contract.task_id.clone(),
        trace_id: crate::trace::trace_id()?,
    };
    let observer = ProgressObserver::new(reader == Reader::Program);
    start::report_interrupted(&place, &observer)?;
    start::start(place, &names, opened, None, observer)
}

/// Refuses a bundle that was changed after its seal: the retry relies on its contents.
fn intact(place: &Places, run_id: &str) -> Result<(), Failure> {
    let unreadable = |error: &dyn std::error::Error| Failure::of(Code::InputUnreadable, error);
    let directory = Directory::open(&place.run(run_id)).map_err(|error| unreadable(&error))?;
    let keys = trusted()?;
    let keys: Vec<PublicKey> = keys.iter().map(|known| known.key).collect();
    let report = verify::verify(&directory, &keys, &place.pins(run_id)?, None);
    let verdict = report.verdict();
    if verdict.allow {
        return Ok(());
    }
    let reason = format!("the evidence of {run_id} does not hold: {}", verdict.reason);
    Err(Failure::new(verdict.code, reason).hint(format!("provost verify {run_id}")))
}
