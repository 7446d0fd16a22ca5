//! `provost run --agent A --agent B`: the same contract for several agents, one after the other.
//!
//! The same program is started again for each agent with the same arguments, so that there is one
//! way to begin a run. Each run is separate and starts from the same base; nothing lands by itself.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use provost_core::agent::dollars;
use provost_core::code::Code;
use provost_core::path::is_segment;
use provost_core::wording::counted;
use provost_engine::query::{ComparedRun, ComparisonView, RunStatus, short_id};
use provost_host::{clock, ids};

use super::Run;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Places;
use crate::show::{Reader, one_line, print_message};

/// The variable that gives the process of one agent the id of its run.
const VARIABLE: &str = "PROVOST_RUN_AS";

/// The flag that is given to each process once.
const FLAG: &str = "--agent";

/// The id that this process was started for, if it runs one of several agents.
pub(super) fn assigned() -> Option<String> {
    let run_id = env::var(VARIABLE).ok()?;
    (run_id.starts_with("run_") && is_segment(&run_id)).then_some(run_id)
}

/// The agents of this command line, if there are several.
pub(super) fn named() -> Option<Vec<String>> {
    let agents = split(env::args_os().skip(1)).0;
    (agents.len() > 1 && assigned().is_none()).then_some(agents)
}

/// The values of all `--agent`, and the words without them.
fn split(words: impl Iterator<Item = OsString>) -> (Vec<String>, Vec<OsString>) {
    let (mut agents, mut others) = (Vec::new(), Vec::new());
    let mut words = words;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            others.push(word);
            break;
        }
        if text == FLAG {
            let value = words.next().unwrap_or_default();
            agents.push(value.to_string_lossy().into_owned());
        } else if let Some(name) = text.strip_prefix("--agent=") {
            agents.push(name.to_owned());
        } else {
            others.push(word);
        }
    }
    others.extend(words);
    (agents, others)
}

pub(super) fn run(run: &Run, place: &Places, agents: &[String], reader: Reader) -> Outcome {
    let refused = |reason: &str| Err(Failure::new(Code::UsageError, reason).hint("name one agent"));
    if run.detach {
        return refused("--detach runs one agent, and several are named");
    }
    if run
        .file
        .as_ref()
        .is_some_and(|file| file.as_os_str() == "-")
    {
        return refused("a contract from stdin can be read once, and several agents are named");
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The process of the agent gets the signal too, and ends its run.
        let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
    }
    let others = split(env::args_os().skip(1)).1;
    let mut runs = Vec::new();
    for (at, agent) in agents.iter().enumerate() {
        if cancelled.load(Ordering::Relaxed) {
            break;
        }
        if reader == Reader::Person {
            let (now, all) = (at + 1, agents.len());
            print_message(&format!("agent {} ({now} of {all})", one_line(agent)));
        }
        let run_id = ids::run_id(clock::now_millis())?;
        start(&others, agent, &run_id)?;
        runs.push(ComparedRun::of(place, agent, &run_id));
    }
    let view = ComparisonView { runs };
    Ok(Answer::new(view.exit(), &view, text(&view)))
}

/// Runs one agent to its end; the answer is read from its run.
fn start(words: &[OsString], agent: &str, run_id: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::of(Code::HostFailed, &error);
    let program = env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    // Words after `--` are no flags.
    let end = words.iter().position(|word| word == "--");
    let (flags, rest) = words.split_at(end.unwrap_or(words.len()));
    command
        .args(flags)
        .arg(format!("{FLAG}={agent}"))
        .args(rest);
    command.env(VARIABLE, run_id).stdout(Stdio::null());
    command.status().map(drop).map_err(failed)
}

fn text(view: &ComparisonView) -> String {
    let cells: Vec<[String; 7]> = view.runs.iter().map(cells).collect();
    let head = ["RUN", "AGENT", "OUTCOME", "DIFF", "TIME", "TOKENS", "PRICE"];
    let width = |at: usize| {
        let longest = cells.iter().map(|row| row[at].chars().count()).max();
        longest.unwrap_or_default().max(head[at].len())
    };
    let line = |row: &[String; 7]| {
        let cell = |(at, cell): (usize, &String)| format!("{cell:<0$}", width(at));
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let mut text = line(&head.map(str::to_owned));
    text += &cells.iter().map(line).collect::<String>();
    for run in view.accepted() {
        let run_id = &run.summary.run_id;
        text += &format!("next: provost diff {run_id}; provost land {run_id}\n");
    }
    for run in view.runs.iter().filter(|run| has_refusal(run)) {
        text += &format!("next: provost why {}\n", run.summary.run_id);
    }
    text
}

fn has_refusal(run: &ComparedRun) -> bool {
    run.summary.status == RunStatus::Failure
}

/// The cells of one run.
fn cells(run: &ComparedRun) -> [String; 7] {
    let usage = run.usage.as_ref().map(|spent| spent.usage);
    let price = usage
        .map(|usage| usage.micro_usd)
        .filter(|price| *price > 0);
    let unknown = || "-".to_owned();
    let files = counted(run.changed_files, "file");
    [
        short_id(&run.summary.run_id).to_owned(),
        one_line(&run.agent),
        super::super::runs::outcome(&run.summary).to_owned(),
        format!("{files} +{} -{}", run.added, run.removed),
        run.agent_ms.map_or_else(unknown, crate::times::length),
        usage.map_or_else(unknown, |usage| usage.tokens().to_string()),
        price.map_or_else(unknown, dollars),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_are_taken_out_of_the_command_line() {
        let words = "run x --agent a --allow src --agent=b -- --agent c".split(' ');
        let (agents, others) = split(words.map(OsString::from));
        assert_eq!(agents, ["a", "b"]);
        let others: Vec<_> = others.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(others.join(" "), "run x --allow src -- --agent c");
    }
}
