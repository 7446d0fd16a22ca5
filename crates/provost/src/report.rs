//! Reports the state of a run as text and as JSON.

use std::path::Path;

use provost_core::bundle::report::ReviewVerdict;
use provost_core::change::Change;
use provost_core::contract::Contract;
use provost_core::exit::Exit;
use provost_core::gate::command;
use provost_core::path::RawPath;
use provost_core::review::Remark;
use provost_core::run::fact::{AgentRun, Capture, Layered, Side, Stream, TestRun};
use provost_core::run::{Gate, Round, State};
use provost_core::size;
use provost_core::tier::Tier;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_host::git::Lines;
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::history::{Beside, Closer, Landed, Stage};
use crate::show::{findings, headline, neutralise, notes, one_line};
use crate::tail::{self, Tail};
use crate::{approval_text, times, traffic};

mod earlier;
mod secrets;
mod spent;
pub(crate) mod tested;

/// The outcome of a run, as the answer of a command.
pub(crate) fn run(state: &State, bundle: &Path, beside: &Beside) -> Answer {
    let exit = match &state.finished {
        Some(verdict) => verdict.exit(),
        None => Exit::NotNow,
    };
    let output = tail::of_failure(state, bundle);
    Answer {
        exit,
        json: facts(state, bundle, beside, &output),
        text: text(state, bundle, beside, &output),
    }
}

/// The state of a run in one word.
pub(crate) fn status(state: &State, at: Stage) -> &'static str {
    match (at, &state.finished) {
        (Stage::Running, _) => "RUNNING",
        (Stage::Waiting, _) => "WAITING",
        (Stage::Interrupted, None) if is_approved(state) => "APPROVED",
        (Stage::Interrupted, _) | (Stage::Sealed, None) => "INTERRUPTED",
        (Stage::Sealed, Some(verdict)) if verdict.allow => "SUCCESS",
        (Stage::Sealed, Some(_)) => "FAILURE",
    }
}

/// Whether a person approved the run, and nothing has begun since.
pub(crate) fn is_approved(state: &State) -> bool {
    let begun = state.gates.contains_key(&Gate::Policy) || !state.past.is_empty();
    state.approval.is_some() && !begun
}

/// Whether the sandboxes of this run have no loopback, by the policy, the contract or its tier.
fn is_loopback_off(state: &State) -> bool {
    let has = |contract: &Contract| contract.loopback && contract.tier == Tier::Namespaces;
    !state.opened.loopback || state.contract.as_ref().is_ok_and(|it| !has(it))
}

fn facts(state: &State, bundle: &Path, beside: &Beside, output: &[Tail]) -> Value {
    let gate = |(gate, verdict): (&Gate, &Verdict)| {
        (
            gate.name().to_owned(),
            json!({ "allow": verdict.allow, "code": verdict.code,
            "reason": verdict.reason }),
        )
    };
    let changed = |captured: &Capture| -> Vec<String> {
        captured
            .changes
            .iter()
            .map(|change| change.path.to_string())
            .collect()
    };
    let mut gates: Map<String, Value> = state.gates.iter().map(gate).collect();
    // The names before 0.2.
    if let Some(verdict) = gates.get(Gate::Sandbox.name()).cloned() {
        gates.insert("box".to_owned(), verdict);
    }
    let sandbox = state.tested.as_ref();
    let sandbox = sandbox.map(|test| json!({ "tier": test.tier, "holes": test.holes }));
    json!({
        "run_id": state.names.run_id,
        "verdict": state.finished.clone().or_else(|| state.unanswered()),
        "status": status(state, beside.stage),
        "own": !beside.foreign,
        "objective": state.opened.contract.inputs.spec,
        "parent": state.opened.parent,
        "approval": state.approval,
        "base": state.opened.base_commit,
        "tree": state.captured.as_ref().map(|captured| &captured.tree),
        "commit": state.published.as_ref().map(|published| &published.commit),
        "branch": state.published.as_ref().map(|published| short(&published.branch)),
        "landed": beside.landed.as_ref().map(|landed| &landed.landing),
        "held": beside.landed.as_ref().and_then(|landed| landed.held),
        "began": state.began,
        "took_ms": spent::took(state, beside),
        "usage": spent::facts(state, beside),
        "agent_ms": spent::agent_ms(state),
        "changed_files": state.captured.as_ref().map(changed).unwrap_or_default(),
        "gates": gates,
        "review": review(state),
        "tests": tested::facts(state),
        "tests_changed": tested::changed(state),
        "layers": layers(state),
        "network": state.agent.as_ref().map_or(&[][..], |agent| &agent.network),
        "lines": beside.closer.as_ref().map(lines),
        "logs": logs(state).map(|stream| &stream.file).collect::<Vec<_>>(),
        "output": output,
        "secrets": secrets::facts(state),
        "sandbox": sandbox,
        "box": sandbox,
        "loopback": !is_loopback_off(state),
        "attempts": state.attempt,
        "refused_before": earlier::facts(state, bundle),
        "salvaged": state.salvaged,
        "left": state.left,
        "bundle": bundle,
    })
}

