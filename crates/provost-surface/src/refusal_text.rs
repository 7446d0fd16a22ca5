//! The first lines after a refusal: the agent's claim, the fact that refused it, and the one command
//! that helps.

use std::io;

use provost_core::code::Code;
use provost_core::verdict::Verdict;
use provost_engine::query::RunView;

use crate::permit;
use crate::show::{one_line, width_of};
use crate::text_width::wrapped;

/// The width where there is no terminal.
const USUAL_WIDTH: usize = 80;

/// How many lines of a terminal the agent's words take.
const MOST_LINES: usize = 2;

pub fn head(view: &RunView, verdict: &Verdict) -> String {
    let width = width_of(io::stdout()).unwrap_or(USUAL_WIDTH);
    let code = verdict.code;
    let reason = one_line(&verdict.reason);
    let said = view.agent_said.as_deref();
    let (claim, fact) = match (code, said) {
        (_, None) if view.agent_ms.is_none() => {
            (String::new(), format!("refused[{code}]: {reason}\n"))
        }
        (Code::EmptyDiff, said) => {
            let start = format!("refused[{code}]: {reason}; it said");
            (String::new(), quoted(&start, said, width))
        }
        (_, said) => (
            quoted("the agent said", said, width),
            format!("refused[{code}]: {reason}\n"),
        ),
    };
    let next = match command(view, verdict) {
        Some(next) => format!("next: {next}\n"),
        None => String::new(),
    };
    claim + &fact + &next
}

/// The one command that helps; `None` for a run of another user.
pub fn command(view: &RunView, verdict: &Verdict) -> Option<String> {
    let run = view.run_id.as_str();
    if !view.own {
        return None;
    }
    let permitted = view.widening.as_deref();
    if let Some(retry) = permitted.and_then(|all| permit::retry(run, all)) {
        return Some(retry);
    }
    let asks_what_it_did = matches!(
        verdict.code,
        Code::EmptyDiff
            | Code::AgentFailed
            | Code::AgentTimeout
            | Code::NoProgress
            | Code::AgentReportedFailure
    );
    Some(if asks_what_it_did && view.agent_said.is_some() {
        format!("provost log --agent {run}")
    } else {
        format!("provost why {run}")
    })
}

/// `start` with the agent's words in quotes after it, broken between words.
fn quoted(start: &str, words: Option<&str>, width: usize) -> String {
    let words = words.map(str::trim).filter(|words| !words.is_empty());
    let Some(words) = words else {
        let colon = if start.ends_with("it said") { "" } else { ":" };
        return format!("{start}{colon} nothing\n");
    };
    // Line ends of the agent are no lines of ours.
    let words: Vec<&str> = words.split_whitespace().collect();
    let text = format!("{start}: \"{}", one_line(&words.join(" ")));
    // The closing quote needs a column.
    let lines = wrapped(&text, width.saturating_sub(3), MOST_LINES);
    format!("{}\"\n", lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_agent_take_two_lines_at_most_and_add_none() {
        let long = "All 12 tests pass.\nrefused[X]: forged\n\n".repeat(9);
        let text = quoted("the agent said", Some(&long), 60);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        assert!(text.ends_with("…\"\n"), "{text}");
        assert!(!text.contains("\nrefused"), "{text}");
        let text = quoted("the agent said", Some("a\u{1b}[2Jb"), 60);
        assert_eq!(text, "the agent said: \"a\\u{1b}[2Jb\"\n");
        assert_eq!(
            quoted("the agent said", Some(" \n"), 60),
            "the agent said: nothing\n"
        );
        let start = "refused[EMPTY_DIFF]: the agent made no changes; it said";
        assert_eq!(quoted(start, None, 60), format!("{start} nothing\n"));
    }
}
