//! Temporary repositories to measure in.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::time;
use crate::Result;
use crate::repository::git;

/// A directory below the current one, so that it is on the same disk.
#[derive(Debug)]
pub(super) struct Ground {
    scratch: tempfile::TempDir,
    made: Cell<u32>,
}

impl Ground {
    pub(super) fn new() -> Result<Self> {
        let place = std::env::current_exe()?;
        let place = place.parent().unwrap_or(Path::new("."));
        Ok(Self {
            scratch: tempfile::tempdir_in(place)?,
            made: Cell::new(0),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// A new small repository, whose acceptance command wants a file that does not exist yet.
    pub(super) fn repository(&self) -> Result<PathBuf> {
        let place = self.fresh()?;
        fs::create_dir(place.join("src"))?;
        fs::write(place.join("src/old"), "old\n")?;
        add_check(&place)?;
        commit(&place)?;
        Ok(place)
    }

    /// A checkout of `count` files in directories of twenty, one of them changed.
    pub(super) fn checkout_of(&self, count: usize) -> Result<String> {
        let place = self.fresh()?;
        for number in 0..count {
            let directory = place.join(format!("d{}/e{}", number / 400, number / 20 % 20));
            fs::create_dir_all(&directory)?;
            let text = format!("file {number}\n").repeat(1 + number % 40 * 20);
            fs::write(directory.join(format!("f{number}.txt")), text)?;
        }
        add_check(&place)?;
        commit(&place)?;
        fs::write(place.join("d0/e0/f0.txt"), "changed\n")?;
        Ok(place.display().to_string())
    }

    /// Duration of one whole run in `repository`, in microseconds.
    pub(super) fn run(&self, provost: &Path, repository: &Path) -> Result<f64> {
        let mut command = self.command(provost, repository);
        command
            .args(["--json", "run", "write a file", "--allow", "src"])
            .args(["--accept", "./check.sh"])
            .args(["--agent-cmd", "sh -c 'mkdir -p src; echo new > src/new'"]);
        time(&mut command)
    }

    /// The program in `repository`, with keys and caches of this ground.
    pub(super) fn command(&self, provost: &Path, repository: &Path) -> Command {
        let mut command = Command::new(provost);
        command
            .current_dir(repository)
            .env("PROVOST_KEYS", self.path().join("keys"))
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_STATE_HOME", self.path().join("state"));
        command
    }

    pub(super) fn fresh(&self) -> Result<PathBuf> {
        self.made.set(self.made.get() + 1);
        let place = self.path().join(format!("r{}", self.made.get()));
        fs::create_dir(&place)?;
        Ok(place)
    }
}

/// The acceptance command of every run: it wants what the agent is to write.
fn add_check(place: &Path) -> Result {
    let check = place.join("check.sh");
    fs::write(&check, "#!/bin/sh\ntest -f src/new\n")?;
    fs::set_permissions(&check, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

pub(super) fn commit(place: &Path) -> Result {
    git(place, &["init", "--quiet", "--initial-branch=main"])?;
    git(place, &["add", "--all"])?;
    git(place, &["commit", "--quiet", "--message=begin"])?;
    Ok(())
}
