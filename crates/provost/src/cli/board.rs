//! `provost board`: keeps a board of tasks, locks and logs for a planner and its workers.

mod handoff;
mod session;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use provost_core::board::decide::Request;
use provost_core::code::Code;
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_formats::operator::board as payload;
use provost_host::clock;

use crate::answer::{Answer, Failure, Outcome};

use session::{BoardSession, Stop};

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Board {
    /// Begin a task: its row, its owner and all its locks, or nothing.
    Assign(Assign),
    /// Say that the owner of a task is still at work.
    Heartbeat(Heartbeat),
    /// End a task by what its worker reports; JSON, or Markdown with front matter.
    Result(Report),
    /// Block tasks whose owners are silent, and free what they hold.
    Tick(Tick),
    /// Apply a stream of deltas, all of them or none.
    Apply(Apply),
    /// Show the board, or one task.
    Show(Show),
    /// Say whether everything on the board fits together.
    Reconcile(Which),
    /// Lock places for a task, all of them or none.
    Lock(Lock),
    /// Give back what a task holds.
    Release(Release),
    /// Show the log of a task, or add to it.
    Worklog(Worklog),
    /// Write what a planner with a fresh memory needs to go on.
    Handoff(Handoff),
}

// Names a board.
#[derive(Args)]
pub(super) struct Which {
    /// The run whose board it is; needed only when there are several.
    #[arg(long, value_name = "RUN_ID")]
    run: Option<String>,
}

/// How far the clocks of two machines may differ, in milliseconds.
const FORGIVEN: i64 = 30_000;

// Says what time it is.
#[derive(Args)]
struct Moment {
    /// Take this for the time now, like 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
}

impl Moment {
    fn millis(&self) -> Result<i64, Stop> {
        match &self.now {
            None => Ok(clock::now_millis()),
            Some(text) => {
                let wrong = |error: &time::BadTime| Failure::of(Code::UsageError, error);
                Ok(time::parse(text).map_err(|error| wrong(&error))?)
            }
        }
    }

    /// The same for a sign of life, which nobody gives ahead of time.
    fn of_life(&self) -> Result<i64, Stop> {
        let millis = self.millis()?;
        if millis > clock::now_millis().saturating_add(FORGIVEN) {
            let reason = "`--now` lies in the future";
            return Err(Failure::new(Code::UsageError, reason).into());
        }
        Ok(millis)
    }
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board assign task.json --owner ada")]
pub(super) struct Assign {
    /// The assignment; `-` reads stdin.
    file: PathBuf,

    /// Who works on the task.
    #[arg(long, value_name = "NAME")]
    owner: String,

    #[command(flatten)]
    moment: Moment,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board heartbeat T-1 --owner ada")]
pub(super) struct Heartbeat {
    /// The task.
    task: String,

    /// Who gives the sign of life; somebody else's is refused.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    #[command(flatten)]
    moment: Moment,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board result result.md")]
pub(super) struct Report {
    /// The result; `-` reads stdin.
    file: PathBuf,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board tick")]
pub(super) struct Tick {
    #[command(flatten)]
    moment: Moment,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(
    after_help = "A stream is an object with `base_version`, the version that `board show` gave,
and `deltas`; `run_id`, `stream_id` and `blockers` may be there.

Example:
  provost board apply stream.json"
)]
pub(super) struct Apply {
    /// The stream; `-` reads stdin.
    file: PathBuf,

    #[command(flatten)]
    moment: Moment,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board show T-1")]
pub(super) struct Show {
    /// One task.
    task: Option<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board lock T-1 src/api tests/api")]
pub(super) struct Lock {
    /// The task.
    task: String,

    /// What it locks: these places and everything below them.
    #[arg(required = true, value_name = "PATH")]
    places: Vec<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board release T-1 tests/api")]
pub(super) struct Release {
    /// The task.
    task: String,

    /// What it gives back; everything, when nothing is named.
    #[arg(value_name = "PATH")]
    places: Vec<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board worklog T-1 --append entries.jsonl")]
pub(super) struct Worklog {
    /// The task.
    task: String,

