//! Parses bytes into facts, within limits that do not depend on the machine.
//!
//! A limit counts steps of the parser and not time, so equal bytes give equal facts everywhere.

use std::cell::RefCell;
use std::ops::ControlFlow;

use crate::structure::Parse;
use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::facts::Facts;
use crate::language::{self, Loaded};
use crate::walk;

/// The largest file that is parsed, in bytes.
pub(crate) const LARGEST: usize = 2 * 1024 * 1024;

/// Progress callbacks allowed for any file; the parser makes one every hundred steps.
const ASKED_ALWAYS: usize = 5_000;

/// Bytes per further callback.
const BYTES_ASKED: usize = 32;

/// The facts of a file in the language with index `place`.
pub(crate) fn facts(place: usize, bytes: &[u8]) -> Facts<'static> {
    let Some(language) = language::loaded(place) else {
        return Facts::names_only(bytes, Parse::Unread);
    };
    if bytes.len() > LARGEST {
        return Facts::names_only(bytes, Parse::TooLarge);
    }
    if std::str::from_utf8(bytes).is_err() {
        return Facts::names_only(bytes, Parse::NotText);
    }
    match tree(language, bytes) {
        Some(tree) => walk::facts(language, bytes, &tree),
        None => Facts::names_only(bytes, Parse::TooHard),
    }
}

fn tree(language: &Loaded, bytes: &[u8]) -> Option<Tree> {
    thread_local! {
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&language.grammar).ok()?;
        let mut left = ASKED_ALWAYS + bytes.len() / BYTES_ASKED;
        let mut ask = |_: &ParseState| match left.checked_sub(1) {
            Some(rest) => {
                left = rest;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        };
        let options = ParseOptions::new().progress_callback(&mut ask);
        let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut read, None, Some(options));
        // A parse that was given up must not be resumed with the next file.
        parser.reset();
        tree
    })
}
