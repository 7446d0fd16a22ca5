//! What an event of a run says, in one line.

use crate::{case, chain};
use provost_core::approval::Approval;
use provost_core::children::{ChildRefused, ChildStart, FamilyMessage, MessageWay};
use provost_core::gate::command;
use provost_core::question::{AgentQuestion, QuestionAnswer};
use provost_core::record::{Event, Record};
use provost_core::run::fact::{
    Cleaned, Ending, Fact, Judgement, Side, Stopped, TestRun, Violation,
};
use provost_core::run::judge::render_ending;
use provost_core::wording::counted;

use super::run::short_branch;

/// The details of an event, of the ledger or of the chain after the seal.
pub fn describe(record: &Record) -> String {
    match Fact::of(&record.event, record.seq) {
        Ok(fact) => about(&fact),
        Err(_) => case::describe(&record.event)
            .or_else(|| chain::describe(&record.event))
            .unwrap_or_else(|| later(&record.event)),
    }
}

/// The details of an event of the chain after the seal.
fn later(event: &Event) -> String {
    let text = |key: &str| event.payload.get(key)?.as_str();
    let commit = |id: &str| id.chars().take(12).collect::<String>();
    match (text("commit"), text("target"), text("logs")) {
        (Some(id), Some(target), _) => format!("{}, commit {}", short_branch(target), commit(id)),
        (Some(id), None, _) => format!("commit {}", commit(id)),
        (None, _, Some(logs)) => format!("logs in {logs}"),
        (None, _, None) => text("report").map(str::to_owned).unwrap_or_default(),
    }
}

/// The details of an event.
fn about(fact: &Fact) -> String {
    let first_line = |text: &str| text.trim().lines().next().unwrap_or_default().to_owned();
    match fact {
        Fact::Opened(opened) => first_line(&opened.contract.inputs.spec),
        Fact::Resumed { owner } => format!("process {} took over", owner.pid),
        Fact::Asked { reasons, .. } => reasons.join("; "),
        Fact::Approved(approval) => approved(approval),
        Fact::Expired {} => "the approval has expired".to_owned(),
        Fact::Rejected(rejection) => format!("rejected by {}: {}", rejection.by, rejection.reason),
        Fact::QuestionAsked(question) => asked(question),
        Fact::QuestionAnswered(answer) => answered(answer),
        Fact::QuestionExpired { digest, reason } => unanswered(digest, reason),
        Fact::CancelRequested(cancel) => cancel.verdict().reason,
        Fact::Started { step } => name(step),
        Fact::Failed { step, verdict } => format!("{}: {}", name(step), verdict.reason),
        Fact::Leased { fence } => format!("number {fence}"),
        Fact::Prepared { layers } => {
            let made = layers.iter().filter(|layer| layer.made.is_some()).count();
            format!("{}, {made} of them made", counted(layers.len(), "layer"))
        }
        Fact::Workspace(placed) => placed.path.clone(),
        Fact::Tested(test) => format!(
            "tier {}, {}",
            test.tier,
            counted(test.attempts().count(), "escape attempt")
        ),
        Fact::AgentEnded(agent) => {
            let words = ended(agent.ending);
            format!("the agent {words} after {} ms", agent.wall_ms)
        }
        Fact::ChildStarted(start) => child_started(start),
        Fact::ChildEnded(end) => {
            let (code, seconds) = (end.verdict.code, end.spent.seconds);
            format!("{}: {code} after {seconds} s", end.run_id)
        }
        Fact::ChildRefused(refused) => child_refused(refused),
        Fact::ChildMessage(message) => child_message(message),
        Fact::Lost {} => "the agent was lost with its driver".to_owned(),
        Fact::Captured(captured) => format!(
            "{}, tree {}",
            counted(captured.changes.len(), "changed file"),
            captured.tree.short()
        ),
        // What passes names its own subject.
        Fact::Passed(judgement) => judgement.verdict.reason.clone(),
        Fact::Refused(judgement) | Fact::Violation(Violation::Gate(judgement)) => judged(judgement),
        Fact::Violation(Violation::Sandbox(stopped)) => refused(stopped),
        Fact::Reviewed(reviewed) => format!(
            "the reviewer {} after {} ms",
            ended(reviewed.run.ending),
            reviewed.run.wall_ms
        ),
        Fact::TestsRan(run) => tested(run),
        Fact::Triggered(trigger) => format!(
            "the {} gate refused; another attempt after {}",
            trigger.gate.name(),
            trigger.not_before
        ),
        Fact::Fixing(fix) => format!("{}, {}", fix.contract.task_id, fix.path),
        Fact::Exhausted { fixes } => {
            format!("{} did not fix it", counted(*fixes as usize, "attempt"))
        }
        Fact::Published(published) => short_branch(&published.branch).to_owned(),
        Fact::Cleaned(Cleaned { salvage, left }) => match (salvage, left) {
            (_, Some(left)) => format!("{} stays: no commit can hold all of it", left.path),
            (Some(salvage), None) => format!("work is kept by {}", salvage.kept_by),
            (None, None) => "everything in it is kept".to_owned(),
        },
        Fact::Finished { verdict } => verdict.reason.clone(),
    }
}

