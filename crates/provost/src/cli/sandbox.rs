//! `provost sandbox -- CMD`: runs any command in the same sandbox as an agent.

mod grants;
mod selftest;

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::traffic::Traffic;
use provost_core::size;
use provost_core::tier::Tier;
use provost_engine::opening::Origin as _;
use provost_host::machine::user_toolchain;
use provost_host::origin::GitOrigin;
use provost_host::proxy::Outlet;
use provost_host::sandbox::{
    self, Command, Control, Ended, How, LauncherProgram, Network, Profile, SandboxError, Stdin,
};
use serde::Serialize;
use signal_hook::consts::SIGINT;

use super::duration::seconds;
use super::limits::Limits;
use super::net::Net;
use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::places::Places;
use crate::show::{Reader, print_message};
use crate::traffic;

// Run any command in the same sandbox as an agent: no home, no network but what is granted,
// nothing but the system's programs, your toolchains and what is allowed.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Inside, the root holds the system's programs and the toolchains on your PATH, read-only, and
the paths of --read and --allow, at the same places as outside. Nothing else exists there: neither
your home nor your environment. The command starts in the last directory that --allow names;
without one, in an empty home that is removed afterwards. Its output is passed on as it comes.

The exit status is that of the command; 128 and the signal if a signal ended it, 124 if it took
too long, 125 if it used too much, 126 if it cannot be run, 127 if it is not in the sandbox. If
the sandbox itself is refused, `error[CODE]` on stderr says so, and the status is 2 for a wrong
request and 4 for a machine that lacks something. With --json the last line of stderr is an object
with how the command ended or why the sandbox was refused; stdout is the command's alone.

A path must not lead through a symbolic link: exactly the named place is granted. Of nested paths
the deeper one decides. A `.git` or `.provost` in a directory that --allow names can be read and
not written, unless --allow names it too; tier landlock cannot enforce that, and prints a warning.

Examples:
  provost sandbox selftest
  provost sandbox -- my-agent --version
  provost sandbox --allow . -- cargo test
  provost sandbox --net example.com:443 -- curl -sS https://example.com/
  provost sandbox --read /srv/data --timeout 20m -- du -sh /srv/data")]
pub(super) struct SandboxCommand {
    #[command(subcommand)]
    instead: Option<Instead>,

    /// A directory or file that the command may write, at the same place inside.
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,

    /// A directory or file that the command may read, at the same place inside.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,

    /// Time limit of the command: 90s, 20m, 2h or 1d.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = seconds)]
    timeout: u64,

