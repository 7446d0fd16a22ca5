//! Finds what a command line writes: by redirections, and by programs that are known to write.
//!
//! This is no shell, and no sandbox. A line with a program that writes on its own (a compiler, a
//! script, an interpreter) is marked as open, and judged by what it left after the call.
//!
//! # Invariants
//!
//! - A target, a directory or a program that only a shell could compute is an error, where it
//!   decides what is written.
//! - A command inside of another (`$(…)`, `sh -c`, `timeout`, `xargs`, `find -exec`) is read as if
//!   it stood alone.
//! - After `cd` a path is resolved from every directory that the shell may be in.

mod archive;
mod cut;
mod fetch;
mod git;
mod options;
mod own;
mod program;
mod project;
mod script;
mod search;
mod stream;
#[cfg(test)]
mod tests;
mod token;
mod wrapper;

use self::cut::cut;
use self::token::{End, Token, Word};
use super::{Call, EventError};

/// How deep scripts may be nested.
const DEEPEST: usize = 12;

/// In how many directories a shell may be before they count as unknown.
const MOST_DIRECTORIES: usize = 16;

/// The paths that `line` writes, as far as it names them.
pub(super) fn writes(line: &str) -> Result<Call, EventError> {
    let mut reader = Reader {
        call: Call::default(),
        directories: vec![Some(String::new())],
        is_sure: true,
        depth: 0,
    };
    reader.script(line)?;
    Ok(reader.call)
}

/// Whether `word` only goes before the name of a program.
fn is_opening(word: &str) -> bool {
    const WORDS: [&str; 9] = [
        "!", "{", "do", "elif", "else", "if", "then", "until", "while",
    ];
    WORDS.contains(&word) || is_assignment(word)
}

/// Whether `word` sets a variable.
fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_part = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
        !name.is_empty() && name.bytes().all(is_part)
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// As much of a text as an answer repeats.
fn short(text: &str) -> String {
    super::short(text)
}

/// One simple command: its words, and the texts that it reads.
#[derive(Default)]
struct Simple {
    words: Vec<Word>,
    documents: Vec<Word>,
}

/// The directories that the shell may be in.
#[derive(Clone)]
struct Whereabouts {
    /// The directories when the list of commands began.
    before: Vec<Option<String>>,
    /// Whether every command since was surely run.
    is_sure: bool,
}

/// Collects what is written.
struct Reader {
    call: Call,
    /// The directories that the shell may be in, relative to its start; `None` for an unknown one.
    directories: Vec<Option<String>>,
    /// Whether the current command is surely run, here and in this shell.
    is_sure: bool,
    depth: usize,
}

impl Reader {
    /// Reads a script that runs in this shell.
    fn script(&mut self, text: &str) -> Result<(), EventError> {
        if self.depth == DEEPEST {
            return Err(EventError::Deep);
        }
        self.depth += 1;
        let tokens = cut(text)?;
        if wanders(&tokens) {
            self.may_be_in(vec![None]);
        }
        let done = self.tokens(tokens, text);
        self.depth -= 1;
        done
    }

    /// Reads a script that runs in a shell of its own.
    fn aside(&mut self, text: &str) -> Result<(), EventError> {
        let here = self.directories.clone();
        let done = self.script(text);
        self.directories = here;
        done
    }

