//! Knows the files that decide instead of being decided about.
//!
//! Three kinds: *control* files steer git, Provost and secrets, and no contract opens them; *oracle*
//! files decide what "passing" means; *governing* files instruct or configure an agent. Oracle and
//! governing files change only by the contract's permission, even inside the scope.

use serde::{Deserialize, Serialize};

use crate::path::RepoPath;
use crate::scope::Scope;

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Steers git, Provost or secrets; never permitted.
    Control,
    /// Decides what "passing" means.
    Oracle,
    /// Instructs or configures an agent.
    Governing,
}

/// Directories nobody may write under a contract, at any depth.
///
/// `.runtime-cache` is the runtime directory of the contract format's first implementation, whose
/// files are as sensitive as ours.
const CONTROL_DIRECTORIES: &[&str] = &[".git", ".provost", ".runtime-cache"];

/// The control directory `path` lies in, if any; case does not count, as on some file systems.
pub fn control_directory(path: &RepoPath) -> Option<&'static str> {
    path.parts().find_map(|part| {
        CONTROL_DIRECTORIES
            .iter()
            .copied()
            .find(|name| part.eq_ignore_ascii_case(name))
    })
}

/// Names of files that steer git or Provost, at any depth.
const CONTROL_NAMES: &[&str] = &[
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    "provost.toml",
];

/// Directories of policies that Provost itself reads, at the root.
const CONTROL_ROOTS: &[&str] = &["policies"];

/// Names of files that decide what "passing" means, at any depth.
const ORACLE_NAMES: &[&str] = &[
    // Build and task definitions.
    "build.rs",
    "cmakelists.txt",
    "justfile",
    "makefile",
    "gnumakefile",
    "noxfile.py",
    "rakefile",
    "taskfile.yml",
    // Test configuration.
    ".coveragerc",
    ".mocharc.json",
    ".mocharc.yml",
    ".nycrc",
    "conftest.py",
    "karma.conf.js",
    "pytest.ini",
    "tox.ini",
    // Manifests that name the test command or its settings.
    "build.gradle",
    "build.gradle.kts",
    "cargo.toml",
    "composer.json",
    "go.mod",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    // Lock files.
    "bun.lock",
    "bun.lockb",
    "cargo.lock",
    "composer.lock",
    "gemfile.lock",
    "go.sum",
    "package-lock.json",
    "pipfile.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
    // Continuous integration.
    ".gitlab-ci.yml",
    ".travis.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
];

/// Beginnings of such names.
const ORACLE_STEMS: &[&str] = &[
    "jest.config.",
    "vitest.config.",
    "playwright.config.",
    "cypress.config.",
    "wdio.conf.",
];

/// Directories of such files, at any depth.
const ORACLE_DIRECTORIES: &[&str] = &[
    ".buildkite",
    ".cargo",
    ".ci",
    ".circleci",
    ".config",
    ".github",
    ".husky",
    ".teamcity",
];

/// Names of files that instruct or configure an agent, at any depth.
const GOVERNING_NAMES: &[&str] = &[
    ".cursorrules",
    ".mcp.json",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "codex.md",
    "gemini.md",
];

/// Directories of such files, at any depth.
const GOVERNING_DIRECTORIES: &[&str] = &[
    ".agents",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".windsurf",
];

/// More oracle and governing files, and names that are none, from the repository's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// Further oracle files and directories.
    #[serde(default)]
    pub oracle: Scope,
    /// Further governing files and directories.
    #[serde(default)]
    pub governing: Scope,
}

/// How `path` is protected, if it is.
pub fn classify(path: &RepoPath, extra: &Extra) -> Option<Protection> {
    let name = path.name().to_lowercase();
    let parts: Vec<String> = path.parts().map(str::to_lowercase).collect();
    let inside = |directories: &[&str]| {
        parts
            .iter()
            .any(|part| directories.contains(&part.as_str()))
    };
    let root = |roots: &[&str]| parts.len() > 1 && roots.contains(&parts[0].as_str());
    if control_directory(path).is_some()
        || parts.iter().any(|part| part.starts_with(".provost"))
        || CONTROL_NAMES.contains(&name.as_str())
        || root(CONTROL_ROOTS)
        || is_secret(&name)
    {
        return Some(Protection::Control);
    }
    if ORACLE_NAMES.contains(&name.as_str())
        || ORACLE_STEMS.iter().any(|stem| name.starts_with(stem))
        || inside(ORACLE_DIRECTORIES)
        || extra.oracle.covers(path)
    {
        return Some(Protection::Oracle);
    }
    let governs = GOVERNING_NAMES.contains(&name.as_str())
        || inside(GOVERNING_DIRECTORIES)
        || extra.governing.covers(path);
    governs.then_some(Protection::Governing)
}

/// `.env` and its variants hold secrets; the template `.env.example` does not.
fn is_secret(name: &str) -> bool {
    name == ".env" || (name.starts_with(".env.") && name != ".env.example")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_decide_are_known() {
        use Protection::{Control, Governing, Oracle};
        let cases = [
            (".gitignore", Some(Control)),
            ("app/.gitattributes", Some(Control)),
            ("provost.toml", Some(Control)),
            (".provost/registry.db", Some(Control)),
            (".provostrc", Some(Control)),
            (".env", Some(Control)),
            ("app/.env.local", Some(Control)),
            (".env.example", None),
            ("environment.yml", None),
            ("app/test.env_loader.py", None),
            ("git/readme.md", None),
            ("policies/command_allowlist.json", Some(Control)),
            ("src/policies/x.rs", None),
            ("pytest.ini", Some(Oracle)),
            ("Makefile", Some(Oracle)),
            ("sub/Cargo.lock", Some(Oracle)),
            (".github/workflows/ci.yml", Some(Oracle)),
            ("github/x", None),
            ("vitest.config.ts", Some(Oracle)),
            ("CLAUDE.md", Some(Governing)),
            ("docs/AGENTS.md", Some(Governing)),
            (".claude/settings.json", Some(Governing)),
            ("src/claude.rs", None),
        ];
        for (path, want) in cases {
            let path = RepoPath::try_from(path).unwrap();
            assert_eq!(classify(&path, &Extra::default()), want, "{path}");
        }
    }

    #[test]
    fn a_repository_can_name_more() {
        let extra = Extra {
            oracle: Scope::parse(&["spec"]).unwrap(),
            ..Extra::default()
        };
        let path = RepoPath::try_from("spec/golden.txt").unwrap();
        assert_eq!(classify(&path, &extra), Some(Protection::Oracle));
    }
}