    /// The tier of the sandbox: `namespaces`, or `landlock` where namespaces are missing. There is
    /// no automatic fallback.
    #[arg(long, value_name = "TIER", default_value_t)]
    tier: Tier,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    limits: Limits,

    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

// What can be done with a sandbox but running a command in it.
#[derive(Subcommand)]
enum Instead {
    Selftest(selftest::Selftest),
}

pub(super) fn run(sandboxed: SandboxCommand, reader: Reader) -> Outcome {
    match &sandboxed.instead {
        Some(Instead::Selftest(selftest)) => selftest::run(selftest),
        None => aside(in_a_sandbox(sandboxed), reader),
    }
}

/// Prints the JSON answer on stderr, because stdout belongs to the command that ran.
pub(super) fn aside(outcome: Outcome, reader: Reader) -> Outcome {
    if reader == Reader::Person {
        return outcome;
    }
    let answer = outcome.unwrap_or_else(|failure| failure.verdict().into());
    print_message(&answer.json.to_string());
    Ok(Answer {
        exit: answer.exit,
        ..Answer::silent()
    })
}

fn in_a_sandbox(sandboxed: SandboxCommand) -> Outcome {
    let mut profile = Profile::of_tier(sandboxed.tier);
    user_toolchain().add_to(&mut profile);
    let read = places(&sandboxed.read, grants::readable)?;
    let allow = places(&sandboxed.allow, grants::writable)?;
    if let Some(directory) = allow.iter().rfind(|path| path.is_dir()) {
        profile.workdir.clone_from(directory);
    }
    let grants = grants::grants(&allow, &read, profile.tier)?;
    for mount in grants.mounts {
        profile.add(mount);
    }
    profile.limits.wall_seconds = sandboxed.timeout;
    sandboxed.limits.hold(&mut profile.limits);
    sandboxed.net.open(&mut profile);
    if profile.network == Network::Loopback && is_loopback_off()? {
        profile.network = Network::Deny;
        print_message("provost sandbox: loopback off, by `[sandbox]` of provost.toml at HEAD");
    }
    let outlet = sandboxed.net.outlet()?;
    follow(
        "provost sandbox",
        &profile,
        outlet,
        sandboxed.command,
        grants.open,
    )
}

/// Runs `argv` in a sandbox of `profile`, and says what that sandbox does not stop.
fn follow(
    who: &str,
    profile: &Profile,
    outlet: Outlet,
    argv: Vec<String>,
    open: Vec<PathBuf>,
) -> Outcome {
    let scratch = Scratch::make()?;
    let command = scratch.command(argv, Stdin::Null);
    let running = LauncherProgram::own().start_with(profile, &command, outlet, |_| Ok(()))?;
    let tier = profile.tier;
    for hole in profile.holes() {
        print_message(&format!(
            "{who}: tier {tier} does not stop this: {}",
            hole.words
        ));
    }
    for path in open {
        let path = path.display();
        print_message(&format!(
            "{who}: tier {tier} does not stop this: `{path}` can be written"
        ));
    }
    let mut shown = Shown::default();
    let mut follow = |_| {
        shown.copy(&command);
        Control::Continue
    };
    let ended = running.wait(&mut follow);
    shown.copy(&command);
    let command = SandboxedCommand::of(who, profile, ended)?;
    let sealed_gaps: Vec<&str> = profile.sealed_gaps().collect();
    let tier = TierFacts {
        tier,
        landlock: (!sealed_gaps.is_empty()).then_some(profile.landlock),
        sealed_gaps,
        holes: profile.holes().iter().map(|hole| hole.words).collect(),
    };
    Ok(Answer::from(command).with(tier))
}

/// A command, and everything that its sandbox grants.
pub(super) struct HandSandbox {
    pub(super) allow: Vec<PathBuf>,
    pub(super) read: Vec<PathBuf>,
    pub(super) net: Vec<Endpoint>,
    /// The variables of this program that the command gets.
    pub(super) variables: Vec<String>,
    pub(super) seconds: u64,
    /// 0 where the usual limit holds.
    pub(super) processes: u64,
    pub(super) command: Vec<String>,
}

/// Runs the command of `asked` for `who`, in a sandbox of tier `namespaces` without loopback.
pub(super) fn by_hand(who: &str, asked: HandSandbox) -> Outcome {
    let mut profile = Profile::of_tier(Tier::Namespaces);
    user_toolchain().add_to(&mut profile);
    let read = places(&asked.read, grants::readable)?;
    let allow = places(&asked.allow, grants::writable)?;
    let first = allow.iter().rfind(|path| path.is_dir());
    if let Some(directory) = first.or(read.iter().rfind(|path| path.is_dir())) {
        profile.workdir.clone_from(directory);
    }
    let grants = grants::grants(&allow, &read, profile.tier)?;
    for mount in grants.mounts {
        profile.add(mount);
    }
    profile.limits.wall_seconds = asked.seconds;
    if asked.processes > 0 {
        profile.limits.processes = asked.processes;
    }
    profile.network = Network::Deny;
    if !asked.net.is_empty() {
        profile.grant(asked.net);
    }
    for name in asked.variables {
        if let Ok(value) = std::env::var(&name) {
            profile.env.insert(name, value);
        }
    }
    follow(who, &profile, Outlet::default(), asked.command, grants.open)
}

/// The sandbox of a command.
#[derive(Serialize)]
struct TierFacts {
    tier: Tier,
    /// The version of Landlock inside, if it has gaps that other restrictions close.
    #[serde(skip_serializing_if = "Option::is_none")]
    landlock: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sealed_gaps: Vec<&'static str>,
    holes: Vec<&'static str>,
}

/// Whether the policy of the repository around this directory turns loopback off.
fn is_loopback_off() -> Result<bool, Failure> {
    let Ok(place) = Places::around(Path::new(".")) else {
        return Ok(false);
    };
    let origin = GitOrigin(&place.repo);
    // Without a commit there is no policy.
    let Ok(head) = origin.resolve("HEAD") else {
        return Ok(false);
    };
    Ok(origin.policy(&origin.tree(&head)?)?.loopback_off)
}

fn places(
    paths: &[PathBuf],
    place: fn(&Path) -> Result<PathBuf, Failure>,
) -> Result<Vec<PathBuf>, Failure> {
    paths.iter().map(|path| place(path)).collect()
}

/// A command that ran in a sandbox, or could not be executed there.
#[derive(Serialize)]
pub(super) struct SandboxedCommand {
    #[serde(flatten)]
    end: CommandEnd,
    /// The exit status of this program.
    status: u8,
}

#[derive(Serialize)]
#[serde(untagged)]
enum CommandEnd {
    Ended { how: How, network: Vec<Traffic> },
    NotStarted { how: NotStarted, reason: String },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum NotStarted {
    NotStarted,
}

impl Answered for SandboxedCommand {
    /// Stdout belongs to the command.
    fn text(&self) -> String {
        String::new()
    }

