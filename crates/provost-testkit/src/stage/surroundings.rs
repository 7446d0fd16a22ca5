//! What a run must leave unchanged: the user's checkout, refs and git directory, and all else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::Stage;

/// Where runs write: evidence, the registry, refs of their own, keys.
const OURS: &[&str] = &[
    "repo/.provost/own",
    "repo/.provost/runs",
    "repo/.provost/plans",
    "repo/.provost/chains",
    "repo/.provost/registry",
    "repo/.provost/detached",
    "repo/.provost/releases",
    "repo/.git/refs/provost",
    "repo/.git/refs/heads/provost",
    "repo/.git/logs/refs/heads/provost",
];

/// What a run may add to, without changing existing files.
const GROWS: &str = "repo/.git/objects";

/// Everything in a stage that is not ours, byte by byte.
#[derive(Debug, PartialEq, Eq)]
pub struct Surroundings(BTreeMap<String, Vec<u8>>);

impl Surroundings {
    /// Paths that differ.
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let changed = self
            .0
            .iter()
            .filter(|(path, bytes)| after.0.get(*path) != Some(bytes));
        let added = after
            .0
            .keys()
            .filter(|path| !self.0.contains_key(*path) && !path.starts_with(GROWS));
        let mut paths: Vec<String> = changed
            .map(|(path, _)| path)
            .chain(added)
            .cloned()
            .collect();
        paths.sort();
        paths
    }
}

impl Stage {
    /// The present state of everything that is not ours.
    pub fn surroundings(&self) -> Surroundings {
        let mut found = BTreeMap::new();
        for name in ["outside", "home", "repo", "cache/provost/other", "provost"] {
            self.read(
                name,
                &|path| OURS.iter().any(|ours| path.starts_with(ours)),
                &mut found,
            );
        }
        Surroundings(found)
    }

    /// The present state of the whole repository with all evidence, and of the cache.
    pub fn everything(&self) -> Surroundings {
        let mut found = BTreeMap::new();
        for name in ["outside", "home", "repo", "cache", "config"] {
            // The shared memory of the registry's readers is not persistent.
            self.read(name, &|path| path.ends_with("-shm"), &mut found);
        }
        Surroundings(found)
    }

    fn read(&self, name: &str, skip: &dyn Fn(&str) -> bool, found: &mut BTreeMap<String, Vec<u8>>) {
        if skip(name) {
            return;
        }
        let path = self.path(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return;
        };
        if metadata.is_dir() {
            for entry in fs::read_dir(&path).unwrap() {
                let entry = entry.unwrap().file_name();
                self.read(&format!("{name}/{}", entry.to_string_lossy()), skip, found);
            }
            return;
        }
        let mut bytes = format!("{:o} ", metadata.permissions().mode()).into_bytes();
        bytes.extend(content(&path, &metadata));
        found.insert(name.to_owned(), bytes);
    }

    /// Every path below `name`, directories too, sorted.
    pub fn paths(&self, name: &str) -> Vec<String> {
        let top = self.path(name);
        let mut open = vec![top.clone()];
        let mut found = Vec::new();
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(&top).unwrap().display().to_string());
                if path.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Directories of runs that are still in the cache.
    pub fn workspaces(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for repository in fs::read_dir(self.path("cache/provost"))
            .into_iter()
            .flatten()
        {
            let workspaces = repository.unwrap().path().join("ws");
            let runs = fs::read_dir(workspaces).into_iter().flatten();
            found.extend(runs.map(|run| run.unwrap().path()));
        }
        found.retain(|path| !path.ends_with("run_other"));
        found
    }
}

fn content(path: &Path, metadata: &fs::Metadata) -> Vec<u8> {
    if metadata.is_symlink() {
        return fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec();
    }
    if !metadata.is_file() {
        return b"special".to_vec();
    }
    if metadata.len() > 1 << 20 {
        // Large files are compared by their times, which a write changes.
        let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
        return format!("{} {seconds}.{nanoseconds}", metadata.len()).into_bytes();
    }
    fs::read(path).unwrap()
}
