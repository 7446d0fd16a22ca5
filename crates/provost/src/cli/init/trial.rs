//! Tries the acceptance commands of `[run]` on the current commit, so that what is missing is known
//! before an agent is paid.

use std::fs;
use std::time::{Duration, Instant};

use provost_core::contract::Test;
use provost_core::contract::limits::{Asked, Limits};
use provost_core::gate::command;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::policy::Policy;
use provost_core::run::effect::{Accept, AskedStart, Base, CacheOrder, Prepare};
use provost_core::run::fact::{CommandRun, Ending, Side};
use provost_core::run::judge::render_ending;
use provost_core::tier::Tier;
use provost_engine::opening::Origin as _;
use provost_engine::opening::defaults::USUAL_TIMEOUT_SEC;
use provost_engine::ports::{Control, Host as _, Observer as _, ObserverChoice, Progress, Watch};
use provost_fs::atomic::{self, Durability};
use provost_host::cache;
use provost_host::machine::Machine;
use provost_host::origin::GitOrigin;
use serde::Serialize;

use crate::answer::Failure;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::show::{Reader, one_line};
use crate::user_consent;

/// How long dependencies and commands may take together.
const LONGEST: Duration = Duration::from_mins(2);

/// The file of the cache with the last trial.
const NOTE: &str = "tried.json";

/// How many lines of a failed command are shown.
const SHOWN: usize = 8;

/// What came of the trial.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Trial {
    Passed {
        commit: String,
    },
    Failed {
        commit: String,
        command: String,
        ending: String,
        last_lines: Vec<String>,
        /// What may be missing, and what helps.
        hint: String,
    },
    TookTooLong {
        seconds: u64,
    },
    NotTried {
        reason: String,
    },
}

impl Trial {
    pub(super) fn not(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::NotTried { reason }
    }

    /// The trial in lines, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Passed { commit } => vec![format!("tests pass on {commit} in the sandbox")],
            Self::Failed {
                commit,
                command,
                ending,
                last_lines,
                hint,
            } => {
                let mut lines = vec![format!("`{command}` {ending} on {commit}")];
                lines.extend(last_lines.iter().map(|line| format!("| {line}")));
                lines.push(hint.clone());
                lines
            }
            Self::TookTooLong { seconds } => vec![format!(
                "not known whether tests pass: they took more than {seconds} s; a run waits longer"
            )],
            Self::NotTried { reason } => vec![format!("tests were not tried: {reason}")],
        }
    }
}

/// Tries the commands of `policy` on the commit that is checked out.
pub(super) fn attempt(place: &Places, policy: &Policy, reader: Reader) -> Trial {
    if policy.run.accept.is_empty() {
        return Trial::not("[run] of provost.toml names no command");
    }
    let origin = GitOrigin(&place.repo);
    let base = origin
        .resolve("HEAD")
        .and_then(|commit| Ok((origin.tree(&commit)?, commit)));
    let Ok((tree, commit)) = base else {
        return Trial::not("there is no commit yet");
    };
    if let Err(failure) = user_consent::to_prepare(place, &policy.prepare) {
        return Trial::not(failure.reason);
    }
    let target = origin.checked_out().ok().flatten();
    let order = order(policy, Base { commit, tree }, target);
    match run(place, &order, reader) {
        Ok(trial) => trial,
        Err(failure) => Trial::not(failure.reason),
    }
}

fn order(policy: &Policy, base: Base, target: Option<String>) -> Accept {
    let test = |(at, text): (usize, &String)| Test {
        name: format!("accept-{}", at + 1),
        text: text.clone(),
        argv: command::split(text).unwrap_or_default(),
        must_pass: true,
    };
    let timeout = policy.run.timeout_sec.unwrap_or(USUAL_TIMEOUT_SEC);
    let limits = Limits::of(&Asked::default(), &policy.limits);
    let loopback = !policy.loopback_off;
    Accept {
        side: Side::Base,
        tree: base.tree.clone(),
        choice: policy.workspace,
        tier: Tier::default(),
        tests: policy.run.accept.iter().enumerate().map(test).collect(),
        // As in a run, so that a run on the same commit finds the result.
        time_limit: Duration::from_secs(timeout),
        limits,
        prepare: Prepare {
            steps: policy.prepare.clone(),
            tree: base.tree.clone(),
            base: base.clone(),
            logs: "logs".to_owned(),
            limits,
            loopback,
        },
        // Its build caches serve the first run.
        cache: Box::new(CacheOrder {
            start: AskedStart::Cold("the base is always tested cold"),
            rules: policy.cache.clone(),
            keep: true,
            target,
            protect: policy.protect.clone(),
        }),
        loopback,
        logs: "logs".to_owned(),
        evidence: Vec::new(),
        base,
    }
}