    /// Entries to add, one a line; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board handoff --out handoff")]
pub(super) struct Handoff {
    /// Where the directory is made; beside the board, when nothing is named.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

pub(super) fn run(board: &Board) -> Outcome {
    let answered = match board {
        Board::Assign(assign) => run_assign(assign),
        Board::Heartbeat(heartbeat) => run_heartbeat(heartbeat),
        Board::Result(report) => run_result(report),
        Board::Tick(tick) => run_tick(tick),
        Board::Apply(apply) => run_apply(apply),
        Board::Show(show) => show::run(show),
        Board::Reconcile(which) => run_reconcile(which),
        Board::Lock(lock) => run_lock(lock),
        Board::Release(release) => run_release(release),
        Board::Worklog(worklog) => run_worklog(worklog),
        Board::Handoff(handoff) => handoff::run(handoff),
    };
    match answered {
        Ok(answer) => Ok(answer),
        Err(Stop::Refused(verdict)) => Ok(verdict.into()),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

fn run_assign(assign: &Assign) -> Result<Answer, Stop> {
    let (run_id, terms) = payload::read_assignment(&session::read(&assign.file)?)?;
    let owner = assign.owner.clone();
    let terms = Box::new(terms);
    let desk = BoardSession::of(run_id)?;
    desk.ask(assign.moment.of_life()?, |_| {
        Ok(Request::Assign { owner, terms })
    })
}

fn run_heartbeat(heartbeat: &Heartbeat) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&heartbeat.task)?;
    let owner = heartbeat.owner.clone();
    let desk = BoardSession::find(&heartbeat.which)?;
    desk.ask(heartbeat.moment.of_life()?, |_| {
        Ok(Request::Heartbeat { task_id, owner })
    })
}

fn run_result(report: &Report) -> Result<Answer, Stop> {
    let result = payload::read_result(&session::read(&report.file)?)?;
    let log = session::read_log(&result.worklog_path)?;
    // Nobody begins a board by reporting to it.
    let desk = BoardSession::begun(result.run_id.clone())?;
    desk.ask(clock::now_millis(), |board| {
        let report = payload::report(board, &result, log.as_deref())?;
        Ok(Request::Result(Box::new(report)))
    })
}

fn run_tick(tick: &Tick) -> Result<Answer, Stop> {
    let now = tick.moment.millis()?;
    match BoardSession::look(&tick.which)? {
        Some(desk) => desk.ask(now, |_| Ok(Request::Tick)),
        None => Ok(Verdict::allow("there is no board yet").into()),
    }
}

fn run_apply(apply: &Apply) -> Result<Answer, Stop> {
    let stream = payload::read_stream(&session::read(&apply.file)?)?;
    let desk = match (&stream.run_id, &apply.which.run) {
        (Some(said), Some(named)) if said != named => {
            let reason = format!("the stream belongs to the run {said}, not to {named}");
            return Err(Verdict::deny(Code::SchemaInvalid, reason).into());
        }
        (Some(said), _) => BoardSession::of(said.clone())?,
        (None, _) => BoardSession::find(&apply.which)?,
    };
    desk.ask(apply.moment.of_life()?, |_| {
        Ok(Request::Apply {
            base: stream.base_version,
            deltas: stream.deltas,
            blockers: stream.blockers,
        })
    })
}

fn run_reconcile(which: &Which) -> Result<Answer, Stop> {
    match BoardSession::look(which)? {
        Some(desk) => Ok(payload::reconcile(&desk.board()?.0).into()),
        None => Ok(Verdict::allow("there is no board yet").into()),
    }
}

fn run_lock(lock: &Lock) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&lock.task)?;
    let resources = payload::read_places(&lock.places)?;
    let desk = BoardSession::find(&lock.which)?;
    desk.ask(clock::now_millis(), |_| {
        Ok(Request::Lock { task_id, resources })
    })
}

fn run_release(release: &Release) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&release.task)?;
    let resources = match release.places.as_slice() {
        [] => None,
        places => Some(payload::read_places(places)?),
    };
    let desk = BoardSession::find(&release.which)?;
    desk.ask(clock::now_millis(), |_| {
        Ok(Request::Release { task_id, resources })
    })
}

fn run_worklog(worklog: &Worklog) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&worklog.task)?;
    let Some(file) = &worklog.append else {
        let (board, _) = BoardSession::find(&worklog.which)?.board()?;
        return show::log(&board, &task_id);
    };
    let bytes = session::read(file)?;
    let desk = BoardSession::find(&worklog.which)?;
    desk.ask(clock::now_millis(), |board| {
        let lines = payload::read_log(board, &task_id, &bytes)?;
        Ok(Request::Log { task_id, lines })
    })
}