    fn tokens(&mut self, tokens: Vec<Token>, line: &str) -> Result<(), EventError> {
        let mut now = Whereabouts {
            before: self.directories.clone(),
            is_sure: true,
        };
        let mut stack: Vec<(Vec<Option<String>>, Whereabouts)> = Vec::new();
        let mut simple = Simple::default();
        let mut last = End::Then;
        let mut tokens = tokens.into_iter();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => simple.words.push(word),
                Token::Into => {
                    let word = self.operand(&mut tokens)?;
                    self.add(&word.unwrap_or_default())?;
                }
                Token::Copy => {
                    let word = self.operand(&mut tokens)?.unwrap_or_default();
                    let number = word.text.strip_suffix('-').unwrap_or(&word.text);
                    if word.text.is_empty() || !number.bytes().all(|it| it.is_ascii_digit()) {
                        self.add(&word)?;
                    }
                }
                Token::From => {
                    self.operand(&mut tokens)?;
                }
                Token::Text => simple.documents.extend(self.operand(&mut tokens)?),
                Token::Document(word) => simple.documents.push(word),
                Token::Script(text) => self.aside(&text)?,
                // Its body is read where it stands.
                Token::Define => simple = Simple::default(),
                Token::Open => {
                    self.is_sure = false;
                    self.simple(&std::mem::take(&mut simple), line)?;
                    stack.push((self.directories.clone(), now.clone()));
                    now.before.clone_from(&self.directories);
                    now.is_sure = true;
                    last = End::Then;
                }
                Token::Close => {
                    let simple = std::mem::take(&mut simple);
                    self.is_sure = now.is_sure && last != End::Aside;
                    let left = stack.pop();
                    // One word before a sign that closes nothing is a pattern of `case`.
                    if left.is_some() || simple.words.len() > 1 {
                        self.simple(&simple, line)?;
                    }
                    if let Some((directories, outer)) = left {
                        self.directories = directories;
                        now = outer;
                    }
                }
                Token::End(end) => {
                    self.is_sure =
                        now.is_sure && last != End::Aside && matches!(end, End::And | End::Then);
                    self.simple(&std::mem::take(&mut simple), line)?;
                    match end {
                        End::And | End::Aside => {}
                        End::Or => now.is_sure = false,
                        End::Then => {
                            // Any command of the list may have failed, so that `cd` was not run.
                            self.may_be_in(std::mem::take(&mut now.before));
                            now.before.clone_from(&self.directories);
                            now.is_sure = true;
                        }
                    }
                    last = end;
                }
            }
        }
        Ok(())
    }

    /// The word that a redirection is about.
    fn operand(
        &mut self,
        tokens: &mut impl Iterator<Item = Token>,
    ) -> Result<Option<Word>, EventError> {
        loop {
            match tokens.next() {
                Some(Token::Script(text)) => self.aside(&text)?,
                Some(Token::Word(word)) => return Ok(Some(word)),
                _ => return Ok(None),
            }
        }
    }

    fn simple(&mut self, simple: &Simple, line: &str) -> Result<(), EventError> {
        program::run(self, &simple.words, &simple.documents, line)
    }

    /// Adds `word` to what is written, unless it is a device that stores nothing.
    fn add(&mut self, word: &Word) -> Result<(), EventError> {
        const NOTHING: [&str; 5] = [
            "/dev/null",
            "/dev/stdout",
            "/dev/stderr",
            "/dev/tty",
            "/dev/full",
        ];
        let text = word.text.as_str();
        if NOTHING.contains(&text) || text.starts_with("/dev/fd/") {
            return Ok(());
        }
        if word.computed || text.is_empty() {
            return Err(EventError::Target(short(text)));
        }
        if text.starts_with('/') {
            self.call.paths.push(text.to_owned());
            return Ok(());
        }
        for directory in &self.directories {
            self.call.paths.push(match directory.as_deref() {
                None => return Err(EventError::Directory(short(text))),
                Some("") => text.to_owned(),
                Some(directory) => format!("{directory}/{text}"),
            });
        }
        Ok(())
    }

    fn add_all<'a>(&mut self, words: impl IntoIterator<Item = &'a Word>) -> Result<(), EventError> {
        words.into_iter().try_for_each(|word| self.add(word))
    }

    /// The directories that `word` leads to from here.
    fn leads_to(&self, word: &Word) -> Vec<Option<String>> {
        if word.computed || word.text == "-" || word.text.is_empty() {
            return vec![None];
        }
        if word.text.starts_with('/') {
            return vec![Some(word.text.clone())];
        }
        let below = |directory: &Option<String>| match directory.as_deref()? {
            "" => Some(word.text.clone()),
            directory => Some(format!("{directory}/{}", word.text)),
        };
        self.directories.iter().map(below).collect()
    }

    fn may_be_in(&mut self, directories: Vec<Option<String>>) {
        for directory in directories {
            if !self.directories.contains(&directory) {
                self.directories.push(directory);
            }
        }
        if self.directories.len() > MOST_DIRECTORIES {
            self.directories = vec![None];
        }
    }

    /// The shell changes to `directories`, if that succeeds.
    fn go(&mut self, directories: Vec<Option<String>>) {
        if self.is_sure {
            self.directories = directories;
        } else {
            self.may_be_in(directories);
        }
    }

    /// Reads a command that runs in the directory `word`, and returns to the directory before.
    fn inside<T>(
        &mut self,
        word: Option<&Word>,
        look: impl FnOnce(&mut Self) -> Result<T, EventError>,
    ) -> Result<T, EventError> {
        let here = self.directories.clone();
        if let Some(word) = word {
            self.directories = self.leads_to(word);
        }
        let done = look(self);
        self.directories = here;
        done
    }
}

/// Whether the shell changes its directory where the text does not give the order of execution.
fn wanders(tokens: &[Token]) -> bool {
    const REPEATING: [&str; 6] = ["for", "while", "until", "select", "case", "function"];
    let has = |names: &[&str]| {
        tokens
            .iter()
            .any(|token| matches!(token, Token::Word(word) if names.contains(&word.text.as_str())))
    };
    has(&["cd", "pushd", "popd"]) && (has(&REPEATING) || tokens.contains(&Token::Define))
}
