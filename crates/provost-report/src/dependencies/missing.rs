//! Finds in what a failed command printed which dependency its sandbox lacked, and which line of
//! `provost.toml` would help.
//!
//! # Invariants
//!
//! - Code under test prints what it likes. A name from its output is shown as a name; the step that
//!   is proposed comes from the table, and a place of the network is never taken from text.

use std::collections::BTreeSet;

use provost_core::path::RepoPath;
use provost_core::prepare::Step;
use serde::Serialize;

use super::recipes::{self, Ecosystem, Family, PrepareRow, ProjectFiles};

/// Something that a sandbox lacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    Program(String),
    /// A package of a language.
    Package(Family, String),
    /// Packages of a language whose names were not printed.
    Packages(Family),
    /// The network, for a command that asked for it.
    Network,
}

/// What would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What is missing and what to do, in one sentence.
    pub what: String,
    /// The lines to add to `provost.toml`, if such lines would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<String>,
}

/// Text before and after a name, and what it says that is missing.
type Sign = (&'static str, &'static str, fn(String) -> Lack);

const SIGNS: &[Sign] = &[
    ("No module named '", "'", python),
    ("No module named ", "", python),
    ("Cannot find module '", "'", node),
    ("Cannot find package '", "'", node),
    ("Could not resolve: \"", "\"", node),
    ("error Command \"", "\" not found", Lack::Program),
    ("Couldn't find a script named \"", "\"", Lack::Program),
    ("no matching package named `", "`", rust),
    ("error: failed to download `", "`", rust),
    ("error: failed to get `", "`", rust),
    ("cannot find module providing package ", "", go),
    ("no required module provides package ", "", go),
    ("No cached version of ", " available for offline mode", java),
    ("env: '", "': No such file or directory", Lack::Program),
    (
        "env: \u{2018}",
        "\u{2019}: No such file or directory",
        Lack::Program,
    ),
];

/// Words of tools that got no packages, without the name of one.
const PHRASES: &[(&str, Lack)] = &[
    ("but --offline was specified", Lack::Packages(Family::Rust)),
    ("index.crates.io", Lack::Packages(Family::Rust)),
    ("static.crates.io", Lack::Packages(Family::Rust)),
    (
        "module lookup disabled by GOPROXY=off",
        Lack::Packages(Family::Go),
    ),
    ("proxy.golang.org", Lack::Packages(Family::Go)),
    (
        "Could not resolve dependencies for project",
        Lack::Packages(Family::Java),
    ),
    ("Could not transfer artifact", Lack::Packages(Family::Java)),
    ("PluginResolutionException", Lack::Packages(Family::Java)),
    (
        "Could not resolve all files for configuration",
        Lack::Packages(Family::Java),
    ),
    ("node_modules missing", Lack::Packages(Family::Node)),
    (
        "doesn't seem to have been installed",
        Lack::Packages(Family::Node),
    ),
    ("registry.npmjs.org", Lack::Packages(Family::Node)),
    ("registry.yarnpkg.com", Lack::Packages(Family::Node)),
    (
        "No matching distribution found",
        Lack::Packages(Family::Python),
    ),
    ("pypi.org", Lack::Packages(Family::Python)),
    ("Could not resolve host", Lack::Network),
    ("Temporary failure in name resolution", Lack::Network),
    ("Name or service not known", Lack::Network),
    ("getaddrinfo EAI_AGAIN", Lack::Network),
    ("getaddrinfo ENOTFOUND", Lack::Network),
];

/// Programs that packages of a language bring.
const PROGRAMS: &[(Family, &[&str])] = &[
    (
        Family::Python,
        &[
            "pytest",
            "py.test",
            "tox",
            "nox",
            "flake8",
            "mypy",
            "ruff",
            "black",
            "isort",
            "pylint",
            "coverage",
            "hypothesis",
            "trial",
            "pyright",
            "stestr",
            "nose2",
            "sphinx-build",
        ],
    ),
    (
        Family::Node,
        &[
            "jest",
            "mocha",
            "vitest",
            "ava",
            "tap",
            "tape",
            "tsc",
            "ts-node",
            "tsx",
            "eslint",
            "prettier",
            "c8",
            "nyc",
            "karma",
            "webpack",
            "vite",
            "rollup",
            "esbuild",
            "turbo",
            "nx",
            "lerna",
            "jasmine",
            "xo",
            "standard",
            "swc",
            "babel",
            "playwright",
            "cypress",
            "uvu",
        ],
    ),
];

