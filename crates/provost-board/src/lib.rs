//! `provost board`: keeps a board of tasks, locks and logs for a planner and its workers.

mod handoff;
mod session;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_formats::board::decide::Request;
use provost_formats::operator::board as payload;
use provost_host::clock;

use provost_surface::answer::{Answer, Failure, Outcome};

use session::{BoardSession, Stop};

#[derive(Subcommand)]
#[command(defer = true)]
pub enum Board {
    /// Assign a task: its row, its owner and all its locks, or nothing.
    Assign(Assign),
    /// Record that the owner of a task is still working.
    Heartbeat(Heartbeat),
    /// Finish a task with the report of its worker; JSON, or Markdown with front matter.
    Result(Report),
    /// Block tasks whose owners are silent, and release their locks.
    Tick(Tick),
    /// Apply a stream of deltas or the output of a planner round, all of it or none.
    Apply(Apply),
    /// Show the board, or one task.
    Show(Show),
    /// Check that everything on the board is consistent.
    Reconcile(Which),
    /// Lock paths for a task, all of them or none.
    Lock(Lock),
    /// Release locks of a task.
    Release(Release),
    /// Show the log of a task, or append to it.
    Worklog(Worklog),
    /// Write what a new planner needs to continue.
    Handoff(Handoff),
}

// Names a board.
#[derive(Args)]
pub struct Which {
    /// The run of the board; needed only when there are several boards.
    #[arg(long, value_name = "RUN_ID")]
    run: Option<String>,
}

/// How far the clocks of two machines may differ, in milliseconds.
const FORGIVEN: i64 = 30_000;

// Says what time it is.
#[derive(Args)]
struct Moment {
    /// Use this as the current time, like 2026-01-31T12:00:00Z.
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

    /// The same for a heartbeat, which must not lie in the future.
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
pub struct Assign {
    /// The assignment; `-` reads stdin.
    file: PathBuf,

    /// The worker of the task.
    #[arg(long, value_name = "NAME")]
    owner: String,

    #[command(flatten)]
    moment: Moment,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board heartbeat T-1 --owner ada")]
pub struct Heartbeat {
    /// The task.
    task: String,

    /// The worker that sends the heartbeat; any other than the owner is refused.
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
pub struct Report {
    /// The result; `-` reads stdin.
    file: PathBuf,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board tick")]
pub struct Tick {
    #[command(flatten)]
    moment: Moment,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(
    after_help = "A stream is an object with `base_version`, the version that `board show` prints,
and `deltas`; `run_id`, `stream_id` and `blockers` are optional. The output of a planner
round is taken as well: its deltas, blockers, and the assignments that its deltas begin.

Example:
  provost board apply stream.json"
)]
pub struct Apply {
    /// The stream or the output of a planner round; `-` reads stdin.
    file: PathBuf,

    #[command(flatten)]
    moment: Moment,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board show T-1")]
pub struct Show {
    /// The task; without it, the whole board.
    task: Option<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board lock T-1 src/api tests/api")]
pub struct Lock {
    /// The task.
    task: String,

    /// The paths to lock, with everything below them.
    #[arg(required = true, value_name = "PATH")]
    places: Vec<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board release T-1 tests/api")]
pub struct Release {
    /// The task.
    task: String,

    /// The paths to release; without any, all of the task.
    #[arg(value_name = "PATH")]
    places: Vec<String>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board worklog T-1 --append entries.jsonl")]
pub struct Worklog {
    /// The task.
    task: String,

    /// A file of entries to append, one per line; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
#[command(after_help = "Example:
  provost board handoff --out handoff")]
pub struct Handoff {
    /// The directory to create [default: a directory beside the board].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

pub fn run(board: &Board) -> Outcome {
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
    let session = BoardSession::of(run_id)?;
    session.ask(assign.moment.of_life()?, |_| {
        Ok(Request::Assign { owner, terms })
    })
}

fn run_heartbeat(heartbeat: &Heartbeat) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&heartbeat.task)?;
    let owner = heartbeat.owner.clone();
    let session = BoardSession::find(&heartbeat.which)?;
    session.ask(heartbeat.moment.of_life()?, |_| {
        Ok(Request::Heartbeat { task_id, owner })
    })
}

fn run_result(report: &Report) -> Result<Answer, Stop> {
    let result = payload::read_result(&session::read(&report.file)?)?;
    let log = session::read_log(&result.worklog_path)?;
    // A result never creates a board.
    let session = BoardSession::begun(result.header.run_id.clone())?;
    session.ask(clock::now_millis(), |board| {
        let report = payload::report(board, &result, log.as_deref())?;
        Ok(Request::Result(Box::new(report)))
    })
}

fn run_tick(tick: &Tick) -> Result<Answer, Stop> {
    let now = tick.moment.millis()?;
    match BoardSession::look(&tick.which)? {
        Some(session) => session.ask(now, |_| Ok(Request::Tick)),
        None => Ok(Verdict::allow("there is no board yet").into()),
    }
}

fn run_apply(apply: &Apply) -> Result<Answer, Stop> {
    let stream = payload::read_stream(&session::read(&apply.file)?)?;
    let session = match (&stream.run_id, &apply.which.run) {
        (Some(said), Some(named)) if said != named => {
            let reason = format!("the stream belongs to the run {said}, not to {named}");
            return Err(Verdict::deny(Code::SchemaInvalid, reason).into());
        }
        (Some(said), _) => BoardSession::of(said.clone())?,
        (None, _) => BoardSession::find(&apply.which)?,
    };
    session.ask(apply.moment.of_life()?, |board| {
        Ok(Request::Apply {
            base: stream.base_version.unwrap_or_else(|| board.version()),
            deltas: stream.deltas,
            blockers: stream.blockers,
            terms: stream.terms,
        })
    })
}

fn run_reconcile(which: &Which) -> Result<Answer, Stop> {
    match BoardSession::look(which)? {
        Some(session) => Ok(payload::reconcile(&session.board()?.0).into()),
        None => Ok(Verdict::allow("there is no board yet").into()),
    }
}

fn run_lock(lock: &Lock) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&lock.task)?;
    let resources = payload::read_places(&lock.places)?;
    let session = BoardSession::find(&lock.which)?;
    session.ask(clock::now_millis(), |_| {
        Ok(Request::Lock { task_id, resources })
    })
}

fn run_release(release: &Release) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&release.task)?;
    let resources = match release.places.as_slice() {
        [] => None,
        places => Some(payload::read_places(places)?),
    };
    let session = BoardSession::find(&release.which)?;
    session.ask(clock::now_millis(), |_| {
        Ok(Request::Release { task_id, resources })
    })
}

fn run_worklog(worklog: &Worklog) -> Result<Answer, Stop> {
    let task_id = payload::read_task(&worklog.task)?;
    let Some(file) = &worklog.append else {
        let (board, _) = BoardSession::find(&worklog.which)?.board()?;
        return Ok(show::TaskLog::of(&board, &task_id)?.into());
    };
    let bytes = session::read(file)?;
    let session = BoardSession::find(&worklog.which)?;
    session.ask(clock::now_millis(), |board| {
        let lines = payload::read_log(board, &task_id, &bytes)?;
        Ok(Request::Log { task_id, lines })
    })
}
