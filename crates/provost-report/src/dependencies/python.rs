//! What pip is to install for a project: its lists of requirements, and the project itself.

use provost_core::document::{self, Format};
use serde_json::Value;

use super::recipes::ProjectFiles;

/// Lists of requirements, by their usual names.
const LISTS: [&str; 12] = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "requirements_test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "requirements/testing.txt",
];

/// Files that say how the project itself is installed.
const BUILDS: [&str; 3] = ["pyproject.toml", "setup.py", "setup.cfg"];

/// Extras and groups that tests usually need.
const EXTRAS: [&str; 4] = ["dev", "test", "tests", "testing"];

pub(super) fn file_names() -> impl Iterator<Item = String> {
    LISTS.into_iter().chain(BUILDS).map(str::to_owned)
}

pub(super) struct PipArguments {
    /// The arguments of `pip install`.
    pub(super) arguments: String,
    pub(super) inputs: Vec<String>,
}

/// What pip installs for a project with these files; `None` if it names no dependencies.
pub(super) fn wanted(files: &ProjectFiles) -> Option<PipArguments> {
    let mut words: Vec<String> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let listed = |name: &str| files.get(name).is_some_and(|text| names_any(text));
    // A list for development has what tests need and much more, often a release of the project.
    let for_tests = LISTS
        .iter()
        .any(|name| name.contains("test") && listed(name));
    for name in LISTS {
        if listed(name) && !(for_tests && name.contains("dev")) {
            words.push(format!("-r {name}"));
            inputs.push(name.to_owned());
        }
    }
    let manifest = PythonManifest::of(files);
    if manifest.installs(files) {
        let extras = manifest.extras();
        words.push(match extras.as_slice() {
            [] => "-e .".to_owned(),
            extras => format!("-e .[{}]", extras.join(",")),
        });
    }
    for group in manifest.groups() {
        words.push(format!("--group {group}"));
    }
    if words.is_empty() {
        return None;
    }
    let builds = BUILDS.iter().filter(|name| files.contains_key(**name));
    inputs.extend(builds.map(|name| (*name).to_owned()));
    Some(PipArguments {
        arguments: words.join(" "),
        inputs,
    })
}

/// Whether something that pip installs for the project names pytest.
pub(super) fn names_pytest(files: &ProjectFiles) -> bool {
    let listed = |name: &str| files.get(name).is_some_and(|text| text.contains("pytest"));
    let PythonManifest(manifest) = PythonManifest::of(files);
    let tables = [
        &manifest["project"]["optional-dependencies"],
        &manifest["dependency-groups"],
    ];
    let mut installed = tables
        .into_iter()
        .flat_map(|table| usual(table).into_iter().map(|name| &table[name]));
    LISTS.into_iter().any(listed)
        || installed.any(|list| list.to_string().contains("\"pytest"))
        || manifest["project"]["dependencies"]
            .to_string()
            .contains("\"pytest")
}

/// Whether a list of requirements names any.
fn names_any(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    lines
        .into_iter()
        .any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// `pyproject.toml`; null if there is none that can be read.
struct PythonManifest(Value);

impl PythonManifest {
    fn of(files: &ProjectFiles) -> Self {
        let text = files.get("pyproject.toml").map_or("", String::as_str);
        Self(document::parse(Format::Toml, text.as_bytes()).unwrap_or_default())
    }

    /// Whether the project can be installed, which makes its own modules known to its tests.
    fn installs(&self, files: &ProjectFiles) -> bool {
        let old = files.contains_key("setup.py");
        let build = self.0["build-system"].is_object();
        old || build || self.0["project"]["name"].is_string() && files.contains_key("setup.cfg")
    }

    fn extras(&self) -> Vec<&'static str> {
        usual(&self.0["project"]["optional-dependencies"])
    }

    fn groups(&self) -> Vec<&'static str> {
        usual(&self.0["dependency-groups"])
    }
}

fn usual(table: &Value) -> Vec<&'static str> {
    let named = |name: &&str| table.get(name).is_some_and(Value::is_array);
    EXTRAS.into_iter().filter(named).collect()
}
