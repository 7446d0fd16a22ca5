//! Reads submodules from their own objects, at exactly the commit that a tree records.
//!
//! # Invariants
//!
//! - The objects are those in `modules/NAME` of the repository's git directory. The checkout of a
//!   submodule is never looked at, and nothing is fetched.
//! - The name comes from `.gitmodules` of the tree. It leads nowhere but below `modules`, and
//!   through no symbolic link.
//! - A submodule whose commit is not there is empty, with a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provost_core::object::{Mode, Oid, sha256};
use provost_core::path::{RawPath, RepoPath};

use super::layer::{self, Layer, Layers};
use super::{Dates, WorkspaceError, checkout, make_all_private};
use crate::git::{GitError, Repository};

const NAMES: &str = ".gitmodules";

/// A submodule of a tree.
#[derive(Debug)]
pub struct Submodule {
    pub path: RepoPath,
    /// The commit that the tree records.
    pub commit: Oid,
    /// Where its objects are, or why it is empty in workspaces.
    pub objects: Result<PathBuf, &'static str>,
}

/// The submodules of `tree`. One at a path that is no text is left out, and stays empty.
pub fn submodules(repo: &Repository, tree: &Oid) -> Result<Vec<Submodule>, GitError> {
    let read = repo.read_tree(tree)?;
    let links = read
        .files
        .iter()
        .filter(|(_, node)| node.mode == Mode::Gitlink);
    let links: Vec<(RepoPath, Oid)> = links
        .filter_map(|(path, node)| Some((RepoPath::try_from(path).ok()?, node.oid.clone())))
        .collect();
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let text = match read.files.get(&RawPath::new(NAMES)) {
        Some(node) if matches!(node.mode, Mode::File | Mode::Executable) => repo.blob(&node.oid)?,
        _ => Vec::new(),
    };
    let names = names(&String::from_utf8_lossy(&text));
    let found = |(path, commit): (RepoPath, Oid)| Submodule {
        objects: find(repo, names.get(path.as_str()), &commit),
        path,
        commit,
    };
    Ok(links.into_iter().map(found).collect())
}

/// The names of submodules by their paths, as `.gitmodules` says.
fn names(text: &str) -> BTreeMap<String, RepoPath> {
    let mut names = BTreeMap::new();
    let mut name = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let quoted = section.strip_prefix("submodule \"");
            let quoted = quoted.and_then(|rest| rest.strip_suffix("\"]"));
            // A name with an escape is none that a directory usually has.
            name = quoted.and_then(|name| RepoPath::try_from(name).ok());
        } else if let (Some(name), Some((key, value))) = (&name, line.split_once('='))
            && key.trim() == "path"
        {
            names.insert(value.trim().trim_end_matches('/').to_owned(), name.clone());
        }
    }
    names
}

fn find(repo: &Repository, name: Option<&RepoPath>, commit: &Oid) -> Result<PathBuf, &'static str> {
    let name = name.ok_or(".gitmodules does not name it")?;
    let absent = "it was never checked out here";
    let modules = repo.common_dir().join("modules");
    let modules = modules.canonicalize().map_err(|_| absent)?;
    let place = modules.join(name.as_str());
    if place.canonicalize().map_err(|_| absent)? != place {
        return Err("a symbolic link leads to its objects");
    }
    let own = open(&place).ok_or(absent)?;
    match own.commit_tree(commit) {
        Ok(_) => Ok(place),
        Err(_) => Err("its commit was not fetched"),
    }
}

/// The repository whose git directory is exactly `place`.
fn open(place: &Path) -> Option<Repository> {
    // Where there is none, a search would find the repository around it.
    Repository::discover(place)
        .ok()
        .filter(|repo| repo.git_dir() == place)
}

/// The files of `submodule`, as a directory that many sandboxes read; `None` if it is empty.
pub(crate) fn hold(
    layers: &Layers,
    submodule: &Submodule,
) -> Result<Option<Layer>, WorkspaceError> {
    let opened = submodule
        .objects
        .as_ref()
        .ok()
        .and_then(|place| open(place));
    let Some(repo) = opened else {
        return Ok(None);
    };
    let tree = repo.commit_tree(&submodule.commit)?;
    let key = sha256(format!("submodule {}", submodule.commit).as_bytes());
    let mut fill = |begun: &Path| -> Result<(), WorkspaceError> {
        let files = begun.join("submodule/files");
        make_all_private(&files)?;
        let tree = repo.read_tree(&tree)?;
        checkout::write(&repo, &tree.files, &files, &Dates::default())?;
        let output = RepoPath::try_from("files").map_err(|_| WorkspaceError::BadObjects {
            path: files.clone(),
        })?;
        layer::close(begun, &key, &[(begun.join("submodule"), output)])
    };
    layers.hold(&key, &mut fill).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_for_each_path_and_leads_nowhere_else() {
        let text = "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n\
            [submodule \"../../outside\"]\n\tpath = evil\n\
            [submodule \"/etc\"]\n\tpath = etc\n\
            [core]\n\tpath = nothing\n\
            [submodule \"a/b\"]\n  path=deep/\n";
        let found: Vec<(String, String)> = names(text)
            .into_iter()
            .map(|(path, name)| (path, name.as_str().to_owned()))
            .collect();
        let want = [("deep", "a/b"), ("vendor/lib", "lib")];
        let want = want.map(|(path, name)| (path.to_owned(), name.to_owned()));
        assert_eq!(found, want);
    }
}
