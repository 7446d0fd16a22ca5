//! The stage: a temporary repository, and the program itself called in it as a user would.
//!
//! # Invariants
//!
//! - Everything lies in one new directory: repository, runs, cache, keys, home. The programs that
//!   are started get an environment of this directory alone.
//! - Every wait has a limit, and Ctrl-C ends it.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::gate::command::quote;
use provost_engine::ports::PortError;
use provost_host::git::Git;
use provost_host::ids;
use provost_host::sandbox::SYSTEM_PATH;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::canary::{self, Listener, Picture};

/// The longest time for one call.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long a call may take to end after the demo was cancelled.
const GRACE: Duration = Duration::from_secs(10);

/// A task for an agent.
pub(super) struct Task {
    pub(super) objective: &'static str,
    /// The acceptance command.
    pub(super) accept: &'static str,
}

/// The task of all agents but one.
pub(super) const SLUG: Task = Task {
    objective: "Join words by one dash, however many spaces are between them",
    accept: "sh tests/slug_test.sh",
};

/// The task of the agent with a reviewer.
pub(super) const WORDS: Task = Task {
    objective: "Count the words of a title, however many spaces are between them",
    accept: "sh tests/words_test.sh",
};

/// The time limit of an agent that is not expected to reach it.
const AMPLE: &str = "50s";

const PROJECT: [(&str, &str); 4] = [
    ("src/slug.sh", include_str!("project/slug.sh")),
    ("src/words.sh", include_str!("project/words.sh")),
    ("tests/slug_test.sh", include_str!("project/slug_test.sh")),
    ("tests/words_test.sh", include_str!("project/words_test.sh")),
];

const AGENTS: [(&str, &str); 7] = [
    ("honest.sh", include_str!("agents/honest.sh")),
    ("greedy.sh", include_str!("agents/greedy.sh")),
    ("liar.sh", include_str!("agents/liar.sh")),
    ("reaching.sh", include_str!("agents/reaching.sh")),
    ("hanging.sh", include_str!("agents/hanging.sh")),
    ("hasty.sh", include_str!("agents/hasty.sh")),
    ("reviewer.sh", include_str!("agents/reviewer.sh")),
];

/// Why a call gave no answer.
pub(super) type Trouble = String;

pub(super) struct Stage {
    /// The directory that holds everything.
    pub(super) top: PathBuf,
    /// A listener that an agent may try to connect to.
    pub(super) listener: Listener,
    /// The content of the private key.
    pub(super) secret: String,
    /// The repository as the user left it.
    pub(super) before: Picture,
    /// The answer of the honest run.
    pub(super) honest: Value,
    /// The answer of the reviewed run.
    pub(super) fixed: Value,
    own: PathBuf,
    path: String,
    kept: bool,
    cancelled: Arc<AtomicBool>,
}

