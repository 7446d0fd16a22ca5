//! Shows the acts to a person as they happen.
//!
//! Colours come only on a terminal and say nothing that the words do not say.

use std::io::{self, IsTerminal as _, Write as _};

use super::acts::{Act, Played};
use crate::show::neutralise;

/// How wide the labels are.
const LABEL: usize = 12;

/// Where the acts are shown.
pub(super) struct Screen {
    shown: bool,
    coloured: bool,
}

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy)]
enum Look {
    Bold,
    Dim,
    Good,
    Bad,
}

impl Screen {
    /// A screen for a person; without one, nothing is written.
    pub(super) fn new(shown: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            shown,
            coloured: io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }

    /// Says what the demo is about.
    pub(super) fn open(&self, headline: &str, lines: &[(&str, String)]) {
        self.line(&self.look(headline, Look::Bold));
        for (label, words) in lines {
            self.row(label, words);
        }
    }

    /// Announces an act.
    pub(super) fn begin(&self, number: usize, act: &Act) {
        let title = self.look(act.title, Look::Bold);
        self.line(&format!("\n{number}  {title}"));
        self.row("does", act.does);
    }

    /// Shows what came of it.
    pub(super) fn end(&self, played: &Played) {
        for (label, words) in &played.rows {
            self.row(label, words);
        }
        let held = played.expected == played.got;
        let (mark, word, look) = if held {
            ("✓", played.word, Look::Good)
        } else {
            ("✗", "unexpected", Look::Bad)
        };
        let word = self.look(&format!("{word:LABEL$}"), look);
        let mark = self.look(mark, look);
        self.line(&format!("{mark}  {word} {}", neutralise(&played.outcome)));
        if !held {
            self.row("expected", &played.expected.to_string());
            self.row("got", &played.got.to_string());
        }
    }

    fn row(&self, label: &str, words: &str) {
        let label = self.look(&format!("{label:LABEL$}"), Look::Dim);
        self.line(&format!("   {label} {}", neutralise(words)));
    }

    fn look(&self, text: &str, look: Look) -> String {
        if !self.coloured {
            return text.to_owned();
        }
        let code = match look {
            Look::Bold => "1",
            Look::Dim => "2",
            Look::Good => "1;32",
            Look::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn line(&self, text: &str) {
        if self.shown {
            // A reader that went away does not change how the acts end.
            let _ = writeln!(io::stdout().lock(), "{text}");
        }
    }
}