/// The longest name that is shown.
const LONGEST: usize = 120;

fn python(name: String) -> Lack {
    Lack::Package(Family::Python, name)
}

fn node(name: String) -> Lack {
    Lack::Package(Family::Node, name)
}

fn rust(name: String) -> Lack {
    Lack::Package(Family::Rust, name)
}

fn go(name: String) -> Lack {
    Lack::Package(Family::Go, name)
}

fn java(name: String) -> Lack {
    Lack::Package(Family::Java, name)
}

/// What a failed command lacked, by the end of what it printed; `None` if that says nothing of it.
pub fn lack(output: &str) -> Option<Lack> {
    let lines = || output.lines().map(str::trim);
    let named = lines().find_map(|line| of_shell(line).or_else(|| of_signs(line)));
    named.or_else(|| {
        let said = |(words, _): &&(&str, Lack)| lines().any(|line| line.contains(words));
        PHRASES.iter().find(said).map(|(_, lack)| lack.clone())
    })
}

fn of_signs(line: &str) -> Option<Lack> {
    SIGNS.iter().find_map(|(before, after, make)| {
        let (_, rest) = line.split_once(before)?;
        let name = if after.is_empty() {
            rest.split([' ', ';', ':', ',', '\'', '"']).next()?
        } else {
            rest.split_once(after)?.0
        };
        // Cargo names a crate with its version.
        let name = name.split(' ').next()?;
        let lack = make(plain(name)?);
        is_package(&lack).then_some(lack)
    })
}

/// The program that a shell, `make` or the sandbox did not find.
fn of_shell(line: &str) -> Option<Lack> {
    let words = [": command not found", ": not found"];
    let before = words.iter().find_map(|words| line.strip_suffix(words));
    let by_make = || {
        line.strip_suffix(": No such file or directory")?
            .strip_prefix("make: ")
    };
    let name = before.or_else(by_make)?.rsplit(": ").next()?;
    // A path is a file of the project; only a bare name is looked for along PATH.
    let name = plain(name).filter(|name| !name.contains('/'))?;
    Some(Lack::Program(name))
}

/// A name as package managers permit it, and nothing else.
fn plain(name: &str) -> Option<String> {
    let letter = |it: char| it.is_ascii_alphanumeric() || "_-.@/:+".contains(it);
    let fits = !name.is_empty() && name.len() <= LONGEST && name.chars().all(letter);
    fits.then(|| name.trim_end_matches(['.', ':']).to_owned())
}

/// Whether it can be a package, and not a file of the project or a part of the language.
fn is_package(lack: &Lack) -> bool {
    match lack {
        Lack::Package(Family::Node, name) => {
            !name.starts_with(['.', '/']) && !name.starts_with("node:")
        }
        Lack::Package(_, name) | Lack::Program(name) => !name.starts_with(['.', '/']),
        Lack::Packages(_) | Lack::Network => true,
    }
}

/// What would help against `lack` in a project with these files whose policy has these steps.
pub fn advice(lack: &Lack, files: &ProjectFiles, steps: &[Step]) -> Option<Advice> {
    let rows = recipes::all(files, &|_| true);
    let (family, what) = match lack {
        Lack::Network => return Some(network(&rows, steps)),
        Lack::Packages(family) => (*family, "the packages of the project".to_owned()),
        Lack::Package(family, name) => (*family, format!("`{name}`")),
        Lack::Program(name) => (of_program(name, &rows)?, format!("`{name}`")),
    };
    let row = rows
        .into_iter()
        .find(|row| row.ecosystem.family() == family);
    let made = |step: &&Step| row.as_ref().is_some_and(|row| makes(step, row));
    Some(match (steps.iter().find(made), row) {
        (Some(step), _) => {
            let inputs: Vec<&str> = step.inputs.iter().map(RepoPath::as_str).collect();
            advised(format!(
                "{what} is not in what the step `{}` prepares; name it in {}, and commit that",
                step.name,
                inputs.join(" or ")
            ))
        }
        (None, Some(row)) => Advice {
            what: format!("{what} is not in the sandbox, because dependencies are not prepared"),
            add: Some(row.toml()),
        },
        (None, None) => first_of(family, &what, lack)?,
    })
}

