//! Recognises by lock files how the dependencies of a project are prepared.

use std::fs;
use std::path::Path;

use provost_core::json;
use serde::Deserialize;

/// How dependencies are prepared.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Dependencies {
    /// The file by which it is recognised; it must exist.
    file: String,
    /// The file that it belongs to, which must exist too; it may be the same.
    beside: String,
    /// The program that the step needs.
    program: String,
    /// A word that the file contains if it has any dependencies.
    holds: String,
    /// What is run. Java reads no environment variable for its proxy.
    run: Vec<String>,
    output: String,
    net: Vec<String>,
}

fn known() -> Vec<Dependencies> {
    json::parse_as(include_str!("dependencies.json").as_bytes()).unwrap_or_default()
}

/// The steps that prepare the dependencies of the project in `root`, where `is_there` finds the
/// programs; a project of several kinds has several steps, but one for each output.
pub fn recognise(root: &Path, is_there: &dyn Fn(&str) -> bool) -> Vec<Dependencies> {
    let fits = |one: &Dependencies| {
        let text = fs::read_to_string(root.join(&one.file)).unwrap_or_default();
        let has_some = !text.trim().is_empty() && text.contains(&one.holds);
        has_some && root.join(&one.beside).is_file() && is_there(&one.program)
    };
    let mut found: Vec<Dependencies> = Vec::new();
    for one in known().into_iter().filter(fits) {
        if !found.iter().any(|other| other.output == one.output) {
            found.push(one);
        }
    }
    found
}

impl Dependencies {
    /// Whether it creates a virtual environment, which may contain `pytest`.
    pub fn is_venv(&self) -> bool {
        self.output == ".venv"
    }

    /// The step, as in the policy.
    pub fn step(&self) -> String {
        let run = match self.run.as_slice() {
            [one] => format!("{one:?}"),
            several => format!("{several:?}"),
        };
        let inputs = if self.beside == self.file {
            vec![&self.file]
        } else {
            vec![&self.beside, &self.file]
        };
        let net = self.net.iter().map(|host| format!("{host}:443"));
        format!(
            "[[prepare]]\nrun = {run}\ninputs = {inputs:?}\noutputs = [{:?}]\nnet = {:?}\n",
            self.output,
            net.collect::<Vec<_>>()
        )
    }

    /// What is run, what it makes, and which places it may reach; for people.
    pub fn words(&self) -> String {
        format!(
            "{} makes {}, and may reach {}",
            self.run.join(" and "),
            self.output,
            self.net.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_can_be_used_and_takes_at_most_five_lines() {
        assert_eq!(known().len(), 7);
        for known in known() {
            let config = provost_core::policy::parse(known.step().as_bytes()).unwrap();
            assert_eq!(config.prepare.len(), 1, "{}", known.file);
            assert!(known.step().lines().count() <= 5, "{}", known.file);
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
            let found: Vec<&str> = found.iter().map(|known| known.file.as_str()).collect();
            assert_eq!(found, *want, "{files:?}");
            assert_eq!(recognise(root.path(), &|_| false), [], "{files:?}");
        }
    }

    #[test]
    fn a_step_is_described_with_the_places_it_may_reach() {
        let words: Vec<String> = known().iter().map(Dependencies::words).collect();
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
