//! Recognises a project by the files at its root and the languages of its source files, and how such
//! a project is usually tested.

pub mod dependencies;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Project {
    /// The kind, in one word.
    pub kind: &'static str,
    /// The file by which it was recognised.
    pub file: Option<&'static str>,
    /// The usual test command, if it can be called here.
    pub accept: Option<&'static str>,
    /// Why there is no such command.
    #[serde(skip)]
    lack: Option<&'static str>,
}

/// The files that may identify a kind. Where there are several, the kind with the most source files
/// counts, and of equals the first one here: a build system is preferred to a Makefile beside it.
const KNOWN: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "rust", "cargo test"),
    ("go.mod", "go", "go test ./..."),
    ("pom.xml", "maven", "mvn test"),
    ("package.json", "node", "npm test"),
    ("pytest.ini", "python", PYTEST),
    ("pyproject.toml", "python", PYTEST),
    ("setup.cfg", "python", PYTEST),
    ("setup.py", "python", PYTEST),
    ("requirements.txt", "python", PYTEST),
    ("tests", "python", UNITTEST_DIRECTORY),
    ("Makefile", "make", "make test"),
];

/// The endings of source files of each kind.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("rust", &["rs"]),
    ("go", &["go"]),
    ("maven", &["java", "kt", "scala"]),
    (
        "node",
        &["js", "jsx", "mjs", "cjs", "ts", "tsx", "vue", "svelte"],
    ),
    ("python", &["py", "pyi"]),
];

/// Directories of dependencies and of build output.
const FOREIGN: &[&str] = &["node_modules", "vendor", "target", "venv", "dist", "build"];

/// How many files and directories are looked at.
const MOST_ENTRIES: usize = 20_000;

const PYTEST: &str = "pytest -q";
const UNITTEST: &str = "python3 -m unittest";
/// For tests that are no package: Python does not find those from the top.
const UNITTEST_DIRECTORY: &str = "python3 -m unittest discover -s tests";

/// The most bytes that are read of a file that may identify the test command.
const LARGEST: u64 = 256 * 1024;

/// Recognises the project in `root`, and the command that tests it, where `is_there` finds the
/// programs.
pub fn recognise(root: &Path, is_there: &dyn Fn(&str) -> bool) -> Project {
    let mut known = KNOWN
        .iter()
        .filter(|(file, _, _)| identifies(root, file))
        .collect::<Vec<_>>();
    if known.iter().any(|(_, kind, _)| *kind != known[0].1) {
        let mut sources = BTreeMap::new();
        count_sources(root, &mut sources, &mut MOST_ENTRIES.clone());
        known.sort_by_key(|(_, kind, _)| Reverse(sources.get(kind).copied()));
    }
    let Some((file, kind, usual)) = known.first() else {
        return Project {
            kind: "unknown",
            file: None,
            accept: None,
            lack: None,
        };
    };
    let found = command(root, file, usual).and_then(|accept| {
        let program = accept.split(' ').next().unwrap_or_default();
        if is_there(program) {
            Ok(accept)
        } else {
            Err("the program that usually tests it is not on your PATH")
        }
    });
    Project {
        kind,
        file: Some(file),
        accept: found.ok(),
        lack: found.err(),
    }
}

/// Counts the source files below `directory` by the kind of project they belong to, until `left`
/// entries were seen.
fn count_sources(directory: &Path, sources: &mut BTreeMap<&'static str, usize>, left: &mut usize) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Some(rest) = left.checked_sub(1) else {
            return;
        };
        *left = rest;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Ok(file_type) = entry.file_type() else {
            continue;
        };
        if file_type.is_dir() && !name.starts_with('.') && !FOREIGN.contains(&name.as_ref()) {
            count_sources(&entry.path(), sources, left);
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let kind = LANGUAGES
            .iter()
            .find(|(_, endings)| file_type.is_file() && endings.contains(&ending));
        if let Some((kind, _)) = kind {
            *sources.entry(kind).or_default() += 1;
        }
    }
}

/// Whether `file` makes `root` a project of its kind.
fn identifies(root: &Path, file: &str) -> bool {
    match file {
        "tests" => has_tests(&root.join("tests")),
        file => root.join(file).is_file(),
    }
}

/// The command that tests a project known by `file`, if the project has one.
fn command(root: &Path, file: &str, usual: &'static str) -> Result<&'static str, &'static str> {
    let text = || read(&root.join(file));
    match file {
        "package.json" if !has_test_script(&text()) => Err("its package.json has no script `test`"),
        "Makefile" if !text().lines().any(|line| line.starts_with("test:")) => {
            Err("its Makefile has no target `test`")
        }
        "pytest.ini" => Ok(usual),
        _ if matches!(usual, PYTEST | UNITTEST_DIRECTORY) => python(root),
        _ => Ok(usual),
    }
}

