//! Text output of `provost change`: the outcome of a request, and the next command.
//!
//! The facts are those of the answer that `--json` prints; nothing is decided here.

use std::path::Path;

use provost_core::gate::command::quote;
use provost_core::wording::counted;
use serde_json::Value;

use super::{Command, Start, Touched};
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

/// A message for tools, with the tools and arguments replaced by commands and flags.
fn spoken(text: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("analyze_repository", "provost change analyze"),
        ("on_conflict=\"queue\"", "provost change queue"),
        (
            "dirty_scope_policy=\"continue_own_wip\"",
            "--continue-own-wip",
        ),
        (
            "manage_change_intent, action=\"promote\"",
            "provost change promote",
        ),
        (
            "manage_change_intent(action=\"recover\")",
            "provost change recover",
        ),
        ("in changed_files", "with --file"),
        ("as after_run_id", "with --after"),
        ("(after_run_id)", "(--after)"),
        ("(before_run_id)", "(--before)"),
    ];
    let change = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    WORDS.iter().fold(text.to_owned(), change)
}

/// The text output.
pub(super) fn render(asked: &Asked<'_>, value: &Value) -> String {
    let text = match asked.command {
        Command::Analyze(_) => analysed(asked, value),
        Command::Start(start) | Command::Queue(start) => started(asked, start, value),
        Command::Finish(finish) => finished(asked, &finish.touched, value),
        Command::Promote(which) => promoted(asked, &which.intent, value),
        Command::List => listed(asked, value),
        Command::Receipt(_) if value["content"].is_string() => word(value, "content").to_owned(),
        Command::Status(_) => row(value),
        Command::Clear(_) => match strings(&value["cleared_intent_ids"]).as_slice() {
            [] => "you hold nothing that could be released\n".to_owned(),
            ids => format!("released: {}\n", ids.join(", ")),
        },
        Command::Renew(_)
        | Command::Recover(_)
        | Command::Check(_)
        | Command::Verify(_)
        | Command::Receipt(_)
        | Command::Compare(_)
        | Command::Claims(_)
        | Command::Gates(_)
        | Command::Blast(_)
        | Command::Gc
        | Command::Reset(_) => facts(value, 0),
    };
    neutralise(&text)
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn strings(value: &Value) -> Vec<&str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// A line with up to `MOST` paths; nothing if there are none.
fn paths(label: &str, value: &Value) -> String {
    let all = strings(value);
    if all.is_empty() {
        return String::new();
    }
    let mut shown = all
        .iter()
        .take(MOST)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
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

fn analysed(asked: &Asked<'_>, value: &Value) -> String {
    if value["run_id"].is_null() {
        return line("unknown", word(value, "message"));
    }
    let mut text = format!("analysed: {}\n", word(value, "run_id"));
    text += &format!(
        "found: {} of source code, {}, health {} ({})\n",
        count(&value["files"], "file"),
        count(&value["findings"], "finding"),
        value["health"],
        word(value, "grade")
    );
    if value["dirty_paths"] != 0 {
        let dirty = count(&value["dirty_paths"], "path");
        text += &format!("dirty: {dirty} not committed\n");
    }
    let program = asked.program();
    text += &asked.next("start 'WHAT' --file PATH");
    let run = word(value, "run_id");
    text + &format!("or, after your edits: {program} finish CHANGE --file PATH --after {run}\n")
}

fn count(number: &Value, what: &str) -> String {
    let number = number.as_u64().and_then(|it| usize::try_from(it).ok());
    counted(number.unwrap_or_default(), what)
}

/// The overlapping intents of other agents.
fn others(value: &Value) -> String {
    let mut text = String::new();
    // A waiting agent gets the same overlap in two lists.
    let known = value["blocked_by"].as_array();
    let known = known.or_else(|| value.pointer("/workspace/concurrent_intents")?.as_array());
    for one in known.into_iter().flatten() {
        let overlap = ["overlapping_files", "hard_overlap", "soft_overlap"];
        let held: Vec<&str> = overlap
            .iter()
            .flat_map(|name| strings(&one[*name]))
            .collect();
        text += &format!(
            "held: {} by {} ({})\n",
            held.join(", "),
            word(one, "agent_label"),
            word(one, "intent_id")
        );
    }
    text
}

/// The uncommitted changes in the scope and beside it.
fn uncommitted(hygiene: &Value) -> String {
    let mut text = paths("dirty", &hygiene["dirty_in_scope_sample"]);
    text += &paths(
        "dirty and not reported",
        &hygiene["unacknowledged_dirty_in_scope"],
    );
    text += &paths("reported and not changed", &hygiene["evidence_not_changed"]);
    let foreign = hygiene["foreign_dirty_overlaps"].as_array();
    for one in foreign.into_iter().flatten() {
        text += &format!(
            "dirty and declared by {}: {}\n",
            word(one, "foreign_agent_label"),
            word(one, "path")
        );
    }
    text + &line("unknown", word(hygiene, "reason"))
}

fn after_the_edit(asked: &Asked<'_>, id: &str, touched: &str) -> String {
    let program = asked.program();
    format!(
        "next: edit, then {program} analyze\nthen: {program} finish {id}{touched} --after RUN\n"
    )
}

fn started(asked: &Asked<'_>, start: &Start, value: &Value) -> String {
    let id = word(value, "intent_id");
    let status = word(value, "status");
    let may_edit = value["edit_allowed"] == true;
    let mut text = if may_edit {
        format!("{status}: you may edit {}\n", start.files.join(", "))
    } else {
        format!("{status}: {}\n", spoken(word(value, "message")))
    };
    // A refused change holds nothing, and needs no next step.
    if matches!(status, "active" | "queued") {
        text += &line("change", id);
        text += &line("until", word(value, "expires_at_utc"));
    }
    if status == "active" {
        text += &by_the_letter(asked.root, &start.files);
    }
    if value["idempotent_replay"] == true {
        text += "note: this is the change that the same request started before\n";
    }
    for replaced in strings(&value["replaced"]) {
        text += &format!("replaced: {replaced}, your earlier change, was released\n");
    }
    text += &others(value);
    text += &uncommitted(&value["workspace_hygiene"]);
    text += &paths("moved", &value["changed_since_analysis"]);
    if let Some(place) = value["queue_position"].as_u64() {
        text += &format!("place: {place} in the queue\n");
    }
    let touched = files(start.files.iter().map(String::as_str));
    let again = format!("{}{touched}", quote(&start.intent));
    let is_held = value.pointer("/workspace/concurrent_intents/0").is_some();
    text + &match status {
        "active" => after_the_edit(asked, id, &touched),
        "needs_analysis"
            if asked.agent.is_none() && std::env::var_os("PROVOST_AGENT").is_none() =>
        {
            let note = "note: without --agent NAME each shell is an agent of its own, and sees no \
                        analysis of another\n";
            format!("{note}{}", asked.next("--agent NAME analyze"))
        }
        "needs_analysis" => asked.next("analyze"),
        "queued" => asked.next(&format!("promote {id}")),
        _ if is_held => asked.next(&format!("queue {again}")),
        _ if value["workspace_hygiene"]["blocks_edit"] == true => {
            let own = asked.next(&format!("start {again} --continue-own-wip"));
            format!("{} # if these changes are yours\n", own.trim_end())
        }
        _ => String::new(),
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

fn promoted(asked: &Asked<'_>, typed: &str, value: &Value) -> String {
    let id = value["intent_id"].as_str().unwrap_or(typed);
    let message = spoken(word(value, "message"));
    let mut text = format!("{}: {message}\n", word(value, "status"));
    text += &line("change", id);
    text += &others(value);
    text += &uncommitted(&value["workspace_hygiene"]);
    let moved = paths("moved", &value["changed_since_analysis"]);
    if !moved.is_empty() {
        text += &moved;
        text += &line("note", &spoken(word(value, "next_step")));
    }
    text + &match word(value, "status") {
        "active" => after_the_edit(asked, id, " --file PATH"),
        "queued" if value["workspace_hygiene"]["blocks_edit"] == true => {
            let program = asked.program();
            format!(
                "next: commit them, then {program} promote {id}\n\
                 or: {program} clear {id}, and start with --continue-own-wip if they are yours\n"
            )
        }
        "queued" => asked.next(&format!("promote {id}")),
        _ => {
            let program = asked.program();
            format!("next: {program} clear {id}, then {program} analyze, and start again\n")
        }
    }
}

fn finished(asked: &Asked<'_>, touched: &Touched, value: &Value) -> String {
    let id = value["intent_id"].as_str().unwrap_or(&touched.intent);
    let status = word(value, "status");
    let mut text = format!("{status}: {}\n", spoken(word(value, "message")));
    text += &line("change", id);
    text += &line("reason", word(value, "reason"));
    let hygiene = &value["workspace_hygiene_after"];
    text += &uncommitted(hygiene);
    text += &paths("not of this change", &value["external_changes"]["sample"]);
    text += &paths("not declared", &value["scope_check"]["unexpected_files"]);
    text += &paths("forbidden", &value["scope_check"]["forbidden_touched"]);
    let verification = &value["verification"];
    text += &paths("broken", &verification["blocking_violations"]);
    if !status.starts_with("accepted") {
        let new = &verification["structural_delta"]["regressions"];
        text += &paths("new finding", new);
        text += &worsened(verification);
    }
    if value["claims"]["valid"] == false {
        text += "claims: some do not hold; --json lists them\n";
    }
    if let Some(fell) = value.pointer("/health_regression_advisory/health_delta") {
        text += &format!("health: fell by {fell}\n");
    }
    text += &line("no receipt", word(value, "receipt_error"));
    let digest = value.pointer("/receipt/receipt_digest/value");
    if let Some(digest) = digest.and_then(Value::as_str) {
        text += &format!("receipt: {} receipt {digest}\n", asked.program());
        return text + &format!("next: provost verify {id}\n");
    }
    let unchanged = strings(&hygiene["evidence_not_changed"]);
    let reported = touched.files.iter().map(String::as_str);
    let reported = reported.filter(|path| !unchanged.contains(path));
    let missing = strings(&hygiene["unacknowledged_dirty_in_scope"]);
    let program = asked.program();
    let evidence = match &touched.diff {
        Some(rev) if missing.is_empty() => format!(" --diff {}", quote(rev)),
        _ => files(reported.chain(missing.iter().copied())),
    };
    text + &match word(value, "reason") {
        reason if reason.contains("after_run") => {
            format!("next: {program} analyze\nthen: {program} finish {id}{evidence} --after RUN\n")
        }
        _ if !missing.is_empty() => asked.next(&format!("finish {id}{evidence} --after RUN")),
        "intent_not_active" => asked.next(&format!("promote {id}")),
        "" if status.starts_with("accepted") => String::new(),
        _ if verification["structural_delta"]["regressions"][0].is_string() => {
            format!(
                "next: fix it, then {program} analyze\n\
                 then: {program} finish {id}{evidence} --after RUN\n"
            )
        }
        _ => asked.next(&format!("clear {id} # to release it")),
    }
}

/// The metrics that got worse, one per line.
fn worsened(verification: &Value) -> String {
    let rows = verification["worsened"].as_array();
    let line = |one: &Value| {
        format!(
            "worse: {} of {} in {}, {} before and {} now\n",
            word(one, "metric"),
            word(one, "symbol"),
            word(one, "path"),
            one["before"],
            one["after"]
        )
    };
    rows.into_iter().flatten().take(MOST).map(line).collect()
}

/// One change in one line.
pub(in crate::cli) fn row(one: &Value) -> String {
    let held = strings(&one["scope"]["allowed_files"]);
    let mut shown = held
        .iter()
        .take(MOST)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if held.len() > MOST {
        shown += " …";
    }
    format!(
        "{}  {:7}  {:12}  until {}  {shown}  {}\n",
        word(one, "intent_id"),
        word(one, "status"),
        word(one, "agent_label"),
        word(one, "expires_at_utc"),
        word(one, "intent")
    )
}

fn listed(asked: &Asked<'_>, value: &Value) -> String {
    let list = |name: &str| {
        value[name]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let mut text: String = list("workspace_intents").iter().map(row).collect();
    for run in list("launched_runs") {
        let held = strings(&run["paths"]).join(", ");
        text += &format!("{}  holds {held}\n", word(run, "run_id"));
    }
    for record in list("unreadable_records") {
        text += &format!("{}  {}\n", word(record, "intent_id"), word(record, "why"));
    }
    if text.is_empty() {
        text += "no active changes\n";
    }
    for one in list("recovery_available") {
        text += &asked.next(&format!("recover {} --run RUN", word(one, "intent_id")));
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
            value => text += &format!("{blank}{name}: {}\n", spoken(&scalar(value))),
        }
    }
    text
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
