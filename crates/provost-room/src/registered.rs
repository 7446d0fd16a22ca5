//! The repositories that the user registered, one path a line, in the user's state directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_fs::atomic::{self, Durability};
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

/// Registers `directory`, if it is not yet.
pub fn add(state: &UserState, directory: &Path) -> Result<(), Failure> {
    let mut all = list(state)?;
    let writable = directory.to_str().filter(|it| !it.contains('\n'));
    if writable.is_none() || all.iter().any(|it| it == directory) {
        return Ok(());
    }
    all.push(directory.to_owned());
    let lines = all.iter().map(|it| format!("{}\n", it.display()));
    let text: String = lines.collect();
    let path = state.made().map_err(places::refused)?.join(FILE);
    let written = atomic::replace(&path, text.as_bytes(), 0o600, Durability::Synced);
    written.map_err(|error| failed(&path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