/// pytest if the project mentions it, else the test runner of Python itself.
fn python(root: &Path) -> Result<&'static str, &'static str> {
    let files = [
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "requirements.txt",
        "requirements-dev.txt",
        "dev-requirements.txt",
        "requirements-test.txt",
    ];
    let mentions = |file: &&str| read(&root.join(file)).contains("pytest");
    if files.iter().any(mentions) || root.join("conftest.py").is_file() {
        return Ok(PYTEST);
    }
    let tests = root.join("tests");
    if has_tests(&tests) && !tests.join("__init__.py").is_file() {
        return Ok(UNITTEST_DIRECTORY);
    }
    if has_tests(&tests) || has_tests(root) {
        return Ok(UNITTEST);
    }
    Err("no tests of it were found")
}

/// Whether `directory` holds a file that Python's own test runner takes for tests.
fn has_tests(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(10_000).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_python = Path::new(name.as_ref())
            .extension()
            .is_some_and(|end| end == "py");
        name.starts_with("test_") && is_python
    })
}

fn has_test_script(text: &str) -> bool {
    let parsed = serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    parsed["scripts"]["test"].is_string()
}

/// The text at `path`; empty for anything but a small text file.
fn read(path: &Path) -> String {
    let small = path
        .metadata()
        .is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST);
    if !small {
        return String::new();
    }
    fs::read_to_string(path).unwrap_or_default()
}

/// An unused name in `root` for the file of a first agent.
pub fn free_name(root: &Path) -> String {
    let free = |name: &String| root.join(name).symlink_metadata().is_err();
    let numbered = (2..100).map(|number| format!("HELLO-{number}.md"));
    std::iter::once("HELLO.md".to_owned())
        .chain(numbered)
        .find(free)
        .unwrap_or_else(|| "HELLO.md".to_owned())
}

impl Project {
    /// The command that judges a first run: the project's own, or one that every system has.
    pub fn accept(&self, made: &str) -> String {
        match self.accept {
            Some(command) => command.to_owned(),
            None => format!("test -e {made}"),
        }
    }

    /// The project in words, for people.
    pub fn words(&self) -> String {
        match (self.file, self.accept) {
            (Some(file), Some(accept)) => {
                format!("{} ({file}), usually tested by `{accept}`", self.kind)
            }
            (Some(file), None) => {
                let lack = self.lack.unwrap_or_default();
                format!(
                    "{} ({file}), but {lack}; name its test with --accept",
                    self.kind
                )
            }
            _ => "of an unknown kind; name its test with --accept".to_owned(),
        }
    }
}

/// The policy of a new repository; everything in it is a default, and its example is the command
/// that the first run uses. `steps` prepare the dependencies of the project.
pub fn policy(accept: &str, steps: &str) -> String {
    let policy = format!("{HEAD}\n# allow = [\"{accept}\"]\nallow = []\n{TAIL}");
    if steps.is_empty() {
        return policy;
    }
    format!("{policy}\n{STEPS}\n{steps}")
}

const STEPS: &str = "\
# What the project depends on is made once, in a sandbox that reaches these places only,
# and read by agents and acceptance commands; see `provost explain prepare`.";

const HEAD: &str = r#"# The policy of Provost for this repository.
#
# A run reads it from the commit it starts from, never from a working directory,
# so commit it. An agent can never change it.

[protect]
# Files that decide what "passing" means, beside build files, test settings, lock
# files and CI: an agent changes them only by permission of its contract.
# oracle = ["tests/golden"]
oracle = []
# Files that instruct agents, beside AGENTS.md, CLAUDE.md and the like.
# governing = ["docs/agents"]
governing = []

[commands]
# Acceptance commands that contracts in files may use, beside the usual ones.
# An entry stands for every command that begins with its words."#;

const TAIL: &str = r#"
# An agent by name, for `provost run --agent NAME`; `default` needs no --agent.
# It works in a sandbox without network and without your home, gets its contract as
# JSON on stdin and at $PROVOST_CONTRACT, and may leave a result at $PROVOST_RESULT.
# [agents.default]
# command = "my-agent --non-interactive"

