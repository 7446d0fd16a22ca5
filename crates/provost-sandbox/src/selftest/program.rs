//! Remembers the digest of the launcher's program, so that it is not read each time.
//!
//! # Invariants
//!
//! - A digest counts only for the file it was computed from: the same inode, size and times, and
//!   the same boot. No program can set a change time, so a file that was written to or replaced
//!   is another one.
//! - What changed just before it was read is not remembered, because a later change could have the
//!   same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_core::json;
use provost_core::object::hex;
use provost_fs::stamp::{self, Stamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::private_file;
use crate::LauncherProgram;
use crate::process::BOOT;

/// The largest file of a remembered digest, in bytes.
const LARGEST: u64 = 4096;

fn stamp_of(file: &File) -> io::Result<Stamp> {
    Ok(Stamp::of(&rustix::fs::fstat(file)?))
}

/// What is stored on disk.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    identity: Stamp,
    sha256: String,
}

/// Digests that this process has computed or recalled.
fn known() -> MutexGuard<'static, BTreeMap<Stamp, String>> {
    static KNOWN: Mutex<BTreeMap<Stamp, String>> = Mutex::new(BTreeMap::new());
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Recalls the digest of the program of `launcher` from `directory`, or starts to compute it in the
/// background, so that the self-test does not wait for it.
pub fn foresee(launcher: &LauncherProgram, directory: &Path) {
    let place = place(directory);
    let now = stamp::now();
    let recalled = place
        .as_deref()
        .map(|place| recall(&launcher.exe, place, now));
    if matches!(recalled, Some(Ok(()))) {
        return;
    }
    let path = launcher.exe.clone();
    let compute = move || {
        let computed = compute(&path);
        if let (Ok(remembered), Some(place)) = (computed, place)
            && remembered.identity.is_settled(now)
            && let Ok(bytes) = serde_json::to_vec(&remembered)
        {
            // It only saves time: a digest that cannot be stored is no error.
            let _ = private_file::write(&place, &bytes);
        }
    };
    // Without a thread it is computed when it is needed.
    drop(std::thread::Builder::new().spawn(compute));
}

/// SHA-256 of the program at `path`.
pub(super) fn digest(path: &Path) -> io::Result<String> {
    compute(path).map(|remembered| remembered.sha256)
}

/// Where the digest is stored until the next boot.
fn place(directory: &Path) -> Option<PathBuf> {
    let boot = fs::read_to_string(BOOT).ok()?;
    let sandboxes = directory.join(crate::REMEMBERED).join(boot.trim());
    Some(sandboxes.join("program.json"))
}

fn recall(path: &Path, place: &Path, now: i128) -> io::Result<()> {
    let bytes = private_file::read(place, LARGEST)?;
    let remembered: Remembered = json::parse_as(&bytes).map_err(io::Error::other)?;
    let identity = stamp_of(&File::open(path)?)?;
    if remembered.identity != identity || !identity.is_settled(now) {
        return Err(io::Error::other("it is about another program"));
    }
    known().insert(identity, remembered.sha256);
    Ok(())
}

/// Reads the whole program, once per process as long as it stays the same.
fn compute(path: &Path) -> io::Result<Remembered> {
    let mut file = File::open(path)?;
    let identity = stamp_of(&file)?;
    // Other threads that ask meanwhile wait for this answer.
    let mut known = known();
    if let Some(sha256) = known.get(&identity).cloned() {
        return Ok(Remembered { identity, sha256 });
    }
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => hasher.update(&chunk[..length]),
        }
    }
    let sha256 = hex(&hasher.finalize());
    known.insert(identity, sha256.clone());
    Ok(Remembered { identity, sha256 })
}

#[cfg(test)]
mod tests {
    use provost_core::object::sha256;

    use super::*;

    #[test]
    fn a_remembered_digest_counts_for_exactly_its_file() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("program");
        let place = scratch.path().join("kept/program.json");
        fs::write(&program, "one").unwrap();
        let recalls_at = |remembered: &Remembered, now: i128| {
            private_file::write(&place, &serde_json::to_vec(remembered).unwrap()).unwrap();
            recall(&program, &place, now).is_ok()
        };
        let later = stamp::now() + 4_000_000_000;
        let recalls = |remembered: &Remembered| recalls_at(remembered, later);
        let remembered = compute(&program).unwrap();
        assert_eq!(remembered.sha256, sha256(b"one"));
        let now = stamp::now();
        assert!(!recalls_at(&remembered, now), "it was written just now");
        assert!(recalls(&remembered));
        let others: [fn(&mut Stamp); 5] = [
            |it| it.device += 1,
            |it| it.inode += 1,
            |it| it.size += 1,
            |it| it.modified.1 += 1,
            |it| it.changed.1 += 1,
        ];
        for (at, change) in others.into_iter().enumerate() {
            let mut other = remembered.clone();
            change(&mut other.identity);
            assert!(!recalls(&other), "{at}");
        }
    }
}
