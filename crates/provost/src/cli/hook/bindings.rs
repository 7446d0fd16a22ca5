//! Reads and writes the bindings, and finds the checkouts that they name.

use std::fs;
use std::io;
use std::path::Path;

use provost_core::code::Code;
use provost_core::json;
use provost_engine::binding::{Binding, Bindings, Bound};
use provost_fs::atomic::{self, Durability};
use serde_json::json;

use super::{Stop, broken};
use crate::answer::Failure;
use crate::places::Places;

/// The file with all bindings, in the runtime root.
const BINDINGS: &str = "hooks.json";

/// All bindings, each checkout with its present path and git directory, or without a git directory
/// if it is gone; a file that cannot be read is an error, not an empty list.
pub(super) fn read(place: &Places) -> Result<Bindings, Failure> {
    let path = place.root.join(BINDINGS);
    let mut all: Bindings = match fs::read(&path) {
        Ok(bytes) => json::parse_as(&bytes)
            .map_err(|error| Failure::of(Code::HookBroken, &error).about(&path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Bindings::default(),
        Err(error) => return Err(broken(&error, &path)),
    };
    for binding in &mut all.bindings {
        let Bound::Checkout(path) = &mut binding.to else {
            continue;
        };
        let known = binding.git_dir.as_deref().map(Path::new);
        let found = place.repo.find_git_dir(known, Path::new(path));
        let found = found?;
        if let Some(git_dir) = &found {
            let present = place.repo.checkout_at(git_dir);
            if present != *git_dir && present.is_dir() {
                *path = present.display().to_string();
            }
        }
        binding.git_dir = found.map(|git_dir| git_dir.display().to_string());
    }
    Ok(all)
}

/// All bindings; refuses if the checkout of one is gone.
pub(super) fn read_found(place: &Places) -> Result<Bindings, Stop> {
    let all = read(place)?;
    all.all_found().map_err(Stop::Refused)?;
    Ok(all)
}

pub(super) fn write(place: &Places, all: &Bindings) -> Result<(), Failure> {
    place.prepare()?;
    let path = place.root.join(BINDINGS);
    let text = format!("{:#}\n", json!(all));
    atomic::replace(&path, text.as_bytes(), 0o666, Durability::Synced)
        .map_err(|error| broken(&error, &path))
}

/// The git directory of this checkout and the branch it is on, if `to` is this checkout.
pub(super) fn identity(
    place: &Places,
    to: &Bound,
) -> Result<(Option<String>, Option<String>), Failure> {
    if matches!(to, Bound::Branch(_)) {
        return Ok((None, None));
    }
    let branch = place.repo.head_branch();
    let branch = branch?;
    Ok((Some(here(place)), branch))
}

/// The git directory of this checkout, as bindings name it.
pub(super) fn here(place: &Places) -> String {
    place.repo.git_dir().display().to_string()
}

/// What `hook status` says of a bound checkout that is gone, or whose files are.
pub(super) fn gone(place: &Places, binding: &Binding) -> Option<String> {
    let Bound::Checkout(path) = &binding.to else {
        return None;
    };
    let word = match &binding.git_dir {
        None => "its checkout is gone: provost hook unbind --checkout PATH",
        // Moved by hand, it is known where git runs in it.
        Some(_) if Path::new(path).is_dir() || binding.is_of(Some(&here(place))) => return None,
        Some(_) => "its directory is gone; what moves its branch is still judged",
    };
    Some(word.to_owned())
}
