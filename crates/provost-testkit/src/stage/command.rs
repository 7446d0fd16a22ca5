//! Runs the real binary, git and agents in a stage, each with a time limit.

use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use super::{PATH, PATIENCE, Stage};

/// Result of a command.
pub struct Outcome {
    /// The exit status; a signal counts as 128 plus its number, as in a shell.
    pub exit: i32,
    /// Standard output as JSON, or null.
    pub json: Value,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        write!(
            formatter,
            "exit {}\n{stdout:.4000}\n{:.4000}",
            self.exit, self.stderr
        )
    }
}

impl Outcome {
    /// The code of the verdict, of a run or of a refusal.
    pub fn code(&self) -> &str {
        let of_run = self.json.pointer("/verdict/code");
        let code = of_run.or_else(|| self.json.pointer("/code"));
        code.and_then(Value::as_str).unwrap_or_default()
    }

    /// Standard output, which must be text.
    pub fn out(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Whether standard output or standard error contains `words`.
    pub fn says(&self, words: &str) -> bool {
        self.out().contains(words) || self.stderr.contains(words)
    }

    /// A text of the JSON answer.
    pub fn text(&self, name: &str) -> &str {
        self.json[name].as_str().unwrap_or_default()
    }

    /// Reason and path of every finding of the verdict.
    pub fn findings(&self) -> Vec<(String, String)> {
        let rows = self.json.pointer("/verdict/details/findings");
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = rows.and_then(Value::as_array).into_iter().flatten();
        rows.map(|row| (text(row, "reason"), text(row, "path")))
            .collect()
    }
}

/// A running command in its own process group.
pub struct Running {
    child: Child,
    output: [File; 2],
}

impl Running {
    /// Waits for its end.
    pub fn wait(mut self) -> Outcome {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > PATIENCE {
                self.signal_all(Signal::KILL);
                panic!("it did not end in time: {:?}", self.outcome(127));
            }
            sleep(Duration::from_millis(2));
        };
        self.outcome(exit(status))
    }

