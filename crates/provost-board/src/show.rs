//! Shows a board as text and as JSON.

use provost_core::code::Code;
use provost_core::resource::Resource;
use provost_formats::board::ask::refuse;
use provost_formats::board::fact::LogLine;
use provost_formats::board::lock::Lock;
use provost_formats::board::row::{Priority, Row, TaskId};
use provost_formats::board::state::Board;
use provost_formats::operator::board as payload;
use serde::Serialize;
use serde_json::Value;

use provost_surface::answer::{Answer, Answered};
use provost_surface::show::{headline, one_line};

use super::Show;
use super::session::{BoardSession, Stop};

/// How many lines of a log are shown with its task.
const LINES_OF_A_LOG: usize = 5;

pub(super) fn run(show: &Show) -> Result<Answer, Stop> {
    let task = match &show.task {
        Some(name) => Some(payload::read_task(name)?),
        None => None,
    };
    let Some(session) = BoardSession::look(&show.which)? else {
        return Ok(WholeBoard::default().into());
    };
    let (board, head) = session.board()?;
    match task {
        None => Ok(WholeBoard::of(&board, &head).into()),
        Some(task) => Ok(OneTask::of(&board, &task)?.into()),
    }
}

#[derive(Default, Serialize)]
struct WholeBoard<'a> {
    run_id: Option<&'a str>,
    version: u64,
    /// The end of its ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<&'a str>,
    rows: Vec<TaskFacts<'a>>,
    locks: Vec<ActiveLock<'a>>,
    next_actions: Vec<String>,
}

#[derive(Serialize)]
struct ActiveLock<'a> {
    task_id: &'a TaskId,
    resource: &'a Resource,
}

#[derive(Serialize)]
struct TaskFacts<'a> {
    #[serde(flatten)]
    row: &'a Row,
    locks: Vec<Resource>,
    #[serde(flatten)]
    terms: Option<ShownTerms<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<ShownBlocker<'a>>,
}

/// The terms of a task that was assigned.
#[derive(Serialize)]
struct ShownTerms<'a> {
    title: &'a str,
    priority: Priority,
    timeout_seconds: u64,
}

#[derive(Serialize)]
struct ShownBlocker<'a> {
    code: Code,
    reason: &'a str,
}

impl<'a> WholeBoard<'a> {
    fn of(board: &'a Board, head: &'a str) -> Self {
        let rows = board.rows().iter();
        let active = board.locks().iter().filter(|lock| lock.active);
        let lock = |Lock {
                        task_id, resource, ..
                    }: &'a Lock| ActiveLock { task_id, resource };
        Self {
            run_id: Some(board.run_id()),
            version: board.version(),
            head: Some(head),
            objective: Some(board.objective()),
            rows: rows.map(|row| TaskFacts::of(board, row)).collect(),
            locks: active.map(lock).collect(),
            next_actions: board.next().iter().map(ToString::to_string).collect(),
        }
    }
}

impl Answered for WholeBoard<'_> {
    fn text(&self) -> String {
        let Some(run_id) = self.run_id else {
            return "the board is empty".to_owned();
        };
        let mut text = format!("board {run_id}, version {}\n", self.version);
        text.extend(self.rows.iter().map(TaskFacts::lines));
        for action in &self.next_actions {
            text += &format!("next: {}\n", one_line(action));
        }
        text
    }
}

impl<'a> TaskFacts<'a> {
    fn of(board: &'a Board, row: &'a Row) -> Self {
        let task = &row.task_id;
        let blocker = board.card(task).and_then(|card| card.blocker.as_ref());
        Self {
            row,
            locks: board.held_by(task),
            terms: board.terms(task).map(|terms| ShownTerms {
                title: &terms.title,
                priority: terms.priority,
                timeout_seconds: terms.timeout_seconds,
            }),
            blocker: blocker.map(|blocker| ShownBlocker {
                code: blocker.code,
                reason: &blocker.reason,
            }),
        }
    }

    fn lines(&self) -> String {
        let title = self.terms.as_ref().map_or("", |terms| terms.title);
        let (task, status) = (self.row.task_id.as_str(), self.row.status.name());
        let start = format!("{task:8} {status:11} {:12} ", one_line(&self.row.owner));
        let title = headline(title, start.chars().count());
        let mut text = format!("{start}{title}").trim_end().to_owned() + "\n";
        for place in &self.locks {
            text += &format!("         holds {}\n", one_line(&place.to_string()));
        }
        if let Some(ShownBlocker { code, reason }) = &self.blocker {
            let reason = headline(reason, 40);
            text += &format!("         blocked by {code}: {reason}\n");
        }
        text
    }
}

#[derive(Serialize)]
struct OneTask<'a> {
    #[serde(flatten)]
    facts: TaskFacts<'a>,
    version: u64,
    /// The assignment as it was received.
    assignment: Option<&'a Value>,
    result: Option<&'a Value>,
    worklog_lines: usize,
    #[serde(skip)]
    criteria: &'a [String],
    #[serde(skip)]
    log: &'a [LogLine],
}

impl<'a> OneTask<'a> {
    fn of(board: &'a Board, task: &TaskId) -> Result<Self, Stop> {
        let row = board.row(task).map_err(|why| refuse(&why))?;
        let (terms, log) = (board.terms(task), board.log(task));
        Ok(Self {
            facts: TaskFacts::of(board, row),
            version: board.version(),
            assignment: terms.map(|terms| &terms.packet),
            result: board.card(task).and_then(|card| card.result.as_ref()),
            worklog_lines: log.len(),
            criteria: terms.map_or(&[], |terms| &terms.acceptance_criteria),
            log,
        })
    }
}

impl Answered for OneTask<'_> {
    fn text(&self) -> String {
        let mut text = self.facts.lines();
        for criterion in self.criteria {
            text += &format!("         wanted: {}\n", headline(criterion, 17));
        }
        for line in &self.log[self.log.len().saturating_sub(LINES_OF_A_LOG)..] {
            text += &format!("         log: {}\n", headline(&line.line, 14));
        }
        text
    }
}

/// The log of a task, verbatim.
#[derive(Serialize)]
pub(super) struct TaskLog<'a> {
    task_id: &'a TaskId,
    lines: Vec<&'a str>,
}

impl<'a> TaskLog<'a> {
    pub(super) fn of(board: &'a Board, task_id: &'a TaskId) -> Result<Self, Stop> {
        board.row(task_id).map_err(|why| refuse(&why))?;
        let lines = board.log(task_id).iter().map(|line| line.line.as_str());
        Ok(Self {
            task_id,
            lines: lines.collect(),
        })
    }
}

impl Answered for TaskLog<'_> {
    fn text(&self) -> String {
        self.lines
            .iter()
            .map(|line| one_line(line) + "\n")
            .collect()
    }
}
