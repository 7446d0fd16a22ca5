//! Prints the acts as they happen.
//!
//! Colours appear only on a terminal and add no information.

use std::io::{self, IsTerminal as _, Write as _};

use provost_core::foreign_text::neutralise;
use provost_core::json::canonical_object;

use super::acts::{Act, Played};

/// The width of the labels.
const LABEL: usize = 12;

pub(super) struct Screen {
    shown: bool,
    coloured: bool,
}

/// The style of a piece of text on a terminal.
#[derive(Clone, Copy)]
enum Look {
    Bold,
    Dim,
    Good,
    Bad,
}

impl Screen {
    /// A screen that prints only if `shown`.
    pub(super) fn new(shown: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            shown,
            coloured: io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }

    /// Prints the headline and what the demo is about.
    pub(super) fn open(&self, headline: &str, lines: &[(&str, String)]) {
        self.line(&self.look(headline, Look::Bold));
        for (label, words) in lines {
            self.row(label, words);
        }
    }

    /// Prints the headline of an act.
    pub(super) fn begin(&self, number: usize, act: &Act) {
        let title = self.look(act.title, Look::Bold);
        self.line(&format!("\n{number}  {title}"));
        self.row("does", act.does);
    }

    /// Prints the outcome of an act.
    pub(super) fn end(&self, played: &Played) {
        for (label, words) in &played.rows {
            self.row(label, words);
        }
        let held = played.facts.held();
        let (mark, word, look) = if held {
            ("✓", played.word, Look::Good)
        } else {
            ("✗", "unexpected", Look::Bad)
        };
        let word = self.look(&format!("{word:LABEL$}"), look);
        let mark = self.look(mark, look);
        self.line(&format!("{mark}  {word} {}", neutralise(&played.outcome)));
        if !held {
            self.row("expected", &canonical_object(&played.facts.expected));
            self.row("got", &canonical_object(&played.facts.got));
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
            // A closed pipe does not change how the acts end.
            let _ = writeln!(io::stdout().lock(), "{text}");
        }
    }
}
