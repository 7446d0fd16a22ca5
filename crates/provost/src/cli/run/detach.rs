//! Runs in a background process: `provost run --detach`.
//!
//! The same program is started again with the same arguments, in a session of its own and without
//! a terminal. It checks everything itself, so that there is one way to begin a run; the first
//! process waits for the first event, and prints the output of the second if there is none.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::path::is_segment;
use provost_engine::query::RunArchive as _;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::input;
use crate::places::Places;
use crate::show::{self, Reader, relative};

/// The variable that gives the background process the id of its run.
const VARIABLE: &str = "PROVOST_DETACHED";

/// How long a run may take to begin.
const PATIENCE: Duration = Duration::from_mins(2);

/// The run that this process was started for, if it is the background process.
///
/// It leaves the session of the first process, and with that the terminal.
pub(super) fn adopt() -> Result<Option<String>, Failure> {
    let Some(run_id) = env::var_os(VARIABLE) else {
        return Ok(None);
    };
    let run_id = run_id.into_string().ok();
    let Some(run_id) = run_id.filter(|id| id.starts_with("run_") && is_segment(id)) else {
        let reason = format!("{VARIABLE} is set by Provost itself and names no run");
        return Err(Failure::new(Code::InputInvalid, reason));
    };
    rustix::process::setsid().map_err(|error| failed(&io::Error::from(error)))?;
    Ok(Some(run_id))
}

/// Starts the run `run_id` in a background process, with the same arguments.
pub(super) fn begin(
    place: &Places,
    run_id: &str,
    contract: Option<&Path>,
    reader: Reader,
) -> Outcome {
    // The background process cannot read this stdin.
    let given = match contract {
        Some(file) if file == Path::new("-") => input::read(file, json::LARGEST)?,
        _ => Vec::new(),
    };
    let logs = Logs::make(place, run_id)?;
    let mut child = start(&logs, run_id).map_err(|error| failed(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that does not read its stdin reports why.
        let _ = stdin.write_all(&given);
    }
    let begun = || {
        place
            .records(run_id)
            .is_ok_and(|records| !records.is_empty())
    };
    let since = Instant::now();
    while !begun() {
        let ended = child.try_wait().map_err(|error| failed(&error))?;
        match ended {
            Some(status) if !begun() => return Ok(logs.output(status.code(), reader)),
            Some(_) => break,
            None if since.elapsed() > PATIENCE => {
                let _ = child.kill();
                let reason = format!("{run_id} did not begin in time");
                return Err(Failure::new(Code::HostFailed, reason));
            }
            None => sleep(Duration::from_millis(5)),
        }
    }
    let detached = DetachedRun {
        run_id,
        pid: child.id(),
        stdout: &logs.out,
        stderr: &logs.err,
    };
    Ok(detached.into())
}

#[derive(Serialize)]
struct DetachedRun<'a> {
    run_id: &'a str,
    pid: u32,
    stdout: &'a Path,
    stderr: &'a Path,
}

impl Answered for DetachedRun<'_> {
    fn text(&self) -> String {
        let (run_id, output) = (self.run_id, relative(self.stderr));
        format!(
            "run {run_id} runs in the background\n  output   {output}\n\
             next: provost log {run_id} --follow\nnext: provost cancel {run_id}\n"
        )
    }
}

fn start(logs: &Logs, run_id: &str) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(VARIABLE, run_id)
        .stdin(Stdio::piped())
        .stdout(File::create(&logs.out)?)
        .stderr(File::create(&logs.err)?)
        .spawn()
}

/// The output files of a background process.
///
/// They are not in the directory of the run, which is sealed before the last line is printed.
struct Logs {
    out: PathBuf,
    err: PathBuf,
}

impl Logs {
    fn make(place: &Places, run_id: &str) -> Result<Self, Failure> {
        place.prepare()?;
        let directory = place.detached();
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| failed(&error))?;
        Ok(Self {
            out: directory.join(format!("{run_id}.stdout")),
            err: directory.join(format!("{run_id}.stderr")),
        })
    }

    /// The output of a run that never began, as the answer of the first process.
    fn output(&self, status: Option<i32>, reader: Reader) -> Answer {
        let read = |file: &Path| fs::read_to_string(file).unwrap_or_default();
        let (out, err) = (read(&self.out), read(&self.err));
        for file in [&self.out, &self.err] {
            let _ = fs::remove_file(file);
        }
        if reader == Reader::Person && !err.is_empty() {
            show::print_message(err.trim_end());
        }
        let status = status.and_then(|status| u8::try_from(status).ok());
        Answer {
            exit: Exit::Of(status.filter(|status| *status != 0).unwrap_or(70)),
            json: serde_json::from_str::<Value>(&out).unwrap_or(Value::Null),
            text: out,
        }
    }
}

fn failed(error: &io::Error) -> Failure {
    let reason = format!("the background process cannot be started: {error}");
    Failure::new(Code::HostFailed, reason)
}
