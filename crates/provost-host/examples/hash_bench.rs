//! Measures the least that reading and hashing every file of a directory costs, on all cores.
//!
//! The files are listed before the clock starts. Prints the time of one pass in microseconds. The
//! argument is the directory; `.git` at its top is left out.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sha2::{Digest as _, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).ok_or("name a directory")?);
    let mut files = Vec::new();
    list(&directory, &directory.join(".git"), &mut files)?;
    let next = AtomicUsize::new(0);
    let work = || -> std::io::Result<u64> {
        let mut sum = 0;
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let digest = Sha256::digest(std::fs::read(file)?);
            sum += u64::from(digest[0]);
        }
        Ok(sum)
    };
    let begin = Instant::now();
    let threads = std::thread::available_parallelism()?.get();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .all(|thread| matches!(thread.join(), Ok(Ok(_))))
    });
    let elapsed = begin.elapsed();
    if !done {
        return Err("a file cannot be read".into());
    }
    writeln!(
        std::io::stdout(),
        "read+hash {:.1}",
        elapsed.as_secs_f64() * 1e6
    )?;
    Ok(())
}

fn list(directory: &Path, skipped: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if !entry.file_type()?.is_dir() {
            files.push(path);
        } else if path != skipped {
            list(&path, skipped, files)?;
        }
    }
    Ok(())
}
