//! Says what git writes, where its arguments name it; nothing is guessed where they do not.

use super::options::{Given, Order, is_among};
use super::program::destination;
use super::token::Word;
use super::{Reader, short};
use crate::hook::tool_call::EventError;

/// Subcommands that leave the files of a checkout unchanged.
const HARMLESS: &str = "\
    add annotate blame branch cat-file check-attr check-ignore cherry commit commit-tree \
    count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref fsck gc \
    grep hash-object help log ls-files ls-remote ls-tree merge-base merge-tree mktree \
    name-rev notes push range-diff reflog remote rev-list rev-parse shortlog show \
    show-branch show-ref status tag update-index var verify-commit verify-tag version \
    whatchanged write-tree";

/// Settings that only affect authorship and output; any other may make git run a program.
const SHOWING: &str = "\
    advice. author. color. column. commit.gpgsign committer. core.abbrev core.quotepath \
    diff.algorithm diff.context diff.renamelimit diff.renames gc.auto init.defaultbranch \
    log. push.default status. tag.gpgsign user.name user.email";

/// Programs that a setting or a variable may name, because they only print or do nothing.
const IDLE: [&str; 4] = ["", "cat", "true", ":"];

/// Whether git may be called with the variable `name` set to `value`.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    const OWN: [&str; 3] = [
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "GIT_CONFIG_NOSYSTEM",
    ];
    const PEOPLE: [&str; 2] = ["GIT_AUTHOR_", "GIT_COMMITTER_"];
    const PROGRAMS: [&str; 5] = ["EDITOR", "GIT_EDITOR", "GIT_PAGER", "PAGER", "VISUAL"];
    if PROGRAMS.contains(&name) {
        return IDLE.contains(&value);
    }
    let is_gits = name.starts_with("GIT_");
    !is_gits || OWN.contains(&name) || PEOPLE.iter().any(|own| name.starts_with(own))
}

pub(super) fn run(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "git-dir work-tree namespace super-prefix config-env";
    let given = Given::read(arguments, "Cc", longs, Order::First);
    let places: Vec<Word> = given.values("C").cloned().collect();
    let here = reader.directories.clone();
    for place in &places {
        reader.directories = reader.leads_to(place);
    }
    let done = settings(&given).and_then(|()| verb(reader, &given));
    reader.directories = here;
    done
}

fn obscure(words: impl std::fmt::Display) -> EventError {
    EventError::Obscure(format!("git {words}"))
}

/// Refuses settings that could give a harmless subcommand another meaning.
fn settings(given: &Given) -> Result<(), EventError> {
    if given.has("config-env exec-path") && !given.words.is_empty() {
        return Err(EventError::Setting("git --config-env".to_owned()));
    }
    for set in given.values("c") {
        let (name, value) = set.text.split_once('=').unwrap_or((&set.text, ""));
        let name = name.to_lowercase();
        let idle = name == "core.pager" && IDLE.contains(&value);
        let shows = |own: &str| match own.strip_suffix('.') {
            Some(_) => name.starts_with(own),
            None => name == own,
        };
        if name.contains('$') || !(idle || SHOWING.split_whitespace().any(shows)) {
            return Err(EventError::Setting(format!("git -c {}", short(&set.text))));
        }
    }
    Ok(())
}

