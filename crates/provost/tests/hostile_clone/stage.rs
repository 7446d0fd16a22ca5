//! Two users: one who prepares a repository full of traps, and one who gets it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long one command may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The value of a variable that only its user knows.
pub(crate) const SECRET: &str = "canary-5e1f0a9d7c3b42e8";

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_default()
    }

    /// The code of the refusal, however it is told.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        let code = json.pointer("/verdict/code").or(json.get("code"));
        code.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        self.stdout.contains(words) || self.stderr.contains(words)
    }
}

/// A directory with the homes of users and their repositories.
pub(crate) struct Stage {
    directory: TempDir,
    /// What somebody sent to the server.
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    /// Where the server is.
    pub(crate) place: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let place = server(Arc::clone(&heard));
        let stage = Self {
            directory,
            heard,
            place,
        };
        for name in ["author", "victim", "victim/outside"] {
            fs::create_dir_all(stage.path(name)).unwrap();
        }
        stage.write("victim/private", &format!("{SECRET}\n"));
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program of `user` in the directory `at`, with nothing of this environment.
    pub(crate) fn command(&self, user: &str, at: &str, program: &str) -> Command {
        let home = self.path(user);
        let mut command = Command::new(program);
        command
            .current_dir(self.path(at))
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("CANARY_TOKEN", SECRET)
            .stdin(Stdio::null());
        command
    }

    fn end(&self, mut command: Command) -> Outcome {
        let out = tempfile::NamedTempFile::new_in(self.directory.path()).unwrap();
        let err = tempfile::NamedTempFile::new_in(self.directory.path()).unwrap();
        command.stdout(out.reopen().unwrap());
        command.stderr(err.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let since = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if since.elapsed() > PATIENCE {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        };
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        Outcome {
            exit: status.code(),
            stdout: text(out.path()),
            stderr: text(err.path()),
        }
    }

    /// Runs the program under test as `user` in `at`.
    pub(crate) fn ask(&self, user: &str, at: &str, words: &[&str]) -> Outcome {
        let mut command = self.command(user, at, env!("CARGO_BIN_EXE_provost"));
        command.args(words);
        self.end(command)
    }

    /// The same with these variables of the environment.
    pub(crate) fn ask_with(
        &self,
        user: &str,
        at: &str,
        words: &[&str],
        variables: &[(&str, &Path)],
    ) -> Outcome {
        let mut command = self.command(user, at, env!("CARGO_BIN_EXE_provost"));
        command.args(words).envs(variables.iter().copied());
        self.end(command)
    }

    /// Runs git as `user` in `at`, which must succeed.
    pub(crate) fn git(&self, user: &str, at: &str, words: &[&str]) -> String {
        let mut command = self.command(user, at, "git");
        let allow = ["-c", "protocol.file.allow=always"];
        command.args(allow).args(words);
        let outcome = self.end(command);
        assert_eq!(outcome.exit, Some(0), "git {words:?}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// A repository of `user` at `at` with these files.
    pub(crate) fn repository(&self, user: &str, at: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.path(at)).unwrap();
        self.git(user, at, &["init", "-q", "-b", "main"]);
        for (name, value) in [("user.name", "x"), ("user.email", "x@localhost")] {
            self.git(user, at, &["config", name, value]);
        }
        for (name, text) in files {
            self.write(&format!("{at}/{name}"), text);
        }
        self.git(user, at, &["add", "-A"]);
        self.git(user, at, &["commit", "-q", "-m", "base"]);
    }

    /// Forgets what was heard.
    pub(crate) fn hush(&self) {
        self.heard.lock().unwrap().clear();
    }

    /// What was heard since.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Every run in `at`, oldest first.
    pub(crate) fn runs(&self, at: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(at).join(".provost/runs"));
        let names = entries.into_iter().flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Copies a directory, as an archive would.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        let done = Command::new("cp")
            .arg("-a")
            .args([self.path(from), self.path(to)])
            .status();
        assert!(done.unwrap().success());
    }
}

/// A server on the loopback that keeps what it is sent; its place.
fn server(heard: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            heard.lock().unwrap().push(request.join("\n"));
            let reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\ngood\n";
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    place
}
