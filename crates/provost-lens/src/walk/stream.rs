//! Turns the tokens of a function into hashes that can be compared.
//!
//! The same tokens are hashed in three ways:
//!
//! - Exactly.
//! - With each name replaced by its order of appearance and each value by its kind. This finds
//!   copies that were renamed throughout.
//! - With all names equal, in shingles of which the smallest hashes are kept. This finds copies
//!   that were edited.

use std::collections::HashMap;

use crate::facts::{Block, Hashes, StatementFact, mix, short};

/// Tokens per shingle.
const SHINGLE: usize = 8;

/// How many hashes of shingles are kept.
pub(crate) const SKETCH: usize = 32;

/// The most shingles of one function in memory before the large ones are dropped.
const MOST_SHINGLES: usize = 1 << 16;

/// The most statements of one block that are kept.
const MOST_STATEMENTS: usize = 10_000;

#[derive(Debug, Clone, Copy)]
pub(super) enum Token {
    /// A keyword or punctuation of the language.
    Fixed(u64),
    Name(u64),
    /// The name of a member, which says what is done.
    Member(u64),
    Value(u64),
    /// An inner function, by its shape and its text.
    Inner(u64, u64),
}

/// Numbers that keep the kinds of tokens apart.
const NAME: u64 = 1 << 32;
const MEMBER: u64 = 2 << 32;
const VALUE: u64 = 3 << 32;
const INNER: u64 = 4 << 32;

/// The tokens of a function, so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    text: u64,
    shape: u64,
    tokens: u32,
    seen: HashMap<u64, u64>,
    last: [u64; SHINGLE],
    shingles: Vec<u32>,
    after_value: bool,
    statement: Option<Statement>,
    block: Vec<StatementFact>,
}

/// A statement during the walk.
#[derive(Debug, Default)]
struct Statement {
    hash: u64,
    seen: HashMap<u64, u64>,
    line: u32,
    end_line: u32,
}

impl Stream {
    pub(super) fn token(&mut self, token: Token) {
        let value = matches!(token, Token::Value(_));
        let (text, shape, coarse) = match token {
            Token::Fixed(word) => (word, word, word),
            Token::Name(hash) => (hash, NAME + number(&mut self.seen, hash), NAME),
            Token::Member(hash) => (hash, MEMBER ^ hash, MEMBER),
            Token::Value(hash) => (hash, VALUE, VALUE),
            Token::Inner(shape, text) => (text, INNER ^ shape, INNER),
        };
        self.text = mix(self.text, text);
        // A text with escapes in it is one value.
        if value && self.after_value {
            return;
        }
        self.after_value = value;
        self.tokens = self.tokens.saturating_add(1);
        self.shape = mix(self.shape, shape);
        if let Some(statement) = &mut self.statement {
            let shape = match token {
                Token::Name(hash) => NAME + number(&mut statement.seen, hash),
                _ => shape,
            };
            statement.hash = mix(statement.hash, shape);
        }
        self.shingle(coarse);
    }

    fn shingle(&mut self, coarse: u64) {
        self.last.rotate_left(1);
        self.last[SHINGLE - 1] = coarse;
        if self.tokens as usize >= SHINGLE {
            let hash = self.last.iter().fold(7, |hash, token| mix(hash, *token));
            self.shingles.push(short(hash));
        }
        if self.shingles.len() >= MOST_SHINGLES {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        self.shingles.sort_unstable();
        self.shingles.dedup();
        self.shingles.truncate(SKETCH);
    }

    pub(super) fn begin_statement(&mut self, line: u32, end_line: u32) {
        self.statement = Some(Statement {
            line,
            end_line,
            ..Statement::default()
        });
    }

    pub(super) fn end_statement(&mut self) {
        if let Some(done) = self.statement.take()
            && self.block.len() < MOST_STATEMENTS
        {
            let fact = StatementFact(done.hash, done.line, done.end_line);
            self.block.push(fact);
        }
    }

    pub(super) fn finish(mut self) -> Finished {
        self.shrink();
        Finished {
            text: self.text,
            shape: self.shape,
            tokens: self.tokens,
            sketch: self.shingles.into_iter().collect(),
            block: self.block.into_iter().collect(),
        }
    }
}

/// Hashes of the tokens of a function.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) text: u64,
    pub(super) shape: u64,
    pub(super) tokens: u32,
    pub(super) sketch: Hashes<'static>,
    pub(super) block: Block<'static>,
}

/// The order of appearance of a name.
fn number(seen: &mut HashMap<u64, u64>, name: u64) -> u64 {
    let next = seen.len() as u64;
    *seen.entry(name).or_insert(next)
}
