//! Text output of `provost change`: the outcome of a request, and the next command.
//!
//! The facts are those of the answer that `--json` prints; nothing is decided here.

use std::path::Path;

use provost_change::analysis::run::RunHead;
use provost_change::answer::{Finished, IntentList, MAY_EDIT, Promoted, Started};
use provost_change::conflict::Conflict;
use provost_change::finish::decide::{FinishStatus, StopReason};
use provost_change::finish::verify::Verified;
use provost_change::hygiene::{AtFinish, AtStart, Class, Overlap};
use provost_change::intent::{Intent, Ownership, utc};
use provost_change::next_step::Audience;
use provost_change::receipt::compose::{Receipt, inside};
use provost_change::start::decide::StartStatus;
use provost_change::tools::answers::{ANALYSIS_GONE, COME_FIRST, JUDGED_WITH_OTHERS};
use provost_core::gate::command::quote;
use provost_core::wording::counted;
use provost_lens::structure::Report;
use serde_json::Value;

use super::{Command, Start, Touched};
use crate::change::ToolAnswer;
use crate::show::neutralise;

/// How many paths a line names.
const MOST: usize = 8;

pub(super) struct Asked<'a> {
    pub(super) command: &'a Command,
    /// The name from `--agent`; a name from the environment need not be repeated.
    pub(super) agent: Option<&'a str>,
    pub(super) root: &'a str,
}

impl Asked<'_> {
    /// The beginning of every next command.
    fn program(&self) -> String {
        let mut text = "provost change".to_owned();
        if let Some(agent) = self.agent {
            text += &format!(" --agent {agent}");
        }
        if self.root != "." {
            text += &format!(" --root {}", quote(self.root));
        }
        text
    }

    fn next(&self, rest: &str) -> String {
        format!("next: {} {rest}\n", self.program())
    }
}

fn files<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let words = paths
        .into_iter()
        .map(|path| format!(" --file {}", quote(path)));
    words.collect()
}

/// The text output; the facts of answers that have no page of their own are listed.
pub(super) fn render(asked: &Asked<'_>, answer: &ToolAnswer, facts_of: &Value) -> String {
    let receipt = match answer {
        ToolAnswer::Receipt(found) => found.receipt.as_ref(),
        _ => None,
    };
    let text = match (asked.command, answer) {
        (_, ToolAnswer::Analysed(answer)) => analysed(asked, &answer.head, &answer.report),
        (_, ToolAnswer::UnseenAnalysis(_, why)) => line(
            "unknown",
            &format!("change control is not available here: {why}"),
        ),
        (Command::Start(start) | Command::Queue(start), ToolAnswer::Started(it)) => {
            started(asked, start, &it.answer, &it.request.root)
        }
        (Command::Finish(finish), ToolAnswer::Finished(done, _)) => {
            finished(asked, &finish.touched, done)
        }
        (_, ToolAnswer::Promoted(answer)) => promoted(asked, answer),
        (_, ToolAnswer::Listed(list)) => listed(asked, list),
        (_, ToolAnswer::Got(intent, _)) => row(intent),
        (_, ToolAnswer::Cleared(ids)) if ids.is_empty() => {
            "you hold nothing that could be released\n".to_owned()
        }
        (_, ToolAnswer::Cleared(ids)) => format!("released: {}\n", ids.join(", ")),
        _ => receipt.map_or_else(|| facts(facts_of, 0), Receipt::markdown),
    };
    neutralise(&text)
}

/// Paths relative to the analysed root.
fn near<P: ToString>(root: &str, paths: impl IntoIterator<Item = P>) -> Vec<String> {
    let paths = paths.into_iter();
    paths.map(|path| inside(root, &path.to_string())).collect()
}

/// A line with up to `MOST` names; nothing if there are none.
fn names<S: AsRef<str>>(label: &str, all: &[S]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<&str> = all.iter().take(MOST).map(AsRef::as_ref).collect();
    let mut shown = shown.join(", ");
    if all.len() > MOST {
        shown += &format!(" and {} more", all.len() - MOST);
    }
    format!("{label}: {shown}\n")
}

fn line(label: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{label}: {text}\n")
}

