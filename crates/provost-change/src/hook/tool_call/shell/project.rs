//! Says what the tools of projects write: formatters, and what changes the list of dependencies.

use super::Reader;
use super::options::{Given, Order, is_among};
use super::token::Word;
use crate::hook::tool_call::EventError;

/// What a call writes.
#[derive(Clone, Copy)]
enum Writes {
    /// Files of these names, where it is called.
    Files(&'static [&'static str]),
    /// The words after the verb, or all below this directory without any.
    Words,
    /// Files that the line does not name.
    Obscure,
}

/// Calls of one program that write.
struct Row {
    program: &'static str,
    /// The first words; empty if any call writes.
    verbs: &'static [&'static str],
    /// Without one of these options the call does not write, if there are any.
    only: &'static str,
    writes: Writes,
}

const fn row(program: &'static str, verbs: &'static [&'static str], writes: Writes) -> Row {
    Row {
        program,
        verbs,
        only: "",
        writes,
    }
}

const CARGO: Writes = Writes::Files(&["Cargo.toml", "Cargo.lock"]);
const GO: Writes = Writes::Files(&["go.mod", "go.sum"]);
const NPM: Writes = Writes::Files(&["package.json", "package-lock.json"]);
const PNPM: Writes = Writes::Files(&["package.json", "pnpm-lock.yaml"]);
const YARN: Writes = Writes::Files(&["package.json", "yarn.lock"]);
const BUN: Writes = Writes::Files(&["package.json", "bun.lock", "bun.lockb"]);
const UV: Writes = Writes::Files(&["pyproject.toml", "uv.lock"]);
const POETRY: Writes = Writes::Files(&["pyproject.toml", "poetry.lock"]);

const ROWS: &[Row] = &[
    row(
        "cargo",
        &["fmt", "fix", "insta accept", "insta review"],
        Writes::Obscure,
    ),
    Row {
        only: "fix",
        ..row("cargo", &["clippy"], Writes::Obscure)
    },
    row(
        "cargo",
        &["add", "remove", "rm", "upgrade", "set-version", "sort"],
        CARGO,
    ),
    row(
        "cargo",
        &["update", "generate-lockfile"],
        Writes::Files(&["Cargo.lock"]),
    ),
    row("cargo", &["vendor"], Writes::Files(&["vendor"])),
    row("cargo", &["new", "init"], Writes::Words),
    row("go", &["fmt"], Writes::Words),
    row("go", &["fix", "generate"], Writes::Obscure),
    row("go", &["get", "mod tidy", "mod edit", "mod init"], GO),
    row(
        "go",
        &["mod vendor"],
        Writes::Files(&["go.mod", "go.sum", "vendor"]),
    ),
    row("go", &["work"], Writes::Files(&["go.work", "go.work.sum"])),
    row(
        "npm",
        &[
            "install",
            "i",
            "in",
            "add",
            "uninstall",
            "rm",
            "un",
            "update",
            "up",
        ],
        NPM,
    ),
    row(
        "npm",
        &[
            "audit fix",
            "dedupe",
            "init",
            "pkg",
            "version",
            "link",
            "shrinkwrap",
        ],
        NPM,
    ),
    row(
        "pnpm",
        &[
            "install", "i", "add", "remove", "rm", "update", "up", "init", "dedupe",
        ],
        PNPM,
    ),
    row(
        "yarn",
        &[
            "add", "remove", "up", "upgrade", "init", "install", "version", "dedupe",
        ],
        YARN,
    ),
    row(
        "bun",
        &["add", "remove", "rm", "install", "i", "update", "init"],
        BUN,
    ),
    row("uv", &["add", "remove", "lock", "sync", "version"], UV),
    row("uv", &["format", "init"], Writes::Obscure),
    row(
        "poetry",
        &[
            "add", "remove", "lock", "update", "install", "version", "init",
        ],
        POETRY,
    ),
    row(
        "pdm",
        &["add", "remove", "lock", "update"],
        Writes::Files(&["pyproject.toml", "pdm.lock"]),
    ),
    row(
        "bundle",
        &["add", "update", "lock"],
        Writes::Files(&["Gemfile", "Gemfile.lock"]),
    ),
    row(
        "composer",
        &["require", "remove", "update"],
        Writes::Files(&["composer.json", "composer.lock"]),
    ),
    row("terraform", &["fmt"], Writes::Words),
    row("tofu", &["fmt"], Writes::Words),
    row("deno", &["fmt"], Writes::Words),
    row("dart", &["format"], Writes::Words),
    row("zig", &["fmt"], Writes::Words),
    row("taplo", &["fmt", "format"], Writes::Words),
    row("dprint", &["fmt"], Writes::Obscure),
    row("mix", &["format"], Writes::Obscure),
    row("php-cs-fixer", &["fix"], Writes::Words),
    row("dotnet", &["format"], Writes::Obscure),
    row("pre-commit", &["run"], Writes::Obscure),
    row("lint-staged", &[], Writes::Obscure),
    row("pyupgrade", &[], Writes::Words),
    row("stylua", &[], Writes::Words),
    row("swiftformat", &[], Writes::Words),
    row("nixfmt", &[], Writes::Words),
    row("buildifier", &[], Writes::Words),
    Row {
        only: "write fix apply apply-unsafe",
        ..row("biome", &["format", "check", "lint"], Writes::Words)
    },
    Row {
        only: "w write",
        ..row("buf", &["format"], Writes::Words)
    },
    Row {
        only: "F format",
        ..row("ktlint", &[], Writes::Words)
    },
    Row {
        only: "fix",
        ..row("stylelint", &[], Writes::Words)
    },
    Row {
        only: "fix",
        ..row("standard", &[], Writes::Words)
    },
    Row {
        only: "fix",
        ..row("oxlint", &[], Writes::Words)
    },
    Row {
        only: "a A x autocorrect autocorrect-all fix-layout",
        ..row("rubocop", &[], Writes::Words)
    },
];

/// With one of these, a call only says what it would do.
const READS: &str = "check diff dry-run help version lint list";

/// Reads a call of the program `name`, if this module knows it.
pub(super) fn run(reader: &mut Reader, name: &str, arguments: &[Word]) -> Result<bool, EventError> {
    let mut rows = ROWS.iter().filter(|row| row.program == name).peekable();
    if rows.peek().is_none() {
        return Ok(false);
    }
    // A build runs programs of the project.
    reader.call.is_open = true;
    if name == "go" {
        outputs(reader, arguments)?;
    }
    let longs = "color config features manifest-path package prefix project";
    let given = Given::read(arguments, "", longs, Order::Mixed);
    // `cargo +nightly fmt` is called with another version of itself.
    let is_own = |word: &&Word| !word.text.starts_with('+');
    let words: Vec<&Word> = given.words.iter().filter(is_own).collect();
    let reads = |word: &Word| {
        word.text
            .strip_prefix("--")
            .is_some_and(|it| is_among(it, READS))
    };
    if arguments.iter().any(reads) {
        return Ok(true);
    }
    if let Some(verb) = words.first().filter(|word| word.computed) {
        return Err(EventError::Program(super::short(&verb.text)));
    }
    for row in rows.filter(|row| row.only.is_empty() || given.has(row.only)) {
        let Some(count) = row.begins(&words) else {
            continue;
        };
        match row.writes {
            Writes::Files(names) => {
                let names: Vec<Word> = names.iter().map(|name| Word::plain(*name)).collect();
                reader.add_all(&names)?;
            }
            Writes::Words if words.len() == count => reader.add(&Word::plain("."))?,
            Writes::Words => {
                let below = |word: &&Word| word.with(word.text.trim_end_matches("/..."));
                let words: Vec<Word> = words[count..].iter().map(below).collect();
                reader.add_all(&words)?;
            }
            Writes::Obscure => {
                let verb = words.first().map_or("", |word| word.text.as_str());
                let call = format!("{name} {verb}").trim_end().to_owned();
                return Err(EventError::Obscure(call));
            }
        }
    }
    Ok(true)
}

impl Row {
    /// How many of `words` are the verb, if this row is about it.
    fn begins(&self, words: &[&Word]) -> Option<usize> {
        if self.verbs.is_empty() {
            return Some(0);
        }
        let is_it = |verb: &&&str| {
            let mut at = words.iter();
            verb.split(' ')
                .all(|part| at.next().is_some_and(|word| word.text == part))
        };
        let verb = self.verbs.iter().find(is_it)?;
        Some(verb.split(' ').count())
    }
}

/// What `go build -o` and the profiles of `go test` write.
fn outputs(reader: &mut Reader, arguments: &[Word]) -> Result<(), EventError> {
    const INTO: &str = "\
        -o -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace";
    for (at, word) in arguments.iter().enumerate() {
        match word.text.split_once('=') {
            Some((name, value)) if is_among(name, INTO) => reader.add(&word.with(value))?,
            None if is_among(&word.text, INTO) => reader.add_all(arguments.get(at + 1))?,
            _ => {}
        }
    }
    Ok(())
}
