//! Recognises by lock files how the dependencies of a project are prepared.

use std::fs;
use std::path::Path;

/// How dependencies are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dependencies {
    /// The file by which it is recognised; it must exist.
    file: &'static str,
    /// Another file that must exist.
    beside: &'static str,
    /// The program that the step needs.
    program: &'static str,
    /// A word that the file contains if it has any dependencies.
    holds: &'static str,
    /// The step, as in the policy.
    pub(super) step: &'static str,
    /// Whether it creates a virtual environment, which may contain `pytest`.
    pub(super) venv: bool,
}

const KNOWN: &[Dependencies] = &[
    Dependencies {
        file: "Cargo.lock",
        beside: "Cargo.toml",
        program: "cargo",
        holds: "registry+",
        step: r#"[[prepare]]
run = "cargo fetch --locked"
inputs = ["Cargo.toml", "Cargo.lock"]
outputs = ["~/.cargo"]
net = ["index.crates.io:443", "static.crates.io:443"]
"#,
        venv: false,
    },
    Dependencies {
        file: "go.sum",
        beside: "go.mod",
        program: "go",
        holds: "",
        step: r#"[[prepare]]
run = "go mod download"
inputs = ["go.mod", "go.sum"]
outputs = ["~/go/pkg/mod"]
net = ["proxy.golang.org:443", "sum.golang.org:443", "storage.googleapis.com:443"]
"#,
        venv: false,
    },
    Dependencies {
        file: "pom.xml",
        beside: "pom.xml",
        program: "mvn",
        holds: "<dependency>",
        // Java reads no environment variable for its proxy.
        step: r#"[[prepare]]
run = "mvn -q -B -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 dependency:go-offline"
inputs = ["pom.xml"]
outputs = ["~/.m2"]
net = ["repo.maven.apache.org:443"]
"#,
        venv: false,
    },
    Dependencies {
        file: "package-lock.json",
        beside: "package.json",
        program: "npm",
        holds: "node_modules/",
        step: r#"[[prepare]]
run = "npm ci"
inputs = ["package.json", "package-lock.json"]
outputs = ["node_modules"]
net = ["registry.npmjs.org:443"]
"#,
        venv: false,
    },
    Dependencies {
        file: "pnpm-lock.yaml",
        beside: "package.json",
        program: "pnpm",
        holds: "packages:",
        step: r#"[[prepare]]
run = "pnpm install --frozen-lockfile"
inputs = ["package.json", "pnpm-lock.yaml"]
outputs = ["node_modules"]
net = ["registry.npmjs.org:443"]
"#,
        venv: false,
    },
    Dependencies {
        file: "uv.lock",
        beside: "pyproject.toml",
        program: "uv",
        holds: "",
        step: r#"[[prepare]]
run = "uv sync --frozen"
inputs = ["pyproject.toml", "uv.lock"]
outputs = [".venv"]
net = ["pypi.org:443", "files.pythonhosted.org:443"]
"#,
        venv: true,
    },
    Dependencies {
        file: "requirements.txt",
        beside: "requirements.txt",
        program: "python3",
        holds: "",
        step: r#"[[prepare]]
run = ["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt"]
inputs = ["requirements.txt"]
outputs = [".venv"]
net = ["pypi.org:443", "files.pythonhosted.org:443"]
"#,
        venv: true,
    },
];

/// The steps that prepare the dependencies of the project in `root`, where `is_there` finds the
/// programs; a project of several kinds has several steps, but one for each output.
pub(super) fn recognise(root: &Path, is_there: &dyn Fn(&str) -> bool) -> Vec<Dependencies> {
    let known = |one: &&Dependencies| {
        let text = fs::read_to_string(root.join(one.file)).unwrap_or_default();
        let has_some = !text.trim().is_empty() && text.contains(one.holds);
        has_some && root.join(one.beside).is_file() && is_there(one.program)
    };
    let mut found: Vec<Dependencies> = Vec::new();
    for one in KNOWN.iter().filter(known) {
        if !found.iter().any(|other| other.output() == one.output()) {
            found.push(*one);
        }
    }
    found
}

