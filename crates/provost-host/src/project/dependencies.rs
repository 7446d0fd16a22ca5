//! Reads the files of a project that decide how its dependencies are prepared.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use provost_core::object::{Mode, Oid};
use provost_core::path::RawPath;
use provost_engine::dependencies::ProjectFiles;
use provost_engine::dependencies::recipes::file_names;

use crate::git::{GitError, Repository};

/// How much of a file is read; lock files are long, and their beginning says enough.
const MOST: u64 = 1 << 20;

/// The files in the directory `root`. A link is not followed.
pub fn of_directory(root: &Path) -> ProjectFiles {
    let text = |name: &String| {
        let path = root.join(name);
        fs::symlink_metadata(&path)
            .ok()
            .filter(fs::Metadata::is_file)?;
        let mut bytes = Vec::new();
        File::open(&path)
            .ok()?
            .take(MOST)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let found = file_names().into_iter();
    found
        .filter_map(|name| Some((text(&name)?, name)))
        .map(|(text, name)| (name, text))
        .collect()
}

/// The files of the git tree `tree`.
pub fn of_tree(repo: &Repository, tree: &Oid) -> Result<ProjectFiles, GitError> {
    let read = repo.read_tree(tree)?;
    let mut found = ProjectFiles::new();
    for name in file_names() {
        let entry = read.files.get(&RawPath::new(name.as_bytes()));
        let Some(entry) = entry.filter(|it| matches!(it.mode, Mode::File | Mode::Executable))
        else {
            continue;
        };
        let mut bytes = repo.blob(&entry.oid)?;
        bytes.truncate(usize::try_from(MOST).unwrap_or(usize::MAX));
        found.insert(name, String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(found)
}
