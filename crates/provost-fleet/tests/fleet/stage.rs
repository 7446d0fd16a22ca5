//! A whole fleet of processes on one machine: the real server, a hub, two workers and a lander.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long anything may take, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

/// Short, so that losses are noticed while a test waits.
const INTERVALS: &str =
    "heartbeat_ms = 300\nheartbeat_timeout_ms = 2000\npoll_ms = 100\nhub_ms = 30000\n";

/// A shell agent: its instruction is a file, seconds, and a word to write.
const AGENT: &str = r#"spec=$(sed -n 's/.*"spec": *"\([^"]*\)".*/\1/p' "$PROVOST_CONTRACT")
set -- $spec
sleep "$2"
echo "$3" > "$1"
"#;

pub(crate) struct Fleet {
    directory: TempDir,
    port: u16,
    temporal: PathBuf,
    provost: PathBuf,
    running: BTreeMap<String, Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fleet {
    /// A fleet with its server and lander, and no worker; `None` where one cannot be made.
    pub(crate) fn new() -> Option<Self> {
        let own = Path::new(env!("CARGO_BIN_EXE_provost-fleet"));
        let provost = own.parent()?.parent()?.join("debug/provost");
        let temporal = std::env::var_os("PROVOST_TEST_TEMPORAL").map(PathBuf::from);
        let Some(temporal) = temporal.filter(|path| path.is_file()) else {
            provost_testkit::skip("there is no Temporal server; .ci/fleet installs it");
            return None;
        };
        if !provost.is_file() {
            provost_testkit::skip("target/debug has no provost; cargo build makes it");
            return None;
        }
        let directory = tempfile::Builder::new()
            .prefix("provost-fleet-")
            .tempdir()
            .unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut fleet = Self {
            directory,
            port,
            temporal,
            provost,
            running: BTreeMap::new(),
        };
        fleet.prepare();
        fleet.start("server");
        fleet.start("lander");
        Some(fleet)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn prepare(&self) {
        let base = self.path("base");
        fs::create_dir_all(base.join("src")).unwrap();
        fs::create_dir(self.path("home")).unwrap();
        let policy = "[commands]\nallow = [\"sh check.sh\"]\n\
                      [approve]\nidle_commands = true\npaths = [\"src\"]\n";
        for (name, text) in [
            ("agent.sh", AGENT),
            ("check.sh", "test ! -e src/bad\n"),
            ("provost.toml", policy),
            ("src/a.txt", "base\n"),
        ] {
            fs::write(base.join(name), text).unwrap();
        }
        provost_testkit::git(&base, &["init", "-q", "-b", "main"]);
        provost_testkit::git(&base, &["add", "."]);
        provost_testkit::git(&base, &["commit", "-q", "-m", "base"]);
        let mut dev = self.command("user");
        dev.args(["dev", "--prepare", "--port", &self.port.to_string()]);
        dev.args([
            "--agent-cmd",
            "sh agent.sh",
            "--intervals",
            INTERVALS,
            "--repository",
        ]);
        dev.arg(&base).arg(self.path("."));
        let done = dev.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// `provost-fleet` as the machine `name` would start it, in the checkout of the user.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provost-fleet"));
        let work = self.path("work");
        command
            .current_dir(if work.is_dir() { work } else { self.path(".") })
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path(&format!("{name}/xdg-state")))
            .env("XDG_CACHE_HOME", self.path(&format!("{name}/xdg-cache")))
            .env("PROVOST", &self.provost)
            .env("PROVOST_KEYS", self.path(&format!("{name}/keys")))
            .env(
                "PROVOST_FLEET_CONFIG",
                self.path(&format!("{name}/fleet.toml")),
            )
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null());
        command
    }