/// The outcome of the review; null if the run has no reviewer.
fn review(state: &State) -> Value {
    let Some(asked) = &state.opened.review else {
        return Value::Null;
    };
    let report = state.review_report();
    let reviewed = state.reviewed.as_ref();
    json!({
        "reviewer": asked.name,
        "verdict": report.as_ref().map(|report| report.verdict),
        "summary": report.as_ref().map(|report| &report.summary),
        "tree": reviewed.map(|reviewed| &reviewed.tree),
        "wall_ms": reviewed.map(|reviewed| reviewed.run.wall_ms),
        "usage": reviewed.and_then(|reviewed| reviewed.run.spent()),
        "network": reviewed.map_or(&[][..], |reviewed| &reviewed.run.network),
    })
}

/// The prepared layers, of the candidate if they differ from those of the base. A layer that this
/// run made for another of its steps was made by it.
fn layers(state: &State) -> Vec<Layered> {
    let own = state.tests.values().filter(|run| !run.cached);
    let own: Vec<_> = own.map(|run| &run.layers).collect();
    let judged = state.tests.get(&Side::Candidate).map(|run| &run.layers);
    let mut layers = judged
        .or(state.layers.as_ref())
        .cloned()
        .unwrap_or_default();
    for layer in layers.iter_mut().filter(|layer| layer.made.is_none()) {
        let mut all = state.layers.iter().chain(own.iter().copied()).flatten();
        let made = all.find(|other| other.key == layer.key && other.made.is_some());
        layer.made = made.and_then(|other| other.made.clone());
    }
    layers
}

pub(crate) fn layer(layer: &Layered) -> String {
    let state = match &layer.made {
        Some(made) if made.again => "made again, because it had been changed",
        Some(_) => "made now",
        None => "made before",
    };
    let (name, key) = (&layer.name, &layer.key[..12.min(layer.key.len())]);
    let size = size::rough(layer.bytes);
    format!("{name}  {state}, {size}, key {key}\n")
}

fn lines(closer: &Closer) -> Value {
    let row = |(path, lines): (&RawPath, &Option<Lines>)| {
        let (added, removed) = (lines.map(|it| it.added), lines.map(|it| it.removed));
        json!({ "path": path, "added": added, "removed": removed })
    };
    closer.lines.iter().map(row).collect()
}

/// All agents and reviewers, of all attempts.
fn workers(state: &State) -> impl Iterator<Item = &AgentRun> {
    let past = state.past.iter();
    let past = past.flat_map(|past| {
        past.agent
            .iter()
            .chain(past.reviewed.iter().map(|it| &it.run))
    });
    let agent = past.chain(&state.agent);
    agent.chain(state.reviewed.iter().map(|reviewed| &reviewed.run))
}

/// The logs of the run that are not empty.
fn logs(state: &State) -> impl Iterator<Item = &Stream> {
    let agent = workers(state);
    let agent = agent.flat_map(|agent| [&agent.stdout, &agent.stderr]);
    let refused = state.past.iter().filter_map(|past| past.tests.as_ref());
    let crossed = state.crossed.values().filter_map(Round::ran);
    let commands = refused.chain(state.tests.values()).chain(crossed);
    let commands = commands.flat_map(TestRun::everything);
    let commands = commands.flat_map(|ran| [&ran.stdout, &ran.stderr]);
    agent.chain(commands).filter(|stream| stream.kept > 0)
}

