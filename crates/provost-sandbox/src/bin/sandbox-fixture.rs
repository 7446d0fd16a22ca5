//! A driver for the tests of the sandbox, small enough to be run as another user and to be killed.
//!
//! Reads one request as JSON from its standard input and prints one answer. It is also the launcher
//! of the sandboxes it starts.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use provost_sandbox::{
    Command, Control, LauncherProgram, Profile, SandboxError, Stdin, main_if_launcher, selftest,
};
use serde::Deserialize;
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    main_if_launcher();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let request: Request = serde_json::from_str(&text)?;
    let answer = match request.run() {
        Ok(answer) => answer,
        Err(error) => render(&error),
    };
    writeln!(std::io::stdout(), "{answer}")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    profile: Profile,
    argv: Vec<String>,
    stdin: Option<String>,
    directory: PathBuf,
    cancel_after: Option<Duration>,
    refuse_birth: bool,
    selftest: bool,
}

impl Request {
    fn run(self) -> Result<Value, SandboxError> {
        #[cfg(feature = "holes")]
        keep_groups(&self.profile);
        if self.selftest {
            let outside = selftest::Outside::new(&LauncherProgram::own())?;
            let report = selftest::run(&LauncherProgram::own(), &self.profile, &outside)?;
            return Ok(json!({ "held": report.held(), "report": report }));
        }
        let command = Command {
            argv: self.argv,
            stdin: self
                .stdin
                .map_or(Stdin::Null, |text| Stdin::Bytes(text.into_bytes())),
            stdout: self.directory.join("stdout"),
            stderr: self.directory.join("stderr"),
        };
        let born = self.directory.join("born");
        let running = LauncherProgram::own().start(&self.profile, &command, |birth| {
            if self.refuse_birth {
                return Err(std::io::Error::other("refused"));
            }
            std::fs::write(born, serde_json::to_vec(birth)?)
        })?;
        let ended = running.wait(&mut |progress| match self.cancel_after {
            Some(limit) if progress.wall >= limit => Control::Cancel,
            _ => Control::Continue,
        })?;
        Ok(json!({ "ended": ended }))
    }
}

/// Joins a group, so that the sandbox has one to drop. A user who may not join has no other group.
#[cfg(feature = "holes")]
fn keep_groups(profile: &Profile) {
    const ADM: u32 = 4;
    if profile.holes.contains(&provost_sandbox::Wall::Groups) {
        let _ = rustix::thread::set_thread_groups(&[rustix::process::Gid::from_raw(ADM)]);
    }
}

fn render(error: &SandboxError) -> Value {
    match error {
        SandboxError::Start { stage, errno, hint } => {
            json!({ "stage": stage, "errno": errno, "hint": hint })
        }
        other => json!({ "error": other.to_string() }),
    }
}
