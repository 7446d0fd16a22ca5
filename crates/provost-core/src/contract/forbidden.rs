//! What an agent may not use: programs, and forms of commands.
//!
//! # Invariants
//!
//! - The default list applies to every contract; a contract adds to it and takes nothing away.
//! - A form that only the default list has is recorded; one that the contract lists refuses.

use std::collections::{BTreeMap, BTreeSet};

use super::document::Document;

/// Programs that no sandbox of an agent has a use for.
const PROGRAMS: [&str; 4] = ["sudo", "ssh", "scp", "sftp"];

/// Programs that are of no use without any network.
const NETWORK_PROGRAMS: [&str; 2] = ["curl", "wget"];

/// Forms of commands that are always recorded.
const SHAPES: [&str; 1] = ["rm -rf"];

/// The programs that do not run in the sandbox of an agent under `document`.
pub fn programs(document: &Document, has_network: bool) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = default_programs(has_network);
    names.extend(named_programs(document).map(str::to_owned));
    names
}

/// The programs that do not run in any sandbox of an agent.
pub fn default_programs(has_network: bool) -> BTreeSet<String> {
    let network = NETWORK_PROGRAMS.iter().filter(|_| !has_network);
    let names = PROGRAMS.iter().chain(network);
    names.map(|name| (*name).to_owned()).collect()
}

/// The programs that `document` names itself.
pub fn named_programs(document: &Document) -> impl Iterator<Item = &str> {
    let entries = document.forbidden_actions.iter();
    entries.map(|entry| entry.trim()).filter(|entry| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        !entry.is_empty() && entry.bytes().all(plain) && !entry.starts_with(['.', '-'])
    })
}

/// The forms of commands that are looked for in what an agent reports under `document`.
pub fn shapes(document: &Document) -> Vec<String> {
    let listed = document.forbidden_actions.iter();
    let listed = listed.map(|entry| entry.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut all: Vec<String> = listed.filter(|entry| entry.contains(' ')).collect();
    for shape in SHAPES {
        if !all.iter().any(|known| known == shape) {
            all.push(shape.to_owned());
        }
    }
    all
}

/// The forms in `seen` that `document` lists, and that therefore refuse a run.
pub fn listed<'a>(document: &Document, seen: &'a BTreeMap<String, u64>) -> Vec<&'a str> {
    let spelled = |entry: &String| entry.split_whitespace().collect::<Vec<_>>().join(" ");
    let listed: BTreeSet<String> = document.forbidden_actions.iter().map(spelled).collect();
    let seen = seen.keys().map(String::as_str);
    seen.filter(|shape| listed.contains(*shape)).collect()
}

/// Whether the words of `shape` stand one after the other in `command`. The first is compared by
/// its last path component, and letters of a short option in any order.
pub fn is_seen(shape: &str, command: &str) -> bool {
    let breaks = |letter: char| letter.is_whitespace() || ";&|()<>{}\"'`$=[],".contains(letter);
    let words: Vec<&str> = command
        .split(breaks)
        .filter(|word| !word.is_empty())
        .collect();
    let wanted: Vec<&str> = shape.split_whitespace().collect();
    if wanted.is_empty() {
        return false;
    }
    words.windows(wanted.len()).any(|found| {
        let mut pairs = wanted.iter().zip(found).enumerate();
        pairs.all(|(at, (wanted, found))| is_word(wanted, found, at == 0))
    })
}

fn is_word(wanted: &str, found: &str, is_program: bool) -> bool {
    let found = if is_program {
        found.rsplit('/').next().unwrap_or(found)
    } else {
        found
    };
    if wanted.eq_ignore_ascii_case(found) {
        return true;
    }
    let letters = |word: &str| {
        let letters = word.strip_prefix('-')?;
        let short = !letters.is_empty() && letters.bytes().all(|it| it.is_ascii_alphabetic());
        short.then(|| {
            letters
                .to_ascii_lowercase()
                .chars()
                .collect::<BTreeSet<char>>()
        })
    };
    match (letters(wanted), letters(found)) {
        (Some(wanted), Some(found)) => wanted.is_subset(&found),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_seen_by_words_and_letters_of_options() {
        for seen in [
            "rm -rf build",
            "cd x && rm -fr build",
            "/bin/rm  -rfv /",
            "bash -lc \"rm -Rf build\"",
            "[\"rm\",\"-rf\",\"build\"]",
        ] {
            assert!(is_seen("rm -rf", seen), "{seen}");
        }
        for other in [
            "rm -r build",
            "rm --rf",
            "farm -rf",
            "rm x -rf",
            "rm",
            "",
            "rm -force-rf",
        ] {
            assert!(!is_seen("rm -rf", other), "{other}");
        }
        assert!(is_seen("git push", "git push origin main"));
        assert!(!is_seen("git push", "git commit -m push"));
        assert!(!is_seen("", "anything"));
    }

    #[test]
    fn a_contract_adds_programs_and_forms() {
        let mut document = crate::contract::tests::document();
        assert_eq!(
            programs(&document, true).into_iter().collect::<Vec<_>>(),
            ["scp", "sftp", "ssh", "sudo"]
        );
        assert!(programs(&document, false).contains("curl"));
        assert_eq!(shapes(&document), ["rm -rf"]);
        let words = ["docker", "git  push", "add a dependency", "-x", " make "];
        document.forbidden_actions = words.map(str::to_owned).into();
        let named: Vec<&str> = named_programs(&document).collect();
        assert_eq!(named, ["docker", "make"]);
        assert_eq!(
            shapes(&document),
            ["git push", "add a dependency", "rm -rf"]
        );
        let seen = BTreeMap::from([("git push".to_owned(), 1), ("rm -rf".to_owned(), 2)]);
        assert_eq!(listed(&document, &seen), ["git push"]);
    }
}