fn analysed(asked: &Asked<'_>, head: &RunHead, report: &Report) -> String {
    let mut text = format!("analysed: {}\n", head.short());
    let health = report.health.as_ref();
    text += &format!(
        "found: {} of source code, {}, health {} ({})\n",
        counted(report.files.len(), "file"),
        counted(report.findings.len(), "finding"),
        health.map_or_else(|| "null".to_owned(), |it| it.points.number().to_string()),
        health.map_or_else(String::new, |it| format!("{:?}", it.grade)),
    );
    if !head.workspace.dirty.is_empty() {
        let dirty = counted(head.workspace.dirty.len(), "path");
        text += &format!("dirty: {dirty} not committed\n");
    }
    let program = asked.program();
    text += &asked.next("start 'WHAT' --file PATH");
    let run = head.short();
    text + &format!("or, after your edits: {program} finish CHANGE --file PATH --after {run}\n")
}

/// The overlapping intents of other agents.
fn others(conflicts: &[Conflict], root: &str) -> String {
    let held = |one: &Conflict| {
        format!(
            "held: {} by {} ({})\n",
            near(root, one.files()).join(", "),
            one.peer.agent_label,
            one.peer.intent_id
        )
    };
    conflicts.iter().map(held).collect()
}

fn overlapping(overlaps: &[Overlap], root: &str) -> String {
    let one = |one: &Overlap| {
        let path = inside(root, &one.path.to_string());
        format!("dirty and declared by {}: {path}\n", one.agent_label)
    };
    overlaps.iter().map(one).collect()
}

/// The uncommitted changes in the scope of a start.
fn uncommitted(found: &AtStart, root: &str) -> String {
    names("dirty", &near(root, &found.in_scope)) + &overlapping(&found.overlaps, root)
}

fn after_the_edit(asked: &Asked<'_>, id: &str, touched: &str) -> String {
    let program = asked.program();
    format!(
        "next: edit, then {program} analyze\nthen: {program} finish {id}{touched} --after RUN\n"
    )
}

fn started(asked: &Asked<'_>, start: &Start, answer: &Started, root: &str) -> String {
    let intent = answer.intent.as_ref();
    let id = intent.map_or("", |intent| &intent.intent_id);
    let status = answer.status.name();
    let mut text = match intent {
        Some(intent) if intent.edit_allowed => {
            format!("{status}: you may edit {}\n", start.files.join(", "))
        }
        _ => format!("{status}: {}\n", answer.message(Audience::CommandLine)),
    };
    // A refused change holds nothing, and needs no next step.
    if matches!(answer.status, StartStatus::Active | StartStatus::Queued) {
        text += &line("change", id);
    }
    if let (StartStatus::Active, Some(intent)) = (answer.status, intent) {
        text += &line("until", &utc(intent.expires_at));
        text += &by_the_letter(asked.root, &start.files);
    }
    if answer.replay {
        text += "note: this is the change that the same request started before\n";
    }
    for replaced in &answer.replaced {
        text += &format!("replaced: {replaced}, your earlier change, was released\n");
    }
    text += &others(&answer.conflicts, root);
    let queued = answer.status == StartStatus::Queued;
    if let Some(found) = answer.hygiene.as_ref().filter(|_| !queued) {
        text += &uncommitted(found, root);
    }
    let blind = answer.blind.as_deref().filter(|_| intent.is_some());
    text += &line("unknown", blind.unwrap_or_default());
    text += &names("moved", &near(root, &answer.drifted));
    if queued {
        text += &format!("place: {} in the queue\n", answer.position);
    }
    text + &after_start(asked, start, answer, id)
}

/// The next command after a start.
fn after_start(asked: &Asked<'_>, start: &Start, answer: &Started, id: &str) -> String {
    let touched = files(start.files.iter().map(String::as_str));
    let again = format!("{}{touched}", quote(&start.intent));
    match answer.status {
        StartStatus::Active => after_the_edit(asked, id, &touched),
        StartStatus::NeedsAnalysis
            if asked.agent.is_none() && std::env::var_os("PROVOST_AGENT").is_none() =>
        {
            let note = "note: without --agent NAME each shell is an agent of its own, and sees no \
                        analysis of another\n";
            format!("{note}{}", asked.next("--agent NAME analyze"))
        }
        StartStatus::NeedsAnalysis => asked.next("analyze"),
        StartStatus::Queued => asked.next(&format!("promote {id}")),
        StartStatus::Blocked if !answer.conflicts.is_empty() => {
            asked.next(&format!("queue {again}"))
        }
        StartStatus::Blocked if answer.hygiene.as_ref().is_some_and(AtStart::blocks_edit) => {
            let own = asked.next(&format!("start {again} --continue-own-wip"));
            format!("{} # if these changes are yours\n", own.trim_end())
        }
        StartStatus::Blocked => String::new(),
    }
}

