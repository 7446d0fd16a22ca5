//! Files of one case: a new repository and a linked worktree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use super::super::bounded;
use super::op::Op;
use crate::Result;

/// Time limit of a step of a case.
const SLOWEST: Duration = Duration::from_secs(20);

fn first_files() -> Vec<(&'static str, String)> {
    let lines = |word: &str, count: usize| {
        let line = |number| format!("{word} line {number}\n");
        (0..count).map(line).collect::<Vec<_>>().concat()
    };
    vec![
        ("app/a.txt", lines("a", 3)),
        ("app/b.txt", lines("b", 3)),
        ("app/sub/c.txt", lines("c", 3)),
        ("app2/x.txt", lines("x", 3)),
        ("other/f.txt", lines("f", 3)),
        ("other/long.txt", lines("other", 40)),
        ("README.md", "# a repository\n".to_owned()),
        (".gitignore", "build/\n*.log\n".to_owned()),
    ]
}

pub(super) struct Ground {
    /// The directory of the case; `{CASE}`.
    pub(super) case: PathBuf,
    /// The main checkout; `{REPO}`.
    pub(super) repository: PathBuf,
    /// The directory of the agent; `{WT}`.
    pub(super) worktree: PathBuf,
    /// The baseline commit; `{BASE}`.
    pub(super) base: String,
    /// When the files of the worktree were written, so that a case can restore the times.
    pub(super) times: BTreeMap<PathBuf, SystemTime>,
}

impl Ground {
    /// Makes the repository, applies the `baseline` operations, commits, and adds the worktree.
    pub(super) fn lay(place: &Path, baseline: &[Op]) -> Result<Self> {
        let case = fs::canonicalize(place)?;
        let mut ground = Self {
            repository: case.join("repo"),
            worktree: case.join("wt"),
            case,
            base: String::new(),
            times: BTreeMap::new(),
        };
        let repository = ground.repository.clone();
        fs::create_dir(&repository)?;
        ground.git(&repository, &["init", "-q", "-b", "main"])?;
        for (path, text) in first_files() {
            write(&repository.join(path), text.as_bytes())?;
        }
        ground.git(&repository, &["add", "-A"])?;
        for op in baseline {
            op.apply(&ground, &repository)?;
            // Only what the operation touched: index entries of other operations stay.
            for path in op.paths(&ground) {
                let _ = ground.git(&repository, &["add", "-A", "--", &path]);
            }
        }
        let commit = [
            "commit",
            "-q",
            "--no-verify",
            "--allow-empty",
            "-m",
            "baseline",
        ];
        ground.git(&repository, &commit)?;
        ground.base = ground.git(&repository, &["rev-parse", "HEAD"])?;
        ground.git(
            &repository,
            &["worktree", "add", "-q", "-b", "task", "../wt"],
        )?;
        ground.times = times(&ground.worktree);
        Ok(ground)
    }

    /// Applies the operations of the agent.
    pub(super) fn change(&self, ops: &[Op]) -> Result {
        ops.iter().try_for_each(|op| op.apply(self, &self.worktree))
    }

    /// Checks that no program named by the agent was started.
    pub(super) fn nothing_was_started(&self) -> Result {
        for directory in [&self.case, &self.worktree, &self.repository] {
            if directory.join("canary").symlink_metadata().is_ok() {
                return Err("started a program that the agent named".into());
            }
        }
        Ok(())
    }

    /// `text` with the placeholders replaced.
    pub(super) fn fill(&self, text: &str) -> String {
        text.replace("{BASE}", &self.base)
            .replace("{CASE}", &self.case.to_string_lossy())
            .replace("{WT}", &self.worktree.to_string_lossy())
            .replace("{REPO}", &self.repository.to_string_lossy())
    }

    /// Runs git in `directory`; a failure is an error.
    pub(super) fn git(&self, directory: &Path, words: &[&str]) -> Result<String> {
        let output = Self::run(directory, words)?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let case = self.case.display();
            return Err(format!("git {words:?} in {case}: {complaint}").into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn run(directory: &Path, words: &[&str]) -> Result<Output> {
        bounded(command(directory).args(words), SLOWEST)
    }
}

/// Git as a user has it, without the settings of this machine.
pub(super) fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "agent")
        .env("GIT_AUTHOR_EMAIL", "agent@example.org")
        .env("GIT_COMMITTER_NAME", "agent")
        .env("GIT_COMMITTER_EMAIL", "agent@example.org");
    command
}

/// Writes a file and its parent directories.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result {
    let result = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, bytes));
    Ok(result.map_err(|error| format!("{}: {error}", path.display()))?)
}

fn times(directory: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(data) = entry.path().symlink_metadata() else {
                continue;
            };
            if data.is_dir() {
                open.push(entry.path());
            } else if let Ok(time) = data.modified() {
                found.insert(entry.path(), time);
            }
        }
    }
    found
}