fn child_started(start: &ChildStart) -> String {
    let kind = if start.read_only { "reads" } else { "writes" };
    let (seconds, base) = (start.given.seconds, start.base_tree.short());
    format!(
        "{} `{}` {kind} on {base}, {seconds} s",
        start.run_id, start.key
    )
}

fn child_message(message: &FamilyMessage) -> String {
    let (kind, bytes) = (message.kind, message.text.len());
    match message.way {
        MessageWay::Sent => format!("{kind} to {}, {bytes} bytes", message.peer),
        MessageWay::Received => format!("{kind} from {}, {bytes} bytes", message.peer),
    }
}

fn child_refused(refused: &ChildRefused) -> String {
    let verdict = &refused.verdict;
    match refused.times {
        1 => format!("{}: {}", verdict.code, verdict.reason),
        times => format!("{}: {}, {times} times", verdict.code, verdict.reason),
    }
}

fn approved(approval: &Approval) -> String {
    let Approval { by, until, how, .. } = approval;
    let why = words(&approval.reason);
    format!("approved by {by} by {how}, until {until}{why}")
}

fn words(reason: &str) -> String {
    if reason.is_empty() {
        return String::new();
    }
    format!(": {reason}")
}

fn unanswered(digest: &str, reason: &str) -> String {
    let digest = digest.get(..12).unwrap_or(digest);
    if !reason.is_empty() {
        return format!("the yes to {digest} does not count: {reason}");
    }
    format!("no answer to {digest} in time, which counts as no")
}

fn asked(question: &AgentQuestion) -> String {
    let AgentQuestion { kind, content, .. } = question;
    let why = words(&question.reason);
    format!("may the agent {} `{content}`?{why}", kind.words())
}

fn answered(answer: &QuestionAnswer) -> String {
    let word = if answer.allow { "yes" } else { "no" };
    let by = answer.by.as_ref().map(|by| format!(" of {by}"));
    let by = by.unwrap_or_default();
    let key = answer.signature.as_ref();
    let key = key.map_or_else(String::new, |key| format!(" {}", key.fingerprint()));
    format!("{word}{by} by {}{key}, until {}", answer.how, answer.until)
}

fn ended(ending: Ending) -> String {
    match ending {
        Ending::Exited(0) => "finished".to_owned(),
        ending => render_ending(ending),
    }
}

/// The serialised name of a value.
fn name(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// What a sandbox refused: programs and forms of commands first, then requests.
fn refused(stopped: &Stopped) -> String {
    let actions = stopped.programs.keys().chain(stopped.shapes.keys());
    let actions: Vec<String> = actions.map(|action| format!("`{action}`")).collect();
    let requests = refused_requests(stopped);
    match (actions.is_empty(), stopped.network.is_empty()) {
        (true, _) => requests,
        (false, true) => format!("{}: used {}", name(&stopped.program), actions.join(", ")),
        (false, false) => format!("{requests}; used {}", actions.join(", ")),
    }
}

/// The requests that a sandbox refused, with the first place.
fn refused_requests(stopped: &Stopped) -> String {
    let first = stopped.network.first();
    let place = first.map_or("-", |row| row.target.as_str());
    let count = usize::try_from(stopped.requests()).unwrap_or(usize::MAX);
    let requests = counted(count, "refused request");
    match stopped.network.len() {
        0 | 1 => format!("{}: {requests} to {place}", name(&stopped.program)),
        _ => format!(
            "{}: {requests}, the first to {place}",
            name(&stopped.program)
        ),
    }
}

fn judged(judgement: &Judgement) -> String {
    format!("{}: {}", judgement.gate.name(), judgement.verdict.reason)
}

fn tested(run: &TestRun) -> String {
    let side = match run.side {
        Side::Base => "base",
        Side::BaseAgain => "base again",
        Side::Candidate => "candidate",
        Side::Merged => "merged",
        Side::OldTests => "candidate with the tests of the base",
        Side::NewTests => "base with the tests of the candidate",
    };
    let commands = run.commands.iter().map(|ran| {
        let line = command::line(&ran.argv);
        format!("`{line}` {}", render_ending(ran.ending))
    });
    let commands: Vec<String> = commands.collect();
    let start = run.cache.as_ref();
    let start = start.map(|cache| format!(" ({}: {})", cache.start, cache.reason));
    format!(
        "{side}: {}{}",
        commands.join(", "),
        start.unwrap_or_default()
    )
}
