//! How text looks: colour, short ids, plain words, and the pager.
//!
//! # Invariants
//!
//! - Renderers write the same text for everyone. What depends on the terminal is added here, at the
//!   moment of printing, and never to what a program reads.
//! - Only the first word of a line of ours is coloured, after everything foreign in it was
//!   neutralised.
//! - The pager is the user's: the environment names it, and no file of a repository does.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write as _};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use provost_engine::query::with_short_ids;

use crate::frame::Size;
use crate::show::print_message;

/// The flags of every command that say how it looks; only the first page of the help has them.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Look {
    /// When to use colour; `NO_COLOR` turns it off for `auto`.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = When::Auto,
        hide = true)]
    color: When,

    /// Write plain lines for screen readers: no colour, no symbols, nothing that is redrawn.
    #[arg(long, global = true, hide = true)]
    plain: bool,

    /// Print long answers without a pager.
    #[arg(long, global = true, hide = true)]
    no_pager: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

static LOOK: OnceLock<Look> = OnceLock::new();

impl Look {
    /// Makes this the look of everything that is printed from now on.
    pub fn apply(self) {
        let _ = LOOK.set(self);
    }
}

fn look() -> Look {
    LOOK.get().copied().unwrap_or_default()
}

/// Whether the user asked for plain lines.
pub fn is_plain() -> bool {
    look().plain
}

/// Whether text on `out` is coloured.
fn is_coloured(out: &impl IsTerminal) -> bool {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = || env::var_os("TERM").is_none_or(|term| term == "dumb");
    match (look().color, look().plain) {
        (When::Never, _) | (When::Auto, true) => false,
        (When::Always, _) => true,
        (When::Auto, false) => out.is_terminal() && !set("NO_COLOR") && !is_dumb(),
    }
}

/// Our words as a person reads them on `out`.
pub fn for_people(text: &str, out: &impl IsTerminal) -> String {
    let mut text = with_short_ids(text);
    if look().plain {
        text = plain(&text);
    }
    if is_coloured(out) {
        let lines = text.split_inclusive('\n').map(painted);
        text = lines.collect();
    }
    text
}

/// The text without symbols that a screen reader names or skips.
fn plain(text: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("✓ ", ""),
        ("✗ ", ""),
        ("→", " to "),
        (" …\n", "\n"),
        ("…", "..."),
        (" | ", "   "),
    ];
    let fold = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    WORDS.into_iter().fold(text.to_owned(), fold)
}

/// The first words of lines that have a colour, and that colour.
const COLOURS: [(&str, &str); 12] = [
    ("PASS ", "32"),
    ("FAIL ", "31"),
    ("accepted:", "1;32"),
    ("landed:", "1;32"),
    ("refused[", "1;31"),
    ("error[", "1;31"),
    ("waiting for approval:", "33"),
    ("next:", "36"),
    ("hint:", "36"),
    ("note:", "33"),
    ("✓", "32"),
    ("✗", "31"),
];

/// A line with its first word in its colour.
fn painted(line: &str) -> String {
    let known = COLOURS.iter().find(|(word, _)| line.starts_with(word));
    let Some((word, colour)) = known else {
        return line.to_owned();
    };
    let end = match word.strip_suffix('[') {
        Some(_) => line.find(':').map_or(line.len(), |at| at + 1),
        None => word.trim_end().len(),
    };
    let (word, rest) = line.split_at(end);
    format!("\x1b[{colour}m{word}\x1b[0m{rest}")
}

/// A patch with its lines in the usual colours.
pub fn painted_patch(patch: &str, out: &impl IsTerminal) -> String {
    if !is_coloured(out) {
        return patch.to_owned();
    }
    let line = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => return format!("{line}\n"),
        };
        format!("\x1b[{colour}m{line}\x1b[0m\n")
    };
    patch.lines().map(line).collect()
}

/// Prints `text`, by a pager if it is longer than the terminal.
pub fn page(text: &str) -> io::Result<()> {
    if let Some(words) = pager(text) {
        match by_pager(&words, text) {
            Ok(()) => return Ok(()),
            Err(error) => {
                let name = words[0].to_string_lossy().into_owned();
                print_message(&format!(
                    "note: the pager `{name}` cannot be started ({error}); set PAGER, or use \
                     --no-pager"
                ));
            }
        }
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The command line of the pager, if `text` needs one.
fn pager(text: &str) -> Option<Vec<OsString>> {
    let Look {
        plain, no_pager, ..
    } = look();
    if plain || no_pager || !io::stdout().is_terminal() {
        return None;
    }
    if text.lines().count() < Size::of(io::stdout()).rows {
        return None;
    }
    let named = env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let words: Vec<OsString> = named.split_whitespace().map(OsString::from).collect();
    (!words.is_empty() && named != "cat").then_some(words)
}

/// Gives `text` to the pager and waits for its end.
fn by_pager(words: &[OsString], text: &str) -> io::Result<()> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        // Colours pass, and a text that fits is not held.
        command.env("LESS", "FRX");
    }
    let mut pager = command.spawn()?;
    if let Some(mut stdin) = pager.stdin.take() {
        // A user who leaves the pager early closes the pipe.
        let _ = stdin.write_all(text.as_bytes());
    }
    pager.wait().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_a_line_has_a_colour() {
        let cases = [
            (
                "PASS 1 changed file\n",
                "\x1b[32mPASS\x1b[0m 1 changed file\n",
            ),
            ("refused[X]: no: y", "\x1b[1;31mrefused[X]:\x1b[0m no: y"),
            ("next: provost why", "\x1b[36mnext:\x1b[0m provost why"),
            ("  PASS", "  PASS"),
            ("nextly", "nextly"),
        ];
        for (line, want) in cases {
            assert_eq!(painted(line), want);
        }
    }

    #[test]
    fn plain_text_has_words_instead_of_symbols() {
        let text = "✓ intact: yes\n  tests    red→green\ntesting the sandbox …\nlong te…\n";
        let want = "intact: yes\n  tests    red to green\ntesting the sandbox\nlong te...\n";
        assert_eq!(plain(text), want);
    }
}
