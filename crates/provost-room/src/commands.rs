//! Commands of pages and programs: who asked for what, and what came of it.
//!
//! Each has a record in the runtime root, written before anything happens. What drives a run is a
//! process of its own, which outlives the server and leaves its answer beside the record.
//!
//! # Invariants
//!
//! - A command that has no record was not carried out.
//! - While the process of a command lives, it holds a lock on the file of its answer; so a server
//!   that starts later knows whether it has ended.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::json;
use provost_core::record::Record;
use provost_core::verdict::Verdict;
use provost_fs::atomic::{self, Durability};
use provost_fs::lock::{FileLock, Hold};
use provost_host::{clock, ids};
use provost_surface::answer::Failure;
use provost_surface::places::Places;
use provost_web::{AskedBy, AskedCommand, CommandOutcome, RoomCommand};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// How long a command is waited for, so that its refusal can be shown at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many commands about one run are shown, the newest ones.
const SHOWN: usize = 20;

/// What is written before a command is carried out.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptCommand {
    at: String,
    command: String,
    by: String,
}

/// A command that is being carried out.
#[derive(Debug)]
pub struct BegunCommand {
    /// Without the end of its name.
    base: PathBuf,
    id: String,
    asked: AskedBy,
}

/// The commands about one run or case.
fn directory(place: &Places, about: &str) -> PathBuf {
    place.detached().join("serve").join(about)
}

fn by(asked: &AskedBy) -> String {
    match asked {
        AskedBy::Session { id } => format!("serve-session {id}"),
        AskedBy::Token { name } => format!("serve-token {name}"),
    }
}

impl BegunCommand {
    /// Records that `asked` wants `command` about the run or case `about`.
    pub fn record(
        place: &Places,
        about: &str,
        command: &RoomCommand,
        asked: &AskedBy,
    ) -> Result<Self, Failure> {
        let directory = directory(place, about);
        place.prepare_with(&directory)?;
        let id = ids::ulid(clock::now_millis())?;
        let kept = KeptCommand {
            at: clock::now(),
            command: command.word().to_owned(),
            by: by(asked),
        };
        let begun = Self {
            base: directory.join(&id),
            id,
            asked: asked.clone(),
        };
        let text = serde_json::to_vec(&kept).map_err(|error| Failure::of(Code::Bug, &error))?;
        let path = begun.base.with_extension("json");
        let written = atomic::replace(&path, &text, 0o600, Durability::Synced);
        written.map_err(|error| unwritable(&path, &error))?;
        Ok(begun)
    }

    /// Who asked for it.
    pub fn asked(&self) -> &AskedBy {
        &self.asked
    }

    /// How it is named in the ledger: through what it came, and its number here.
    pub fn mark(&self) -> String {
        format!("{}, command {}", by(&self.asked), self.id)
    }

    /// Keeps the failure of a command that this process carried out.
    pub fn failed(&self, failure: &Failure) {
        let path = self.base.with_extension("outcome");
        if let Ok(text) = serde_json::to_vec(&failure.verdict()) {
            // Without it, the events of the run still say what happened.
            let _ = atomic::replace(&path, &text, 0o600, Durability::Synced);
        }
    }

    /// Starts `provost` with these words in the repository. A refusal within two seconds is the
    /// failure; a later one is read from the record.
    pub fn start(&self, place: &Places, words: &[&str]) -> Result<String, Failure> {
        let out = self.base.with_extension("stdout");
        let err = self.base.with_extension("stderr");
        let spawn = || -> io::Result<_> {
            let mut command = Command::new(env::current_exe()?);
            command
                .arg("--json")
                .args(words)
                .current_dir(place.repo.top().unwrap_or_else(|| place.repo.common_dir()))
                .stdin(Stdio::null())
                .stderr(File::create(&err)?)
                // A Ctrl-C that ends the server is not meant for it.
                .process_group(0);
            let answer = locked(&out)?;
            command.stdout(answer).spawn()
        };
        let failed = |error: io::Error| {
            let reason = format!("provost cannot be started: {error}");
            Failure::new(Code::HostFailed, reason)
        };
        let mut child = spawn().map_err(failed)?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if child.try_wait().map_err(failed)?.is_some() {
                return match refusal(&out) {
                    Some(verdict) => Err(verdict.into()),
                    None => Ok("done".to_owned()),
                };
            }
            thread::sleep(Duration::from_millis(20));
        }
        thread::spawn(move || child.wait());
        Ok("started; the page of the run says what came of it".to_owned())
    }
}

/// A new file at `path`, locked as long as this process or one that inherits it has it open.
fn locked(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}

/// The verdict in a file, if it refuses; the answer of a command that did something names what it
/// did it to.
fn refusal(path: &Path) -> Option<Verdict> {
    let printed = fs::read(path).unwrap_or_default();
    let verdict = json::parse_as::<Verdict>(&printed).ok();
    verdict.filter(|verdict| !verdict.allow)
}

/// The newest commands about a run or case, the newest first. `records` reads its events.
pub fn list(place: &Places, about: &str, records: impl Fn() -> Vec<Record>) -> Vec<AskedCommand> {
    let directory = directory(place, about);
    let Ok(entries) = fs::read_dir(&directory) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok());
    let mut ids: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids.truncate(SHOWN);
    let command = |id: String| {
        let base = directory.join(&id);
        let text = fs::read(base.with_extension("json")).ok()?;
        let kept: KeptCommand = json::parse_as(&text).ok()?;
        Some(AskedCommand {
            outcome: outcome(&base, &id, &records),
            id,
            at: kept.at,
            command: kept.command,
            by: kept.by,
        })
    };
    ids.into_iter().filter_map(command).collect()
}

fn outcome(base: &Path, id: &str, records: &dyn Fn() -> Vec<Record>) -> CommandOutcome {
    let refused = |verdict: Verdict| CommandOutcome::Refused {
        code: verdict.code.name().to_owned(),
        reason: verdict.reason,
    };
    if let Some(verdict) = refusal(&base.with_extension("outcome")) {
        return refused(verdict);
    }
    let answer = base.with_extension("stdout");
    match FileLock::try_at(&answer, OFlags::RDONLY, Hold::Shared) {
        Ok(None) => return CommandOutcome::Running,
        Ok(Some(_)) => {
            let is_empty = answer.metadata().is_ok_and(|it| it.len() == 0);
            return match refusal(&answer) {
                Some(verdict) => refused(verdict),
                None if is_empty => CommandOutcome::NoAnswer,
                None => CommandOutcome::Done,
            };
        }
        Err(_) => {}
    }
    // No process was started: an answer is in the ledger, or it was not given.
    let names = |record: &Record| {
        let payload = serde_json::to_string(&record.event.payload);
        payload.is_ok_and(|text| text.contains(id))
    };
    if records().iter().any(names) {
        CommandOutcome::Done
    } else {
        CommandOutcome::NotBegun
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
