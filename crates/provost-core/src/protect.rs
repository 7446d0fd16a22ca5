//! Knows the files that decide instead of being decided about.
//!
//! Three kinds: *control* files steer git, Provost and secrets, and no contract opens them; *oracle*
//! files decide what "passing" means; *governing* files instruct or configure an agent. Oracle and
//! governing files change only by the contract's permission, even inside the scope.

use serde::{Deserialize, Serialize};

use crate::alias::{self, Reading};
use crate::path::{RawPath, RepoPath};
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

/// The control directory `path` lies in, if any, in whatever spelling.
pub fn control_directory(path: &RepoPath) -> Option<&'static str> {
    path.parts().find_map(|part| {
        let reading = Reading::of(part);
        CONTROL_DIRECTORIES
            .iter()
            .copied()
            .find(|name| reading.is(name))
    })
}

/// Names of files that steer git or Provost, at any depth.
const CONTROL_NAMES: &[&str] = &[
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".gitconfig",
    ".mailmap",
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

/// How `path` is protected, if it is; a name that some file system takes for a protected one is too.
pub fn classify(path: &RepoPath, extra: &Extra) -> Option<Protection> {
    let raw = RawPath::from(path);
    let parts: Vec<Reading> = path.parts().map(Reading::of).collect();
    let name = parts.last()?;
    let named = |names: &[&str]| names.iter().any(|known| name.is(known));
    let inside = |names: &[&str]| {
        parts
            .iter()
            .any(|part| names.iter().any(|known| part.is(known)))
    };
    let root = |names: &[&str]| parts.len() > 1 && names.iter().any(|known| parts[0].is(known));
    if inside(CONTROL_DIRECTORIES)
        || parts.iter().any(|part| part.begins(".provost"))
        || named(CONTROL_NAMES)
        || root(CONTROL_ROOTS)
        || is_secret(name)
    {
        return Some(Protection::Control);
    }
    if named(ORACLE_NAMES)
        || ORACLE_STEMS.iter().any(|stem| name.begins(stem))
        || inside(ORACLE_DIRECTORIES)
        || extra.oracle.covers_alias(&raw)
    {
        return Some(Protection::Oracle);
    }
    let governs = named(GOVERNING_NAMES)
        || inside(GOVERNING_DIRECTORIES)
        || extra.governing.covers_alias(&raw);
    governs.then_some(Protection::Governing)
}

/// Whether `path` names a file that a language runs by itself, wherever it finds one.
///
/// Such a file is no oracle, because projects have them for good reasons; but a person should know.
pub fn runs_by_itself(path: &RepoPath) -> bool {
    let reading = Reading::of(path.name());
    let named = ["sitecustomize.py", "usercustomize.py"];
    let folded = alias::fold(path.name());
    let ending = folded.rsplit_once('.').map(|(_, ending)| ending);
    named.iter().any(|name| reading.is(name)) || ending == Some("pth")
}

/// Whether `path` may be read as the file that says where submodules come from.
pub fn names_submodules(path: &RepoPath) -> bool {
    Reading::of(path.name()).is(".gitmodules")
}

/// `.env` and its variants hold secrets; the template `.env.example` does not.
fn is_secret(name: &Reading) -> bool {
    (name.is(".env") || name.begins(".env.")) && !name.is_plainly(".env.example")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            (".mailmap", Some(Control)),
            ("Provost.TOML", Some(Control)),
            ("provost.toml. ", Some(Control)),
            ("PROVOS~1.TOM", Some(Control)),
            ("provos~1/x", Some(Control)),
            (".ENV", Some(Control)),
            (".env.Example", None),
            (".env.local:x", Some(Control)),
            ("app/.\u{200c}env", Some(Control)),
            ("git~1/config", Some(Control)),
            (".git /config", Some(Control)),
            ("a/.git::$INDEX_ALLOCATION/hooks/x", Some(Control)),
            ("GITMOD~1", Some(Control)),
            ("gi7eba~1", Some(Control)),
            (".gitattributes ", Some(Control)),
            (".GitHub./workflows/ci.yml", Some(Oracle)),
            ("github~1/workflows/ci.yml", Some(Oracle)),
            ("ma\u{212a}efile", Some(Oracle)),
            ("JESTCO~1.JS", Some(Oracle)),
            ("agents.MD", Some(Governing)),
            ("claude.md.", Some(Governing)),
            ("CLAUDE~1/settings.json", Some(Governing)),
            ("git~2/config", Some(Control)),
            ("notes~1", None),
            ("File::Copy.3", None),
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
        for path in ["spec/golden.txt", "SPEC/golden.txt", "spec./golden.txt"] {
            let path = RepoPath::try_from(path).unwrap();
            assert_eq!(classify(&path, &extra), Some(Protection::Oracle), "{path}");
        }
    }

    fn protected() -> impl Strategy<Value = &'static str> {
        let names = [
            CONTROL_DIRECTORIES,
            CONTROL_NAMES,
            ORACLE_NAMES,
            ORACLE_DIRECTORIES,
            GOVERNING_NAMES,
            GOVERNING_DIRECTORIES,
            &[".env", ".env.local", ".provostrc", "jest.config.ts"],
        ];
        prop::sample::select(names.concat())
    }

    /// The short name that NTFS gives to `name`.
    fn short(name: &str, number: u32) -> String {
        let plain = name.trim_start_matches('.');
        let (stem, ending) = plain.rsplit_once('.').unwrap_or((plain, ""));
        let head: String = stem.replace('.', "").chars().take(6).collect();
        let ending: String = ending.chars().take(3).collect();
        format!("{head}~{number}.{ending}")
    }

    proptest! {
        #[test]
        fn no_name_that_folds_to_a_protected_one_is_unprotected(
            name in protected(),
            capitals: u32,
            skipped in prop::collection::vec((0..20_usize, 0..5_usize), 0..3),
            tail in "[. ]{0,3}(:[a-z$:]{1,6})?",
            number in 1..5_u32,
            is_short: bool,
        ) {
            let spelling = if is_short { short(name, number) } else { name.to_owned() };
            let mut letters: Vec<char> = spelling
                .chars()
                .enumerate()
                .map(|(at, letter)| match capitals >> (at % 32) & 1 {
                    1 => letter.to_ascii_uppercase(),
                    _ => letter,
                })
                .collect();
            for (at, which) in skipped {
                let letter = ['\u{200c}', '\u{200f}', '\u{202a}', '\u{206f}', '\u{feff}'][which];
                letters.insert(at % (letters.len() + 1), letter);
            }
            let spelling: String = letters.into_iter().collect();
            for path in [format!("{spelling}{tail}"), format!("app/{spelling}{tail}")] {
                let path = RepoPath::try_from(path).unwrap();
                prop_assert!(classify(&path, &Extra::default()).is_some(), "{:?}", path);
            }
        }
    }
}