impl Stage {
    /// Creates the stage in a new directory, which is `kept` or removed afterwards.
    pub(super) fn new(kept: bool) -> Result<Self, PortError> {
        let git = Git::find(&[]).map_err(|error| PortError::of(Code::GitMissing, error))?;
        let near = git.program().parent().unwrap_or(Path::new("/usr/bin"));
        let own = std::env::current_exe().map_err(|error| refused("find this program", &error))?;
        let name = ids::trace_id().map_err(|error| PortError::of(Code::HostFailed, error))?;
        let place = std::env::temp_dir();
        let top = place
            .canonicalize()
            .map_err(|error| refused(&format!("use `{}`", place.display()), &error))?
            .join(format!("provost-demo-{}", &name[..12]));
        let listener = Listener::new().map_err(|error| refused("listen on loopback", &error))?;
        DirBuilder::new()
            .mode(0o700)
            .create(&top)
            .map_err(|error| refused(&format!("make `{}`", top.display()), &error))?;
        let cancelled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without a handler the signal ends this process, and the directory stays.
            let _ = signal_hook::flag::register(signal, Arc::clone(&cancelled));
        }
        let mut stage = Self {
            listener,
            secret: format!("private key {name}"),
            before: Picture::new(),
            honest: Value::Null,
            fixed: Value::Null,
            own,
            path: format!("{}:{SYSTEM_PATH}", near.display()),
            kept,
            cancelled,
            top,
        };
        stage
            .furnish()
            .map_err(|error| refused("prepare the demo", &error))?;
        stage
            .found_repository()
            .map_err(|trouble| PortError::new(Code::HostFailed, trouble))?;
        Ok(stage)
    }

    fn furnish(&self) -> io::Result<()> {
        let mut files: Vec<(PathBuf, &str)> = vec![(self.key(), &self.secret)];
        files.extend(PROJECT.map(|(name, text)| (self.repository().join(name), text)));
        files.extend(AGENTS.map(|(name, text)| (self.agent(name), text)));
        files.extend(PROJECT.map(|(name, text)| (self.decoys().join(name), text)));
        files.push((self.decoys().join(".git/hooks/none"), ""));
        for (path, text) in files {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        fs::create_dir(self.top.join("tmp"))
    }

    /// Creates the repository of a user: the project, and what `provost init` adds.
    fn found_repository(&mut self) -> Result<(), Trouble> {
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        self.provost(&["init"])?;
        self.git(&["add", "--all"])?;
        self.git(&[
            "commit",
            "--quiet",
            "--message=Two programs, and tests that fail",
        ])?;
        self.before = self.picture()?;
        Ok(())
    }

    /// The repository that the agents work on.
    pub(super) fn repository(&self) -> PathBuf {
        self.top.join("repository")
    }

    /// A directory that looks like the repository, to show what an agent does to it unsandboxed.
    pub(super) fn decoys(&self) -> PathBuf {
        self.top.join("decoys")
    }

    /// The private key in the home of the demo's user.
    pub(super) fn key(&self) -> PathBuf {
        self.top.join("home/.ssh/id_ed25519")
    }

    pub(super) fn agent(&self, name: &str) -> PathBuf {
        self.top.join("agents").join(name)
    }

    pub(super) fn picture(&self) -> Result<Picture, Trouble> {
        canary::picture(&self.repository()).map_err(|error| error.to_string())
    }

    /// Whether a file of the repository differs from what the user left.
    pub(super) fn differs(&self, name: &Path) -> Result<bool, Trouble> {
        Ok(self.picture()?.get(name) != self.before.get(name))
    }

    /// Whether the user pressed Ctrl-C.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Runs an agent with these arguments on the first task, and returns the answer.
    pub(super) fn run(&self, agent: &str, arguments: &[&str]) -> Result<Value, Trouble> {
        self.ask(&SLUG, &self.shell(agent, arguments), &[])
    }

    /// The command line that starts an agent with these arguments.
    pub(super) fn shell(&self, agent: &str, arguments: &[&str]) -> String {
        let script = self.agent(agent).display().to_string();
        let mut command = format!("sh {}", quote(&script));
        for argument in arguments {
            command += &format!(" {}", quote(argument));
        }
        command
    }

    /// Calls `provost run` with a task, the command line of an agent and `more` flags, and returns
    /// its answer.
    pub(super) fn ask(&self, task: &Task, agent: &str, more: &[&str]) -> Result<Value, Trouble> {
        let mut arguments = vec!["run", task.objective, "--allow", "src"];
        arguments.extend(["--accept", task.accept, "--agent-cmd", agent]);
        arguments.extend(more);
        if !more.contains(&"--timeout") {
            arguments.extend(["--timeout", AMPLE]);
        }
        self.provost(&arguments)
    }

    /// Calls this program with `arguments` and `--json`, and returns its answer.
    pub(super) fn provost(&self, arguments: &[&str]) -> Result<Value, Trouble> {
        let mut command = self.command(&self.own, &self.repository());
        command.args(arguments).arg("--json");
        let said = self.follow(command)?;
        let name = arguments.first().copied().unwrap_or_default();
        serde_json::from_slice::<Value>(&said.stdout)
            .map_err(|_| format!("`provost {name}` gave no answer: {}", said.words()))
    }

    /// Runs an agent without a sandbox, on decoys.
    pub(super) fn unboxed(&self, agent: &str, arguments: &[&str]) -> Result<Said, Trouble> {
        let mut command = self.command("sh", &self.decoys());
        command.arg(self.agent(agent)).args(arguments);
        self.follow(command)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), Trouble> {
        let mut command = self.command("git", &self.repository());
        let said = self.follow(command.args(arguments))?;
        if said.succeeded {
            return Ok(());
        }
        Err(format!("`git {}`: {}", arguments.join(" "), said.words()))
    }

    /// A command in `directory` whose environment has only paths of the stage.
    fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8")
            .env("HOME", self.top.join("home"))
            .env("TMPDIR", self.top.join("tmp"))
            .env("XDG_CACHE_HOME", self.top.join("cache"))
            .env("PROVOST_ROOT", self.top.join("runtime"))
            .env("PROVOST_KEYS", self.top.join("keys"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Demo");
            command.env(format!("GIT_{role}_EMAIL"), "demo@localhost");
        }
        command
    }

    /// Runs a command to its end, within a time limit.
    fn follow(&self, mut command: impl std::borrow::BorrowMut<Command>) -> Result<Said, Trouble> {
        let trouble = |error: io::Error| error.to_string();
        let (out, complaints) = (self.top.join("tmp/out"), self.top.join("tmp/complaints"));
        let mut child = command
            .borrow_mut()
            .stdin(Stdio::null())
            .stdout(File::create(&out).map_err(trouble)?)
            .stderr(File::create(&complaints).map_err(trouble)?)
            .spawn()
            .map_err(trouble)?;
        let ended = self.wait(&mut child);
        Ok(Said {
            succeeded: ended?,
            stdout: fs::read(&out).map_err(trouble)?,
            stderr: fs::read(&complaints).map_err(trouble)?,
        })
    }

    /// Waits for `child`; returns whether it succeeded.
    fn wait(&self, child: &mut Child) -> Result<bool, Trouble> {
        let mut limit = Instant::now() + PATIENCE;
        let mut asked = false;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Ok(status.success());
            }
            if self.is_cancelled() && !asked {
                asked = true;
                limit = Instant::now() + GRACE;
                if let Ok(pid) = i32::try_from(child.id())
                    && let Some(pid) = Pid::from_raw(pid)
                {
                    // If it has exited already, the next poll sees that.
                    let _ = rustix::process::kill_process(pid, Signal::TERM);
                }
            }
            if Instant::now() > limit {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "a call did not end within {} s",
                    PATIENCE.as_secs()
                ));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.top) {
            // A failure to write to stderr cannot be reported.
            let _ = writeln!(
                io::stderr().lock(),
                "`{}` is left behind: {error}",
                self.top.display()
            );
        }
    }
}

/// The output of a call.
pub(super) struct Said {
    succeeded: bool,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Said {
    /// The last lines of stderr, in one line.
    fn words(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let lines: Vec<&str> = text.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("; ")
    }
}

fn refused(what: &str, error: &io::Error) -> PortError {
    PortError::new(Code::HostFailed, format!("cannot {what}: {error}"))
}
