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
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a folder could not be run at all.
#[derive(Debug)]
pub enum CorpusError {
    UnknownKind(String),
    Unreadable(PathBuf, std::io::Error),
    /// A file does not have the format of its kind.
    Malformed(PathBuf, serde_json::Error),
    NotBuilt,
}

impl fmt::Display for CorpusError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => {
                write!(
                    formatter,
                    "no runner for `{kind}`; there are {}",
                    KINDS.join(", ")
                )
            }
            Self::Unreadable(path, why) => write!(formatter, "{}: {why}", path.display()),
            Self::Malformed(path, why) => write!(formatter, "{}: {why}", path.display()),
            Self::NotBuilt => formatter.write_str("the program to test cannot be built"),
        }
    }
}

impl std::error::Error for CorpusError {}

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

const KINDS: [&str; 6] = [
    "change-control",
    "child-packages",
    "commandgate",
    "contracts",
    "diffgate",
    "packets",
];

pub fn run(kind: &str, directory: &Path, program: &Path) -> Result<Report, CorpusError> {
    let results = match kind {
        "change-control" => change_control::run(directory, program)?,
        "child-packages" => child_packages::run(directory, program)?,
        "commandgate" => commandgate::run(directory, program)?,
        "contracts" => contracts::run(directory, program)?,
        "diffgate" => diffgate::run(directory, program)?,
        "packets" => packets::run(directory, program)?,
        other => return Err(CorpusError::UnknownKind(other.to_owned())),
    };
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

/// The name of each case, and why it failed.
type Results = Vec<(String, Result<(), String>)>;

/// Reads `cases` of every JSON file in `directory`, in the order of their names.
fn read_cases<T: DeserializeOwned>(directory: &Path) -> Result<Vec<T>, CorpusError> {
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
fn read_files<T: DeserializeOwned>(directory: &Path) -> Result<Vec<T>, CorpusError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error| CorpusError::Unreadable(path, error)
    };
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .map_err(unreadable(directory))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).map_err(unreadable(&path))?;
        serde_json::from_slice(&bytes).map_err(|error| CorpusError::Malformed(path, error))
    };
    files.into_iter().map(read).collect()
}

/// Time limit of an answer of the program.
const SLOWEST: Duration = Duration::from_secs(5);

/// Runs `command` to its end, or kills it after `limit`.
///
/// Its output goes through files, so that a process it leaves behind cannot block us.
fn bounded(command: &mut Command, limit: Duration) -> Result<Output, String> {
    let failed = |error: std::io::Error| format!("cannot be run: {error}");
    let mut out = tempfile::tempfile().map_err(failed)?;
    let mut complaints = tempfile::tempfile().map_err(failed)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(failed)?)
        .stderr(complaints.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if started.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("took longer than {limit:?}: {command:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |file: &mut File| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok(Output {
        status,
        stdout: read(&mut out).map_err(failed)?,
        stderr: read(&mut complaints).map_err(failed)?,
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
fn ask(command: &mut Command) -> Result<Answer, String> {
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
        _ => Err(format!("exits with {code:?} and answers {whole}")),
    }
}
