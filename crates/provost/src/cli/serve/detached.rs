//! Starts `provost` as a process of its own: what drives a run must outlive the server.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::json;
use provost_core::verdict::Verdict;
use provost_host::{clock, ids};

use crate::answer::Failure;
use crate::places::Places;

/// How long a command is waited for, so that its refusal can be shown at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Starts `provost` with these words in the repository. A refusal within two seconds is the
/// failure; later output is in the directory of detached runs.
pub(super) fn start(place: &Places, words: &[&str]) -> Result<String, Failure> {
    let directory = place.detached();
    place.prepare_with(&directory)?;
    let id = ids::ulid(clock::now_millis())?;
    let out = directory.join(format!("serve_{id}.stdout"));
    let err = directory.join(format!("serve_{id}.stderr"));
    let spawn = || -> io::Result<_> {
        Command::new(env::current_exe()?)
            .arg("--json")
            .args(words)
            .current_dir(place.repo.top().unwrap_or_else(|| place.repo.common_dir()))
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            // A Ctrl-C that ends the server is not meant for it.
            .process_group(0)
            .spawn()
    };
    let failed = |error: io::Error| {
        Failure::new(
            Code::HostFailed,
            format!("provost cannot be started: {error}"),
        )
    };
    let mut child = spawn().map_err(failed)?;
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if child.try_wait().map_err(failed)?.is_some() {
            let printed = fs::read(&out).unwrap_or_default();
            // The answer of a command that did something names what it did it to.
            return match json::parse_as::<Verdict>(&printed) {
                Ok(verdict) if !verdict.allow => Err(verdict.into()),
                _ => Ok("done".to_owned()),
            };
        }
        thread::sleep(Duration::from_millis(20));
    }
    thread::spawn(move || child.wait());
    Ok(format!("started; its output is in {}", err.display()))
}
