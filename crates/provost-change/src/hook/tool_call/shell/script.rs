//! Reads what shells run: scripts in words, scripts on their input, and builtins of the shell.

use super::options::{Given, Order};
use super::token::Word;
use super::{Reader, short};
use crate::hook::tool_call::EventError;

/// A shell, whose script is a word, its input, or a file that is not read here.
pub(super) fn shell(
    reader: &mut Reader,
    arguments: &[Word],
    documents: &[Word],
) -> Result<(), EventError> {
    let longs = "rcfile init-file";
    // `+e` takes an option back, and is no script.
    let is_word = |word: &&Word| !word.text.starts_with('+');
    let arguments: Vec<Word> = arguments.iter().filter(is_word).cloned().collect();
    let given = Given::read(&arguments, "oO", longs, Order::First);
    if given.has("c") {
        return match given.words.first() {
            Some(script) => known(reader, script),
            None => Ok(()),
        };
    }
    if !given.has("s") {
        file(reader, &given.words)?;
    }
    if given.has("version help") || !(given.words.is_empty() || given.has("s")) {
        return Ok(());
    }
    if documents.is_empty() {
        return Err(EventError::Program("what goes into a shell".to_owned()));
    }
    documents.iter().try_for_each(|text| known(reader, text))
}

/// A script in a file; the output of `<(…)` is refused, because it cannot be read.
pub(super) fn file(reader: &mut Reader, words: &[Word]) -> Result<(), EventError> {
    let is_stream = |text: &str| text.starts_with("/dev/") || text.starts_with("/proc/");
    match words.first() {
        Some(word) if is_stream(&word.text) || word.computed && !word.text.contains('/') => {
            Err(EventError::Program(short(&word.text)))
        }
        Some(_) => {
            reader.call.is_open = true;
            Ok(())
        }
        None => Ok(()),
    }
}

/// A script in a word, which must not be computed.
fn known(reader: &mut Reader, script: &Word) -> Result<(), EventError> {
    if script.computed {
        return Err(EventError::Program(short(&script.text)));
    }
    reader.aside(&script.text)
}

/// `eval` and similar: the words are a script of this shell.
pub(super) fn eval(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    if let Some(word) = arguments.iter().find(|word| word.computed) {
        return Err(EventError::Program(short(&word.text)));
    }
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    reader.script(&words.join(" "))
}

/// `trap script SIGNAL`.
pub(super) fn trap(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let arguments = match arguments {
        [first, rest @ ..] if first.text == "--" => rest,
        all => all,
    };
    match arguments {
        [script, _, ..] if !script.text.starts_with('-') => known(reader, script),
        _ => Ok(()),
    }
}

/// The shell changes its directory.
pub(super) fn travel(reader: &mut Reader, name: &str, arguments: &[Word]) {
    let target = arguments
        .iter()
        .find(|word| word.text == "-" || !word.text.starts_with('-'));
    let there = match target {
        Some(word) if name != "popd" => reader.leads_to(word),
        _ => vec![None],
    };
    reader.go(there);
}