# Who looks at every result before it is tested; see `provost explain review`.
# [review]
# agent = "claude"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: &[&str] = &["cargo test", "test -e HELLO.md", UNITTEST_DIRECTORY];

    #[test]
    fn the_first_policy_adds_nothing() {
        for accept in COMMANDS {
            let text = policy(accept, "");
            let config = provost_core::policy::parse(text.as_bytes()).unwrap();
            assert!(config.commands.is_empty(), "{accept}");
            assert!(config.agents.is_empty(), "{accept}");
            assert!(config.protect.oracle.entries().is_empty());
            assert!(config.protect.governing.entries().is_empty());
        }
    }

    #[test]
    fn every_example_in_the_first_policy_can_be_taken_over() {
        for accept in COMMANDS {
            let is_example = |line: &str| line.starts_with("# [") || line.contains(" = ");
            let mut text = String::new();
            let policy = policy(accept, "");
            for line in policy.lines() {
                match line.strip_prefix("# ") {
                    Some(example) if is_example(line) => text += &format!("{example}\n"),
                    None if line.ends_with("= []") => {}
                    _ => text += &format!("{line}\n"),
                }
            }
            let config = provost_core::policy::parse(text.as_bytes()).unwrap();
            assert_eq!(config.commands.len(), 1, "{text}");
            assert!(config.agents.contains_key("default"), "{text}");
            assert_eq!(config.protect.oracle.entries().len(), 1, "{text}");
            assert_eq!(config.protect.governing.entries().len(), 1, "{text}");
        }
    }

    /// The project that these files make, where every program but `missing` exists.
    fn recognised(files: &[(&str, &str)], missing: &str) -> Project {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        recognise(root.path(), &|program| program != missing)
    }

    /// Files with their text, the kind of project they make, and its test command.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);

    #[test]
    fn a_project_is_known_by_its_files_and_tested_as_it_says() {
        let script = r#"{"scripts": {"test": "node --test"}}"#;
        let cases: &[Case<'_>] = &[
            (
                &[("Cargo.toml", ""), ("Makefile", "test:\n")],
                "rust",
                Some("cargo test"),
            ),
            (&[("package.json", script)], "node", Some("npm test")),
            (&[("package.json", "{}")], "node", None),
            (&[("go.mod", "")], "go", Some("go test ./...")),
            (&[("pom.xml", "")], "maven", Some("mvn test")),
            (
                &[("Makefile", "all:\ntest: all\n")],
                "make",
                Some("make test"),
            ),
            (&[("Makefile", "all:\n")], "make", None),
            (&[("README", "")], "unknown", None),
            (&[("pytest.ini", "")], "python", Some(PYTEST)),
            (&[("setup.cfg", "[tool:pytest]")], "python", Some(PYTEST)),
            (
                &[
                    ("pyproject.toml", ""),
                    ("requirements-dev.txt", "pytest>=8"),
                ],
                "python",
                Some(PYTEST),
            ),
            (&[("pyproject.toml", "")], "python", None),
            (
                &[
                    ("pyproject.toml", ""),
                    ("tests/test_a.py", ""),
                    ("tests/__init__.py", ""),
                ],
                "python",
                Some(UNITTEST),
            ),
            (
                &[("tests/test_a.py", "")],
                "python",
                Some(UNITTEST_DIRECTORY),
            ),
            (&[("tests/test_a.rb", "")], "unknown", None),
        ];
        recognise_all(cases);
    }

    #[test]
    fn a_project_of_two_languages_is_what_most_of_it_is() {
        let script = r#"{"scripts": {"test": "node --test"}}"#;
        recognise_all(&[
            // A web framework in Python, with the tools for its few scripts.
            (
                &[
                    ("package.json", script),
                    ("pyproject.toml", ""),
                    ("web/app.js", ""),
                    ("web/views.py", ""),
                    ("web/models.py", ""),
                    ("tests/test_a.py", ""),
                ],
                "python",
                Some(UNITTEST_DIRECTORY),
            ),
            // A package for node, with one script in Python.
            (
                &[
                    ("package.json", script),
                    ("requirements.txt", ""),
                    ("lib/a.ts", ""),
                    ("lib/b.ts", ""),
                    ("build.py", ""),
                    ("node_modules/gyp/a.py", ""),
                    ("node_modules/gyp/b.py", ""),
                ],
                "node",
                Some("npm test"),
            ),
        ]);
    }

    fn recognise_all(cases: &[Case<'_>]) {
        for (files, kind, accept) in cases {
            let project = recognised(files, "");
            assert_eq!(
                (project.kind, project.accept),
                (*kind, *accept),
                "{files:?}"
            );
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_not_suggested() {
        let project = recognised(&[("pytest.ini", "")], "pytest");
        assert_eq!(project.accept, None);
        assert_eq!(project.accept("HELLO.md"), "test -e HELLO.md");
        insta::assert_snapshot!(
            project.words(),
            @"python (pytest.ini), but the program that usually tests it is not on your PATH; name its test with --accept"
        );
    }
}