    fn exit(&self) -> Exit {
        Exit::Of(self.status)
    }
}

impl SandboxedCommand {
    /// The command that `who` ran; how it ended is printed on stderr.
    pub(super) fn of(
        who: &str,
        profile: &Profile,
        ended: Result<Ended, SandboxError>,
    ) -> Result<Self, Failure> {
        let ended = match ended {
            Err(error) if error.is_exec() => return Ok(not_started(who, &error)),
            ended => ended?,
        };
        for line in traffic::lines(&ended.network) {
            print_message(&format!("{who}: network: {line}"));
        }
        let (status, words) = status(ended.how, &profile.limits);
        if let Some(words) = words {
            print_message(&format!("{who}: the command {words}"));
        }
        let (how, network) = (ended.how, ended.network);
        let end = CommandEnd::Ended { how, network };
        Ok(Self { end, status })
    }
}

/// The exit statuses of `timeout` and of shells for a command that was ended.
const TOO_LONG: u8 = 124;
const TOO_MUCH: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
const SIGNALLED: i32 = 128;

/// The exit status after a command that ended like this, and what ended it.
fn status(how: How, limits: &sandbox::Limits) -> (u8, Option<String>) {
    let byte = |status: i32| u8::try_from(status).unwrap_or(u8::MAX);
    match how {
        How::Exited(status) => (byte(status), None),
        How::Signalled(signal) => (
            byte(SIGNALLED + signal),
            Some(format!("was ended by signal {signal}")),
        ),
        How::TimedOut => (
            TOO_LONG,
            Some("did not end in time and was ended".to_owned()),
        ),
        How::OutputLimit => (TOO_MUCH, Some("wrote too much and was ended".to_owned())),
        How::MemoryLimit => (
            TOO_MUCH,
            Some(format!(
                "used more than {} of memory and was ended (--memory)",
                size::render(limits.memory_bytes)
            )),
        ),
        How::ProcessLimit => (
            TOO_MUCH,
            Some(format!(
                "used up its {} processes and was ended (--processes)",
                limits.processes
            )),
        ),
        How::DiskLimit => (TOO_MUCH, Some("filled the disk and was ended".to_owned())),
        How::InodeLimit => (
            TOO_MUCH,
            Some("made too many files and was ended".to_owned()),
        ),
        How::NoProgress => (TOO_LONG, Some("made no progress and was ended".to_owned())),
        How::Cancelled => (byte(SIGNALLED + SIGINT), Some("was cancelled".to_owned())),
    }
}

/// A program that could not be executed in its sandbox.
fn not_started(who: &str, error: &SandboxError) -> SandboxedCommand {
    let (status, reason) = match error {
        SandboxError::Start { errno, hint, .. } if *errno == ENOENT => (NOT_FOUND, hint.clone()),
        SandboxError::Start { hint, .. } => (NOT_RUNNABLE, hint.clone()),
        other => (NOT_RUNNABLE, other.to_string()),
    };
    print_message(&format!("{who}: {}", error.exec_words().trim_end()));
    let how = NotStarted::NotStarted;
    let end = CommandEnd::NotStarted { how, reason };
    SandboxedCommand { end, status }
}

/// A private directory for the streams, removed after the command.
pub(super) struct Scratch(sandbox::Scratch);

impl Scratch {
    pub(super) fn make() -> Result<Self, Failure> {
        let place = std::env::temp_dir();
        let made = || -> io::Result<Self> {
            let scratch = Self(sandbox::Scratch::make(&place)?);
            for path in [scratch.stdout(), scratch.stderr()] {
                let mut options = fs::OpenOptions::new();
                options
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(path)?;
            }
            Ok(scratch)
        };
        made().map_err(|error| {
            Failure::new(Code::HostFailed, format!("`{}`: {error}", place.display()))
        })
    }

    /// The command `argv` with its streams in this directory.
    pub(super) fn command(&self, argv: Vec<String>, stdin: Stdin) -> Command {
        Command {
            argv,
            stdin,
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }

    fn stdout(&self) -> PathBuf {
        self.0.path().join("stdout")
    }

    fn stderr(&self) -> PathBuf {
        self.0.path().join("stderr")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// How many bytes of the streams were printed already.
#[derive(Default)]
pub(super) struct Shown {
    stdout: u64,
    stderr: u64,
}

impl Shown {
    pub(super) fn copy(&mut self, command: &Command) {
        self.stdout += pass(&command.stdout, self.stdout, &mut io::stdout());
        self.stderr += pass(&command.stderr, self.stderr, &mut io::stderr());
    }
}

/// Prints what a file has grown by, unchanged.
fn pass(path: &Path, from: u64, out: &mut dyn io::Write) -> u64 {
    use std::io::{Read as _, Seek as _};
    let mut passed = 0;
    let mut copy = || -> io::Result<()> {
        let mut file = fs::File::open(path)?;
        file.seek(io::SeekFrom::Start(from))?;
        let mut chunk = vec![0; 64 << 10];
        loop {
            let length = file.read(&mut chunk)?;
            if length == 0 {
                return out.flush();
            }
            // A partial write counts as printed: no byte is printed twice.
            passed += length as u64;
            out.write_all(&chunk[..length])?;
        }
    };
    // A closed pipe loses the rest; the command is not ended by that.
    let _ = copy();
    passed
}
