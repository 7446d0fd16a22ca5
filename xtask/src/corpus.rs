//! Runs folders of black-box cases against the real program.
//!
//! Each kind of case has a module that knows its files and how a case is run from outside. A case
//! that cannot be run fails; so does a folder without cases.

mod change_control;
mod child_packages;
mod commandgate;
mod contracts;
mod diffgate;
mod packets;

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Result;

/// Result of a folder.
#[derive(Debug)]
pub struct Report {
    kind: String,
    total: usize,
    /// The cases that failed: their names, and why.
    pub failures: Vec<(String, String)>,
}

impl Report {
    /// Whether there were cases and all of them passed.
    pub fn holds(&self) -> bool {
        self.total > 0 && self.failures.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, why) in &self.failures {
            writeln!(formatter, "{name}: {why}")?;
        }
        let held = self.total - self.failures.len();
        writeln!(formatter, "{}: {held}/{} hold", self.kind, self.total)
    }
}

/// Runs the cases of a directory against a program.
type Runner = fn(&Path, &Path) -> Result<Results>;

/// The name of each case, and why it failed.
type Results = Vec<(String, Result<(), String>)>;

const KINDS: [(&str, Runner); 6] = [
    ("change-control", change_control::run),
    ("child-packages", child_packages::run),
    ("commandgate", commandgate::run),
    ("contracts", contracts::run),
    ("diffgate", diffgate::run),
    ("packets", packets::run),
];

pub fn run(kind: &str, directory: &Path, program: &Path) -> Result<Report> {
    let Some((_, runner)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let known = KINDS.map(|(name, _)| name).join(", ");
        return Err(format!("no runner for `{kind}`; there are {known}").into());
    };
    let results = runner(directory, &program.canonicalize()?)?;
    let total = results.len();
    let failures = results
        .into_iter()
        .filter_map(|(name, result)| result.err().map(|why| (name, why)))
        .collect();
    Ok(Report {
        kind: kind.to_owned(),
        total,
        failures,
    })
}

/// Checks every case, by its name. A case mostly waits for processes and the disk, so several at
/// once take little longer than one.
fn each<C: Sync>(cases: &[(String, C)], check: impl Fn(&C) -> Result + Sync) -> Results {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = check(case).map_err(|why| why.to_string());
            done.push((name.clone(), result));
        }
        done
    };
    let mut results: Results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter();
        let results = results.flat_map(|worker| worker.join().unwrap_or_default());
        results.collect()
    });
    // A case whose worker panicked has no result, and so fails.
    for (name, _) in cases {
        if !results.iter().any(|(known, _)| known == name) {
            results.push((name.clone(), Err("could not be run".to_owned())));
        }
    }
    results.sort_by(|one, other| one.0.cmp(&other.0));
    results
}

/// Reads `cases` of every JSON file in `directory`, in the order of their names.
fn read_cases<T: DeserializeOwned>(directory: &Path) -> Result<Vec<T>> {
    #[derive(serde::Deserialize)]
    struct File<T> {
        cases: Vec<T>,
    }
    let mut cases = Vec::new();
    for file in read_files::<File<T>>(directory)? {
        cases.extend(file.cases);
    }
    Ok(cases)
}

/// Reads every JSON file in `directory`, in the order of their names.
fn read_files<T: DeserializeOwned>(directory: &Path) -> Result<Vec<T>> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let files = entries(directory)?.into_iter().filter(is_json);
    files.map(|path| read(&path)).collect()
}

/// The paths in `directory`, in the order of their names.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let found = fs::read_dir(directory).map_err(|why| format!("{}: {why}", directory.display()))?;
    let mut paths: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let place = path.display();
    let bytes = fs::read(path).map_err(|why| format!("{place}: {why}"))?;
    Ok(serde_json::from_slice(&bytes).map_err(|why| format!("{place}: {why}"))?)
}

/// Time limit of an answer of the program.
const SLOWEST: Duration = Duration::from_secs(5);

/// Runs `command` to its end, or kills it after `limit`.
///
/// Its output goes through files, so that a process it leaves behind cannot block us.
fn bounded(command: &mut Command, limit: Duration) -> Result<Output> {
    let mut out = tempfile::tempfile()?;
    let mut complaints = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(complaints.try_clone()?)
        .spawn()
        .map_err(|why| format!("cannot be run: {why}"))?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("took longer than {limit:?}: {command:?}").into());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |file: &mut File| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok(Output {
        status,
        stdout: read(&mut out)?,
        stderr: read(&mut complaints)?,
    })
}

#[derive(Debug)]
struct Answer {
    allow: bool,
    reasons: Vec<String>,
    violations: Vec<String>,
    whole: Value,
}

/// Runs `command`, which answers with a verdict, and checks that its parts agree.
fn ask(command: &mut Command) -> Result<Answer> {
    let output = bounded(command, SLOWEST)?;
    let complaint = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let whole: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("answers no JSON ({error}): {}", complaint()))?;
    let allow = whole["allow"].as_bool().ok_or("answers no verdict")?;
    let code = output.status.code();
    let list = |key: &str| -> Vec<String> {
        let rows = whole["details"][key].as_array();
        let text = |row: &Value| row.as_str().map(str::to_owned);
        rows.into_iter().flatten().filter_map(text).collect()
    };
    let answer = Answer {
        allow,
        reasons: list("reasons"),
        violations: list("violations"),
        whole: whole.clone(),
    };
    match (allow, code) {
        (true, Some(0)) | (false, Some(1)) => Ok(answer),
        _ => Err(format!("exits with {code:?} and answers {whole}").into()),
    }
}