/// A branch without `refs/heads/`.
pub(crate) fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn text(state: &State, bundle: &Path, beside: &Beside, output: &[Tail]) -> String {
    let run = &state.names.run_id;
    let finished = state.finished.as_ref();
    let mut text = match finished.filter(|_| beside.stage == Stage::Sealed) {
        None if beside.stage == Stage::Waiting => approval_text::question(state),
        None => format!("run {run} has not ended\n"),
        Some(verdict) if verdict.allow => format!("accepted: {run}\n"),
        Some(verdict) => {
            format!("refused[{}]: {}\n", verdict.code, one_line(&verdict.reason))
        }
    };
    for row in state.finished.iter().flat_map(findings) {
        text += &format!("  {}\n", one_line(&row));
    }
    text += &tested::lead(state);
    text += &beginning(state, beside);
    text += &earlier::text(state, bundle);
    text += &work(state, beside.closer.as_ref());
    for one in layers(state) {
        text += &format!("  prepared {}", layer(&one));
    }
    for line in state
        .agent
        .iter()
        .flat_map(|agent| traffic::lines(&agent.network))
    {
        text += &format!("  network  {}\n", neutralise(&line));
    }
    text += &sandbox(state, beside);
    for tail in output {
        text += &format!("  output   {}\n", tail.log.display());
        for line in &tail.last_lines {
            text += &format!("           | {line}\n");
        }
    }
    for (gate, verdict) in state.gates.iter().filter(|it| is_further(state, it.1)) {
        text += &format!("  also     {} gate: {}\n", gate.name(), verdict.code);
        for row in findings(verdict) {
            text += &format!("           {}\n", one_line(&row));
        }
    }
    text += &remarks(state);
    for left in &state.left {
        let count = counted(left.findings.len(), "thing");
        text += &format!(
            "  left     {}, with {count} that no commit can hold\n",
            left.path
        );
    }
    for salvage in &state.salvaged {
        text += &format!("  salvaged {}\n", salvage.kept_by);
    }
    text += &format!("  bundle   {}\n", bundle.display());
    for stream in logs(state).filter(|_| beside.closer.is_some()) {
        let size = size::rough(stream.kept);
        text += &format!("           {}, {size}\n", stream.file);
    }
    text += &secrets::text(state);
    text + &ending(state, beside)
}

/// In what the sandbox of the run differs from the default.
fn sandbox(state: &State, beside: &Beside) -> String {
    let mut text = String::new();
    if let Some(test) = state.tested.as_ref().filter(|test| !test.holes.is_empty()) {
        text += &format!("  sandbox  tier {}, which does not stop all\n", test.tier);
        for hole in test.holes.iter().filter(|_| beside.closer.is_some()) {
            text += &format!("           {}\n", neutralise(hole));
        }
    }
    if is_loopback_off(state) {
        text += "  sandbox  loopback off\n";
    }
    text
}

/// Notes that decide nothing.
fn remarks(state: &State) -> String {
    let mut text = String::new();
    for note in state.gates.values().flat_map(notes) {
        text += &format!("  note     {}\n", neutralise(note));
    }
    for ran in state
        .tests
        .get(&Side::Base)
        .iter()
        .flat_map(|base| &base.commands)
    {
        if ran.tally.as_ref().is_some_and(|tally| tally.ran() == 0) {
            let line = neutralise(&command::line(&ran.argv));
            text += &format!("  note     {line} ran no test on the base\n");
        }
    }
    text
}

/// The objective, the start and the duration; nothing for a run that was started just now.
fn beginning(state: &State, beside: &Beside) -> String {
    let Some(closer) = &beside.closer else {
        return String::new();
    };
    let began = times::moment(&state.began);
    let age = times::age(&state.began, closer.now);
    let mut text = format!(
        "  asked    {}\n",
        headline(&state.opened.contract.inputs.spec, 11)
    );
    text += &format!("  began    {began}, {age} ago\n");
    text += &approval_text::given(state);
    if let Some(parent) = &state.opened.parent {
        text += &format!("  again    another try of {parent}\n");
    }
    text + &spent::text(state, beside)
}

/// The changes of the agent and the outcome of the tests.
fn work(state: &State, closer: Option<&Closer>) -> String {
    let mut text = String::new();
    if let Some(captured) = &state.captured {
        text += &format!(
            "  changed  {}, tree {}\n",
            counted(captured.changes.len(), "file"),
            captured.tree.short()
        );
        if let Some(closer) = closer {
            text += &changes(captured, closer);
        }
    }
    text += &said_by_reviewer(state);
    text += &tested::text(state);
    text
}