/// Notes that a declared directory or pattern covers no file by name.
fn by_the_letter(root: &str, declared: &[String]) -> String {
    let mut text = String::new();
    for entry in declared {
        if Path::new(root).join(entry).is_dir() {
            text += &format!(
                "note: {entry} is a directory: it keeps other agents out, but a finish accepts \
                 only files that are declared by name\n"
            );
        } else if entry.contains(['*', '?', '[']) {
            text += &format!("note: {entry} is taken literally, and covers no other file\n");
        }
    }
    text
}

fn promoted(asked: &Asked<'_>, answer: &Promoted) -> String {
    let program = asked.program();
    let head = |intent: &Intent, status: &str, message: &str| {
        format!("{status}: {message}\nchange: {}\n", intent.intent_id)
    };
    match answer {
        Promoted::Active(intent, dirty, moved) => {
            let mut text = head(intent, "active", MAY_EDIT);
            text += &uncommitted(dirty, &intent.root);
            if !moved.is_empty() {
                text += &names("moved", &near(&intent.root, moved));
                text += &line("note", JUDGED_WITH_OTHERS);
            }
            text + &after_the_edit(asked, &intent.intent_id, " --file PATH")
        }
        Promoted::Queued(intent, conflicts, _) => {
            head(intent, "queued", COME_FIRST)
                + &others(conflicts, &intent.root)
                + &asked.next(&format!("promote {}", intent.intent_id))
        }
        Promoted::Blocked(intent, dirty, next_step) => {
            let id = &intent.intent_id;
            let dirty = dirty.as_ref();
            let dirty = dirty.map(|dirty| uncommitted(dirty, &intent.root));
            head(intent, "queued", &next_step.text(Audience::CommandLine))
                + &dirty.unwrap_or_default()
                + &format!(
                    "next: commit them, then {program} promote {id}\n\
                     or: {program} clear {id}, and start with --continue-own-wip if they are \
                     yours\n"
                )
        }
        Promoted::RunEvicted(intent) => {
            let id = &intent.intent_id;
            head(intent, "unverified", ANALYSIS_GONE)
                + &format!("next: {program} clear {id}, then {program} analyze, and start again\n")
        }
    }
}

fn finished(asked: &Asked<'_>, touched: &Touched, done: &Finished) -> String {
    let (id, root) = (&done.intent.intent_id, &done.intent.root);
    let message = done.message(Audience::CommandLine);
    let mut text = format!("{}: {message}\n", done.status.name());
    text += &line("change", id);
    text += &line("reason", done.reason.map_or("", StopReason::name));
    let missing = |found: &AtFinish| near(root, found.of(|class| class == Class::MissingEvidence));
    let missing = done.hygiene.as_ref().map(missing).unwrap_or_default();
    let unchanged = |found: &AtFinish| near(root, &found.not_changed);
    let unchanged = done.hygiene.as_ref().map(unchanged).unwrap_or_default();
    text += &names("dirty and not reported", &missing);
    text += &names("reported and not changed", &unchanged);
    if let Some(found) = &done.hygiene {
        text += &overlapping(&found.overlaps, root);
        if done.status == FinishStatus::AcceptedWithExternalChanges {
            text += &names("not of this change", &near(root, found.external()));
        }
    }
    text += &line("unknown", done.blind.as_deref().unwrap_or_default());
    if let Some(check) = &done.check {
        text += &names("not declared", &near(root, &check.unexpected));
        text += &names("forbidden", &near(root, &check.forbidden));
    }
    if let Some(found) = &done.verified {
        text += &judged(found, done.status.is_accepted());
    }
    if done
        .claims
        .as_ref()
        .is_some_and(|claims| !claims.is_valid())
    {
        text += "claims: some do not hold; --json lists them\n";
    }
    let fell = done.verified.as_ref().and_then(Verified::health_fell);
    if let Some(fell) = fell.filter(|_| done.status.is_accepted()) {
        text += &format!("health: fell by {}\n", fell.number());
    }
    text += &line(
        "no receipt",
        done.receipt_error.as_deref().unwrap_or_default(),
    );
    if let Some((_, digest)) = &done.receipt {
        text += &format!("receipt: {} receipt {digest}\n", asked.program());
        return text + &format!("next: provost verify {id}\n");
    }
    let reported = touched
        .files
        .iter()
        .filter(|path| !unchanged.contains(path));
    let evidence = match &touched.diff {
        Some(rev) if missing.is_empty() => format!(" --diff {}", quote(rev)),
        _ => files(reported.chain(&missing).map(String::as_str)),
    };
    text + &after_finish(asked, done, &evidence, !missing.is_empty())
}

