//! Determines what an interpreter runs: a script, a module, or inline code.

use super::policy::Interpreter;
use super::{Problem, Reason, base_name, words::Typed};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Code in this word, or in the next one.
    Inline(String),
    Module(String),
    /// This script; the remaining words are its arguments.
    Script(String),
    /// A built-in mode, such as `node --test`.
    Itself,
    /// Not known.
    Unknown,
}

impl Interpreter {
    /// Whether `argv` starts one of these programs, of any version.
    pub(super) fn is(&self, argv: &[String]) -> bool {
        argv.first().is_some_and(|program| {
            let name =
                program.trim_end_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
            self.programs
                .iter()
                .any(|known| known == name || known == program)
        })
    }

    /// Whether a policy permits any of its modes.
    pub(super) fn may_run(&self) -> bool {
        self.scripts || !self.modules.is_empty() || !self.alone.is_empty()
    }

    pub(super) fn read(&self, argv: &[String]) -> Reading {
        let mut unknown = self.anywhere;
        let mut alone = false;
        let mut rest = argv.iter().skip(1);
        while let Some(word) = rest.next() {
            if self.is_inline(word) {
                return Reading::Inline(word.clone());
            }
            match self.option(word) {
                Word::Operand if unknown => {}
                Word::Operand => return Reading::Script(word.clone()),
                Word::End if self.anywhere => break,
                Word::End if unknown => {}
                Word::End => {
                    return rest
                        .next()
                        .map_or(Reading::Unknown, |script| Reading::Script(script.clone()));
                }
                Word::Harmless => alone |= self.alone.contains(word),
                Word::TakesNext => drop(rest.next()),
                Word::Module(name) if name.is_empty() => {
                    return rest
                        .next()
                        .map_or(Reading::Unknown, |name| Reading::Module(name.clone()));
                }
                Word::Module(name) => return Reading::Module(name),
                Word::Unknown => unknown = true,
            }
        }
        if alone && !unknown {
            Reading::Itself
        } else {
            Reading::Unknown
        }
    }

    /// Why `argv` is not on the list, if it is not.
    pub(super) fn judge(&self, argv: &[String]) -> Option<Problem> {
        let what = match self.read(argv) {
            Reading::Script(script) if self.scripts && script.starts_with(is_plain) => return None,
            Reading::Module(name) if self.modules.contains(&name) => return None,
            Reading::Itself => return None,
            Reading::Script(_) => "may not run scripts as a check".to_owned(),
            Reading::Module(name) => format!("may not run the module `{name}` as a check"),
            Reading::Inline(_) => "may only run a script of the repository".to_owned(),
            Reading::Unknown => format!(
                "`{}` does not say which script of the repository it runs",
                Typed(argv)
            ),
        };
        Some(Problem {
            reason: Reason::NotInAllowlist,
            about: argv
                .first()
                .map(|program| base_name(program).to_owned())
                .unwrap_or_default(),
            what,
        })
    }

    fn is_inline(&self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or(word);
        if self
            .inline
            .iter()
            .any(|known| known == word || known == name)
        {
            return true;
        }
        let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            return false;
        };
        let is_letter = |letter: char| {
            self.inline.iter().any(|known| {
                known
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.chars().eq([letter]))
            })
        };
        cluster
            .chars()
            .take_while(|letter| !self.values.contains(*letter) && !self.is_module(*letter))
            .any(is_letter)
    }

    fn is_module(&self, letter: char) -> bool {
        letter == 'm' && !self.modules.is_empty()
    }

    fn option(&self, word: &str) -> Word {
        if word == "--" {
            return Word::End;
        }
        if word.starts_with("--") {
            let name = word.split('=').next().unwrap_or(word);
            let known = self.long.iter().any(|known| known == name);
            return if known { Word::Harmless } else { Word::Unknown };
        }
        let Some(cluster) = word.strip_prefix('-') else {
            let is_option = word.starts_with('+') || word.is_empty();
            return if is_option {
                Word::Unknown
            } else {
                Word::Operand
            };
        };
        for (at, letter) in cluster.char_indices() {
            let behind = &cluster[at + letter.len_utf8()..];
            if self.is_module(letter) {
                return Word::Module(behind.to_owned());
            }
            if self.values.contains(letter) {
                return if behind.is_empty() {
                    Word::TakesNext
                } else {
                    Word::Harmless
                };
            }
            if !self.flags.contains(letter) {
                return Word::Unknown;
            }
        }
        // A lone `-` reads the program from stdin.
        if cluster.is_empty() {
            Word::Unknown
        } else {
            Word::Harmless
        }
    }
}

/// Whether a script's path can begin so; places outside the repository are refused elsewhere.
fn is_plain(first: char) -> bool {
    !matches!(first, '/' | '~' | '-')
}

enum Word {
    Operand,
    End,
    Harmless,
    TakesNext,
    Module(String),
    Unknown,
}
