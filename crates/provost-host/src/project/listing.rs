//! The files of a checkout by their paths, and what languages they are written in.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use provost_core::path::RawPath;
use provost_core::testfile::is_test_file;

/// Directories of dependencies and of build output.
const FOREIGN: &[&str] = &[
    "node_modules",
    "vendor",
    "third_party",
    "target",
    "venv",
    "dist",
    "build",
    "__pycache__",
];

/// Files that describe to a build service how a project is tested.
const CI_FILES: &[&str] = &[
    ".gitlab-ci.yml",
    ".travis.yml",
    ".cirrus.yml",
    "azure-pipelines.yml",
    "appveyor.yml",
    "Jenkinsfile",
];
const CI_DIRECTORIES: &[&str] = &[".github/workflows/", ".circleci/", ".gitea/workflows/"];

/// Files in the language of a project that settle how its tools work, and are no source of it.
const SETTINGS: &[&str] = &[
    "setup.py",
    "build.rs",
    "gulpfile.js",
    "Gruntfile.js",
    "noxfile.py",
];

/// How many files and directories are looked at.
const MOST_ENTRIES: usize = 20_000;

/// The most bytes that are read of a file.
const LARGEST: u64 = 256 * 1024;

/// A language, by the endings of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    Rust,
    Go,
    Jvm,
    Node,
    Python,
    C,
    Other,
}

const ENDINGS: &[(Language, &str)] = &[
    (Language::Rust, "rs"),
    (Language::Go, "go"),
    (Language::Jvm, "java kt scala groovy"),
    (Language::Node, "js jsx mjs cjs ts tsx mts cts vue svelte"),
    (Language::Python, "py pyi"),
    (Language::C, "c h cc cpp cxx hh hpp hxx"),
    (
        Language::Other,
        "sh rb php pl pm lua awk ml hs ex exs erl swift cs zig tcl r jl",
    ),
];

/// The files of a checkout, from its top, in order.
pub(super) struct Listing {
    root: PathBuf,
    files: BTreeSet<String>,
}

impl Listing {
    /// The files below `root`, directories near the top first, until too many were seen.
    pub(super) fn of(root: &Path) -> Self {
        let mut files = BTreeSet::new();
        let mut left = MOST_ENTRIES;
        let mut waiting = VecDeque::from([String::new()]);
        while let Some(directory) = waiting.pop_front() {
            let entries = fs::read_dir(root.join(&directory));
            for entry in entries.into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    waiting.clear();
                    break;
                };
                left = rest;
                let name = entry.file_name();
                let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else {
                    continue;
                };
                let path = match directory.as_str() {
                    "" => name.to_owned(),
                    directory => format!("{directory}/{name}"),
                };
                if kind.is_file() {
                    files.insert(path);
                } else if kind.is_dir() && is_own(&path, name) {
                    waiting.push_back(path);
                }
            }
        }
        Self {
            root: root.to_owned(),
            files,
        }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    /// The files in all directories.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// The text of a file; empty for anything but a small text file.
    pub(super) fn read(&self, path: &str) -> String {
        let path = self.root.join(path);
        let small = path
            .symlink_metadata()
            .is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST);
        if !small {
            return String::new();
        }
        fs::read_to_string(path).unwrap_or_default()
    }

    /// The source files, tests among them.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, Language)> {
        self.files()
            .filter_map(|path| Some((path, language(path)?)))
    }

    /// What the files for build services say, in one text.
    pub(super) fn ci_text(&self) -> String {
        let is_ci = |path: &&str| {
            CI_FILES.contains(path) || CI_DIRECTORIES.iter().any(|it| path.starts_with(it))
        };
        self.files()
            .filter(is_ci)
            .map(|path| self.read(path))
            .collect()
    }
}

/// Whether a directory belongs to the project.
fn is_own(path: &str, name: &str) -> bool {
    let inside = format!("{path}/");
    let leads_to_ci = CI_DIRECTORIES.iter().any(|it| it.starts_with(&inside));
    leads_to_ci || !name.starts_with('.') && !FOREIGN.contains(&name)
}

/// The language of a source file; none for a file that only settles how tools work.
pub(super) fn language(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if SETTINGS.contains(&name) || name.starts_with('.') || name.contains(".config.") {
        return None;
    }
    let (_, ending) = name.rsplit_once('.')?;
    let has = |(_, endings): &&(Language, &str)| endings.split(' ').any(|it| it == ending);
    ENDINGS.iter().find(has).map(|(language, _)| *language)
}

pub(super) fn is_test(path: &str) -> bool {
    is_test_file(&RawPath::new(path))
}
