//! Renders the view of a run as text.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use provost_core::agent::dollars;
use provost_core::bundle::report::ReviewVerdict;
use provost_core::review::Remark;
use provost_core::run::State;
use provost_core::run::fact::{CacheUse, ExistingWork, Layered};
use provost_core::run::judge::render_ending;
use provost_core::size;
use provost_core::tally::Tally;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_engine::dependencies::ProjectFiles;
use provost_engine::query::{
    self, ChangeKind, ChangedFile, CommandView, GateView, RunFiles, RunView, SandboxView, Stage,
    Surroundings, TestsView, short_branch,
};

use crate::answer::Answer;
use crate::child_text;
use crate::places::Places;
use crate::show::{findings, findings_of, headline, one_line, relative};
use crate::{approval_text, bodies_text, missing_text, refusal_text, times, traffic};

/// The answer of a command that has driven a run as far as it goes.
pub fn driven(state: &State, bundle: &Path) -> Answer {
    let around = Surroundings {
        project: project(state),
        ..Surroundings::driven(state)
    };
    run(state, bundle, around)
}

/// The files of the base that decide about dependencies. The driver of a run gave its places away.
pub fn project(state: &State) -> ProjectFiles {
    let place = Places::look().ok();
    place.map_or_else(ProjectFiles::new, |place| query::project(&place, state))
}

/// The state of a run, as the answer of a command.
pub fn run(state: &State, bundle: &Path, around: Surroundings) -> Answer {
    let view = RunView::of(state, bundle, &RunDirectory(bundle), around);
    Answer {
        exit: view.exit(),
        text: text(&view),
        json: serde_json::to_value(&view).unwrap_or_default(),
    }
}

/// The files of a run in its directory.
pub struct RunDirectory<'a>(pub &'a Path);

impl RunFiles for RunDirectory<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.join(name).is_file()
    }

    fn end_of(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        let mut file = File::open(self.0.join(name)).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))
            .ok()?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// The command that continues a run that has not ended.
pub fn go_on(run_id: &str, stage: Stage) -> String {
    match stage {
        Stage::Running => format!("provost log {run_id} --follow"),
        Stage::Waiting => {
            format!("provost approve {run_id} --go # or: provost reject {run_id}")
        }
        Stage::Interrupted | Stage::Sealed => format!("provost resume {run_id}"),
    }
}

/// Whether the view was asked for by name; a run that was started just now is shown in short.
fn is_detailed(view: &RunView) -> bool {
    view.lines.is_some()
}

fn text(view: &RunView) -> String {
    let run = &view.run_id;
    let finished = view.finished();
    let mut text = match finished.filter(|_| view.stage == Stage::Sealed) {
        None if view.stage == Stage::Waiting => view
            .question
            .as_ref()
            .map(approval_text::question)
            .unwrap_or_default(),
        None => format!("run {run} has not ended\n"),
        Some(verdict) if verdict.allow => format!("accepted: {run}\n"),
        Some(verdict) => refusal_text::head(view, verdict),
    };
    for (action, count) in &view.forbidden {
        text += &format!("  forbidden `{}` was used ({count} ×)\n", one_line(action));
    }
    for row in finished.into_iter().flat_map(findings) {
        text += &format!("  {}\n", one_line(&row));
    }
    for (at, name) in view.excused.iter().take(MOST_CHANGES).enumerate() {
        let head = if at == 0 { "  excused " } else { "          " };
        text += &format!("{head} {}\n", one_line(name));
    }
    if let Some(more) = view.excused.len().checked_sub(MOST_CHANGES + 1) {
        text += &format!("           and {} more; --json lists all\n", more + 1);
    }
    if let Some(changed) = &view.tests_changed {
        text += &changed_tests(&changed.words);
    }
    for words in view.work.iter().flat_map(ExistingWork::words) {
        text += &format!("  work     {}\n", one_line(&words));
    }
    if is_detailed(view) {
        text += &beginning(view);
    }
    text += &earlier(view);
    text += &work(view);
    for one in &view.layers {
        text += &format!("  prepared {}", layer(one));
    }
    for line in traffic::lines(&view.network) {
        text += &format!("  network  {}\n", one_line(&line));
    }
    text += &sandbox(view);
    for tail in &view.output {
        text += &format!("  output   {}\n", relative(&tail.log));
        for line in &tail.last_lines {
            text += &format!("           | {line}\n");
        }
    }
    text += &missing_text::missing(&view.missing);
    for gate in view.gates.iter().filter(|gate| is_further(view, gate)) {
        text += &format!("  also     {} gate: {}\n", gate.gate.name(), gate.code);
        for row in findings_of(&gate.reason, gate.details.as_ref()) {
            text += &format!("           {}\n", one_line(&row));
        }
    }
    for note in &view.notes {
        text += &format!("  note     {}\n", one_line(note));
    }
    text += &kept(view);
    text += &secrets(view);
    text + &ending(view)
}

