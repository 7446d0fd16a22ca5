//! Finds what a command line plainly writes: redirections, and programs that are known to write.
//!
//! This is no shell. A program that writes on its own (a compiler, a script) is not seen here; the
//! finish of a change sees what it left. A target that only a shell could compute is an error.

use super::{EventError, patch};

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A word, and whether a shell would still compute something in it.
    Word(String, bool),
    /// The next word is written to.
    Into,
    /// The next word is not: it is read, or copied from another descriptor.
    From,
    /// The end of one simple command.
    End,
}

/// The paths that `line` plainly writes.
pub(super) fn writes(line: &str) -> Result<Vec<String>, EventError> {
    let mut paths = Vec::new();
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut tokens = tokens(line).into_iter();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word, computed) => words.push((word, computed)),
            Token::Into => match tokens.next() {
                Some(Token::Word(word, computed)) => add(&mut paths, &word, computed)?,
                _ => return Err(EventError::Target(String::new())),
            },
            Token::From => {
                tokens.next();
            }
            Token::End => command(&std::mem::take(&mut words), line, &mut paths)?,
        }
    }
    Ok(paths)
}

/// Adds a target, unless it is a device that keeps nothing.
fn add(paths: &mut Vec<String>, word: &str, computed: bool) -> Result<(), EventError> {
    const NOTHING: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
    if NOTHING.contains(&word) {
        return Ok(());
    }
    if computed || word.is_empty() {
        return Err(EventError::Target(word.chars().take(80).collect()));
    }
    paths.push(word.to_owned());
    Ok(())
}

/// Whether `word` only goes before the name of a program.
fn is_prefix(word: &str) -> bool {
    const WORDS: [&str; 10] = [
        "sudo", "env", "command", "time", "nohup", "then", "do", "else", "!", "{",
    ];
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    let assigns = word.split_once('=').is_some_and(|(name, _)| is_name(name));
    assigns || WORDS.contains(&word)
}

/// What one simple command writes.
fn command(
    words: &[(String, bool)],
    line: &str,
    paths: &mut Vec<String>,
) -> Result<(), EventError> {
    let start = words.iter().position(|(word, _)| !is_prefix(word));
    let Some((name, arguments)) = start.and_then(|at| words[at..].split_first()) else {
        return Ok(());
    };
    let name = name.0.rsplit('/').next().unwrap_or_default();
    let plain = || arguments.iter().filter(|(word, _)| !word.starts_with('-'));
    let has = |flag: &str| arguments.iter().any(|(word, _)| word == flag);
    match name {
        "tee" | "touch" | "rm" | "rmdir" | "mkdir" | "unlink" | "truncate" | "mv" => {
            // The size of `truncate -s SIZE` is a word of its own.
            let skip = usize::from(name == "truncate" && (has("-s") || has("--size")));
            plain()
                .skip(skip)
                .try_for_each(|(word, computed)| add(paths, word, *computed))
        }
        "cp" | "ln" | "install" | "rsync" => match plain().next_back() {
            Some((word, computed)) => add(paths, word, *computed),
            None => Ok(()),
        },
        "chmod" | "chown" => plain()
            .skip(1)
            .try_for_each(|(word, computed)| add(paths, word, *computed)),
        "sed" | "perl" => {
            let in_place = |word: &str| {
                word.starts_with("--in-place")
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains('i'))
            };
            if !arguments.iter().any(|(word, _)| in_place(word)) {
                return Ok(());
            }
            // The script is the first word, unless a flag brought it.
            let scripts = usize::from(!(has("-e") || has("-f")));
            plain()
                .skip(scripts)
                .try_for_each(|(word, computed)| add(paths, word, *computed))
        }
        "dd" => arguments
            .iter()
            .filter_map(|(word, computed)| Some((word.strip_prefix("of=")?, *computed)))
            .try_for_each(|(word, computed)| add(paths, word, computed)),
        "apply_patch" | "applypatch" => {
            paths.extend(patch::paths(line)?);
            Ok(())
        }
        "sh" | "bash" | "dash" | "zsh" => {
            let script = arguments
                .iter()
                .position(|(word, _)| word == "-c" || word == "-lc")
                .and_then(|at| arguments.get(at + 1));
            match script {
                Some((script, false)) => {
                    paths.extend(writes(script)?);
                    Ok(())
                }
                Some((script, true)) => Err(EventError::Target(script.chars().take(80).collect())),
                None => Ok(()),
            }
        }
        "git" => git(arguments),
        _ => Ok(()),
    }
}