/// What would help a `step` that failed with this output: the whole line of its grants, with the
/// places that the proxy refused, or with those that its packages usually come from.
pub fn grants(output: &str, step: &Step, refused: &BTreeSet<String>) -> Option<String> {
    let mut places: Vec<String> = step.net.iter().map(ToString::to_string).collect();
    let before = places.len();
    let usual = match lack(output) {
        Some(Lack::Package(family, _) | Lack::Packages(family)) => recipes::places(family),
        Some(Lack::Program(_) | Lack::Network) | None => BTreeSet::new(),
    };
    let wanted = if refused.is_empty() { &usual } else { refused };
    places.extend(
        wanted
            .iter()
            .filter(|it| !places.contains(it))
            .cloned()
            .collect::<Vec<_>>(),
    );
    (places.len() > before).then(|| {
        let name = &step.name;
        format!("in provost.toml, write in the step `{name}`: net = {places:?}, and commit that")
    })
}

fn advised(what: String) -> Advice {
    Advice { what, add: None }
}

/// Whether `step` makes what `row` makes.
fn makes(step: &Step, row: &PrepareRow) -> bool {
    let outputs = step.outputs.iter().map(ToString::to_string);
    outputs
        .into_iter()
        .any(|output| row.outputs.contains(&output))
}

/// The advice for a command that asked for a place which no acceptance command may reach.
fn network(rows: &[PrepareRow], steps: &[Step]) -> Advice {
    let row = rows
        .iter()
        .find(|row| !steps.iter().any(|step| makes(step, row)));
    Advice {
        what: "the command asks for the network, and acceptance commands have none; what it \
               downloads has to be prepared"
            .to_owned(),
        add: row.map(PrepareRow::toml),
    }
}

/// The language whose packages bring `program`; that of the only step if it is unknown.
fn of_program(program: &str, rows: &[PrepareRow]) -> Option<Family> {
    let tool = |row: &PrepareRow| row.program == program;
    if rows.iter().any(tool) || matches!(program, "cargo" | "go" | "python3" | "python" | "node") {
        // The tool itself is not on this machine.
        return None;
    }
    let known = PROGRAMS.iter().find(|(_, names)| names.contains(&program));
    let only = match rows {
        [row] if matches!(row.ecosystem.family(), Family::Python | Family::Node) => {
            Some(row.ecosystem.family())
        }
        _ => None,
    };
    known.map(|(family, _)| *family).or(only)
}

/// The advice for a project that names no dependencies of that language yet.
fn first_of(family: Family, what: &str, lack: &Lack) -> Option<Advice> {
    let (file, ecosystem) = match family {
        Family::Python => ("requirements.txt", Ecosystem::Pip),
        Family::Node => ("package.json", Ecosystem::Npm),
        Family::Rust | Family::Go | Family::Java | Family::Other => return None,
    };
    let (Lack::Package(_, name) | Lack::Program(name)) = lack else {
        return None;
    };
    let text = match ecosystem {
        Ecosystem::Npm => "{\"dependencies\": {}}".to_owned(),
        _ => name.clone(),
    };
    let files = ProjectFiles::from([(file.to_owned(), text)]);
    let row = recipes::recipes(ecosystem, &files).into_iter().next()?;
    Some(Advice {
        what: format!("{what} is not in the sandbox; name it in {file}, and have it prepared"),
        add: Some(row.toml()),
    })
}

#[cfg(test)]
mod tests;
