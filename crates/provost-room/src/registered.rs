//! The repositories that the user registered, one path a line, in the user's state directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::foreign_text::one_line;
use provost_core::object::sha256;
use provost_fs::atomic::{self, Durability};
use provost_fs::stamp::Stamp;
use provost_host::user_state::UserState;
use provost_surface::answer::Failure;
use provost_surface::places;

const FILE: &str = "repositories";

/// The registered directories, in the order of their registration.
pub fn list(state: &UserState) -> Result<Vec<PathBuf>, Failure> {
    let path = state.directory().join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(&path, &error)),
    };
    let lines = text.lines().filter(|line| line.starts_with('/'));
    Ok(lines.map(PathBuf::from).collect())
}

/// The number of a repository in links and in the API: 16 hexadecimal digits.
pub fn id(directory: &Path) -> String {
    sha256(directory.as_os_str().as_encoded_bytes())[..16].to_owned()
}

/// When the list changed last; two equal stamps mean the same list.
pub fn stamp(state: &UserState) -> Option<Stamp> {
    let stat = rustix::fs::lstat(state.directory().join(FILE)).ok()?;
    Some(Stamp::of(&stat))
}

/// Registers `directory`, if it is not yet.
pub fn add(state: &UserState, directory: &Path) -> Result<(), Failure> {
    let mut all = list(state)?;
    let writable = directory.to_str().filter(|it| !it.contains('\n'));
    if writable.is_none() || all.iter().any(|it| it == directory) {
        return Ok(());
    }
    all.push(directory.to_owned());
    write(state, &all)
}

/// Removes the repository with this path or number; its directory. Nothing in it is touched.
pub fn remove(state: &UserState, named: &str) -> Result<PathBuf, Failure> {
    let mut all = list(state)?;
    let here = std::path::absolute(named).unwrap_or_default();
    let at = all.iter().position(|it| *it == here || id(it) == named);
    let Some(at) = at else {
        let reason = format!("`{}` is not registered", one_line(named));
        let failure = Failure::new(Code::NotFound, reason);
        return Err(failure.hint("provost serve repositories list"));
    };
    let removed = all.remove(at);
    write(state, &all)?;
    Ok(removed)
}

fn write(state: &UserState, all: &[PathBuf]) -> Result<(), Failure> {
    let lines = all.iter().map(|it| format!("{}\n", it.display()));
    let text: String = lines.collect();
    let path = state.made().map_err(places::refused)?.join(FILE);
    let written = atomic::replace(&path, text.as_bytes(), 0o600, Durability::Synced);
    written.map_err(|error| failed(&path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