/// The verdict on the structure.
fn judged(found: &Verified, accepted: bool) -> String {
    let mut text = names("broken", &found.blocking);
    if accepted {
        return text;
    }
    let new: Vec<&str> = found
        .delta
        .regressions
        .iter()
        .map(|one| one.id.as_str())
        .collect();
    text += &names("new finding", &new);
    for one in found.delta.worsened.iter().take(MOST) {
        text += &format!(
            "worse: {} of {} in {}, {} before and {} now\n",
            one.metric.word(),
            one.symbol,
            one.path,
            one.before,
            one.after
        );
    }
    text
}

/// The next command after a finish without a receipt.
fn after_finish(asked: &Asked<'_>, done: &Finished, evidence: &str, is_missing: bool) -> String {
    let (program, id) = (asked.program(), &done.intent.intent_id);
    let regressed = |found: &Verified| !found.delta.regressions.is_empty();
    match done.reason {
        Some(
            StopReason::NoAfterRun
            | StopReason::AfterRunRequiredForGovernance
            | StopReason::AfterRunNotNew
            | StopReason::AfterRunStale,
        ) => {
            format!("next: {program} analyze\nthen: {program} finish {id}{evidence} --after RUN\n")
        }
        _ if is_missing => asked.next(&format!("finish {id}{evidence} --after RUN")),
        Some(StopReason::IntentNotActive) => asked.next(&format!("promote {id}")),
        None if done.status.is_accepted() => String::new(),
        _ if done.verified.as_ref().is_some_and(regressed) => {
            format!(
                "next: fix it, then {program} analyze\n\
                 then: {program} finish {id}{evidence} --after RUN\n"
            )
        }
        _ => asked.next(&format!("clear {id} # to release it")),
    }
}

/// One change in one line.
pub(in crate::cli) fn row(intent: &Intent) -> String {
    let held = near(&intent.root, &intent.scope.allowed_files);
    let shown: Vec<&str> = held.iter().take(MOST).map(String::as_str).collect();
    let mut shown = shown.join(", ");
    if held.len() > MOST {
        shown += " …";
    }
    format!(
        "{}  {:7}  {:12}  until {}  {shown}  {}\n",
        intent.intent_id,
        intent.state.name(),
        intent.agent_label,
        utc(intent.expires_at),
        intent.intent
    )
}

fn listed(asked: &Asked<'_>, listed: &IntentList) -> String {
    let mut text: String = listed
        .intents
        .iter()
        .map(|(intent, _)| row(intent))
        .collect();
    for lease in &listed.leases {
        let held = near("", lease.scope.entries()).join(", ");
        text += &format!("{}  holds {held}\n", lease.run_id);
    }
    for record in &listed.unread {
        text += &format!("{}  {}\n", record.intent_id, record.why);
    }
    if text.is_empty() {
        text += "no active changes\n";
    }
    for (intent, whose) in &listed.intents {
        if *whose == Ownership::Recoverable {
            text += &asked.next(&format!("recover {} --run RUN", intent.intent_id));
        }
    }
    text
}

/// The facts of an answer, one per line; empty values are omitted.
fn facts(value: &Value, depth: usize) -> String {
    let Value::Object(fields) = value else {
        return format!("{}\n", scalar(value));
    };
    let mut text = String::new();
    let blank = "  ".repeat(depth);
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::Object(inner) if inner.is_empty() => {}
            Value::Array(list) if list.is_empty() => {}
            Value::Object(_) => text += &format!("{blank}{name}:\n{}", facts(value, depth + 1)),
            Value::Array(list) if list.iter().any(Value::is_object) => {
                text += &format!("{blank}{name}:\n");
                for one in list {
                    let inner = facts(one, depth + 2);
                    text += &format!("{blank}  - {}", inner.trim_start());
                }
            }
            Value::Array(list) => {
                let list: Vec<String> = list.iter().map(scalar).collect();
                text += &format!("{blank}{name}: {}\n", list.join(", "));
            }
            value => text += &format!("{blank}{name}: {}\n", scalar(value)),
        }
    }
    text
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
