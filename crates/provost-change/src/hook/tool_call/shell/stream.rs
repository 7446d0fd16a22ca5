//! Says what programs write that edit text, copy bytes or change the modes of files.

use super::options::{Given, Order};
use super::program::destination;
use super::token::Word;
use super::{Reader, short};
use crate::hook::tool_call::EventError;

/// Reads a call of the program `name`, if this module knows it.
pub(super) fn run(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<bool, EventError> {
    match name {
        "sed" | "gsed" => sed(reader, arguments)?,
        "perl" | "ruby" => in_place(reader, arguments)?,
        "awk" | "gawk" | "mawk" | "nawk" => awk(reader, arguments)?,
        "dd" => {
            let targets = arguments
                .iter()
                .filter_map(|word| Some(word.with(word.text.strip_prefix("of=")?)));
            reader.add_all(&targets.collect::<Vec<_>>())?;
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => rights(reader, name, arguments)?,
        "rsync" | "scp" => copy(reader, name, arguments)?,
        "split" | "csplit" => pieces(reader, name, arguments)?,
        "openssl" => {
            let pairs = arguments.windows(2);
            let outs = pairs.filter(|pair| matches!(pair[0].text.as_str(), "-out" | "-keyout"));
            reader.add_all(outs.map(|pair| &pair[1]))?;
        }
        "ruff" => ruff(reader, arguments)?,
        "patch" => patch(reader, arguments)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn sed(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "expression file line-length";
    // The text after `-i` in its word is the suffix of a backup.
    let given = Given::read(arguments, "eflI", longs, Order::Mixed);
    let edits = |word: &Word| {
        let text = word.text.as_str();
        let letters = text.strip_prefix('-').filter(|_| !text.starts_with("--"));
        let before = letters.map(|it| it.split(['e', 'f', 'l']).next().unwrap_or_default());
        let name = text.split('=').next().unwrap_or_default();
        let long = name.len() > 3 && "--in-place".starts_with(name);
        long || before.is_some_and(|it| it.contains(['i', 'I']))
    };
    let names = "e expression";
    let files = "f file";
    let has_script = given.has(names) || given.has(files);
    let first = given.words.first().filter(|_| !has_script);
    for script in given.values(names).chain(first) {
        if runs_by_sed(&script.text) {
            return Err(EventError::Program(
                "a command that sed runs by `e`".to_owned(),
            ));
        }
        for target in written_by_sed(&script.text) {
            reader.add(&Word::plain(target))?;
        }
    }
    if arguments.iter().any(edits) {
        reader.add_all(given.words.iter().skip(usize::from(!has_script)))?;
    }
    Ok(())
}

/// The files that the commands `w` and `W`, and the flag `w`, name in a script of sed.
fn written_by_sed(script: &str) -> Vec<&str> {
    const FLAGS: &str = "gpIiMme0123456789";
    let mut found = Vec::new();
    for (at, _) in script.match_indices(['w', 'W']) {
        let after = &script[at + 1..];
        let before = script[..at].trim_end_matches(|it| FLAGS.contains(it));
        let is_command = before
            .chars()
            .next_back()
            .is_none_or(|it| !it.is_alphanumeric() && !"_-.".contains(it));
        // Without a blank, `w` counts only where a command surely begins.
        let begins = script[..at].is_empty() || script[..at].ends_with(['\n', ';', '{', '}']);
        if is_command && (begins || after.starts_with([' ', '\t'])) {
            let name = after.lines().next().unwrap_or_default().trim();
            found.extend((!name.is_empty()).then_some(name));
        }
    }
    found
}

/// Whether the command `e`, or the flag `e` of `s`, stands in a script of sed.
fn runs_by_sed(script: &str) -> bool {
    let is_address = |letter: char| letter.is_ascii_digit() || ",$!~+ \t{".contains(letter);
    script.split(['\n', ';']).any(|command| {
        let mut command = command.trim_start_matches(is_address);
        if let Some(pattern) = command.strip_prefix('/') {
            let end = pattern.find('/').map_or("", |at| &pattern[at + 1..]);
            command = end.trim_start_matches(is_address);
        }
        let mut letters = command.chars();
        match (letters.next(), letters.next()) {
            (Some('e'), None | Some(' ' | '\t')) => true,
            (Some('s'), Some(end)) if !end.is_alphanumeric() && end != '\\' => {
                let flags = letters.as_str().rsplit(end).next().unwrap_or_default();
                let parts = letters.as_str().matches(end).count();
                let own = flags.chars().take_while(char::is_ascii_alphanumeric);
                parts >= 2 && own.take_while(|flag| *flag != 'w').any(|flag| flag == 'e')
            }
            _ => false,
        }
    })
}

/// Interpreters that edit files by `-i`.
fn in_place(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let is_asked = |word: &Word| {
        let Some(letters) = word.text.strip_prefix('-') else {
            return false;
        };
        // The rest of a word belongs to these.
        let own = letters
            .split(['e', 'E', 'I', 'M', 'm', 'r', 'F', 'x', '-'])
            .next();
        own.unwrap_or_default().contains('i')
    };
    let given = Given::read(arguments, "eEI", "", Order::Mixed);
    // Its script may do anything.
    reader.call.is_open = true;
    let options = arguments.iter().take_while(|word| word.text != "--");
    if !options.into_iter().any(is_asked) {
        return Ok(());
    }
    let has_script = given.has("e E") || arguments.iter().any(ends_in_script);
    reader.add_all(given.words.iter().skip(usize::from(!has_script)))
}

/// Whether a bundle such as `-pie` or `-i.bak` ends with the option for a script.
fn ends_in_script(word: &Word) -> bool {
    word.text.starts_with('-') && word.text.len() > 1 && word.text.ends_with(['e', 'E'])
}

fn awk(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "field-separator file assign include source";
    let given = Given::read(arguments, "Ffvieblod", longs, Order::First);
    let mut words = given.words.as_slice();
    let scripts: Vec<&Word> = given.values("e source").collect();
    for script in &scripts {
        program_of_awk(reader, script)?;
    }
    if scripts.is_empty() && !given.has("f file") {
        let Some((script, rest)) = words.split_first() else {
            return Ok(());
        };
        words = rest;
        program_of_awk(reader, script)?;
    }
    let is_inplace = |word: &Word| word.text.starts_with("inplace");
    if given.values("i include").any(is_inplace) {
        reader.add_all(words)?;
    }
    Ok(())
}

/// What `print > "file"`, `system(…)` and pipes in a program of awk do.
fn program_of_awk(reader: &mut Reader, script: &Word) -> Result<(), EventError> {
    let text = script.text.as_str();
    let runs = ["system(", "| \"", "|\"", "| getline", "|getline"];
    if runs.iter().any(|run| text.contains(run)) {
        return Err(EventError::Program(short(text)));
    }
    for (at, _) in text.match_indices("print") {
        let statement = text[at..]
            .split([';', '}', '\n'])
            .next()
            .unwrap_or_default();
        let Some((_, target)) = statement.split_once('>') else {
            continue;
        };
        let target = target.trim_start_matches('>').trim();
        let literal = target
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|name| !name.contains('"'));
        match literal {
            Some(name) => reader.add(&Word::plain(name))?,
            None => return Err(EventError::Target(short(target))),
        }
    }
    Ok(())
}

/// The first word gives the mode, even if it looks like an option.
fn rights(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<(), EventError> {
    let own = match name {
        "chmod" => "Rvfc",
        "setfacl" => "RbkdLPMmxX",
        _ => "RvfchHLP",
    };
    let is_option = |word: &&Word| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        word.text.starts_with("--") || letters.chars().any(|it| own.contains(it))
    };
    let by_example = arguments
        .iter()
        .any(|word| word.text.starts_with("--reference"));
    let words = arguments.iter().filter(|word| !is_option(word));
    reader.add_all(words.skip(usize::from(!by_example)))
}

/// Copies that may go to another machine.
fn copy(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<(), EventError> {
    let (shorts, longs) = match name {
        "rsync" => (
            "eBfTM",
            "rsh exclude include filter log-file files-from write-batch",
        ),
        _ => ("cDFiJloPSX", ""),
    };
    let given = Given::read(arguments, shorts, longs, Order::Mixed);
    if name == "rsync" && given.has("n dry-run list-only") {
        return Ok(());
    }
    reader.add_all(given.values("log-file write-batch"))?;
    if given.has("remove-source-files") {
        return reader.add_all(&given.words);
    }
    let is_remote = |word: &Word| {
        let colon = word.text.find(':');
        colon.is_some_and(|at| !word.text[..at].contains('/'))
    };
    match given.words.last() {
        Some(last) if given.words.len() < 2 || is_remote(last) => Ok(()),
        // A source that ends with a slash is copied without its directory.
        Some(last) if name == "rsync" => reader.add(last),
        _ => destination(reader, &given.words),
    }
}

/// Files whose names share a prefix.
fn pieces(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<(), EventError> {
    let default = Word::plain("xx");
    let (given, prefix) = if name == "split" {
        let longs = "suffix-length bytes line-bytes lines number filter";
        let given = Given::read(arguments, "abClnt", longs, Order::Mixed);
        let prefix = given.words.get(1).cloned();
        (given, prefix)
    } else {
        let longs = "prefix suffix-format digits";
        let given = Given::read(arguments, "bfn", longs, Order::Mixed);
        let prefix = given.values("f prefix").next().cloned();
        (given, prefix)
    };
    if given.has("filter") {
        return Err(EventError::Obscure("split --filter".to_owned()));
    }
    let prefix = prefix.unwrap_or(default);
    reader.add(&prefix.with(format!("{}aa", prefix.text)))
}

fn ruff(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "config line-length select ignore target-version";
    let given = Given::read(arguments, "", longs, Order::Mixed);
    let verb = given.words.first().map(|word| word.text.as_str());
    let writes = match verb {
        Some("format") => !given.has("check diff"),
        _ => given.has("fix fix-only") && !given.has("diff"),
    };
    match given.words.get(1..) {
        Some(files) if writes && !files.is_empty() => reader.add_all(files),
        _ if writes => reader.add(&Word::plain(".")),
        _ => Ok(()),
    }
}

/// A patch names its files itself, unless the line does.
fn patch(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    let longs = "directory input output reject-file strip fuzz";
    let given = Given::read(arguments, "BDdFgioprVYz", longs, Order::Mixed);
    if given.has("dry-run version help v") {
        return Ok(());
    }
    let place = given.values("d directory").next().cloned();
    reader.inside(place.as_ref(), |reader| {
        let outputs: Vec<&Word> = given.values("o output").collect();
        let target = given.words.first();
        if outputs.is_empty() && target.is_none() {
            return Err(EventError::Obscure("patch".to_owned()));
        }
        reader.add_all(given.values("r reject-file"))?;
        reader.add_all(outputs.into_iter().chain(target))
    })
}
