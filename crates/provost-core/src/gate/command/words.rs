//! Splits a command into words like a POSIX shell, and finds shell syntax in it.
//!
//! No shell ever runs these commands. A text with shell syntax is refused anyway: its author
//! expected a shell to interpret it.

use std::fmt;

/// The longest command that is read, in bytes.
pub const LONGEST: usize = 8 * 1024;

/// The most words a command may have.
pub const MOST: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("the quote {0} is never closed")]
    Unclosed(char),
    #[error("the last backslash has nothing behind it")]
    Dangling,
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("it has more than {MOST} words")]
    TooMany,
    /// A character that a shell interprets, outside single quotes.
    #[error(
        "a shell would obey `{0}`, and no shell runs it; put it in single quotes if it is text"
    )]
    Meta(char),
    /// A control character other than a tab between words.
    #[error("it holds the control character {:#04x}", u32::from(*.0))]
    Control(char),
}

impl Flaw {
    /// Whether the text cannot be split into words.
    pub fn is_unparsable(self) -> bool {
        match self {
            Self::Unclosed(_) | Self::Dangling | Self::TooLong | Self::TooMany => true,
            Self::Meta(_) | Self::Control(_) => false,
        }
    }
}

/// The words of `text`, if it has no shell syntax.
pub fn split(text: &str) -> Result<Vec<String>, Flaw> {
    let scan = scan(text);
    match scan.flaws.first() {
        Some(flaw) => Err(*flaw),
        None => Ok(scan.commands.into_iter().flatten().collect()),
    }
}

/// `word` in a spelling that [`split`] reads back as this one word.
pub fn quote(word: &str) -> String {
    let plain = |character: char| {
        character.is_ascii_alphanumeric()
            || matches!(character, '_' | '-' | '.' | '/' | ':' | '@' | '+' | ',')
    };
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// `argv` as one line that [`split`] reads back as these words.
pub fn line(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// The commands that a shell would see in a text, and all its flaws.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The words of each command; one command unless a flaw says otherwise.
    pub(super) commands: Vec<Vec<String>>,
    /// Without duplicates.
    pub(super) flaws: Vec<Flaw>,
}

/// Reads `text` to its end, whatever its flaws.
pub(super) fn scan(text: &str) -> Scan {
    if text.len() > LONGEST {
        return Scan {
            flaws: vec![Flaw::TooLong],
            ..Scan::default()
        };
    }
    let mut scanner = Scanner::default();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        scanner.take(character, &mut characters);
    }
    scanner.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
}

#[derive(Default)]
struct Scanner {
    done: Scan,
    command: Vec<String>,
    word: String,
    /// Whether a word has begun, even an empty one as in `''`.
    open: bool,
    /// The unquoted character before this one, inside a word.
    before: Option<char>,
    quote: Quote,
}

impl Scanner {
    fn take(&mut self, character: char, rest: &mut std::str::Chars<'_>) {
        if character.is_control() && character != '\t' {
            let quoted = self.quote != Quote::None;
            self.flaw(if character == '\n' && !quoted {
                Flaw::Meta(character)
            } else {
                Flaw::Control(character)
            });
            if quoted {
                self.word.push(character);
            } else {
                self.end_command();
            }
            return;
        }
        match self.quote {
            Quote::Single if character == '\'' => self.quote = Quote::None,
            Quote::Single => self.word.push(character),
            Quote::Double => self.take_double(character, rest),
            Quote::None => self.take_plain(character, rest),
        }
    }

    fn take_double(&mut self, character: char, rest: &mut std::str::Chars<'_>) {
        match character {
            '"' => self.quote = Quote::None,
            '\\' => match rest.next() {
                None => self.flaw(Flaw::Dangling),
                Some(escaped @ ('"' | '\\')) => self.word.push(escaped),
                Some(escaped) => {
                    // A backslash that escapes nothing is literal.
                    if !matches!(escaped, '$' | '`') {
                        self.word.push('\\');
                    }
                    self.take_double_text(escaped);
                }
            },
            other => self.take_double_text(other),
        }
    }

    fn take_double_text(&mut self, character: char) {
        if matches!(character, '$' | '`') {
            self.flaw(Flaw::Meta(character));
        } else if character.is_control() && character != '\t' {
            self.flaw(Flaw::Control(character));
        }
        self.word.push(character);
    }

