//! `provost status`: what has not ended, once, in one line, or again and again.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use provost_change::intent::{Intent, Ownership, Viewer};
use provost_change::tools::answers::IntentPayload;
use provost_engine::chain::report::NodeStatus;
use provost_engine::query::{
    self, ChainSummary, LiveView, OpenRun, RunStatus, Stage, StatusView, short_id,
};
use provost_host::{clock, process_owner};

use super::runs::{header, line, outcome_width};
use super::{case, change};

use crate::answer::{Answer, Failure, Outcome};
use crate::frame::{Frame, Size};
use crate::look;
use crate::places::Places;
use crate::progress::{self, spent_words};
use crate::report::{self, RunDirectory};
use crate::show::{Reader, headline, neutralise, one_line};
use crate::{approval_text, parts, session, stores, times};

/// Show active and interrupted runs, and who is changing this checkout.
#[derive(Args)]
#[command(after_help = "\
--line is for the prompt of a shell: it prints nothing where nothing is active, and outside of a
repository.

Examples:
  provost status --watch
  PS1='$(provost status --line)\\$ '")]
pub(super) struct Status {
    /// Show it again whenever it changes, until Ctrl-C.
    #[arg(long, conflicts_with = "line")]
    watch: bool,

    /// Print the active runs in one line, for the prompt of a shell.
    #[arg(long)]
    line: bool,
}

pub(super) fn run(status: &Status, reader: Reader) -> Outcome {
    match status {
        Status { line: true, .. } => prompt(),
        Status { watch: true, .. } => watch(reader),
        _ => status_now(),
    }
}

/// How often the state is read again.
const PERIOD: Duration = Duration::from_millis(500);

/// Shows the state until the user ends it.
fn watch(reader: Reader) -> Outcome {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&ended));
    }
    let in_place = reader == Reader::Person && io::stdout().is_terminal() && !look::is_plain();
    let mut frame = Frame::default();
    let mut last = String::new();
    while !ended.load(Ordering::Relaxed) {
        let answer = status_now()?;
        let text = match reader {
            Reader::Person => look::for_people(answer.text.trim_end(), &io::stdout()),
            Reader::Program => answer.json.to_string(),
        };
        let mut out = io::stdout().lock();
        let written = if in_place {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            frame.draw(&mut out, &lines, Size::of(io::stdout()))
        } else if steady(&text) == last {
            Ok(())
        } else {
            last = steady(&text);
            writeln!(out, "{text}").and_then(|()| out.flush())
        };
        drop(out);
        if written.is_err() {
            break;
        }
        thread::sleep(PERIOD);
    }
    let _ = frame.leave(&mut io::stdout().lock());
    Ok(Answer::silent())
}

/// The text without its digits: times that pass are no change worth a new copy.
fn steady(text: &str) -> String {
    text.chars().filter(|it| !it.is_ascii_digit()).collect()
}

/// How many runs a line names.
const MOST_IN_LINE: usize = 3;

/// The runs that are active or wait, in one line; nothing where there is none.
fn prompt() -> Outcome {
    let Ok(place) = Places::look() else {
        return Ok(Answer::silent());
    };
    let open = open_runs(&place)?;
    let own = open.iter().filter(|run| !run.summary.is_foreign());
    let shown = own.filter_map(|run| {
        let short = short_id(&run.summary.run_id);
        match (run.summary.status, &run.live) {
            (RunStatus::Running, Some(live)) => Some(format!("{short} {}", in_short(live))),
            (RunStatus::Waiting, _) => Some(format!("{short} waits for approval")),
            _ => None,
        }
    });
    let shown: Vec<String> = shown.collect();
    let mut text = shown[..shown.len().min(MOST_IN_LINE)].join("; ");
    match shown.len().saturating_sub(MOST_IN_LINE) {
        0 => {}
        more => text += &format!("; and {more} more"),
    }
    let runs: Vec<&OpenRun> = open.iter().collect();
    Ok(Answer::data(runs, one_line(&text)))
}

/// Step, time, tokens and price of a run, in a few words.
fn in_short(live: &LiveView) -> String {
    let step = live.step.map_or("between steps", progress::words);
    let time = live.step_ms.map(times::length).unwrap_or_default();
    let spent = spent_words(live.usage.as_ref(), live.limit);
    let parts = [step.to_owned(), time, spent.unwrap_or_default()];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<String>>().join(", ")
}

/// The runs that have not ended, newest first.
fn open_runs(place: &Places) -> Result<Vec<OpenRun>, Failure> {
    let mut open = place.runs()?;
    open.retain(|run_id| {
        query::stage(place, run_id) != Stage::Sealed && !query::never_began(place, run_id)
    });
    open.reverse();
    let now = clock::now_millis();
    let row = |summary: query::RunSummary| {
        let state = query::state(place, &summary.run_id).ok();
        let directory = place.run(&summary.run_id);
        let is_live = summary.status == RunStatus::Running;
        let live = state.as_ref().filter(|_| is_live);
        let live = live.map(|it| LiveView::of(it, place, &RunDirectory(&directory), now));
        let questions = state.iter().flat_map(|it| it.open_questions().cloned());
        OpenRun {
            questions: questions.collect(),
            part: state.and_then(|it| it.opened.part),
            live,
            summary,
        }
    };
    let rows = query::summaries(place, &open);
    Ok(rows.into_iter().map(row).collect())
}