fn verb(reader: &mut Reader, given: &Given) -> Result<(), EventError> {
    let Some((verb, rest)) = given.words.split_first() else {
        return Ok(());
    };
    if verb.computed {
        return Err(EventError::Program(short(&verb.text)));
    }
    let name = verb.text.as_str();
    let elsewhere = given.has("git-dir work-tree");
    if elsewhere && !is_among(name, HARMLESS) {
        return Err(obscure(format!("{name} with another directory of git")));
    }
    let long = |names: &[&str]| {
        let is = |word: &Word| names.iter().any(|name| word.text == *name);
        rest.iter().take_while(|word| word.text != "--").any(is)
    };
    match name {
        "commit" | "push" | "merge" if is_asked(rest, "--no-verify") => {
            Err(EventError::Guard(format!("git {name} --no-verify")))
        }
        "commit" if long(&["--all"]) || short_flags(rest, "CcFmtuS").contains('a') => {
            Err(obscure("commit -a"))
        }
        "commit" if short_flags(rest, "CcFmtuS").contains('n') => {
            Err(EventError::Guard("git commit -n".to_owned()))
        }
        name if is_among(name, HARMLESS) => {
            if let Some(word) = rest.iter().find(|word| runs_another(&word.text)) {
                return Err(obscure(format!("{name} {}", short(&word.text))));
            }
            output(reader, rest)
        }
        "rm" if long(&["--cached", "-n", "--dry-run"]) => Ok(()),
        "mv" if long(&["-n", "--dry-run"]) => Ok(()),
        "rm" | "mv" => named(reader, name, rest),
        "restore" if long(&["--staged", "-S"]) && !is_asked(rest, "--worktree") => Ok(()),
        "restore" => {
            let given = Given::read(rest, "sU", "source conflict", Order::Mixed);
            plainly(reader, name, &given.words)
        }
        "checkout" | "switch" => checkout(reader, name, rest),
        "reset" if rest.iter().all(|word| leaves_files(&word.text)) => Ok(()),
        "clean" if long(&["-n", "--dry-run", "-nd", "-dn", "-ndx", "-ndX"]) => Ok(()),
        "apply"
            if long(&["--check", "--stat", "--numstat", "--summary"])
                && !is_asked(rest, "--apply") =>
        {
            Ok(())
        }
        "stash" | "worktree" | "submodule" | "bisect" | "lfs" | "sparse-checkout" | "bundle" => {
            parted(reader, name, rest)
        }
        "config" => config(rest),
        "archive" | "format-patch" => packed(reader, name, rest),
        "clone" | "init" => {
            let given = Given::read(rest, "bocuj", "branch origin depth", Order::Mixed);
            let at = usize::from(name == "clone");
            reader.add(given.words.get(at).unwrap_or(&Word::plain(".")))
        }
        "--version" | "--help" => Ok(()),
        _ => Err(obscure(short(name))),
    }
}

/// Whether the option `full` is among `words`, in full or shortened.
fn is_asked(words: &[Word], full: &str) -> bool {
    let mut options = words.iter().take_while(|word| word.text != "--");
    options.any(|word| word.text.len() > 4 && full.starts_with(&word.text))
        || full == "--worktree" && short_flags(words, "sU").contains('W')
}

/// Whether an option makes git run another program.
fn runs_another(word: &str) -> bool {
    let options = [
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--open-files-in-pager",
    ];
    let name = word.split('=').next().unwrap_or_default();
    let long = name.len() > 5 && options.iter().any(|full| full.starts_with(name));
    long || word.starts_with("-O") || word.starts_with("ext::")
}

/// Whether a word of `git reset` leaves the files unchanged: a path, a commit, or such an option.
fn leaves_files(word: &str) -> bool {
    const OPTIONS: &str = "-- --soft --mixed -q --quiet -N --intent-to-add --no-refresh";
    !word.starts_with('-') || is_among(word, OPTIONS)
}

/// The letters of short options in `words`, without the values of `with_value`.
fn short_flags(words: &[Word], with_value: &str) -> String {
    let mut letters = String::new();
    let mut words = words.iter().take_while(|word| word.text != "--");
    while let Some(word) = words.next() {
        let Some(bundle) = word
            .text
            .strip_prefix('-')
            .filter(|it| !it.starts_with('-'))
        else {
            continue;
        };
        for (at, letter) in bundle.char_indices() {
            letters.push(letter);
            if with_value.contains(letter) {
                // The value is the rest of the word, or the next one; `-u` and `-S` take none of
                // it.
                if at + 1 == bundle.len() && !"uS".contains(letter) {
                    words.next();
                }
                break;
            }
        }
    }
    letters
}

