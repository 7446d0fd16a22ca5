//! Starts git: one hardened way for every call.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::{GitError, system};

/// Time limit of a call, and of each answer of a call that runs until its input ends.
pub(super) const LIMIT: Duration = Duration::from_mins(2);

/// Time limit of a call that moves many objects.
pub(super) const LONG_LIMIT: Duration = Duration::from_mins(10);

/// The most bytes a call may print.
pub(super) const MOST_OUTPUT: u64 = 1 << 30;

/// How many bytes of the error stream are kept.
const MOST_WORDS: u64 = 4096;

/// Settings of every call; they override the repository's configuration.
pub(super) const SETTINGS: &[&str] = &[
    // No program named in a configuration is started.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "gc.auto=0",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    // Bytes and names are taken as they are.
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.quotePath=true",
    "core.untrackedCache=false",
    // Caches beside the objects are not trusted.
    "core.commitGraph=false",
    // A path stays where its author put it.
    "merge.directoryRenames=false",
    "color.ui=false",
    // Our empty graft file needs no warning.
    "advice.graftFileDeprecated=false",
    // What a record names is on disk before the record.
    "core.fsync=all",
    "core.fsyncMethod=fsync",
];

/// The whole environment of a call, apart from `PATH` and the variables of its place.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    // For the reflog only; the caller names the people of a commit.
    ("GIT_AUTHOR_NAME", "provost"),
    ("GIT_AUTHOR_EMAIL", "provost@localhost"),
    ("GIT_COMMITTER_NAME", "provost"),
    ("GIT_COMMITTER_EMAIL", "provost@localhost"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
];

#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// The oldest version that has every feature in use, such as merging two commits on a given
    /// base.
    pub const LEAST: Self = Self {
        major: 2,
        minor: 40,
    };
}

/// The directories of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) objects: Option<&'a Path>,
    pub(super) work_tree: Option<&'a Path>,
    pub(super) index: Option<&'a Path>,
}

/// Result of a call.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) words: String,
}

impl Git {
    /// Finds git in `PATH`, never at a relative path nor below one of `avoid`: a repository must
    /// not supply its own git.
    pub fn find(avoid: &[PathBuf]) -> Result<Self, GitError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .filter(|directory| directory.is_absolute())
            .filter_map(|directory| directory.join("git").canonicalize().ok())
            .find(|program| {
                let usable = |data: std::fs::Metadata| {
                    data.is_file() && data.permissions().mode() & 0o111 != 0
                };
                let inside = avoid.iter().any(|place| program.starts_with(place));
                !inside && program.metadata().is_ok_and(usable)
            })
            .map(|program| Self {
                program,
                limit: LIMIT,
            })
            .ok_or(GitError::NoProgram)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn version(&self) -> Result<Version, GitError> {
        let place = Place {
            git_dir: Path::new("/dev/null"),
            objects: None,
            work_tree: None,
            index: None,
        };
        let output = self.run(&place, &["version"], Vec::new())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = text
            .trim_start_matches("git version ")
            .split('.')
            .map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Version { major, minor }),
            _ => Err(unexpected("version")),
        }
    }

    /// Runs a call that must succeed.
    pub(super) fn run<A: AsRef<OsStr>>(
        &self,
        place: &Place<'_>,
        arguments: &[A],
        input: Vec<u8>,
    ) -> Result<Output, GitError> {
        let output = self.call(place, arguments, input)?;
        if output.status.success() {
            return Ok(output);
        }
        Err(failed(name_of(arguments), &output))
    }

    /// Runs a call whose exit status the caller interprets.
    pub(super) fn call<A: AsRef<OsStr>>(
        &self,
        place: &Place<'_>,
        arguments: &[A],
        input: Vec<u8>,
    ) -> Result<Output, GitError> {
        let command = self.command(place, arguments);
        let limit = if input.is_empty() {
            self.limit
        } else {
            LONG_LIMIT
        };
        whole(command, name_of(arguments), limit, input)
    }

    /// What git prints in `directory` as its user would run it, with the user's own settings.
    pub fn as_user(&self, directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(directory)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let name = name_of(arguments);
        let output = whole(command, name.clone(), self.limit, Vec::new())?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failed(name, &output))
    }

    /// Starts a call that runs until its input ends.
    pub(super) fn start<A: AsRef<OsStr>>(
        &self,
        place: &Place<'_>,
        arguments: &[A],
    ) -> Result<Running, GitError> {
        let mut command = self.command(place, arguments);
        command.stderr(Stdio::null());
        Running::start(command, name_of(arguments), self.limit)
    }

    /// The command of a call: nothing of our environment, our settings, its place.
    fn command<A: AsRef<OsStr>>(&self, place: &Place<'_>, arguments: &[A]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(ENVIRONMENT.iter().copied());
        let mut path = OsString::from(self.program.parent().unwrap_or(Path::new("/")));
        path.push(":/usr/bin:/bin");
        command.env("PATH", path).env("GIT_DIR", place.git_dir);
        let optional = [
            ("GIT_OBJECT_DIRECTORY", place.objects),
            ("GIT_WORK_TREE", place.work_tree),
            ("GIT_INDEX_FILE", place.index),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let directory = place.work_tree.unwrap_or(place.git_dir);
        command.current_dir(if directory.is_dir() {
            directory
        } else {
            Path::new("/")
        });
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.arg("--no-pager").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A process group of its own, so that the time limit reaches its children too.
        command.process_group(0);
        command
    }
}