impl Dependencies {
    /// The value of a field of the step, as written.
    fn field(&self, name: &str) -> &'static str {
        let mut lines = self.step.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        value.unwrap_or_default()
    }

    fn output(&self) -> &'static str {
        self.field("outputs")
    }

    /// What is run, what it makes, and which places it may reach; for people.
    pub(super) fn words(&self) -> String {
        let list = |name| self.field(name).trim_matches(['[', ']']).replace('"', "");
        format!(
            "{} makes {}, and may reach {}",
            list("run").replace(", ", " and "),
            list("outputs"),
            list("net").replace(":443", "")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_can_be_used_and_takes_at_most_five_lines() {
        for known in KNOWN {
            let config = provost_core::policy::parse(known.step.as_bytes()).unwrap();
            assert_eq!(config.prepare.len(), 1, "{}", known.file);
            assert!(known.step.lines().count() <= 5, "{}", known.file);
        }
    }

    #[test]
    fn dependencies_are_known_by_their_lock_file() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: &[Case<'_>] = &[
            (
                &[("Cargo.toml", ""), ("Cargo.lock", "registry+x")],
                &["Cargo.lock"],
            ),
            (&[("Cargo.toml", ""), ("Cargo.lock", "no others")], &[]),
            (&[("Cargo.lock", "registry+x")], &[]),
            (&[("go.mod", ""), ("go.sum", "x")], &["go.sum"]),
            (&[("pom.xml", "<dependency>")], &["pom.xml"]),
            (
                &[
                    ("package.json", "{}"),
                    ("package-lock.json", "\"node_modules/x\""),
                ],
                &["package-lock.json"],
            ),
            (
                &[("package.json", "{}"), ("pnpm-lock.yaml", "packages:\n")],
                &["pnpm-lock.yaml"],
            ),
            (&[("pyproject.toml", ""), ("uv.lock", "x")], &["uv.lock"]),
            (&[("requirements.txt", "pytest")], &["requirements.txt"]),
            (&[("requirements.txt", "\n")], &[]),
            (&[("README", "")], &[]),
            (
                &[
                    ("Cargo.toml", ""),
                    ("Cargo.lock", "registry+x"),
                    ("package.json", "{}"),
                    ("package-lock.json", "\"node_modules/x\""),
                    ("pnpm-lock.yaml", "packages:\n"),
                    ("requirements.txt", "pytest"),
                ],
                &["Cargo.lock", "package-lock.json", "requirements.txt"],
            ),
        ];
        for (files, want) in cases {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in *files {
                fs::write(root.path().join(name), text).unwrap();
            }
            let found = recognise(root.path(), &|_| true);
            let found: Vec<&str> = found.iter().map(|known| known.file).collect();
            assert_eq!(found, *want, "{files:?}");
            assert_eq!(recognise(root.path(), &|_| false), [], "{files:?}");
        }
    }

    #[test]
    fn a_step_is_described_with_the_places_it_may_reach() {
        let words: Vec<String> = KNOWN.iter().map(Dependencies::words).collect();
        insta::assert_snapshot!(words.join("\n"), @r"
        cargo fetch --locked makes ~/.cargo, and may reach index.crates.io, static.crates.io
        go mod download makes ~/go/pkg/mod, and may reach proxy.golang.org, sum.golang.org, storage.googleapis.com
        mvn -q -B -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 dependency:go-offline makes ~/.m2, and may reach repo.maven.apache.org
        npm ci makes node_modules, and may reach registry.npmjs.org
        pnpm install --frozen-lockfile makes node_modules, and may reach registry.npmjs.org
        uv sync --frozen makes .venv, and may reach pypi.org, files.pythonhosted.org
        python3 -m venv .venv and .venv/bin/pip install -r requirements.txt makes .venv, and may reach pypi.org, files.pythonhosted.org
        ");
    }
}
