//! Reads the options of a program as `getopt` does.
//!
//! Lists of words, here and in the tables of programs, are one text with blanks between the words.

use super::token::Word;

/// Whether options may follow other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Mixed,
    /// What follows the first other word belongs to another program.
    First,
}

/// The arguments of a program.
#[derive(Debug, Default)]
pub(super) struct Given {
    options: Vec<(String, Option<Word>)>,
    /// The words that are no options.
    pub(super) words: Vec<Word>,
}

impl Given {
    /// Reads `arguments`; `shorts` and `longs` are the options that take a value.
    ///
    /// A long option may be shortened, as `getopt` permits.
    pub(super) fn read(arguments: &[Word], shorts: &str, longs: &str, order: Order) -> Self {
        let mut given = Self::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let text = word.text.as_str();
            if text == "--" {
                given.words.extend(rest.cloned());
                break;
            } else if let Some(long) = text.strip_prefix("--") {
                given.long(word, long, longs, &mut rest);
            } else if text.len() > 1 && text.starts_with('-') {
                given.bundle(word, shorts, &mut rest);
            } else {
                given.words.push(word.clone());
                if order == Order::First {
                    given.words.extend(rest.cloned());
                    break;
                }
            }
        }
        given
    }

    fn long<'a>(
        &mut self,
        word: &Word,
        long: &str,
        longs: &str,
        rest: &mut impl Iterator<Item = &'a Word>,
    ) {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(word.with(value))),
            None => (long, None),
        };
        let full = longs.split_whitespace().find(|full| full.starts_with(name));
        let value = value.or_else(|| full.and_then(|_| rest.next().cloned()));
        let name = full.unwrap_or(name);
        self.options.push((name.to_owned(), value));
    }

    fn bundle<'a>(&mut self, word: &Word, shorts: &str, rest: &mut impl Iterator<Item = &'a Word>) {
        let mut letters = word.text.chars();
        letters.next();
        while let Some(letter) = letters.next() {
            if !shorts.contains(letter) {
                self.options.push((letter.to_string(), None));
                continue;
            }
            let value = match letters.as_str() {
                "" => rest.next().cloned(),
                text => Some(word.with(text)),
            };
            self.options.push((letter.to_string(), value));
            return;
        }
    }

    pub(super) fn has(&self, names: &str) -> bool {
        self.options.iter().any(|(name, _)| is_among(name, names))
    }

    pub(super) fn values(&self, names: &str) -> impl Iterator<Item = &Word> {
        self.options
            .iter()
            .filter(move |(name, _)| is_among(name, names))
            .filter_map(|(_, value)| value.as_ref())
    }
}

/// Whether `word` is one of `words`.
pub(super) fn is_among(word: &str, words: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}