/// Runs `command` to its end and keeps what it printed.
///
/// A process that was ended by a signal has no answer, whatever the caller makes of exit statuses.
pub(super) fn whole(
    mut command: Command,
    name: String,
    limit: Duration,
    input: Vec<u8>,
) -> Result<Output, GitError> {
    command.stderr(Stdio::piped());
    let mut running = Running::start(command, name, limit)?;
    let stdin = running.child.stdin.take();
    let stdout = running.child.stdout.take();
    let stderr = running.child.stderr.take();
    let (stdout, words) = std::thread::scope(|scope| -> Result<_, GitError> {
        let write = move || {
            // If git stops reading, its exit status says so.
            let _ = stdin.map(|mut pipe| pipe.write_all(&input));
        };
        let threads = Builder::new()
            .spawn_scoped(scope, write)
            .and_then(|_| Builder::new().spawn_scoped(scope, move || drain(stderr, MOST_WORDS)));
        let words = threads.map_err(|error| {
            // The one thread that may have started ends with git.
            running.kill();
            system("start a thread".to_owned())(error)
        })?;
        let stdout = drain(stdout, MOST_OUTPUT + 1);
        Ok((stdout, words.join().unwrap_or_default()))
    })?;
    let command = running.command.clone();
    let status = running.finish()?;
    if stdout.len() as u64 > MOST_OUTPUT {
        return Err(GitError::TooMuch {
            command,
            most: MOST_OUTPUT,
        });
    }
    let output = Output {
        status,
        stdout,
        words: String::from_utf8_lossy(&words).trim().to_owned(),
    };
    if status.code().is_none() {
        return Err(failed(command, &output));
    }
    Ok(output)
}

/// The subcommand, for messages.
fn name_of<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    arguments
        .first()
        .map(|name| name.as_ref().to_string_lossy().into_owned())
        .unwrap_or_default()
}

pub(super) fn failed(command: String, output: &Output) -> GitError {
    GitError::Failed {
        command,
        status: output.status.to_string(),
        words: output.words.clone(),
    }
}

pub(super) fn unexpected(command: &str) -> GitError {
    GitError::Unexpected {
        command: command.to_owned(),
    }
}

/// Keeps the first `most` bytes and discards the rest, so that the writer never blocks.
fn drain(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.by_ref().take(most).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    kept
}

/// A running call; dropping it kills git.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) command: String,
    limit: Duration,
    late: Arc<AtomicBool>,
    /// How often git has answered; the limit begins anew with each answer.
    answers: Arc<AtomicU64>,
    calm: Option<mpsc::Sender<()>>,
    watcher: Option<JoinHandle<()>>,
}

impl Running {
    fn start(mut command: Command, name: String, limit: Duration) -> Result<Self, GitError> {
        let mut child = command
            .spawn()
            .map_err(system(format!("start `git {name}`")))?;
        let late = Arc::new(AtomicBool::new(false));
        let (calm, alarm) = mpsc::channel::<()>();
        let group = group_of(&child);
        let answers = Arc::new(AtomicU64::new(0));
        let watcher = Builder::new().spawn({
            let (late, answers) = (Arc::clone(&late), Arc::clone(&answers));
            move || {
                let mut seen = 0;
                while alarm.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                    let now = answers.load(Ordering::Relaxed);
                    if now == seen {
                        late.store(true, Ordering::SeqCst);
                        return kill(group);
                    }
                    seen = now;
                }
            }
        });
        let watcher = watcher.map_err(|error| {
            // Without a thread that enforces its time limit, git must not run.
            kill(group);
            let _ = child.wait();
            system("start a thread".to_owned())(error)
        })?;
        Ok(Self {
            child,
            command: name,
            limit,
            late,
            answers,
            calm: Some(calm),
            watcher: Some(watcher),
        })
    }

    /// Records that git has answered.
    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Why a process that gave no answer ended.
    pub(super) fn ended(&mut self) -> GitError {
        self.kill();
        match self.settle() {
            Ok(status) => GitError::Failed {
                command: self.command.clone(),
                status: status.to_string(),
                words: "it ended without an answer".to_owned(),
            },
            Err(error) => error,
        }
    }

    /// Waits for the end, at most until the limit.
    pub(super) fn finish(mut self) -> Result<ExitStatus, GitError> {
        drop(self.child.stdin.take());
        drop(self.child.stdout.take());
        self.settle()
    }

    /// Waits for the exit, stops the watcher while the process id is still valid, then reaps.
    fn settle(&mut self) -> Result<ExitStatus, GitError> {
        if let Some(pid) = group_of(&self.child) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while rustix::process::waitid(WaitId::Pid(pid), options)
                .is_err_and(|error| error == rustix::io::Errno::INTR)
            {}
        }
        drop(self.calm.take());
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        let status = self.child.wait().map_err(system("wait for git"))?;
        if self.late.load(Ordering::SeqCst) {
            return Err(GitError::TimedOut {
                command: self.command.clone(),
                limit: self.limit,
            });
        }
        Ok(status)
    }

    pub(super) fn kill(&self) {
        kill(group_of(&self.child));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.watcher.is_some() {
            self.kill();
            let _ = self.settle();
        }
    }
}

/// The process group that `child` leads.
fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group
        && rustix::process::kill_process_group(group, Signal::KILL).is_err()
    {
        // A process that shares our group, so that it can ask on the terminal.
        let _ = rustix::process::kill_process(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests;