    fn outcome(&self, exit: i32) -> Outcome {
        let [stdout, stderr] = self.output.each_ref().map(content);
        Outcome {
            exit,
            json: serde_json::from_slice(&stdout).unwrap_or_default(),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn progressed(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal to this one process.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal to its whole process group, as a terminal does.
    pub fn signal_all(&self, signal: Signal) {
        let _ = kill_process_group(self.pid(), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.progressed() {
            self.signal_all(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// The content of a file that a child may still write.
fn content(file: &File) -> Vec<u8> {
    let length = file.metadata().unwrap().len();
    let mut bytes = vec![0; length.try_into().unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn exit(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap()
}

/// The binary under test: cargo puts it two directories above the running test.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    try_program().unwrap_or_else(|| panic!("beside {}: not built", test.display()))
}

/// The same, if it is built.
pub(super) fn try_program() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2)?.join("provost");
    program.is_file().then_some(program)
}

/// Gives `command` the environment of a user who set nothing: everything is in the home, if there
/// is one at all.
pub fn only_home(command: &mut Command, home: Option<&Path>) {
    for name in ["CACHE", "CONFIG", "STATE"] {
        command.env_remove(format!("XDG_{name}_HOME"));
    }
    command.env_remove("PROVOST_KEYS");
    match home {
        Some(home) => command.env("HOME", home),
        None => command.env_remove("HOME"),
    };
}

impl Stage {
    /// The binary under test, with arguments.
    pub fn provost(&self, words: &[&str]) -> Command {
        let own = self.path("provost");
        let program = if own.exists() { own } else { program() };
        let mut command = self.command(&program.display().to_string());
        command.args(words);
        command
    }

    /// Gives the stage a copy of the binary, for users who cannot reach the original.
    pub fn copy_binary(&self) {
        // Not by this process: a sibling thread that forks would keep the copy open for writing.
        let done = Command::new("cp")
            .arg(program())
            .arg(self.path("provost"))
            .status();
        assert!(done.unwrap().success());
        self.own();
    }

    /// A program in the repository, as the stage's user, with nothing of this environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = match self.user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={user}"), format!("--regid={user}")])
                    .args(["--clear-groups", program]);
                command
            }
        };
        command
            .current_dir(self.path("repo"))
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("PROVOST_KEYS", self.path("config/keys"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .process_group(0);
        // So that all of these tests can be run on overlays.
        if let Some(kind) = std::env::var_os("PROVOST_WORKSPACE") {
            command.env("PROVOST_WORKSPACE", kind);
        }
        command
    }

    /// Starts `command`, whose output is kept.
    pub fn spawn(&self, mut command: Command) -> Running {
        let output = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let [stdout, stderr] = output.each_ref().map(|file| file.try_clone().unwrap());
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Running { child, output }
    }

    /// Runs the binary with these arguments.
    pub fn ask(&self, words: &[&str]) -> Outcome {
        self.spawn(self.provost(words)).wait()
    }

    /// Runs `command` with this text as standard input.
    pub fn feed(&self, mut command: Command, text: &str) -> Outcome {
        command.stdin(Stdio::piped());
        let mut running = self.spawn(command);
        let mut pipe = running.child.stdin.take().unwrap();
        pipe.write_all(text.as_bytes()).unwrap();
        drop(pipe);
        running.wait()
    }

    /// Whether this machine can make a sandbox; if not, the test is skipped.
    pub fn has_sandbox(&self) -> bool {
        let mut command = self.provost(&["sandbox", "--", "true"]);
        command.current_dir(self.path("home"));
        let trial = self.spawn(command).wait();
        if trial.exit == 4 {
            let why = trial.stderr.lines().next().unwrap_or_default();
            crate::skip(&format!("no sandbox can be made here: {why}"));
            return false;
        }
        assert_eq!(trial.exit, 0, "{trial:?}");
        true
    }

    pub fn verify(&self, run: &str) -> Outcome {
        let bundle = self.evidence(run, "").display().to_string();
        self.ask(&["verify", &bundle, "--json"])
    }

    /// Runs git in the repository, which must succeed, and returns its output.
    pub fn git(&self, words: &[&str]) -> String {
        self.git_in("repo", words)
    }

    /// The same in another directory of the stage.
    pub fn git_in(&self, directory: &str, words: &[&str]) -> String {
        let mut command = self.command("git");
        crate::unconfigured(&mut command);
        command.current_dir(self.path(directory)).args(words);
        let outcome = self.spawn(command).wait();
        assert_eq!(outcome.exit, 0, "git {words:?}: {}", outcome.stderr);
        String::from_utf8(outcome.stdout).unwrap().trim().to_owned()
    }

    /// A clone of the repository at `name`, with the base checked out.
    pub fn clone(&self, name: &str) {
        let (from, to) = (self.path("repo"), self.path(name));
        let words = [from, to].map(|path| path.display().to_string());
        self.git(&["clone", "-q", &words[0], &words[1]]);
        self.identify(name);
    }

    /// Copies a directory of the stage, as an archive would.
    pub fn copy(&self, from: &str, to: &str) {
        let mut command = self.command("cp");
        command.arg("-a").args([self.path(from), self.path(to)]);
        let outcome = self.spawn(command).wait();
        assert_eq!(outcome.exit, 0, "{outcome:?}");
    }

    /// Runs an agent without any sandbox, in a clone of the repository at `name`. Home and scratch
    /// space are those of the stage; the script must write to no other path of the host.
    pub fn run_plainly(&self, script: &str, name: &str) -> Outcome {
        // The stage itself may be below one of these.
        let named = script.replace(&self.mark(), "");
        for shared in ["/tmp", "/dev/shm"] {
            assert!(!named.contains(shared), "{shared} is the host's: {script}");
        }
        self.clone(name);
        let agent = self.agent(script);
        let (program, script) = agent.split_once(' ').unwrap();
        let mut command = self.command(program);
        let scratch = self.path(&format!("{name}.scratch"));
        fs::create_dir(&scratch).unwrap();
        self.own();
        command.arg(script).current_dir(self.path(name));
        command.env("TMPDIR", scratch);
        self.spawn(command).wait()
    }
}
