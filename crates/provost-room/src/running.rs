//! Servers that run now, and links that were offered for them later.
//!
//! In the user's state directory, for its owner alone: a file for each server, which the server
//! holds locked as long as it lives, and beside it the digest of a code that opens one session.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json;
use provost_core::path::is_segment;
use provost_fs::atomic::{self, Durability};
use provost_fs::lock::{FileLock, Hold};
use provost_host::clock;
use provost_host::user_state::UserState;
use provost_surface::answer::Failure;
use provost_surface::places;
use provost_web::{OfferedCode, offered_code};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// The directory in the user's state.
const DIRECTORY: &str = "serve";

/// What a server says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningServer {
    /// The socket, or the address with its port.
    pub place: String,
    /// The one value of `Host`.
    pub host: String,
}

impl RunningServer {
    /// Names the server among all.
    fn instance(&self) -> &str {
        self.host.split('.').next().unwrap_or_default()
    }
}

/// The entry of a server; it counts until this is dropped.
#[derive(Debug)]
pub struct RunningEntry {
    path: PathBuf,
    _lock: FileLock,
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        // What is left is recognised by its lock.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("code"));
    }
}

/// Enters a server that answers at `place` under the name `host`.
pub fn enter(state: &UserState, place: &str, host: &str) -> Result<RunningEntry, Failure> {
    let server = RunningServer {
        place: place.to_owned(),
        host: host.to_owned(),
    };
    let directory = state.made().map_err(places::refused)?.join(DIRECTORY);
    let path = directory.join(server.instance()).with_extension("json");
    let enter = || -> io::Result<FileLock> {
        make(&directory)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let lock = FileLock::try_at(&path, flags, Hold::Alone)?;
        let lock = lock.ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))?;
        let mut file: &File = lock.file();
        file.write_all(&serde_json::to_vec(&server)?)?;
        Ok(lock)
    };
    let lock = enter().map_err(|error| failed(&path, &error))?;
    Ok(RunningEntry { path, _lock: lock })
}

fn make(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)
}

/// The servers that run; entries of others are removed.
pub fn list(state: &UserState) -> Result<Vec<RunningServer>, Failure> {
    let directory = state.directory().join(DIRECTORY);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| failed(&directory, &error))?,
    };
    let mut running = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        match FileLock::try_at(&path, OFlags::RDONLY, Hold::Shared) {
            // The server is alive.
            Ok(None) => {
                let bytes = fs::read(&path).unwrap_or_default();
                running.extend(json::parse_as::<RunningServer>(&bytes).ok());
            }
            Ok(Some(_)) => {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_file(path.with_extension("code"));
            }
            Err(_) => {}
        }
    }
    running.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(running)
}

/// A link that opens one session of a running server, within a minute; an earlier one that was
/// offered ends.
pub fn link(state: &UserState, server: &RunningServer) -> Result<String, Failure> {
    let (code, offered) = offered_code(clock::now_millis())?;
    let path = state.directory().join(DIRECTORY);
    let path = path.join(server.instance()).with_extension("code");
    let text = serde_json::to_vec(&offered).map_err(|error| Failure::of(Code::Bug, &error))?;
    let written = atomic::replace(&path, &text, 0o600, Durability::Cache);
    written.map_err(|error| failed(&path, &error))?;
    Ok(format!("http://{}/?code={code}", server.host))
}

/// The code that was offered for the server `instance`.
pub fn offered(state: &UserState, instance: &str) -> Option<OfferedCode> {
    if !is_segment(instance) {
        return None;
    }
    let path = state.directory().join(DIRECTORY).join(instance);
    let bytes = fs::read(path.with_extension("code")).ok()?;
    json::parse_as(&bytes).ok()
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