/// What git does to files goes beyond what its words name.
fn git(arguments: &[(String, bool)]) -> Result<(), EventError> {
    const WRITING: [&str; 12] = [
        "apply",
        "am",
        "checkout",
        "cherry-pick",
        "clean",
        "merge",
        "mv",
        "pull",
        "rebase",
        "reset",
        "restore",
        "rm",
    ];
    let verb = arguments.iter().find(|(word, _)| !word.starts_with('-'));
    match verb {
        Some((verb, _)) if WRITING.contains(&verb.as_str()) || verb == "stash" => {
            Err(EventError::Target(format!("whatever git {verb} changes")))
        }
        _ => Ok(()),
    }
}

/// Cuts a command line into pieces, by the rules that shells share about quotes.
fn tokens(line: &str) -> Vec<Token> {
    let mut cutter = Cutter::default();
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(next) => cutter.push(next),
            },
            '\'' => {
                cutter.quoted();
                for next in letters.by_ref().take_while(|next| *next != '\'') {
                    cutter.push(next);
                }
            }
            '"' => {
                cutter.quoted();
                while let Some(next) = letters.next() {
                    match next {
                        '"' => break,
                        '\\' => cutter.push(letters.next().unwrap_or('\\')),
                        '$' | '`' => cutter.computed(next),
                        next => cutter.push(next),
                    }
                }
            }
            '$' | '`' | '*' | '?' | '[' => cutter.computed(letter),
            '~' if cutter.word.is_none() => cutter.computed(letter),
            '#' if cutter.word.is_none() => {
                while letters.next_if(|next| *next != '\n').is_some() {}
            }
            '>' => {
                cutter.drop_descriptor();
                let _ = letters.next_if(|next| matches!(next, '>' | '|'));
                if letters.next_if_eq(&'&').is_some() {
                    let copies = letters
                        .peek()
                        .is_some_and(|next| next.is_ascii_digit() || *next == '-');
                    cutter.put(if copies { Token::From } else { Token::Into });
                } else {
                    cutter.put(Token::Into);
                }
            }
            '<' => {
                cutter.drop_descriptor();
                if letters.next_if_eq(&'<').is_some() {
                    if letters.next_if_eq(&'<').is_none() {
                        let _ = letters.next_if_eq(&'-');
                        cutter.heredocs += 1;
                    }
                } else if letters.next_if_eq(&'>').is_some() {
                    cutter.put(Token::Into);
                    continue;
                }
                let _ = letters.next_if_eq(&'&');
                cutter.put(Token::From);
            }
            '&' if letters.peek() == Some(&'>') => cutter.end_word(),
            '\n' if cutter.heredocs > 0 => {
                cutter.put(Token::End);
                let rest: String = letters.by_ref().collect();
                let rest = cutter.skip_heredocs(&rest);
                cutter.tokens.extend(tokens(&rest));
            }
            ';' | '&' | '|' | '(' | ')' | '\n' => cutter.put(Token::End),
            letter if letter.is_whitespace() => cutter.end_word(),
            letter => cutter.push(letter),
        }
    }
    cutter.put(Token::End);
    cutter.tokens
}

#[derive(Default)]
struct Cutter {
    tokens: Vec<Token>,
    word: Option<(String, bool)>,
    heredocs: usize,
}

impl Cutter {
    fn quoted(&mut self) -> &mut (String, bool) {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, letter: char) {
        self.quoted().0.push(letter);
    }

    fn computed(&mut self, letter: char) {
        let word = self.quoted();
        word.0.push(letter);
        word.1 = true;
    }

    fn end_word(&mut self) {
        if let Some((word, computed)) = self.word.take() {
            self.tokens.push(Token::Word(word, computed));
        }
    }

    fn put(&mut self, token: Token) {
        self.end_word();
        self.tokens.push(token);
    }

    /// The number in `2>` is no word.
    fn drop_descriptor(&mut self) {
        let is_number = |(word, _): &(String, bool)| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
    }

    /// What follows the bodies of the documents that began on this line.
    fn skip_heredocs(&mut self, rest: &str) -> String {
        let mut ends = Vec::new();
        for pair in self.tokens.windows(2) {
            if let [Token::From, Token::Word(word, _)] = pair {
                ends.push(word.clone());
            }
        }
        let ends = ends.split_off(ends.len().saturating_sub(self.heredocs));
        self.heredocs = 0;
        let mut lines = rest.lines();
        for end in ends {
            // A document without its end goes to the end of the text.
            while lines
                .next()
                .is_some_and(|line| line.trim_start_matches('\t') != end)
            {}
        }
        lines.collect::<Vec<_>>().join("\n")
    }
}
