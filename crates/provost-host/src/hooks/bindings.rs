//! Reads and writes the bindings, and finds the checkouts that they name.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::json;
use provost_engine::binding::{Binding, Bindings, Bound, HookStop};
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};
use serde_json::json;

use super::{broken, git};
use crate::git::Repository;

/// The file with all bindings, in the runtime root.
const BINDINGS: &str = "hooks.json";

/// All bindings, each checkout with its present path and git directory, or without a git directory
/// if it is gone; a file that cannot be read is an error, not an empty list.
pub fn read(repo: &Repository, root: &Path) -> Result<Bindings, PortError> {
    let path = root.join(BINDINGS);
    let mut all: Bindings = match fs::read(&path) {
        Ok(bytes) => json::parse_as(&bytes).map_err(|error| broken(error, &path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Bindings::default(),
        Err(error) => return Err(broken(error, &path)),
    };
    for binding in &mut all.bindings {
        let Bound::Checkout(path) = &mut binding.to else {
            continue;
        };
        let known = binding.git_dir.as_deref().map(Path::new);
        let found = repo.find_git_dir(known, Path::new(path));
        let found = found.map_err(git)?;
        if let Some(git_dir) = &found {
            let present = repo.checkout_at(git_dir);
            if present != *git_dir && present.is_dir() {
                *path = present.display().to_string();
            }
        }
        binding.git_dir = found.map(|git_dir| git_dir.display().to_string());
    }
    Ok(all)
}

/// All bindings; refuses if the checkout of one is gone.
pub fn read_found(repo: &Repository, root: &Path) -> Result<Bindings, HookStop> {
    let all = read(repo, root)?;
    all.all_found().map_err(HookStop::Refused)?;
    Ok(all)
}

/// Writes all bindings into the runtime root, which exists.
pub fn write(root: &Path, all: &Bindings) -> Result<(), PortError> {
    let path = root.join(BINDINGS);
    let text = format!("{:#}\n", json!(all));
    atomic::replace(&path, text.as_bytes(), 0o666, Durability::Synced)
        .map_err(|error| broken(error, &path))
}

/// The git directory of this checkout and the branch it is on, if `to` is this checkout.
pub fn identity(
    repo: &Repository,
    to: &Bound,
) -> Result<(Option<String>, Option<String>), PortError> {
    if matches!(to, Bound::Branch(_)) {
        return Ok((None, None));
    }
    let branch = repo.head_branch().map_err(git)?;
    Ok((Some(here(repo)), branch))
}

/// The git directory of this checkout, as bindings name it.
pub fn here(repo: &Repository) -> String {
    repo.git_dir().display().to_string()
}

/// What `hook status` says of a bound checkout that is gone, or whose files are.
pub fn gone(repo: &Repository, binding: &Binding) -> Option<String> {
    let Bound::Checkout(path) = &binding.to else {
        return None;
    };
    let word = match &binding.git_dir {
        None => "its checkout is gone: provost hook unbind --checkout PATH",
        // Moved by hand, it is known where git runs in it.
        Some(_) if Path::new(path).is_dir() || binding.is_of(Some(&here(repo))) => return None,
        Some(_) => "its directory is gone; what moves its branch is still judged",
    };
    Some(word.to_owned())
}