    /// Starts the server, a worker or the lander, and waits until it is there.
    pub(crate) fn start(&mut self, name: &str) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{name}.log")));
        let log = log.unwrap();
        let mut command = if name == "server" {
            let mut temporal = Command::new(&self.temporal);
            temporal.args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"]);
            temporal.args(["--log-level", "error", "--port", &self.port.to_string()]);
            temporal.arg("--db-filename").arg(self.path("server.db"));
            temporal.env("HOME", self.path("home")).stdin(Stdio::null());
            temporal
        } else {
            let mut own = self.command(name);
            match name {
                "lander" => own.arg("lander"),
                _ => own.args(["worker", "--slots", "2"]),
            };
            own
        };
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.running
            .insert(name.to_owned(), command.spawn().unwrap());
        if name == "server" {
            let port = self.port;
            self.until("the server answers", || {
                std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            // It accepts connections before it takes requests.
            self.until("the server is healthy", || {
                let mut asked = Command::new(&self.temporal);
                asked.args(["operator", "cluster", "health", "--address"]);
                asked
                    .arg(format!("127.0.0.1:{port}"))
                    .env("HOME", self.path("home"));
                asked.output().is_ok_and(|done| done.status.success())
            });
        }
    }

    pub(crate) fn kill(&mut self, name: &str) {
        let mut child = self.running.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn signal(&self, name: &str, signal: Signal) {
        let pid = i32::try_from(self.running[name].id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Writes a contract: `spec` is what the agent reads.
    pub(crate) fn contract(&self, name: &str, spec: &str, allow: &str) -> PathBuf {
        let text = fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/contract-minimal.json"),
        );
        let mut contract: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        contract["task_id"] = format!("fleet-task-{name}").into();
        contract["inputs"]["spec"] = spec.into();
        contract["allowed_paths"] = vec![allow].into();
        contract["acceptance_tests"][0]["cmd"] = "sh check.sh".into();
        contract["acceptance_tests"]
            .as_array_mut()
            .unwrap()
            .truncate(1);
        contract["rollback"]["baseline_ref"] = "HEAD".into();
        let path = self.path(&format!("{name}.contract.json"));
        fs::write(&path, contract.to_string()).unwrap();
        path
    }

    /// Submits a contract and returns the id of its run.
    pub(crate) fn submit(&self, name: &str, spec: &str, allow: &str) -> String {
        let contract = self.contract(name, spec, allow);
        let done = self.as_user(&["submit", "--detach", "-f", &contract.display().to_string()]);
        let run = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        assert!(run.starts_with("run_"), "{done:?}");
        run
    }

    pub(crate) fn as_user(&self, words: &[&str]) -> Output {
        self.command("user").args(words).output().unwrap()
    }

    pub(crate) fn status(&self, run: &str) -> String {
        let done = self.as_user(&["status", run]);
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Waits for the end of a run, and returns how it ended.
    pub(crate) fn end(&self, run: &str) -> String {
        let mut last = String::new();
        self.until(&format!("{run} ends"), || {
            last = self.status(run);
            ["landed", "refused", "cancelled", "lost"]
                .iter()
                .any(|word| last.starts_with(&format!("{run} {word}")))
        });
        last.trim_start_matches(run).trim().to_owned()
    }

    pub(crate) fn git(&self, at: &str, words: &[&str]) -> String {
        provost_testkit::git(&self.path(at), words)
    }

    /// The refs of a run at the hub.
    pub(crate) fn refs(&self, run: &str) -> String {
        self.git(
            "hub.git",
            &["for-each-ref", "--format=%(refname)", "refs/provost/fleet"],
        )
        .lines()
        .filter(|line| line.contains(run))
        .collect::<Vec<_>>()
        .join("\n")
    }

    /// Waits until the agent of the run works on the machine `name`.
    pub(crate) fn until_working(&self, name: &str, run: &str) {
        let attempts = self.path(&format!("{name}/state/attempts/{run}/run/attempt.json"));
        self.until("an attempt begins", || attempts.is_file());
        let runs = self.path(&format!("{name}/state/hubs/main/demo.git/.provost/runs"));
        let works = || {
            let found = fs::read_dir(&runs).into_iter().flatten().flatten();
            let ledgers = found.map(|run| run.path().join("events.jsonl"));
            ledgers
                .filter_map(|it| fs::read_to_string(it).ok())
                .any(|text| text.contains("SANDBOX_TESTED") && !text.contains("AGENT_ENDED"))
        };
        self.until("the agent works", works);
    }

    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(
                since.elapsed() < PATIENCE,
                "waited too long: {what}\n{}",
                self.logs()
            );
            sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let mut text = String::new();
        for name in ["server", "lander", "alpha", "beta"] {
            let log = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            text += &format!("== {name}\n{log}");
        }
        text
    }
}