/// The reviewer and its outcome; empty without a reviewer.
fn said_by_reviewer(state: &State) -> String {
    let (Some(asked), Some(reviewed)) = (&state.opened.review, &state.reviewed) else {
        return String::new();
    };
    let (name, length) = (&asked.name, times::length(reviewed.run.wall_ms));
    let Some(report) = state.review_report() else {
        return format!("  review   none that counts, by {name} in {length}\n");
    };
    let word = match report.verdict {
        ReviewVerdict::Pass => "passed",
        ReviewVerdict::Fail => "failed",
        ReviewVerdict::Blocked => "blocked",
    };
    let mut text = format!("  review   {word} by {name} in {length}\n");
    text += &format!("           {}\n", headline(&report.summary, 11));
    // Findings of a refusal are shown with the refusal.
    let passed = report.verdict == ReviewVerdict::Pass;
    for Remark { path, problem } in report.findings.iter().filter(|_| passed) {
        let row = one_line(&format!("{path}: {problem}"));
        text += &format!("           {}\n", row.replace('\n', " "));
    }
    text
}

/// How many changed files the text output lists.
const MOST_CHANGES: usize = 30;

/// The changed files, each with the kind of its change and how many lines it gained and lost.
fn changes(captured: &Capture, closer: &Closer) -> String {
    let row = |change: &Change| {
        let what = match (&change.before, &change.after) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(_), Some(_)) => 'M',
        };
        let lines = match closer.lines.get(&change.path) {
            Some(Some(Lines { added, removed })) => format!("  +{added} -{removed}"),
            Some(None) => "  not text".to_owned(),
            None => String::new(),
        };
        format!(
            "           {what} {}{lines}\n",
            one_line(&change.path.to_string())
        )
    };
    let rows: String = captured
        .changes
        .iter()
        .take(MOST_CHANGES)
        .map(row)
        .collect();
    match captured.changes.len().saturating_sub(MOST_CHANGES) {
        0 => rows,
        more => format!("{rows}           and {more} more\n"),
    }
}

/// Whether `verdict` is a refusal that the verdict of the run does not show.
fn is_further(state: &State, verdict: &Verdict) -> bool {
    let shown = |answer: &Verdict| answer.code == verdict.code;
    !verdict.allow && !state.finished.as_ref().is_some_and(shown)
}

/// Where the result is, and the next command.
fn ending(state: &State, beside: &Beside) -> String {
    let run = &state.names.run_id;
    if beside.foreign || beside.stage != Stage::Sealed {
        return approval_text::going_on(run, beside);
    }
    match (&state.finished, &state.published, &beside.landed) {
        (_, _, Some(Landed { landing, held })) => {
            let (branch, commit) = (short(&landing.target), landing.commit.short());
            let landed = format!("  landed   {branch}, commit {commit}");
            match held {
                Some(true) => format!("{landed}\n"),
                Some(false) => {
                    format!("{landed}; the branch no longer holds it\nnext: provost land {run}\n")
                }
                None => format!("{landed}; whether the branch still holds it is unknown\n"),
            }
        }
        (Some(_), Some(published), None) => {
            let branch = short(&published.branch);
            let next = match &beside.part {
                None => format!("next: provost land {run}\n"),
                Some(part) => format!("note: {}\n", neutralise(part)),
            };
            format!("  branch   {branch}\nnext: provost diff {run}\n{next}")
        }
        (Some(verdict), None, None) => {
            let captured = state.captured.as_ref();
            let work = captured.is_some_and(Capture::holds_anything)
                || !state.salvaged.is_empty()
                || !state.past.is_empty();
            let next = if work {
                format!("next: provost salvage restore {run}\n")
            } else {
                String::new()
            };
            let details = verdict.details.as_ref();
            let remedy = details.and_then(|details| details.get("hint")?.as_str());
            let remedy = remedy.map(|remedy| format!("hint: {}\n", neutralise(remedy)));
            let remedy = remedy.unwrap_or_default();
            let code = verdict.code;
            format!("{remedy}hint: provost explain {code}\nnext: provost why {run}\n{next}")
        }
        (None, _, None) => approval_text::going_on(run, beside),
    }
}