/// What is left of a run on this machine: directories, salvaged work, the bundle with its logs.
fn kept(view: &RunView) -> String {
    let mut text = String::new();
    for left in &view.left {
        let count = counted(left.findings.len(), "thing");
        text += &format!(
            "  left     {}, with {count} that no commit can hold\n",
            left.path
        );
    }
    for salvage in &view.salvaged {
        text += &format!("  salvaged {}\n", salvage.kept_by);
    }
    text += &format!("  bundle   {}\n", relative(&view.bundle));
    for log in view.logs.iter().filter(|_| is_detailed(view)) {
        text += &format!("           {}, {}\n", log.file, size::rough(log.bytes));
    }
    text
}

/// The test files that a change touches, before everything else.
pub fn changed_tests(words: &[String]) -> String {
    let line = |(at, words): (usize, &String)| {
        let head = if at == 0 {
            "  tested   "
        } else {
            "           "
        };
        format!("{head}{}\n", one_line(words))
    };
    words.iter().enumerate().map(line).collect()
}

/// The objective, the start, the duration and the price.
fn beginning(view: &RunView) -> String {
    let began = times::moment(&view.began);
    let age = times::age(&view.began, view.now);
    let mut text = format!("  asked    {}\n", headline(&view.objective, 11));
    text += &format!("  began    {began}, {age} ago\n");
    text += &approval_text::given(view);
    text += &child_text::children(view);
    if let Some(parent) = &view.parent {
        text += &format!("  again    another try of {parent}\n");
    }
    text + &spent(view) + &bodies_text::bodies(view)
}

fn spent(view: &RunView) -> String {
    let mut text = String::new();
    if let Some(millis) = view.took_ms {
        let so_far = if view.stage == Stage::Running {
            " so far"
        } else {
            ""
        };
        text += &format!("  took     {}{so_far}", times::length(millis));
        let agent = view.agent_ms.map(times::length);
        text += &agent.map_or("\n".to_owned(), |length| format!(", the agent {length}\n"));
    }
    if let Some(spent) = &view.usage {
        let money = spent.usage.micro_usd;
        // Where the proxy knows the prices, its sum differs from the program's claim or equals it.
        let whose = if spent.priced {
            ""
        } else {
            " as the agent reports"
        };
        let money = (money > 0).then(|| format!(", {}{whose}", dollars(money)));
        let money = money.unwrap_or_default();
        let tokens = spent.usage.tokens();
        let requests = usize::try_from(spent.requests).unwrap_or(usize::MAX);
        let requests = counted(requests, "request");
        let how = match (spent.counted, spent.estimated) {
            (false, _) => "not counted, as the agent reports".to_owned(),
            (true, 0) => format!("in {requests}"),
            (true, some) => format!("in {requests}, {some} of them estimated"),
        };
        text += &format!("  spent    {tokens} tokens {how}{money}\n");
    }
    text
}

/// The attempts that were refused before the last one.
fn earlier(view: &RunView) -> String {
    let mut text = String::new();
    for past in &view.refused_before {
        let (code, reason) = (past.code, one_line(&past.reason));
        text += &format!("  attempt {} was refused[{code}]: {reason}\n", past.attempt);
        if let Some(patch) = &past.patch {
            text += &format!("    its work: {}\n", one_line(patch));
        }
    }
    text
}

