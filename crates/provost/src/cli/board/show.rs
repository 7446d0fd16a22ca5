//! Shows a board as text and as JSON.

use provost_formats::board::ask::refuse;
use provost_formats::board::fact::LogLine;
use provost_formats::board::lock::Lock;
use provost_formats::board::row::{Row, TaskId};
use provost_formats::board::state::Board;
use provost_formats::operator::board as payload;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::show::{headline, one_line};

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
        let nothing = json!({ "run_id": null, "version": 0, "rows": [], "locks": [],
            "next_actions": [] });
        return Ok(Answer::data(nothing, "the board is empty"));
    };
    let (board, head) = session.board()?;
    match task {
        None => Ok(whole(&board, &head)),
        Some(task) => one(&board, &task),
    }
}

fn whole(board: &Board, head: &str) -> Answer {
    let rows: Vec<Value> = board.rows().iter().map(|row| facts(board, row)).collect();
    let active: Vec<&Lock> = board.locks().iter().filter(|lock| lock.active).collect();
    let lock = |lock: &&Lock| json!({ "task_id": lock.task_id, "resource": lock.resource });
    let actions: Vec<String> = board.next().iter().map(ToString::to_string).collect();
    let mut text = format!("board {}, version {}\n", board.run_id(), board.version());
    for row in board.rows() {
        text += &line(board, row);
    }
    for action in &actions {
        text += &format!("next: {}\n", one_line(action));
    }
    let json = json!({
        "run_id": board.run_id(),
        "version": board.version(),
        "head": head,
        "objective": board.objective(),
        "rows": rows,
        "locks": active.iter().map(lock).collect::<Vec<_>>(),
        "next_actions": actions,
    });
    Answer::data(json, text)
}

/// The facts about a task, for programs.
fn facts(board: &Board, row: &Row) -> Value {
    let mut facts = json!(row);
    facts["locks"] = json!(board.held_by(&row.task_id));
    if let Some(terms) = board.terms(&row.task_id) {
        facts["title"] = json!(terms.title);
        facts["priority"] = json!(terms.priority);
        facts["timeout_seconds"] = json!(terms.timeout_seconds);
    }
    let card = board.card(&row.task_id);
    if let Some(blocker) = card.and_then(|card| card.blocker.as_ref()) {
        facts["blocker"] = json!({ "code": blocker.code, "reason": blocker.reason });
    }
    facts
}

fn line(board: &Board, row: &Row) -> String {
    let title = board.terms(&row.task_id).map_or("", |terms| &terms.title);
    let (task, status) = (row.task_id.as_str(), row.status.name());
    let start = format!("{task:8} {status:11} {:12} ", one_line(&row.owner));
    let title = headline(title, start.chars().count());
    let mut text = format!("{start}{title}").trim_end().to_owned() + "\n";
    for place in board.held_by(&row.task_id) {
        text += &format!("         holds {}\n", one_line(&place.to_string()));
    }
    let card = board.card(&row.task_id);
    if let Some(blocker) = card.and_then(|card| card.blocker.as_ref()) {
        let reason = headline(&blocker.reason, 40);
        text += &format!("         blocked by {}: {reason}\n", blocker.code);
    }
    text
}

fn one(board: &Board, task: &TaskId) -> Result<Answer, Stop> {
    let row = board.row(task).map_err(|why| refuse(&why))?;
    let card = board.card(task);
    let mut json = facts(board, row);
    json["version"] = json!(board.version());
    json["assignment"] = json!(board.terms(task).map(|terms| &terms.packet));
    json["result"] = json!(card.and_then(|card| card.result.as_ref()));
    json["worklog_lines"] = json!(board.log(task).len());
    let mut text = line(board, row);
    for criterion in board
        .terms(task)
        .into_iter()
        .flat_map(|t| &t.acceptance_criteria)
    {
        text += &format!("         wanted: {}\n", headline(criterion, 17));
    }
    let log = board.log(task);
    for line in &log[log.len().saturating_sub(LINES_OF_A_LOG)..] {
        text += &format!("         log: {}\n", headline(&line.line, 14));
    }
    Ok(Answer::data(json, text))
}

/// The log of a task, verbatim.
pub(super) fn log(board: &Board, task: &TaskId) -> Result<Answer, Stop> {
    board.row(task).map_err(|why| refuse(&why))?;
    let lines = board.log(task).iter().map(|line: &LogLine| &line.line);
    let text: String = lines.clone().map(|line| one_line(line) + "\n").collect();
    let json = json!({ "task_id": task, "lines": lines.collect::<Vec<_>>() });
    Ok(Answer::data(json, text))
}