fn status_now() -> Outcome {
    let place = Places::look()?;
    let open = open_runs(&place)?;
    let chains = parts::active(&place);
    let cases = case::open_cases(&place);
    let foreign = if place.is_foreign() {
        place.runs()?.len() + place.all_refused()?.len()
    } else {
        open.iter().filter(|row| row.summary.is_foreign()).count()
    };
    // Runs are listed even if the changes cannot be read.
    let changes = changes(&place);
    let known = changes.as_deref().unwrap_or_default();
    let is_idle = chains.is_empty()
        && cases.is_empty()
        && known.is_empty()
        && changes.is_ok()
        && foreign == 0;
    let mut text = match open.as_slice() {
        [] if is_idle => "no active runs\n".to_owned(),
        [] => String::new(),
        rows => table(rows),
    };
    text += &chains.iter().map(chain).collect::<String>();
    text += &cases;
    match &changes {
        Ok(known) if known.is_empty() => {}
        Ok(known) => {
            text += "changes of this checkout:\n";
            text += &known
                .iter()
                .map(|(it, _)| change::row(it))
                .collect::<String>();
        }
        Err(failure) => text += &format!("changes cannot be read: {}\n", failure.reason),
    }
    if foreign > 0 {
        text += &place.foreign_note(foreign);
    }
    text += &next_commands(&open);
    let view = StatusView {
        open,
        chains,
        changes: changes.as_ref().ok().map(|all| {
            let all = all.iter();
            all.map(|(intent, whose)| IntentPayload::of(intent, *whose))
                .collect()
        }),
        foreign,
    };
    Ok(Answer::data(view, neutralise(&text)))
}

/// The rows as a table, with what each active run is doing below it.
fn table(rows: &[OpenRun]) -> String {
    let width = outcome_width(rows.iter().map(|row| &row.summary));
    let now = clock::now_millis();
    let mut text = header(width);
    for row in rows {
        text += &line(&row.summary, now, width);
        text += &row.live.as_ref().map(details).unwrap_or_default();
        let own = row.questions.iter().filter(|_| !row.summary.is_foreign());
        for question in own {
            text += &format!(
                "  asks     {}\n",
                headline(&approval_text::asked(question), 11)
            );
            let answer = approval_text::answer_commands(&row.summary.run_id, question);
            text += &format!("  answer   {answer}\n");
        }
        if let Some(part) = &row.part {
            text += &format!("  part     {} of {}\n", one_line(&part.node), part.chain);
        }
    }
    text
}

/// What a run is doing.
fn details(live: &LiveView) -> String {
    let step = live.step.map_or("between steps", progress::words);
    let time = live.step_ms.map(times::length).unwrap_or_default();
    let attempt = match live.attempt {
        1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let rows = [
        ("step", Some(format!("{step}, {time}{attempt}"))),
        ("tool", live.last_tool.clone()),
        ("says", live.says.clone()),
        ("scope", Some(live.scope.join(", "))),
        ("spent", spent_words(live.usage.as_ref(), live.limit)),
    ];
    let rows = rows.into_iter().filter_map(|(name, words)| {
        let words = words.filter(|words| !words.trim().is_empty())?;
        Some(format!("  {name:8} {}\n", headline(&words, 11)))
    });
    rows.collect()
}

/// A chain in one line.
fn chain(chain: &ChainSummary) -> String {
    let named = |status: NodeStatus| {
        let nodes = chain.nodes.iter().filter(|it| it.status == status);
        let nodes: Vec<String> = nodes.map(|it| one_line(&it.id)).collect();
        nodes.join(", ")
    };
    let done = chain.count(NodeStatus::Accepted);
    let mut text = format!(
        "{}: {done} of {} parts accepted",
        chain.chain_id,
        chain.nodes.len()
    );
    for (status, word) in [
        (NodeStatus::Running, "running"),
        (NodeStatus::Refused, "refused"),
        (NodeStatus::NotRun, "not run"),
    ] {
        if chain.count(status) > 0 {
            text += &format!("; {word}: {}", named(status));
        }
    }
    format!("{}\n", headline(&text, 0))
}

/// The commands that continue the open runs of this user.
fn next_commands(open: &[OpenRun]) -> String {
    let own = |status: RunStatus| {
        let rows = open.iter().map(|run| &run.summary);
        let rows = rows.filter(|row| !row.is_foreign());
        rows.filter(move |row| row.status == status)
    };
    let mut text = String::new();
    for row in own(RunStatus::Waiting) {
        text += &format!("next: {}\n", report::go_on(&row.run_id, Stage::Waiting));
    }
    for row in own(RunStatus::Approved) {
        let next = report::go_on(&row.run_id, Stage::Interrupted);
        text += &format!("next: {next}\n");
    }
    if own(RunStatus::Interrupted).next().is_some() {
        text += "next: provost resume\n";
    }
    text
}

/// The controlled changes that are active or wait, as `provost change list` shows them.
///
/// Nothing is changed: expired intents are left for the agents that work here.
pub(super) fn changes(place: &Places) -> Result<Vec<(Intent, Ownership)>, Failure> {
    let path = place.registry_path();
    if place.is_foreign() || !path.exists() {
        return Ok(Vec::new());
    }
    let me = session::owner()?;
    let viewer = Viewer {
        me: &me,
        now: clock::now_millis(),
        alive: &process_owner::alive,
    };
    let known = stores::look_at_intents(&path, |intents| Ok(intents.look(None)?.intents))?;
    let reported = known.into_iter().filter_map(|intent| {
        let ownership = intent.ownership(&viewer);
        let is_active = intent.state.is_open() && ownership != Ownership::Expired;
        is_active.then_some((intent, ownership))
    });
    Ok(reported.collect())
}
