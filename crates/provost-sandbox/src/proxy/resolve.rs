//! Resolves names, outside the sandbox.
//!
//! It runs the system's own program. A statically linked binary has no resolver that knows the
//! host's configuration (files, caches, search domains), and a child can be killed when it is late.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use provost_core::net::endpoint::Name;
use rustix::event::PollFlags;

use super::timeouts::{Broken, Stop};

/// Where the program may be.
const PROGRAMS: [&str; 2] = ["/usr/bin/getent", "/bin/getent"];
/// The most it may print.
const MOST_OUTPUT: usize = 16 << 10;
/// The most addresses of one name.
const MOST_ADDRESSES: usize = 16;
/// How long addresses are kept.
const KEPT: Duration = Duration::from_mins(1);
/// How long a failure is kept; shorter, because it may be temporary.
const KEPT_FAILURE: Duration = Duration::from_secs(3);

/// Finds the addresses of a name.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses of `name`, in the order to try them, if they are found within `patience`;
    /// returns early when `stop` fires.
    fn resolve(
        &self,
        name: &Name,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Vec<IpAddr>, ResolveError>;
}

/// Why there are no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name does not exist or has no address.
    #[error("has no address")]
    Unknown,
    /// The answer did not come in time.
    #[error("was not resolved in time")]
    Late,
    /// The program `getent` is missing or fails.
    #[error("cannot be resolved: `getent` is missing or fails")]
    Failed,
}

type Known = BTreeMap<String, (Instant, Result<Vec<IpAddr>, ResolveError>)>;

/// Runs `getent ahosts`, and remembers its answers for a short time.
#[derive(Debug, Default)]
pub struct Getent {
    /// The lock permits one query at a time, so many requests for one name are one query.
    known: Mutex<Known>,
}

impl Resolve for Getent {
    fn resolve(
        &self,
        name: &Name,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, answer)) = known.get(name.as_str()) {
            let kept = if answer.is_ok() { KEPT } else { KEPT_FAILURE };
            if since.elapsed() < kept {
                return answer.clone();
            }
        }
        // The time starts here: waiting for the lock does not count.
        let answer = ask(name, Instant::now() + patience, stop);
        known.insert(name.as_str().to_owned(), (Instant::now(), answer.clone()));
        answer
    }
}

fn ask(name: &Name, until: Instant, stop: &Stop) -> Result<Vec<IpAddr>, ResolveError> {
    let program = PROGRAMS.into_iter().find(|path| Path::new(path).is_file());
    let program = program.ok_or(ResolveError::Failed)?;
    let mut child = Command::new(program)
        .args(["ahosts", name.as_str()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|_| ResolveError::Failed)?;
    let output = child.stdout.take().ok_or(ResolveError::Failed);
    let text = output.and_then(|output| read(output, until, stop));
    end(&mut child);
    parse(&text?)
}

/// Reads `output` to its end.
fn read(mut output: ChildStdout, until: Instant, stop: &Stop) -> Result<Vec<u8>, ResolveError> {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    while text.len() < MOST_OUTPUT {
        let wanted = [(output.as_fd(), PollFlags::IN)];
        stop.wait(&wanted, Some(until))
            .map_err(|broken| match broken {
                Broken::Late => ResolveError::Late,
                Broken::Stopped | Broken::Failed(_) => ResolveError::Failed,
            })?;
        match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(ResolveError::Failed),
        }
    }
    Ok(text)
}

/// Kills and reaps the child.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The addresses at the beginnings of the lines, each once.
fn parse(text: &[u8]) -> Result<Vec<IpAddr>, ResolveError> {
    let text = String::from_utf8_lossy(text);
    let mut addresses = Vec::new();
    for line in text.lines() {
        let address = line
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        if let Some(address) = address
            && addresses.len() < MOST_ADDRESSES
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(ResolveError::Unknown);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_each_and_nothing_else_is() {
        let text = "93.184.215.14 STREAM example.com\n93.184.215.14 DGRAM\n\
            2606:2800::1 STREAM\nfe80::1%eth0 STREAM\nnonsense\n\n";
        let addresses = parse(text.as_bytes()).unwrap();
        let words: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        assert_eq!(words, ["93.184.215.14", "2606:2800::1"]);
        for text in ["", "\n", "nonsense\n", "\u{ff}"] {
            assert_eq!(
                parse(text.as_bytes()),
                Err(ResolveError::Unknown),
                "{text:?}"
            );
        }
        let line = |last: u8| format!("10.0.0.{last} STREAM\n");
        let many: Vec<String> = (0..200).map(line).collect();
        let many = many.concat();
        assert_eq!(parse(many.as_bytes()).unwrap().len(), MOST_ADDRESSES);
    }
}
