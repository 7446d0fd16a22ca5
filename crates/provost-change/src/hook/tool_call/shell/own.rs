//! Lists the commands of Provost that only a person may run: they loosen the rules for agents.

use super::options::{Given, Order};
use super::token::Word;
use crate::hook::tool_call::EventError;

/// Command and subcommand; an empty subcommand stands for all of them.
const PERSONS: &[(&str, &str)] = &[
    ("approve", ""),
    ("change", "gc"),
    ("change", "reset"),
    ("gc", ""),
    ("hook", "bind"),
    ("hook", "install"),
    ("hook", "unbind"),
    ("hook", "uninstall"),
    ("init", ""),
    ("key", "new"),
    ("key", "trust"),
    ("land", ""),
    ("lease", "release"),
    ("reject", ""),
];

/// Refuses a call of Provost under another name, as far as two words or the path tell it.
pub(super) fn renamed(name: &str, arguments: &[Word]) -> Result<(), EventError> {
    let mut words = arguments.iter().filter(|word| !word.text.starts_with('-'));
    let (first, second) = (words.next(), words.next());
    let is = |word: Option<&Word>, text: &str| word.is_some_and(|word| word.text == text);
    let pairs = PERSONS.iter().filter(|(_, verb)| !verb.is_empty());
    let is_pair = pairs
        .into_iter()
        .any(|(command, verb)| is(first, command) && is(second, verb));
    if is_pair || name.contains("provost") {
        return judge(arguments);
    }
    Ok(())
}

/// Refuses a command that only a person may run.
pub(super) fn judge(arguments: &[Word]) -> Result<(), EventError> {
    let longs = "agent root";
    let given = Given::read(arguments, "", longs, Order::Mixed);
    let words: Vec<&str> = given.words.iter().map(|word| word.text.as_str()).collect();
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    if given.has("help h") || first == "help" {
        return Ok(());
    }
    let refuse = |command: String| Err(EventError::Guard(command));
    if given.words.iter().take(2).any(|word| word.computed) {
        return refuse("a command of provost that only a shell knows".to_owned());
    }
    if matches!(first, "sandbox" | "box") && given.has("allow") {
        return refuse("provost sandbox --allow".to_owned());
    }
    if first == "analyze" && given.has("write-baseline") {
        return refuse("provost analyze --write-baseline".to_owned());
    }
    for (command, verb) in PERSONS {
        if first == *command && (verb.is_empty() || second == *verb) {
            return refuse(format!("provost {command} {verb}").trim_end().to_owned());
        }
    }
    Ok(())
}
