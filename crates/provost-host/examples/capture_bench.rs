//! Measures the capture of a checkout against `git status` in it.
//!
//! Prints one line a measure: its name and the median in microseconds. The arguments are the
//! checkout, whose `HEAD` is the base, and the number of turns.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use provost_host::capture::{self, Limits, Mode, Source};
use provost_host::git::Repository;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a checkout")?);
    let turns: usize = match arguments.next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => 5,
    };
    let source = Source::Directory(directory.clone());
    let repository = Repository::discover(&directory)?;
    let base = repository.commit_tree(&repository.resolve("HEAD")?)?;
    let (mut captures, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..turns.max(1) {
        let begin = Instant::now();
        let limits = Limits::default();
        let found = capture::capture(&repository, &base, &source, &limits, Mode::Record)?;
        captures.push(begin.elapsed());
        if found.changes.len() != 1 {
            return Err(format!("{} changes instead of one", found.changes.len()).into());
        }
        let begin = Instant::now();
        let status = Command::new("git")
            .args(["--no-optional-locks", "status", "--porcelain", "-uall"])
            .current_dir(&directory)
            .stdout(Stdio::null())
            .status()?;
        looks.push(begin.elapsed());
        if !status.success() {
            return Err(status.to_string().into());
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "capture {:.1}", micros(captures))?;
    writeln!(out, "git-status {:.1}", micros(looks))?;
    Ok(())
}

fn micros(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