/// The changes of the agent, the review and the outcome of the tests.
fn work(view: &RunView) -> String {
    let mut text = String::new();
    if let Some(tree) = &view.tree {
        text += &format!(
            "  changed  {}, tree {}\n",
            counted(view.changed_files.len(), "file"),
            tree.short()
        );
        text += &changes(view);
    }
    text += &review(view);
    text + &view.tests.as_ref().map(acceptance).unwrap_or_default()
}

/// How many changed files the text output lists.
const MOST_CHANGES: usize = 30;

/// The changed files, each with the kind of its change and how many lines it gained and lost.
fn changes(view: &RunView) -> String {
    let Some(lines) = &view.lines else {
        return String::new();
    };
    let row = |file: &ChangedFile| {
        let what = match file.kind {
            ChangeKind::Added => 'A',
            ChangeKind::Removed => 'D',
            ChangeKind::Modified => 'M',
        };
        let counted = lines.iter().find(|it| it.path == file.path);
        let lines = match counted.map(|it| (it.added, it.removed)) {
            Some((Some(added), Some(removed))) => format!("  +{added} -{removed}"),
            Some(_) => "  not text".to_owned(),
            None => String::new(),
        };
        format!(
            "           {what} {}{lines}\n",
            one_line(&file.path.to_string())
        )
    };
    let rows = view.changed_files.iter().take(MOST_CHANGES);
    let rows: String = rows.map(row).collect();
    match view.changed_files.len().saturating_sub(MOST_CHANGES) {
        0 => rows,
        more => format!("{rows}           and {more} more\n"),
    }
}

/// The reviewer and its outcome; empty if it did not run.
fn review(view: &RunView) -> String {
    let Some(review) = &view.review else {
        return String::new();
    };
    let Some(wall_ms) = review.wall_ms else {
        return String::new();
    };
    let (name, length) = (&review.reviewer, times::length(wall_ms));
    let (Some(verdict), Some(summary)) = (review.verdict, &review.summary) else {
        return format!("  review   none that counts, by {name} in {length}\n");
    };
    let word = match verdict {
        ReviewVerdict::Pass => "passed",
        ReviewVerdict::Fail => "failed",
        ReviewVerdict::Blocked => "blocked",
    };
    let mut text = format!("  review   {word} by {name} in {length}\n");
    text += &format!("           {}\n", headline(summary, 11));
    // Findings of a refusal are shown with the refusal.
    let passed = verdict == ReviewVerdict::Pass;
    for Remark { path, problem } in review.findings.iter().filter(|_| passed) {
        text += &format!("           {}\n", one_line(&format!("{path}: {problem}")));
    }
    text
}

fn acceptance(view: &TestsView) -> String {
    let mut text = format!("  tests    {}\n", view.headline);
    for ran in &view.commands {
        text += &format!(
            "           {} {} in {}{}{}{}\n",
            one_line(&ran.command),
            render_ending(ran.ending),
            times::length(ran.wall_ms),
            tests_of(ran),
            if ran.must_pass {
                ""
            } else {
                ", and need not pass"
            },
            if ran.tests_nothing {
                ", and tests nothing"
            } else {
                ""
            }
        );
    }
    if let Some(CacheUse { start, reason, .. }) = &view.cache {
        text += &format!("           {start}: {}\n", one_line(reason));
    }
    text
}

