//! A tree in a temporary directory, and a lens on it.

use std::fs;
use std::path::{Path, PathBuf};

use provost_core::path::RawPath;
use provost_lens::structure::{Finding, Function, Report, Settings, Summary};
use provost_lens::{List, Listed, TreeSitterLens};
use tempfile::TempDir;

pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(scene.root()).unwrap();
        for (path, text) in files {
            scene.write(path, text.as_bytes());
        }
        scene
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let place = self.root().join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path)).unwrap();
    }

    /// The report of a lens without a cache.
    pub(crate) fn report(&self) -> Report {
        self.with(&Settings::default(), None)
    }

    /// The report of a lens with a cache.
    pub(crate) fn remembered(&self) -> Report {
        self.with(&Settings::default(), Some(self.cache()))
    }

    /// The summary of a lens with a cache.
    pub(crate) fn summary(&self) -> Summary {
        let lens = Self::lens(Some(self.cache()));
        lens.summarize(&self.root(), &Settings::default()).unwrap()
    }

    pub(crate) fn with(&self, settings: &Settings, cache: Option<PathBuf>) -> Report {
        Self::lens(cache).analyze(&self.root(), settings).unwrap()
    }

    fn lens(cache: Option<PathBuf>) -> TreeSitterLens {
        TreeSitterLens {
            list: Box::new(|root, _| {
                Ok(Listed {
                    paths: list(root),
                    memory: None,
                })
            }),
            cache,
        }
    }
}

/// Lists `paths`, whatever exists.
pub(crate) fn listing(paths: &'static [&'static str]) -> List {
    Box::new(|_, _| {
        Ok(Listed {
            paths: paths.iter().map(|path| RawPath::new(*path)).collect(),
            memory: None,
        })
    })
}

fn list(root: &Path) -> Vec<RawPath> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else {
                let below = path.strip_prefix(root).unwrap();
                found.push(RawPath::new(below.as_os_str().as_encoded_bytes()));
            }
        }
    }
    found
}

pub(crate) fn function<'a>(report: &'a Report, name: &str) -> &'a Function {
    let found = report.functions.iter().find(|one| one.name == name);
    found.unwrap_or_else(|| panic!("no `{name}` among {:?}", names(report)))
}

pub(crate) fn names(report: &Report) -> Vec<&str> {
    report
        .functions
        .iter()
        .map(|one| one.name.as_str())
        .collect()
}

/// The ids of the findings that may decide.
pub(crate) fn deciding(report: &Report) -> Vec<&str> {
    ids(report, Finding::gates)
}

pub(crate) fn ids(report: &Report, wanted: impl Fn(&Finding) -> bool) -> Vec<&str> {
    let found = report.findings.iter().filter(|finding| wanted(finding));
    found.map(|finding| finding.id.as_str()).collect()
}

/// `line` with `AT` replaced by each number, one after the other.
pub(crate) fn repeated(line: &str, numbers: std::ops::Range<u32>) -> String {
    let lines: Vec<String> = numbers
        .map(|at| line.replace("AT", &at.to_string()))
        .collect();
    lines.concat()
}
