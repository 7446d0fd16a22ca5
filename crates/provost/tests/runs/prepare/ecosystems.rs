//! The steps that `init` writes, with a small project of each ecosystem and the real registries.
//!
//! Tools that a system seldom has are in the directory that `PROVOST_TEST_TOOLS` names, laid out
//! like a home; `.ci/tools` installs them.

use std::fs;
use std::path::PathBuf;

use provost_testkit::skip;

use super::layers;
use super::samples::grants;
use crate::stage::{Ask, Outcome, PATH, Stage, run_arguments};

/// Directories of programs in that home.
const BINS: [&str; 3] = [
    ".local/share/pnpm/node_modules/.bin",
    ".local/share/uv/tools/python/bin",
    ".volta/node_modules/.bin",
];

struct Project<'a> {
    /// The tool, which must be there.
    tool: &'a str,
    files: &'a [(&'a str, &'a str)],
    /// A line that `init` writes.
    step: &'a str,
    accept: &'a str,
    /// What the answer names without the step; empty if it would not be named.
    missing: &'a str,
}

fn home() -> Option<PathBuf> {
    std::env::var_os("PROVOST_TEST_TOOLS").map(PathBuf::from)
}

fn check(project: &Project<'_>) {
    let home = home().unwrap_or_default();
    let places: Vec<String> = BINS
        .iter()
        .map(|bin| home.join(bin))
        .chain(PATH.split(':').map(PathBuf::from))
        .map(|place| place.display().to_string())
        .collect();
    let is_there = |place: &String| PathBuf::from(place).join(project.tool).exists();
    let Some(first) = places.iter().find(|place| is_there(place)) else {
        return skip(&format!("there is no {}", project.tool));
    };
    // Only the directory of the tool, and the system: another yarn is another program.
    let path = format!("{first}:{PATH}");
    let stage = Stage::new();
    let ask = |words: &[&str]| -> Outcome {
        let mut command = stage.provost(words);
        command.env("PATH", &path);
        if !home.as_os_str().is_empty() {
            command.env("HOME", &home);
        }
        stage.spawn(command).wait()
    };
    stage.commit(project.files);
    let agent = stage.agent("echo good > src/a.txt");
    let request = Ask {
        accept: project.accept,
        ..Ask::default()
    };
    let run = || ask(&run_arguments(&agent, &request));
    if !project.missing.is_empty() {
        let without = run();
        let missing = without.json["missing"][0]["add"].as_str();
        let missing = missing.unwrap_or_else(|| panic!("{without:?}"));
        assert!(missing.contains(project.missing), "{missing}");
    }

    let made = ask(&["init"]);
    assert_eq!(made.exit, 0, "{made:?}");
    let policy = fs::read_to_string(stage.path("repo/provost.toml")).unwrap();
    assert!(policy.contains(project.step), "{policy}");
    let is_net = |line: &&str| line.starts_with("net = ");
    let written = policy.lines().find(is_net).unwrap();
    let hosts: Vec<&str> = written
        .split('"')
        .filter_map(|it| it.strip_suffix(":443"))
        .collect();
    let Some(net) = grants(&hosts) else {
        return skip(&format!("there is no way to {}", hosts[0]));
    };
    let policy = policy.replace(&format!("{written}\n"), &net);
    stage.commit(&[("provost.toml", &policy)]);
    stage.agree();
    let judged = run();
    assert_eq!((judged.code(), judged.exit), ("OK", 0), "{judged:?}");
    assert_eq!(layers(&judged.json).len(), 1, "{judged:?}");
}

const NODE: (&str, &str) = (
    "package.json",
    r#"{"name": "s", "version": "1.0.0", "scripts": {"test": "node t.js"},
        "dependencies": {"is-number": "7.0.0"}}"#,
);
const NODE_TEST: (&str, &str) = ("t.js", "if (!require('is-number')(3)) process.exit(1);\n");
const NODE_IGNORE: (&str, &str) = (".gitignore", "/node_modules/\n/.yarn/\n");
const SHA: &str = "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43Q\
    KPDlK9cGvNp6NZWZUBlbGXYxxng==";

#[test]
fn a_project_of_npm_without_a_lock_file() {
    check(&Project {
        tool: "npm",
        files: &[NODE, NODE_TEST, NODE_IGNORE],
        step: "run = \"npm install --no-package-lock",
        accept: "npm test",
        missing: "npm install --no-package-lock",
    });
}

#[test]
fn projects_of_pnpm() {
    let lock = format!(
        "lockfileVersion: '9.0'\nsettings:\n  autoInstallPeers: true\n  \
         excludeLinksFromLockfile: false\nimporters:\n  .:\n    dependencies:\n      is-number:\n\
         \x20       specifier: 7.0.0\n        version: 7.0.0\npackages:\n  is-number@7.0.0:\n    \
         resolution: {{integrity: {SHA}}}\n    engines: {{node: '>=0.12.0'}}\nsnapshots:\n  \
         is-number@7.0.0: {{}}\n"
    );
    check(&Project {
        tool: "pnpm",
        files: &[NODE, NODE_TEST, NODE_IGNORE, ("pnpm-lock.yaml", &lock)],
        step: "run = \"pnpm install --frozen-lockfile\"",
        accept: "pnpm test",
        missing: "pnpm install --frozen-lockfile",
    });
    check(&Project {
        tool: "pnpm",
        files: &[
            NODE,
            NODE_TEST,
            NODE_IGNORE,
            ("pnpm-workspace.yaml", "packages: []\n"),
        ],
        step: "run = \"pnpm install --no-lockfile\"",
        accept: "pnpm test",
        missing: "",
    });
}