    fn take_plain(&mut self, character: char, rest: &mut std::str::Chars<'_>) {
        let before = self.before.take();
        match character {
            ' ' | '\t' => self.end_word(),
            '\'' => (self.quote, self.open) = (Quote::Single, true),
            '"' => (self.quote, self.open) = (Quote::Double, true),
            '\\' => match rest.next() {
                None => self.flaw(Flaw::Dangling),
                Some(escaped) => {
                    if is_meta(escaped) || matches!(escaped, '#' | '~') {
                        self.flaw(Flaw::Meta(escaped));
                    } else if escaped.is_control() {
                        self.flaw(Flaw::Control(escaped));
                    }
                    self.push(escaped);
                }
            },
            ';' | '|' | '&' | '(' | ')' | '`' => {
                self.flaw(Flaw::Meta(character));
                self.end_command();
            }
            '<' | '>' => {
                self.flaw(Flaw::Meta(character));
                self.end_word();
            }
            _ => {
                let at_start = !self.open;
                let obeyed = match character {
                    '#' => at_start,
                    '~' => at_start || matches!(before, Some('=' | ':')),
                    other => is_meta(other),
                };
                if obeyed {
                    self.flaw(Flaw::Meta(character));
                }
                self.push(character);
                self.before = Some(character);
            }
        }
    }

    fn push(&mut self, character: char) {
        self.word.push(character);
        self.open = true;
    }

    fn flaw(&mut self, flaw: Flaw) {
        if !self.done.flaws.contains(&flaw) {
            self.done.flaws.push(flaw);
        }
    }

    fn end_word(&mut self) {
        self.before = None;
        if std::mem::take(&mut self.open) {
            let word = std::mem::take(&mut self.word);
            // `NAME=value` before a program sets a variable.
            if self.command.is_empty() && is_assignment(&word) {
                self.flaw(Flaw::Meta('='));
            }
            self.command.push(word);
        }
        if self.command.len() > MOST {
            self.flaw(Flaw::TooMany);
            self.command.pop();
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.command.is_empty() {
            self.done.commands.push(std::mem::take(&mut self.command));
        }
    }

    fn finish(mut self) -> Scan {
        match self.quote {
            Quote::None => {}
            Quote::Single => self.flaw(Flaw::Unclosed('\'')),
            Quote::Double => self.flaw(Flaw::Unclosed('"')),
        }
        self.end_command();
        self.done
    }
}

/// Whether a shell interprets `character` wherever it is unquoted.
fn is_meta(character: char) -> bool {
    matches!(
        character,
        ';' | '|'
            | '&'
            | '<'
            | '>'
            | '('
            | ')'
            | '$'
            | '`'
            | '{'
            | '}'
            | '*'
            | '?'
            | '['
            | ']'
            | '!'
    )
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
    })
}

/// Shows words as one command that can be typed again.
pub(super) struct Typed<'a>(pub(super) &'a [String]);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|word| quote(word)).collect();
        formatter.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let cases: [(&str, &[&str]); 10] = [
            ("pytest -q", &["pytest", "-q"]),
            ("  pytest \t -q ", &["pytest", "-q"]),
            ("pytest 'a;b'", &["pytest", "a;b"]),
            (r#"pytest -k "a or b""#, &["pytest", "-k", "a or b"]),
            (r"pytest a\ b", &["pytest", "a b"]),
            (r#"pytest "a\"b\\c\d""#, &["pytest", r#"a"b\c\d"#]),
            ("pytest ''", &["pytest", ""]),
            ("pytest a'b'\"c\"", &["pytest", "abc"]),
            ("git diff HEAD~1 a#b", &["git", "diff", "HEAD~1", "a#b"]),
            ("", &[]),
        ];
        for (text, want) in cases {
            assert_eq!(split(text).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_obey_is_a_flaw() {
        let metas = [
            "a; b",
            "a & b",
            "a | b",
            "a < b",
            "a > b",
            "a (b)",
            "a $b",
            "a `b`",
            "a {b,c}",
            "a *",
            "a b?",
            "a [b]",
            "a !b",
            "a # b",
            "a ~/b",
            "a --x=~",
            "a \"$b\"",
            "a \"`b`\"",
            r"a \;",
            r#"a "\$b""#,
            "a\nb",
            "A=b c",
        ];
        for text in metas {
            let flaw = split(text).unwrap_err();
            assert!(matches!(flaw, Flaw::Meta(_)), "{text}: {flaw:?}");
        }
        let cases = [
            ("a 'b", Flaw::Unclosed('\'')),
            ("a \"b", Flaw::Unclosed('"')),
            ("a b\\", Flaw::Dangling),
            ("a \"b\\", Flaw::Dangling),
            ("a\rb", Flaw::Control('\r')),
            ("a 'b\nc'", Flaw::Control('\n')),
            ("a\\\nb", Flaw::Control('\n')),
        ];
        for (text, want) in cases {
            assert_eq!(split(text), Err(want), "{text:?}");
        }
        assert_eq!(split(&"a".repeat(LONGEST + 1)), Err(Flaw::TooLong));
        assert_eq!(split(&"a ".repeat(MOST + 1)), Err(Flaw::TooMany));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^\\p{Cc}]{0,12}", 0..8)) {
            prop_assume!(words.first().is_none_or(|first| !is_assignment(first)));
            let text = Typed(&words).to_string();
            prop_assert_eq!(split(&text), Ok(words));
        }

        #[test]
        fn any_text_is_read_to_its_end(text in "\\PC{0,40}|[ -~\\n\\t]{0,40}") {
            let _ = split(&text);
        }
    }
}
