//! Chooses the checks that a patch needs, from the paths it touches and not from what is declared.

use serde::{Deserialize, Serialize};

/// Which checks a patch needs. One file of a stricter class decides for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// None of the others, or no path at all. If there is an analysis from after the change, the
    /// structure is compared all the same, whatever the language.
    NonPythonPatch,
    DocumentationOnly,
    /// Files that define how the project is built, checked or tested.
    GovernanceConfig,
    PythonStructural,
    /// State of Provost itself; never part of a patch.
    StateArtifactChange,
}

impl Profile {
    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::NonPythonPatch => "non_python_patch",
            Self::DocumentationOnly => "documentation_only",
            Self::GovernanceConfig => "governance_config",
            Self::PythonStructural => "python_structural",
            Self::StateArtifactChange => "state_artifact_change",
        }
    }

    /// Whether a verdict needs an analysis from after the change.
    pub fn after_run_required(self) -> bool {
        matches!(self, Self::GovernanceConfig | Self::PythonStructural)
    }

    pub fn structural(self) -> bool {
        self == Self::PythonStructural
    }
}

pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Profile {
    let mut strictest = None;
    let mut only_documents = true;
    for path in paths {
        let class = class(path);
        only_documents &= class == Profile::DocumentationOnly;
        strictest = strictest.max(Some(class));
    }
    match strictest {
        Some(Profile::DocumentationOnly) if !only_documents => Profile::NonPythonPatch,
        Some(profile) => profile,
        None => Profile::NonPythonPatch,
    }
}

/// Baselines: of the tool that defined the payload format, and of Provost.
const STATE_NAMES: &[&str] = &["codeclone.baseline.json", "provost.baseline.json"];
const STATE_DIRECTORIES: &[&str] = &[".codeclone", ".cache/codeclone", ".provost"];

const GOVERNING_NAMES: &str = "\
    pyproject.toml setup.cfg tox.ini pytest.ini mypy.ini .mypy.ini pyrightconfig.json \
    ruff.toml .ruff.toml .flake8 .pylintrc pylintrc .coveragerc coverage.toml \
    .pre-commit-config.yaml .pre-commit-config.yml py.typed makefile gnumakefile justfile \
    cargo.toml clippy.toml rustfmt.toml rust-toolchain.toml package.json tsconfig.json go.mod \
    pom.xml build.gradle build.gradle.kts cmakelists.txt provost.toml .gitlab-ci.yml";

const GOVERNING_DIRECTORIES: &[&str] = &[".github/workflows", ".github/actions", ".ci"];

/// Endings of the languages that the analysis reads, beside Python.
const CODE_ENDINGS: &[&str] = &[
    "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rs", "go", "java", "c", "h", "cc",
    "cpp", "cxx", "hpp", "hh", "hxx", "ipp",
];

const DOCUMENT_ENDINGS: &[&str] = &["md", "rst", "txt", "adoc", "textile"];

/// Names of documents, where the name has no ending or that of a document.
const DOCUMENT_NAMES: &str = "\
    readme changelog changes license licence copying notice authors contributing contributors \
    code_of_conduct security history news";

/// Whether the file at `path` is neither documentation nor state of the tool.
pub fn is_functional(path: &str) -> bool {
    match class(path) {
        Profile::DocumentationOnly | Profile::StateArtifactChange => false,
        Profile::NonPythonPatch | Profile::GovernanceConfig | Profile::PythonStructural => true,
    }
}

/// Whether the analysis reads the language of the file at `path`.
pub fn is_code(path: &str) -> bool {
    let (_, ending) = name_of(path);
    is_python(&ending) || CODE_ENDINGS.contains(&ending.as_str())
}

fn is_python(ending: &str) -> bool {
    matches!(ending, "py" | "pyi")
}

/// The name of the file at `path` and its ending, in small letters.
fn name_of(path: &str) -> (String, String) {
    let low = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let ending = low.rsplit_once('.').map_or("", |(_, ending)| ending);
    let ending = ending.to_owned();
    (low, ending)
}

fn class(path: &str) -> Profile {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (low, ending) = name_of(path);
    let ending = ending.as_str();
    if STATE_NAMES.contains(&name) || below(path, STATE_DIRECTORIES) {
        return Profile::StateArtifactChange;
    }
    if is_python(ending) {
        return Profile::PythonStructural;
    }
    if GOVERNING_NAMES.split(' ').any(|name| name == low)
        || below(path, GOVERNING_DIRECTORIES)
        || is_container_file(&low)
    {
        return Profile::GovernanceConfig;
    }
    if is_code(path) {
        return Profile::NonPythonPatch;
    }
    let stem = low.split(['.', '-']).next().unwrap_or_default();
    if DOCUMENT_ENDINGS.contains(&ending)
        || (ending.is_empty() && DOCUMENT_NAMES.split(' ').any(|name| name == stem))
        || below(path, &["docs", "doc"])
    {
        return Profile::DocumentationOnly;
    }
    Profile::NonPythonPatch
}

fn below(path: &str, directories: &[&str]) -> bool {
    directories.iter().any(|directory| {
        path.strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
    })
}

fn is_container_file(name: &str) -> bool {
    let compose = name.strip_prefix("docker-").unwrap_or(name);
    let yaml = compose
        .rsplit_once('.')
        .is_some_and(|(_, ending)| matches!(ending, "yml" | "yaml"));
    name.starts_with("dockerfile")
        || name.ends_with(".dockerfile")
        || name == ".dockerignore"
        || (compose.starts_with("compose") && yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_file_decides_for_the_patch() {
        let cases: [(&[&str], Profile); 22] = [
            (&["pkg/a.py"], Profile::PythonStructural),
            (&["pkg/a.pyi", "README.md"], Profile::PythonStructural),
            (&["docs/conf.py"], Profile::PythonStructural),
            (&["pyproject.toml"], Profile::GovernanceConfig),
            (&["setup.cfg", "README.md"], Profile::GovernanceConfig),
            (&[".github/workflows/ci.yml"], Profile::GovernanceConfig),
            (&["Makefile"], Profile::GovernanceConfig),
            (&["docker-compose.dev.yml"], Profile::GovernanceConfig),
            (&["sub/pyproject.toml"], Profile::GovernanceConfig),
            (&["README.md", "docs/x/y.png"], Profile::DocumentationOnly),
            (&["a/b/notes.txt"], Profile::DocumentationOnly),
            (&["LICENSE"], Profile::DocumentationOnly),
            (&["LICENSE-MIT", "History.md"], Profile::DocumentationOnly),
            (&["src/history.js"], Profile::NonPythonPatch),
            (&["security.rs"], Profile::NonPythonPatch),
            (&["News.TS"], Profile::NonPythonPatch),
            (&["docs/app.js"], Profile::NonPythonPatch),
            (&["src/app.js"], Profile::NonPythonPatch),
            (&["README.md", "src/app.js"], Profile::NonPythonPatch),
            (&[], Profile::NonPythonPatch),
            (
                &["pkg/a.py", ".codeclone/x.json"],
                Profile::StateArtifactChange,
            ),
            (&[".provost/registry.db"], Profile::StateArtifactChange),
        ];
        for (paths, want) in cases {
            assert_eq!(of(paths.iter().copied()), want, "{paths:?}");
        }
    }
}