/// How many tests a command ran, and how many on the base if that differs.
fn tests_of(ran: &CommandView) -> String {
    let Some(now) = &ran.tests else {
        return String::new();
    };
    let skipped = match now.skipped {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    let before = match ran.tests_on_base.as_ref().map(Tally::ran) {
        Some(count) if count != now.ran() => format!("; {count} on the base"),
        _ => String::new(),
    };
    let ran = usize::try_from(now.ran()).unwrap_or(usize::MAX);
    format!(" ({}{skipped}{before})", counted(ran, now.unit()))
}

pub fn layer(layer: &Layered) -> String {
    let state = match &layer.made {
        Some(made) if made.again => "made again, because it had been changed",
        Some(_) => "made now",
        None => "made before",
    };
    let (name, key) = (&layer.name, &layer.key[..12.min(layer.key.len())]);
    let size = size::rough(layer.bytes);
    format!("{name}  {state}, {size}, key {key}\n")
}

/// In what the sandbox of the run differs from the default.
fn sandbox(view: &RunView) -> String {
    let mut text = String::new();
    let holed = view.sandbox.as_ref();
    if let Some(sandbox) = holed.filter(|it| !it.holes.is_empty()) {
        let tier = &sandbox.tier;
        text += &format!("  sandbox  tier {tier}, which does not stop all\n");
        for hole in sandbox.holes.iter().filter(|_| is_detailed(view)) {
            text += &format!("           {}\n", one_line(hole));
        }
    }
    if let Some(SandboxView {
        landlock: Some(version),
        sealed_gaps,
        ..
    }) = &view.sandbox
    {
        let gaps = counted(sealed_gaps.len(), "gap");
        text += &format!("  sandbox  landlock version {version}, {gaps} closed by other means\n");
        for gap in sealed_gaps.iter().filter(|_| is_detailed(view)) {
            text += &format!("           {}\n", one_line(gap));
        }
    }
    if !view.loopback {
        text += "  sandbox  loopback off\n";
    }
    text
}

/// What of the run is not in its bundle, because it is secret.
fn secrets(view: &RunView) -> String {
    let mut text = String::new();
    for one in &view.secrets.removed {
        let count = usize::try_from(one.removed).unwrap_or(usize::MAX);
        let secrets = counted(count, "secret");
        let from = one_line(&one.from);
        text += &format!("  secrets  {secrets} removed from {from}\n");
    }
    let Some(withheld) = &view.secrets.withheld else {
        return text;
    };
    for path in &withheld.contents {
        let path = one_line(&path.to_string());
        text +=
            &format!("  withheld {path}: a secret is in it, so its content is not in the bundle\n");
    }
    if withheld.names {
        text += "  withheld all objects: a secret is in the name of a file\n";
    }
    text
}

/// Whether the gate refused something that the verdict of the run does not show.
fn is_further(view: &RunView, gate: &GateView) -> bool {
    let shown = |answer: &Verdict| answer.code == gate.code;
    !gate.allow && !view.finished().is_some_and(shown)
}

/// Where the result is, and the next command.
fn ending(view: &RunView) -> String {
    let run = &view.run_id;
    if !view.own || view.stage != Stage::Sealed {
        return approval_text::going_on(view);
    }
    match (view.finished(), &view.branch, view.landed()) {
        (_, _, Some(landing)) => {
            let (branch, commit) = (short_branch(&landing.target), landing.commit.short());
            let landed = format!("  landed   {branch}, commit {commit}");
            match view.landing.held {
                Some(true) => format!("{landed}\n"),
                Some(false) => {
                    format!("{landed}; the branch no longer holds it\nnext: provost land {run}\n")
                }
                None => format!("{landed}; whether the branch still holds it is unknown\n"),
            }
        }
        (Some(_), Some(branch), None) => {
            let next = match &view.part {
                None => format!("next: provost land {run}\n"),
                Some(part) => format!("note: {}\n", one_line(part)),
            };
            format!("  branch   {branch}\nnext: provost diff {run}\n{next}")
        }
        (Some(verdict), None, None) => {
            let next = if view.has_work {
                format!("next: provost salvage restore {run}\n")
            } else {
                String::new()
            };
            let remedy = verdict.hint();
            let remedy = remedy.map(|remedy| format!("hint: {}\n", one_line(remedy)));
            let remedy = remedy.unwrap_or_default();
            let code = verdict.code;
            let why = format!("provost why {run}");
            let why = match refusal_text::command(view, verdict) {
                // It is the first command of the answer already.
                Some(first) if first == why => String::new(),
                _ => format!("next: {why}\n"),
            };
            format!("{remedy}hint: provost explain {code}\n{why}{next}")
        }
        (None, _, None) => approval_text::going_on(view),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("log"), "0123456789").unwrap();
        let files = RunDirectory(directory.path());
        assert_eq!(files.end_of("log", 3).unwrap(), b"789");
        assert_eq!(files.end_of("log", 30).unwrap(), b"0123456789");
        assert_eq!(files.end_of("gone", 3), None);
        assert!(files.has("log") && !files.has("gone"));
    }
}
