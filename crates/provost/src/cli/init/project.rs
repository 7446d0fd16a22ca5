//! Knows a project by the files at its root, and how such a project is usually tested.

use std::path::Path;

/// How a project is tested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Project {
    /// What kind it is, in one word.
    pub(super) kind: &'static str,
    /// The file it was known by.
    pub(super) file: Option<&'static str>,
    /// The command that usually tests it.
    pub(super) accept: Option<&'static str>,
}

/// The files that tell, in the order in which they are believed: a project that has a build of its
/// own beside a Makefile is tested by that.
const KNOWN: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "rust", "cargo test"),
    ("go.mod", "go", "go test ./..."),
    ("pom.xml", "maven", "mvn test"),
    ("package.json", "node", "npm test"),
    ("pytest.ini", "python", "pytest"),
    ("pyproject.toml", "python", "pytest"),
    ("setup.cfg", "python", "pytest"),
    ("Makefile", "make", "make test"),
];

/// Finds out what kind of project lies in `root`.
pub(super) fn recognise(root: &Path) -> Project {
    let known = KNOWN.iter().find(|(file, _, _)| root.join(file).is_file());
    match known {
        Some((file, kind, accept)) => Project {
            kind,
            file: Some(file),
            accept: Some(accept),
        },
        None => Project {
            kind: "unknown",
            file: None,
            accept: None,
        },
    }
}

/// The name of a file that a first agent may make in `root`.
pub(super) fn free_name(root: &Path) -> String {
    let free = |name: &String| root.join(name).symlink_metadata().is_err();
    let numbered = (2..100).map(|number| format!("HELLO-{number}.md"));
    std::iter::once("HELLO.md".to_owned())
        .chain(numbered)
        .find(free)
        .unwrap_or_else(|| "HELLO.md".to_owned())
}

impl Project {
    /// The command that judges a first run: the project's own, or one that every system has.
    pub(super) fn accept(&self, made: &str) -> String {
        match self.accept {
            Some(command) => command.to_owned(),
            None => format!("test -e {made}"),
        }
    }

    /// What was found out, for a person.
    pub(super) fn words(&self) -> String {
        match (self.file, self.accept) {
            (Some(file), Some(accept)) => {
                format!("{} ({file}), usually tested by `{accept}`", self.kind)
            }
            _ => "of no kind known here; name its test with --accept".to_owned(),
        }
    }

    /// The policy a repository begins with; everything in it is a default.
    pub(super) fn policy(&self) -> String {
        let accept = self.accept.unwrap_or("./run-tests");
        format!("{HEAD}\n# allow = [\"{accept}\"]\nallow = []\n{TAIL}")
    }
}

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
# It works in a box without network and without your home, gets its contract as
# JSON on stdin and at $PROVOST_CONTRACT, and may leave a result at $PROVOST_RESULT.
# [agents.default]
# command = "my-agent --non-interactive"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn every_kind() -> Vec<Project> {
        let of = |(file, kind, accept): &(&'static str, &'static str, &'static str)| Project {
            kind,
            file: Some(file),
            accept: Some(accept),
        };
        let unknown = Project {
            kind: "unknown",
            file: None,
            accept: None,
        };
        KNOWN.iter().map(of).chain([unknown]).collect()
    }

    #[test]
    fn the_first_policy_adds_nothing() {
        for project in every_kind() {
            let config = Config::parse(project.policy().as_bytes()).unwrap();
            assert!(config.commands.is_empty(), "{}", project.kind);
            assert!(config.agents.is_empty(), "{}", project.kind);
            assert!(config.protect.oracle.entries().is_empty());
            assert!(config.protect.governing.entries().is_empty());
        }
    }

    #[test]
    fn every_example_in_the_first_policy_can_be_taken_over() {
        for project in every_kind() {
            let is_example = |line: &str| line.starts_with("# [") || line.contains(" = ");
            let mut text = String::new();
            let policy = project.policy();
            for line in policy.lines() {
                match line.strip_prefix("# ") {
                    Some(example) if is_example(line) => text += &format!("{example}\n"),
                    None if line.ends_with("= []") => {}
                    _ => text += &format!("{line}\n"),
                }
            }
            let config = Config::parse(text.as_bytes()).unwrap();
            assert_eq!(config.commands.len(), 1, "{text}");
            assert!(config.agents.contains_key("default"), "{text}");
            assert_eq!(config.protect.oracle.entries().len(), 1, "{text}");
            assert_eq!(config.protect.governing.entries().len(), 1, "{text}");
        }
    }

    #[test]
    fn a_project_is_known_by_the_files_at_its_root() {
        let cases: [(&[&str], &str, Option<&str>); 7] = [
            (&["Cargo.toml", "Makefile"], "rust", Some("cargo test")),
            (&["package.json"], "node", Some("npm test")),
            (&["setup.cfg"], "python", Some("pytest")),
            (&["go.mod"], "go", Some("go test ./...")),
            (&["pom.xml"], "maven", Some("mvn test")),
            (&["Makefile"], "make", Some("make test")),
            (&["README"], "unknown", None),
        ];
        for (files, kind, accept) in cases {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                std::fs::write(root.path().join(file), "").unwrap();
            }
            let project = recognise(root.path());
            assert_eq!((project.kind, project.accept), (kind, accept), "{files:?}");
        }
    }
}
