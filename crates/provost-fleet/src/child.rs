//! The process of `provost` that does an attempt. It outlives its worker, and can be adopted.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::failure::{FleetFailure, FleetResult, host};
use crate::settings::FleetSettings;

/// How long a cancelled child may take to save its work and seal its run.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process, identified so that no other one is mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    pid: i32,
    /// When it began, in clock ticks since the machine started.
    started: u64,
    boot: String,
}

/// How a child ended.
#[derive(Debug, Clone)]
pub enum ChildEnd {
    Answered(RunAnswer),
    TimedOut,
    /// It left no answer, and why.
    Silent(String),
}

/// What `provost run --json` answers: a run, or only a verdict.
#[derive(Debug, Clone)]
pub struct RunAnswer {
    pub verdict: Verdict,
    /// The tree that was judged.
    pub tree: Option<Oid>,
}

/// The fields of both answers that count here.
#[derive(Deserialize)]
struct WrittenAnswer {
    verdict: Option<Verdict>,
    tree: Option<Oid>,
    allow: Option<bool>,
}

impl RunAnswer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let written: WrittenAnswer = json::parse_as(bytes).ok()?;
        let verdict = match (written.verdict, written.allow) {
            (Some(verdict), _) => verdict,
            (None, Some(_)) => json::parse_as(bytes).ok()?,
            (None, None) => return None,
        };
        Some(Self {
            verdict,
            tree: written.tree,
        })
    }
}

impl Child {
    /// Starts `provost` with `words` in a process group of its own.
    pub fn start(
        settings: &FleetSettings,
        directory: &Path,
        words: &[String],
        run_id: &str,
        output: &Path,
    ) -> FleetResult<Self> {
        let out = File::create(output).map_err(host("making a file for an answer"))?;
        let log = output.with_extension("log");
        let err = File::create(log).map_err(host("making a file for messages"))?;
        let mut command = Command::new(&settings.provost);
        command
            .args(words)
            .current_dir(directory)
            .env("PROVOST_RUN_AS", run_id)
            .env_remove("PROVOST_ROOT")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let mut child = command.spawn().map_err(host("starting provost"))?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let started = started(pid).unwrap_or_default();
        // Reaped by a thread, so that an ended child is not taken for a running one.
        std::thread::spawn(move || child.wait());
        Ok(Self {
            pid,
            started,
            boot: boot()?,
        })
    }

    pub fn is_alive(&self) -> FleetResult<bool> {
        Ok(boot()? == self.boot && self.started != 0 && started(self.pid) == Some(self.started))
    }

    /// Waits until it has ended, at most for `limit`; ends it when `cancelled` is set.
    pub fn wait(
        &self,
        output: &Path,
        limit: Duration,
        cancelled: &AtomicBool,
    ) -> FleetResult<ChildEnd> {
        let since = Instant::now();
        while self.is_alive()? {
            if cancelled.load(Ordering::SeqCst) {
                self.end()?;
            } else if since.elapsed() > limit {
                self.end()?;
                return Ok(ChildEnd::TimedOut);
            }
            sleep(Duration::from_millis(25));
        }
        let bytes = fs::read(output).unwrap_or_default();
        Ok(RunAnswer::parse(&bytes).map_or_else(
            || ChildEnd::Silent(format!("provost left no answer: {}", last_line(output))),
            ChildEnd::Answered,
        ))
    }

    /// Asks it to end and seal, and kills it and its group if it does not.
    fn end(&self) -> FleetResult<()> {
        let since = Instant::now();
        let mut asked = false;
        while self.is_alive()? {
            let signal = if since.elapsed() > PATIENCE {
                Signal::KILL
            } else {
                Signal::INT
            };
            if (!asked || signal == Signal::KILL)
                && let Some(group) = Pid::from_raw(self.pid)
            {
                // It may have ended in the meantime.
                let _ = rustix::process::kill_process_group(group, signal);
                asked = true;
            }
            sleep(Duration::from_millis(25));
        }
        Ok(())
    }
}

fn last_line(output: &Path) -> String {
    let text = fs::read_to_string(output.with_extension("log")).unwrap_or_default();
    let last = text
        .lines()
        .rev()
        .find(|line| line.starts_with("error") || !line.is_empty());
    provost_core::foreign_text::one_line(last.unwrap_or("it printed nothing"))
}

/// When a process began; `None` if there is no such process, or only its exit status is left.
fn started(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program comes before the last bracket, and may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn boot() -> FleetResult<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let text =
        text.map_err(|error| FleetFailure::of(Code::HostFailed, "reading the boot id", &error))?;
    Ok(text.trim().to_owned())
}
