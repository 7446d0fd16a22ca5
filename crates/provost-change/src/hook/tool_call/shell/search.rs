//! Reads programs that run another one on what they find or read.

use super::options::{Given, Order};
use super::token::Word;
use super::{Reader, program};
use crate::hook::tool_call::EventError;

/// `find`: what it deletes, and what its commands get, is below its starting points.
pub(super) fn find(
    reader: &mut Reader,
    arguments: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    let is_global = |word: &&Word| {
        matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O")
    };
    let globals = arguments.iter().take_while(is_global).count();
    let arguments_after = &arguments[globals..];
    let is_place = |word: &&Word| !word.text.starts_with(['-', '(', '!', ',']);
    let count = arguments_after.iter().take_while(is_place).count();
    let (places, tests) = arguments_after.split_at(count);
    let follows = arguments
        .iter()
        .any(|word| matches!(word.text.as_str(), "-L" | "-follow" | "-files0-from"));
    let here = [Word::plain(".")];
    let places = if places.is_empty() { &here } else { places };
    let places: Vec<Word> = places
        .iter()
        .map(|word| Word {
            // The target of a link may be anywhere.
            computed: word.computed || follows,
            ..word.clone()
        })
        .collect();
    let mut tests = tests.iter();
    while let Some(test) = tests.next() {
        match test.text.as_str() {
            "-delete" => reader.add_all(&places)?,
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                let target = tests.next().cloned().unwrap_or_default();
                reader.add(&target)?;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let words: Vec<Word> = tests
                    .by_ref()
                    .take_while(|word| !matches!(word.text.as_str(), ";" | "+"))
                    .cloned()
                    .collect();
                for place in &places {
                    let words: Vec<Word> = words.iter().map(|word| found(word, place)).collect();
                    program::run(reader, &words, documents, line)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A word of a command that `find` runs below `place`.
fn found(word: &Word, place: &Word) -> Word {
    match word.text.as_str() {
        "{}" => place.clone(),
        text if text.contains("{}") => Word::unknown(text),
        _ => word.clone(),
    }
}

/// `fd`: the command that it runs gets the found paths as its last arguments.
pub(super) fn fd(
    reader: &mut Reader,
    arguments: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    let at = arguments
        .iter()
        .position(|word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    match at {
        Some(at) => with_unknown(reader, &arguments[at + 1..], "{", documents, line),
        None => Ok(()),
    }
}

/// `xargs`: the command that it runs gets unknown words.
pub(super) fn xargs(
    reader: &mut Reader,
    arguments: &[Word],
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    let longs = "arg-file delimiter max-args max-chars max-lines max-procs jobs process-slot-var \
        joblog";
    let given = Given::read(arguments, "adEIjJLnPRSs", longs, Order::First);
    reader.add_all(given.values("joblog"))?;
    let sign = given.values("I J").next();
    let sign = sign.map_or("{}", |word| word.text.as_str());
    with_unknown(reader, &given.words, sign, documents, line)
}

/// A command that gets unknown words, at its end or where `sign` stands.
fn with_unknown(
    reader: &mut Reader,
    words: &[Word],
    sign: &str,
    documents: &[Word],
    line: &str,
) -> Result<(), EventError> {
    if words.is_empty() {
        return Ok(());
    }
    let mut words = words.to_vec();
    let mut is_placed = false;
    for word in &mut words {
        if word.text.contains(sign) {
            word.computed = true;
            is_placed = true;
        }
    }
    if !is_placed {
        words.push(Word::unknown("$@"));
    }
    // A shell without a script gets the unknown word as the name of one.
    program::run(reader, &words, documents, line)
}
