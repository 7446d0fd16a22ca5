//! `provost box -- CMD`: any command behind the same walls as an agent.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_host::boxes::{self, Command, Control, How, Launcher, Mount, Profile, Stdin};
use provost_host::machine::user_toolchain;
use serde_json::json;

use super::duration::seconds;
use super::net::Net;
use crate::answer::{Answer, Failure, Outcome};
use crate::show::tell;
use crate::traffic;

/// Run any command behind the same walls as an agent: no home, no network but what is granted,
/// nothing but the system's programs, your toolchains and what is allowed.
#[derive(Args)]
#[command(after_help = "\
Inside, the root holds the system's programs and the toolchains along your PATH, read-only, and
what --read and --allow name, at the places they have outside. Nothing else is there: not your
home, not your environment. The command starts in the last directory that --allow names; without
one in an empty home that is gone afterwards. Its output is passed on as it comes.

Examples:
  provost box -- my-agent --version
  provost box --allow . -- cargo test
  provost box --net example.com:443 -- curl -sS https://example.com/
  provost box --read /srv/data --timeout 20m -- du -sh /srv/data")]
pub(super) struct Boxed {
    /// A directory or file that the command may write, at the same place inside.
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,

    /// A directory or file that the command may read, at the same place inside.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,

    /// When the command is ended: 90, 90s, 20m or 2h.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = seconds)]
    timeout: u64,

    #[command(flatten)]
    net: Net,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(boxed: Boxed) -> Outcome {
    let failed = |error: boxes::BoxError| Failure::of(error.code(), &error);
    let mut profile = Profile::minimal();
    user_toolchain().add_to(&mut profile);
    for path in &boxed.read {
        let source = place(path)?;
        profile.add(Mount::ReadOnly {
            target: source.clone(),
            source,
        });
    }
    for path in &boxed.allow {
        let source = place(path)?;
        if source.is_dir() {
            profile.workdir.clone_from(&source);
        }
        profile.add(Mount::Writable {
            target: source.clone(),
            source,
        });
    }
    profile.limits.wall_seconds = boxed.timeout;
    boxed.net.open(&mut profile);
    let scratch = Scratch::make()?;
    let command = Command {
        argv: boxed.command,
        stdin: Stdin::Null,
        stdout: scratch.0.join("stdout"),
        stderr: scratch.0.join("stderr"),
    };
    let running = Launcher::own()
        .start_with(&profile, &command, boxed.net.outlet()?, |_| Ok(()))
        .map_err(failed)?;
    let mut shown = Shown::default();
    let mut follow = |_| {
        shown.copy(&command);
        Control::Continue
    };
    let ended = running.wait(&mut follow).map_err(failed)?;
    shown.copy(&command);
    for line in traffic::lines(&ended.network) {
        tell(&format!("provost box: network: {line}"));
    }
    let mut answer = answer(ended.how);
    answer.json["network"] = json!(ended.network);
    Ok(answer)
}

fn answer(how: How) -> Answer {
    let (exit, words) = match how {
        How::Exited(0) => (Exit::Yes, None),
        How::Exited(status) => (Exit::No, Some(format!("ended with status {status}"))),
        How::Signalled(signal) => (Exit::No, Some(format!("was ended by signal {signal}"))),
        How::TimedOut => (
            Exit::No,
            Some("did not end in time and was ended".to_owned()),
        ),
        How::OutputLimit => (Exit::No, Some("wrote too much and was ended".to_owned())),
        How::Cancelled => (Exit::No, Some("was cancelled".to_owned())),
    };
    // Stdout belongs to the command.
    if let Some(words) = words {
        tell(&format!("provost box: the command {words}"));
    }
    Answer {
        exit,
        json: json!({ "how": how }),
        text: String::new(),
    }
}

fn place(path: &Path) -> Result<PathBuf, Failure> {
    let found = path.canonicalize().map_err(|error| {
        let reason = format!("`{}`: {error}", path.display());
        Failure::new(Code::InputUnreadable, reason)
    })?;
    if found.starts_with("/proc") {
        let reason = format!("`{}`: a box has a `/proc` of its own", path.display());
        return Err(Failure::new(Code::UsageError, reason));
    }
    Ok(found)
}

/// A directory for the streams, gone when the command is.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("provost-box-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| {
            Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
        })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How much of the streams was shown already.
#[derive(Default)]
struct Shown {
    stdout: u64,
    stderr: u64,
}

impl Shown {
    fn copy(&mut self, command: &Command) {
        self.stdout += pass(&command.stdout, self.stdout, &mut io::stdout());
        self.stderr += pass(&command.stderr, self.stderr, &mut io::stderr());
    }
}

/// Passes on what a file has grown by; the command's own bytes are not ours to change.
fn pass(path: &Path, from: u64, out: &mut dyn io::Write) -> u64 {
    use std::io::Seek as _;
    let mut copy = || -> io::Result<u64> {
        let mut file = fs::File::open(path)?;
        file.seek(io::SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(1 << 20).read_to_end(&mut bytes)?;
        out.write_all(&bytes)?;
        out.flush()?;
        Ok(bytes.len() as u64)
    };
    copy().unwrap_or(0)
}
