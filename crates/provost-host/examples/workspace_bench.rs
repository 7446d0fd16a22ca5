//! Measures overlay workspaces of a large base against `git worktree add`, and what their capture
//! costs after twenty edits against `git status`.
//!
//! Prints one line a measure: its name and the median in microseconds. The arguments are a clean
//! checkout, whose `HEAD` is the base, a scratch directory on the same disk, and the number of
//! turns.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use provost_core::object::Oid;
use provost_host::capture::{self, Limits, Mode};
use provost_host::git::Repository;
use provost_host::sandbox::{self, Command, Control, How, LauncherProgram, Profile, Stdin};
use provost_host::workspace::{self, Lowers, PrivateGit, Workspace};

/// How many files are edited.
const EDITS: usize = 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    sandbox::main_if_launcher();
    let mut arguments = std::env::args_os().skip(1);
    let mut next = || arguments.next().map(PathBuf::from);
    let checkout = next().ok_or("name a checkout")?;
    let scratch = next().ok_or("name a scratch directory")?;
    let turns = match next() {
        Some(text) => text.to_string_lossy().parse()?,
        None => 3,
    };
    let ground = Ground::new(checkout, scratch)?;
    let mut times: [Vec<Duration>; 6] = Default::default();
    for turn in 0..turns {
        let spent = ground.turn(turn)?;
        for (times, spent) in times.iter_mut().zip(spent) {
            times.push(spent);
        }
    }
    let names = [
        "workspace",
        "workspace-box",
        "copy",
        "worktree-add",
        "capture",
        "git-status",
    ];
    let mut out = std::io::stdout().lock();
    for (name, times) in names.iter().zip(times) {
        writeln!(out, "{name} {:.1}", micros(times))?;
    }
    Ok(())
}

struct Ground {
    checkout: PathBuf,
    scratch: PathBuf,
    repository: Repository,
    private: PrivateGit,
    base: Oid,
    lowers: Lowers,
    /// Files spread over the base.
    edited: Vec<String>,
}

impl Ground {
    fn new(checkout: PathBuf, scratch: PathBuf) -> Outcome<Self> {
        let repository = Repository::discover(&checkout)?;
        let commit = repository.resolve("HEAD")?;
        let base = repository.commit_tree(&commit)?;
        let read = repository.read_tree(&base)?;
        let files = &read.files;
        let step = (files.len() / EDITS).max(1);
        let spread = files.keys().step_by(step).take(EDITS);
        let edited: Vec<String> = spread.map(ToString::to_string).collect();
        let lowers = Lowers::new(&scratch.join("cache"));
        // The first one makes the checkout, which is not measured.
        lowers.hold(&repository, &base)?;
        for path in &edited {
            append(&checkout.join(path), &checkout.join(path))?;
        }
        let objects = repository.objects().to_owned();
        Ok(Self {
            private: PrivateGit { commit, objects },
            checkout,
            scratch,
            repository,
            base,
            lowers,
            edited,
        })
    }

    /// What each measure took.
    fn turn(&self, turn: u32) -> Outcome<[Duration; 6]> {
        let begin = Instant::now();
        let lower = self.lowers.hold(&self.repository, &self.base)?;
        let place = self.scratch.join(format!("cache/w{turn}"));
        let made = workspace::create_over(&self.repository, &lower, &place, &self.private)?;
        let workspace = begin.elapsed();
        start_sandbox(&made)?;
        let in_sandbox = begin.elapsed();

        for path in &self.edited {
            append(&lower.files().join(path), &made.tree.join(path))?;
        }
        let begin = Instant::now();
        let (source, limits) = (made.source(), Limits::default());
        let found = capture::capture(&self.repository, &self.base, &source, &limits, Mode::Record)?;
        let captured = begin.elapsed();
        if found.changes.len() != self.edited.len() {
            return Err(format!("{} changes were captured", found.changes.len()).into());
        }
        workspace::remove(&self.scratch, &made.root)?;

        let begin = Instant::now();
        let place = self.scratch.join(format!("cache/c{turn}"));
        let copy = workspace::create(&self.repository, &self.base, &place, Some(&self.private))?;
        let copied = begin.elapsed();
        workspace::remove(&self.scratch, &copy.root)?;

        let status = ["--no-optional-locks", "status", "--porcelain", "-uall"];
        let looked = self.git(&status)?;
        let place = self
            .scratch
            .join(format!("tree{turn}"))
            .display()
            .to_string();
        let added = self.git(&["worktree", "add", "--quiet", "--detach", &place])?;
        self.git(&["worktree", "remove", "--force", &place])?;
        Ok([workspace, in_sandbox, copied, added, captured, looked])
    }

    /// How long a call of git takes.
    fn git(&self, arguments: &[&str]) -> Outcome<Duration> {
        let begin = Instant::now();
        let status = Process::new("git")
            .args(arguments)
            .current_dir(&self.checkout)
            .stdout(Stdio::null())
            .status()?;
        if status.success() {
            Ok(begin.elapsed())
        } else {
            Err(format!("git {}: {status}", arguments.join(" ")).into())
        }
    }
}

/// Runs a program that does nothing on the workspace.
fn start_sandbox(made: &Workspace) -> Outcome<()> {
    let mut profile = Profile::minimal();
    profile.add(made.mount(Path::new("/workspace")));
    profile.workdir = "/workspace".into();
    let command = Command {
        argv: vec!["/bin/true".to_owned()],
        stdin: Stdin::Null,
        stdout: made.root.join("stdout"),
        stderr: made.root.join("stderr"),
    };
    let running = LauncherProgram::own().start(&profile, &command, |_| Ok(()))?;
    match running.wait(&mut |_| Control::Continue)?.how {
        How::Exited(0) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Writes the file `from` with one line more to `to`.
fn append(from: &Path, to: &Path) -> Outcome<()> {
    let mut bytes = fs::read(from)?;
    bytes.extend_from_slice(b"one line more\n");
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(to, bytes)?)
}

fn micros(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let middle = times.get(times.len() / 2);
    middle.map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}