/// `--output` of commands that show something.
fn output(reader: &mut Reader, rest: &[Word]) -> Result<(), EventError> {
    let before = rest.iter().take_while(|word| word.text != "--");
    let words: Vec<Word> = before.cloned().collect();
    let given = Given::read(&words, "", "output", Order::Mixed);
    // `--output-indicator-new` and similar are other options.
    reader.add_all(given.values("output"))
}

/// Adds the named paths; a pathspec pattern is no name.
fn plainly(reader: &mut Reader, verb: &str, words: &[Word]) -> Result<(), EventError> {
    let is_pattern = |word: &&Word| word.text.starts_with(':') || word.text.contains(['*', '?']);
    if words.is_empty() || words.iter().any(|word| is_pattern(&word)) {
        return Err(obscure(verb));
    }
    reader.add_all(words)
}

fn named(reader: &mut Reader, verb: &str, rest: &[Word]) -> Result<(), EventError> {
    let given = Given::read(rest, "", "", Order::Mixed);
    if given.has("pathspec-from-file") {
        return Err(obscure(verb));
    }
    plainly(reader, verb, &given.words)?;
    if verb == "mv" {
        destination(reader, &given.words)
    } else {
        Ok(())
    }
}

/// A new branch is harmless, and files after `--` are named; anything else is obscure.
fn checkout(reader: &mut Reader, verb: &str, rest: &[Word]) -> Result<(), EventError> {
    let words: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    if let ("checkout", ["-b", _]) | ("switch", ["-c" | "--create", _]) = (verb, words.as_slice()) {
        return Ok(());
    }
    match words.iter().position(|word| *word == "--") {
        Some(at) if verb == "checkout" => plainly(reader, verb, &rest[at + 1..]),
        _ => Err(obscure(verb)),
    }
}

/// Subcommands whose second word decides.
fn parted(reader: &mut Reader, verb: &str, rest: &[Word]) -> Result<(), EventError> {
    let second = rest.first().map(|word| word.text.as_str());
    let second = second.unwrap_or_default();
    let reads: &[&str] = match verb {
        "stash" => &["list", "show"],
        "worktree" | "sparse-checkout" => &["list"],
        "submodule" => &["", "status", "summary"],
        "bisect" => &["log", "view"],
        "lfs" => &["env", "ls-files", "status", "version"],
        "bundle" => &["verify", "list-heads"],
        _ => &[],
    };
    match (verb, second) {
        _ if reads.contains(&second) => Ok(()),
        ("bundle", "create") => reader.add_all(rest.get(1)),
        ("worktree", "add") => {
            let given = Given::read(&rest[1..], "bB", "reason", Order::Mixed);
            reader.add_all(given.words.first())
        }
        _ => Err(obscure(format!("{verb} {}", short(second)).trim_end())),
    }
}

/// Reading settings is harmless, and so is setting the name to commit under.
fn config(rest: &[Word]) -> Result<(), EventError> {
    let longs = "file blob type default value comment";
    let given = Given::read(rest, "f", longs, Order::Mixed);
    let words: Vec<&str> = given.words.iter().map(|word| word.text.as_str()).collect();
    let changes = "unset unset-all add replace-all edit e remove-section rename-section";
    let reads = "get get-all get-regexp get-urlmatch get-color list l";
    if given.has(changes) || given.words.iter().any(|word| word.computed) {
        return Err(EventError::Guard("git config".to_owned()));
    }
    match words.as_slice() {
        _ if given.has(reads) => Ok(()),
        // With one more word, `get` would be a setting that is written.
        [] | [_] | ["get", _] => Ok(()),
        ["user.name" | "user.email", _] if !given.has("global system f file") => Ok(()),
        _ => Err(EventError::Guard("git config".to_owned())),
    }
}

/// Files that are made from commits.
fn packed(reader: &mut Reader, verb: &str, rest: &[Word]) -> Result<(), EventError> {
    let given = Given::read(rest, "ov", "output output-directory prefix", Order::Mixed);
    let mut targets = given.values("o output output-directory").peekable();
    if targets.peek().is_none() && verb == "format-patch" && !given.has("stdout") {
        return reader.add(&Word::plain("."));
    }
    reader.add_all(&targets.cloned().collect::<Vec<_>>())
}
