//! Writes title and body of a pull request about an accepted run.
//!
//! Text that a contract or an agent wrote is in code fences only, so that no host of repositories
//! takes it for a mention, a link, a closing keyword or a heading. The words outside are ours.

use provost_core::foreign_text::{neutralise, one_line};
use provost_core::gate::command;
use provost_core::json;
use provost_core::run::State;
use provost_core::run::effect::subject_and_body;
use provost_core::run::fact::{CommandRun, ResultFile, Side};
use provost_core::run::judge::render_ending;
use serde::Serialize;

/// The most characters of what an agent said.
const MOST_SAID: usize = 4000;

/// The most changed files that are listed.
const MOST_FILES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequest {
    /// One line, at most 72 characters.
    pub title: String,
    /// Markdown.
    pub body: String,
}

impl PullRequest {
    /// The title, a blank line, and the body.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.title, self.body)
    }
}

/// The pull request about the run whose manifest has this digest.
pub fn render(state: &State, manifest_sha256: &str) -> PullRequest {
    let objective = state.opened.contract.inputs.spec.trim();
    let run_id = &state.names.run_id;
    let (subject, _) = subject_and_body(&one_line(objective.lines().next().unwrap_or_default()));
    let title = match subject.as_str() {
        "" => format!("Land {run_id}"),
        _ => subject,
    };
    let mut body = format!("Asked for:\n\n{}", fenced(objective));
    body += &format!("\nChanged files:\n\n{}", fenced(&changed(state)));
    let commands = state.tests.get(&Side::Candidate);
    let commands = commands.map_or(&[][..], |run| &run.commands);
    let lines: Vec<String> = commands.iter().map(ran).collect();
    body += &format!(
        "\nAcceptance commands, run by Provost on exactly this tree:\n\n{}",
        fenced(&lines.join("\n"))
    );
    if let Some(said) = said(state) {
        body += &format!("\nThe agent said, unchecked:\n\n{}", fenced(&said));
    }
    let (base, tree) = (&state.opened.base_commit, state.captured.as_ref());
    let tree = tree.map_or_else(String::new, |captured| {
        format!("; tree `{}`", captured.tree)
    });
    body += &format!(
        "\nRun `{run_id}`; base `{base}`{tree}; bundle `sha256:{manifest_sha256}`. \
         `provost verify {run_id}` checks the evidence.\n"
    );
    PullRequest { title, body }
}

/// One changed file per line, with a letter as git has it.
fn changed(state: &State) -> String {
    let changes = state.captured.as_ref();
    let changes = changes.map_or(&[][..], |captured| &captured.changes);
    let line = |change: &provost_core::change::Change| {
        let letter = match (&change.before, &change.after) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(_), Some(_)) => 'M',
        };
        format!("{letter} {}", one_line(&change.path.to_string()))
    };
    let mut lines: Vec<String> = changes.iter().take(MOST_FILES).map(line).collect();
    if changes.len() > MOST_FILES {
        lines.push(format!("and {} more", changes.len() - MOST_FILES));
    }
    lines.join("\n")
}

fn ran(ran: &CommandRun) -> String {
    let words: Vec<String> = ran.argv.iter().map(|word| command::quote(word)).collect();
    let mut line = format!("{}: {}", words.join(" "), render_ending(ran.ending));
    if let Some(tally) = &ran.tally {
        line += &format!(
            "; {} passed, {} failed, {} skipped",
            tally.passed, tally.failed, tally.skipped
        );
    }
    one_line(&line)
}

/// The summary that the agent gave.
fn said(state: &State) -> Option<String> {
    let ResultFile::Text(text) = &state.agent.as_ref()?.result else {
        return None;
    };
    let value = json::parse(text.as_bytes()).ok()?;
    let said = value.get("summary")?.as_str()?.trim();
    match said.char_indices().nth(MOST_SAID) {
        _ if said.is_empty() => None,
        Some((end, _)) => Some(format!("{}…", &said[..end])),
        None => Some(said.to_owned()),
    }
}

/// `text` in a code block whose fence is longer than any row of backticks in it.
fn fenced(text: &str) -> String {
    let text = neutralise(&text.replace("\r\n", "\n"));
    let rows = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(rows.max().unwrap_or(0).max(2) + 1);
    let text = if text.is_empty() { "(none)" } else { &text };
    format!("{fence}text\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_fence() {
        let cases = [
            ("plain @user fixes #1", "```"),
            ("a\n```\n# heading\n```", "````"),
            ("a\n``````\nb", "```````"),
            ("``", "```"),
        ];
        for (text, fence) in cases {
            assert_eq!(fenced(text), format!("{fence}text\n{text}\n{fence}\n"));
        }
        assert_eq!(
            fenced("a\r\nb\u{1b}[2J\u{202e}"),
            "```text\na\nb\\u{1b}[2J\\u{202e}\n```\n"
        );
    }
}
