//! Runs programs with a time limit.

use std::io::{Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;

use crate::failure::{FleetFailure, FleetResult, host};

/// The most bytes of output that are kept of one program.
const MOST: u64 = 256 << 20;

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl Finished {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).trim_end().to_owned()
    }

    /// The last line of what it printed as an error, for messages.
    pub fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.err).into_owned();
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        provost_core::foreign_text::one_line(last.unwrap_or("no message"))
    }
}

fn collect(stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is missing from a message; the exit status decides.
        let _ = stream.take(MOST).read_to_end(&mut bytes);
        bytes
    })
}

/// Runs `command` with `input`, at most for `limit`.
pub fn run(mut command: Command, input: &[u8], limit: Duration) -> FleetResult<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(host(&format!("starting {name}")))?;
    let out = child.stdout.take().map(collect);
    let err = child.stderr.take().map(collect);
    let stdin = child.stdin.take();
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input says why by its exit status.
            let _ = stdin.write_all(&input);
        }
    });
    let status = wait(&mut child, limit, &name)?;
    let join = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
        thread.and_then(|it| it.join().ok()).unwrap_or_default()
    };
    let _ = writer.join();
    Ok(Finished {
        status,
        out: join(out),
        err: join(err),
    })
}

fn wait(child: &mut Child, limit: Duration, name: &str) -> FleetResult<ExitStatus> {
    let since = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().map_err(host("waiting for a program"))? {
            return Ok(status);
        }
        if since.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            let reason = format!("{name} did not end within {} s", limit.as_secs());
            return Err(FleetFailure::new(Code::HostFailed, reason));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
