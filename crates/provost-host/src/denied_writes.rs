//! Writes that the hooks of agents denied, in the runtime root; the newest ones, for people to read.
//!
//! Nothing is decided by them: a denial holds whether or not it could be recorded.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use provost_core::json;
use provost_engine::query::DeniedWrite;
use provost_fs::atomic::{self, Durability};
use provost_fs::lock::{self, FileLock, Hold};
use rustix::fs::OFlags;

const FILE: &str = "denied-writes.jsonl";
const LOCK: &str = "denied-writes.lock";

/// The largest file, in bytes; then the older half is dropped.
const LARGEST: usize = 256 * 1024;

/// How many paths are recorded, and how many characters of each text.
const MOST_PATHS: usize = 20;
const LONGEST: usize = 500;

/// How long another process may hold the file; the hook has to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Records a denial in the runtime root `root`; none is made for it.
pub fn record(root: &Path, denied: &DeniedWrite) -> io::Result<()> {
    if !root.symlink_metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    let flags = OFlags::RDWR | OFlags::CREATE;
    let lock = root.join(LOCK);
    let held = lock::wait(PATIENCE, || FileLock::try_at(&lock, flags, Hold::Alone))?;
    let _held = held.ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))?;
    let mut line = serde_json::to_vec(&shortened(denied))?;
    line.push(b'\n');
    let path = root.join(FILE);
    let length = path.symlink_metadata().map_or(0, |it| it.len());
    if usize::try_from(length).unwrap_or(usize::MAX) + line.len() <= LARGEST {
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(no_link)
            .open(&path)?;
        return file.write_all(&line);
    }
    let known = fs::read(&path)?;
    let half = known.len().saturating_sub(LARGEST / 2);
    let from = known[half..].iter().position(|byte| *byte == b'\n');
    let mut kept = known[from.map_or(known.len(), |at| half + at + 1)..].to_vec();
    kept.extend(line);
    atomic::replace(&path, &kept, 0o600, Durability::Cache)
}

/// At most `most` denials, the newest first. A line that cannot be read is left out.
pub fn newest(root: &Path, most: usize) -> io::Result<Vec<DeniedWrite>> {
    let bytes = match fs::read(root.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let lines = bytes.rsplit(|byte| *byte == b'\n');
    let rows = lines.filter_map(|line| json::parse_as(line).ok());
    Ok(rows.take(most).collect())
}

fn shortened(denied: &DeniedWrite) -> DeniedWrite {
    let short = |text: &String| -> String { text.chars().take(LONGEST).collect() };
    DeniedWrite {
        at: denied.at.clone(),
        agent: denied.agent.as_ref().map(short),
        session: short(&denied.session),
        paths: denied.paths.iter().take(MOST_PATHS).map(short).collect(),
        reason: short(&denied.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(number: usize) -> DeniedWrite {
        DeniedWrite {
            at: format!("2026-01-01T00:00:{number:02}Z"),
            agent: Some("one".to_owned()),
            session: "s".to_owned(),
            paths: vec!["x".repeat(5_000); 50],
            reason: "no declared change is active here".to_owned(),
        }
    }

    #[test]
    fn the_newest_denials_are_kept_within_a_limit() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(newest(root.path(), 9).unwrap(), []);
        for number in 0..100 {
            record(root.path(), &denied(number)).unwrap();
            let length = root.path().join(FILE).metadata().unwrap().len();
            assert!(length <= LARGEST as u64, "{length}");
        }
        let all = newest(root.path(), 1_000).unwrap();
        assert!((10..60).contains(&all.len()), "{}", all.len());
        assert_eq!(all[0], shortened(&denied(99)));
        let paths = &all[0].paths;
        assert_eq!((paths.len(), paths[0].len()), (MOST_PATHS, LONGEST));
        assert_eq!(newest(root.path(), 2).unwrap().len(), 2);
    }

    #[test]
    fn no_link_is_followed_and_no_root_is_made() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        assert!(record(&root, &denied(1)).is_err());
        assert!(!root.exists());
        fs::create_dir(&root).unwrap();
        let other = scratch.path().join("other");
        fs::write(&other, "").unwrap();
        std::os::unix::fs::symlink(&other, root.join(FILE)).unwrap();
        assert!(record(&root, &denied(1)).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"");
    }
}