fn run(place: &Places, order: &Accept, reader: Reader) -> Result<Trial, Failure> {
    // The machine takes the repository, and this command still needs its own.
    let own = Places::around(std::path::Path::new("."))?;
    let cache = place.cache()?.to_owned();
    let bundle = cache.join(cache::PREPARED);
    let mut machine = Machine::new(own.repo, &cache, &bundle, "init");
    let mut watch = TrialWatch::new(reader);
    let ran = machine.accept(order, &mut watch);
    watch.observer.clear();
    if watch.is_over() {
        let seconds = LONGEST.as_secs();
        return Ok(Trial::TookTooLong { seconds });
    }
    let ran = ran?;
    let commit = order.base.commit.short().to_owned();
    let failed = ran
        .commands
        .iter()
        .find(|it| it.ending != Ending::Exited(0));
    let Some(failed) = failed else {
        return Ok(Trial::Passed { commit });
    };
    if failed.ending == Ending::Cancelled {
        return Ok(Trial::not("cancelled"));
    }
    let read = |file: &str| fs::read(bundle.join(file)).unwrap_or_default();
    let output = [read(&failed.stdout.file), read(&failed.stderr.file)].concat();
    let output = String::from_utf8_lossy(&output);
    Ok(Trial::Failed {
        commit,
        command: command::line(&failed.argv),
        ending: render_ending(failed.ending),
        last_lines: last_lines(&output),
        hint: hint(failed, &output),
    })
}

fn last_lines(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let first = lines.len().saturating_sub(SHOWN);
    lines[first..].iter().map(|line| one_line(line)).collect()
}

/// Signs in the output of a command that a dependency is missing.
const LACKING: &[&str] = &[
    "No module named",
    "ModuleNotFoundError",
    "Cannot find module",
    "command not found",
    "Error 127",
    "not found in the sandbox",
    "no matching package",
    "failed to download",
    "Could not resolve",
];

/// What helps after a failure, and the line to add.
fn hint(failed: &CommandRun, output: &str) -> String {
    let unstarted = matches!(failed.ending, Ending::NotStarted | Ending::Exited(127));
    if unstarted || LACKING.iter().any(|sign| output.contains(sign)) {
        return "a program or dependency is missing in the sandbox: install it where your PATH \
                leads, or add a [[prepare]] step to provost.toml (provost explain prepare)"
            .to_owned();
    }
    "if that is what an agent should fix, nothing is missing; else correct `accept` below [run] of \
     provost.toml"
        .to_owned()
}

/// Ends the trial in time, and shows its progress.
struct TrialWatch {
    observer: ProgressObserver,
    since: Instant,
}

impl TrialWatch {
    fn new(reader: Reader) -> Self {
        let mut observer = ProgressObserver::new(reader == Reader::Program);
        observer.follow_other("trying the test command");
        Self {
            observer,
            since: Instant::now(),
        }
    }

    fn is_over(&self) -> bool {
        self.since.elapsed() > LONGEST
    }
}

impl Watch for TrialWatch {
    fn tick(&mut self, progress: &Progress) -> Control {
        let choice = self.observer.progressed(progress);
        match choice {
            ObserverChoice::Continue if !self.is_over() => Control::Continue,
            _ => Control::Cancel,
        }
    }
}

/// What `provost init` found of some commands on a commit, for the runs after it.
#[derive(Serialize, serde::Deserialize)]
struct Found {
    accept: Vec<String>,
    commit: String,
    words: String,
}

/// Notes a failed trial for the runs that start from the same commit, and forgets it after others.
pub(super) fn note_down(place: &Places, accept: &[String], commit: &Oid, trial: &Trial) {
    let words = match trial {
        Trial::Failed {
            command, ending, ..
        } => format!("`{command}` {ending}"),
        Trial::Passed { .. } => String::new(),
        Trial::TookTooLong { .. } | Trial::NotTried { .. } => return,
    };
    let found = Found {
        accept: accept.to_vec(),
        commit: commit.to_string(),
        words,
    };
    if let (Ok(cache), Ok(bytes)) = (place.cache(), serde_json::to_vec(&found)) {
        // It only saves a surprise: a note that cannot be written is no error.
        let _ = atomic::replace(&cache.join(NOTE), &bytes, 0o600, Durability::Cache);
    }
}

/// What `provost init` found to fail on `base` or on the commit before it, which may lack nothing
/// but the policy.
pub(in crate::cli) fn noted(place: &Places, accept: &[String], base: &Oid) -> Option<String> {
    let bytes = fs::read(place.cache().ok()?.join(NOTE)).ok()?;
    let found: Found = json::parse_as(&bytes).ok()?;
    let before = || {
        let before = GitOrigin(&place.repo).resolve(&format!("{base}^"));
        before.is_ok_and(|before| before.to_string() == found.commit)
    };
    if found.words.is_empty()
        || found.accept != accept
        || found.commit != base.to_string() && !before()
    {
        return None;
    }
    let commit = Oid::try_from(found.commit.as_str()).ok()?;
    Some(format!(
        "{} on {} when `provost init` tried it; if the agent is not asked to fix that, end this \
         run",
        one_line(&found.words),
        commit.short()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_without_blank_ones() {
        let output: Vec<String> = (1..20).map(|it| format!("line {it}\n\n")).collect();
        let lines = last_lines(&output.concat());
        assert_eq!(lines.len(), SHOWN);
        assert_eq!(lines.last().unwrap(), "line 19");
        assert_eq!(last_lines(""), [""; 0]);
    }
}