#[test]
fn projects_of_yarn() {
    let lock = format!(
        "# yarn lockfile v1\n\n\nis-number@7.0.0:\n  version \"7.0.0\"\n  integrity {SHA}\n"
    );
    check(&Project {
        tool: "yarnpkg",
        files: &[NODE, NODE_TEST, NODE_IGNORE, ("yarn.lock", &lock)],
        step: "run = \"yarn install --frozen-lockfile --non-interactive\"",
        accept: "yarn test",
        missing: "yarn install --frozen-lockfile",
    });
}

#[test]
fn a_project_of_bun_with_a_lock_file() {
    let lock = format!(
        "{{\n  \"lockfileVersion\": 1,\n  \"workspaces\": {{ \"\": {{ \"name\": \"s\", \
         \"dependencies\": {{ \"is-number\": \"7.0.0\" }} }} }},\n  \"packages\": {{ \
         \"is-number\": [\"is-number@7.0.0\", \"\", {{}}, \"{SHA}\"] }}\n}}\n"
    );
    check(&Project {
        tool: "bun",
        files: &[NODE, NODE_TEST, NODE_IGNORE, ("bun.lock", &lock)],
        step: "run = \"bun install --frozen-lockfile\"",
        accept: "bun run test",
        missing: "bun install --frozen-lockfile",
    });
}

/// A package with its source below `src`, which tests find only if it is installed.
const PYTHON: &str = "[project]\nname = \"sample\"\nversion = \"1\"\nrequires-python = \">=3.9\"\n\
    dependencies = [\"six==1.17.0\"]\n";
const PYTHON_BUILD: &str =
    "[build-system]\nrequires = [\"setuptools>=61\"]\nbuild-backend = \"setuptools.build_meta\"\n";
const SOURCE: (&str, &str) = ("src/sample/__init__.py", "import six\n");
const PYTHON_TEST: (&str, &str) = (
    "tests/test_a.py",
    "import unittest, sample\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        \
     self.assertTrue(sample.six.PY3)\n",
);
const PYTHON_IGNORE: (&str, &str) = (".gitignore", "/.venv/\n*.egg-info/\n__pycache__/\n");
const UNITTEST: &str = "python3 -m unittest discover -s tests";

#[test]
fn a_project_of_pip_that_is_installed() {
    check(&Project {
        tool: "python3",
        files: &[
            ("pyproject.toml", &format!("{PYTHON}{PYTHON_BUILD}")),
            SOURCE,
            PYTHON_TEST,
            PYTHON_IGNORE,
        ],
        step: ".venv/bin/pip install -e .\"]",
        accept: UNITTEST,
        missing: ".venv/bin/pip install -e .\"]",
    });
}

#[test]
fn a_project_of_uv_without_a_lock_file() {
    let manifest = format!("{PYTHON}{PYTHON_BUILD}[tool.uv]\n");
    check(&Project {
        tool: "uv",
        files: &[
            ("pyproject.toml", &manifest),
            SOURCE,
            PYTHON_TEST,
            PYTHON_IGNORE,
        ],
        step: "run = \"uv sync\"",
        accept: "uv run python -m unittest discover -s tests",
        missing: "",
    });
}

#[test]
fn a_project_of_poetry_without_a_lock_file() {
    // Named, because poetry asks the default registry in a way that mirrors seldom answer.
    let manifest = format!(
        "{PYTHON}{PYTHON_BUILD}[tool.poetry]\n\
         packages = [{{include = \"sample\", from = \"src\"}}]\n\
         [[tool.poetry.source]]\nname = \"simple\"\nurl = \"https://pypi.org/simple/\"\n\
         priority = \"primary\"\n"
    );
    check(&Project {
        tool: "poetry",
        files: &[
            ("pyproject.toml", &manifest),
            SOURCE,
            PYTHON_TEST,
            PYTHON_IGNORE,
        ],
        step: "run = \"poetry install --no-interaction\"",
        accept: "poetry run python -m unittest discover -s tests",
        missing: "",
    });
}

/// The lock file is not committed; the sandbox resolves again, without network.
#[test]
fn a_project_of_cargo_without_a_lock_file() {
    let manifest = "[package]\nname = \"sample\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
        [dependencies]\nvoid = \"1\"\n";
    let test = "#[test]\nfn t() { assert_eq!(std::mem::size_of::<void::Void>(), 0); }\n";
    super::samples::with_cargo(|variables| {
        let stage = Stage::new();
        let ask = |words: &[&str]| -> Outcome {
            let mut command = stage.provost(words);
            command.envs(variables.iter().cloned());
            stage.spawn(command).wait()
        };
        let Some(net) = grants(&["index.crates.io", "static.crates.io"]) else {
            return skip("there is no way to the registry of crates");
        };
        stage.commit(&[
            ("Cargo.toml", manifest),
            ("src/lib.rs", test),
            (".gitignore", "/target/\n/Cargo.lock\n"),
        ]);
        ask(&["init"]);
        let policy = fs::read_to_string(stage.path("repo/provost.toml")).unwrap();
        assert!(policy.contains("run = \"cargo fetch\""), "{policy}");
        let at = policy.find("net = ").unwrap();
        stage.commit(&[("provost.toml", &format!("{}{net}", &policy[..at]))]);
        stage.agree();
        let agent = stage.agent("echo good > src/a.txt");
        let request = Ask {
            accept: "cargo test -q",
            ..Ask::default()
        };
        let judged = ask(&run_arguments(&agent, &request));
        assert_eq!((judged.code(), judged.exit), ("OK", 0), "{judged:?}");
    });
}
