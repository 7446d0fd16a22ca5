//! Asks an installed program for its version, in a sandbox: it may be anything.

use std::fs;
use std::path::Path;

use provost_core::agent::Adapted;
use provost_core::agent::launch::Answer;
use provost_core::code::Code;
use provost_engine::ports::PortError;

use super::Installed;
use crate::machine::user_toolchain;
use crate::sandbox::{Command, Control, How, LauncherProgram, Profile, Scratch, Stdin};

/// How long a program may take to say its version.
const SECONDS: u64 = 60;

impl Installed {
    /// The program's answer to `--version`, in a sandbox without network.
    pub fn version(&self, agent: &Adapted) -> Result<String, PortError> {
        self.version_in(agent, &std::env::temp_dir())
    }

    /// The same, with files in a new directory below `place` while it answers.
    pub(crate) fn version_in(&self, agent: &Adapted, place: &Path) -> Result<String, PortError> {
        let scratch = Scratch::make(place);
        let scratch = scratch.map_err(|error| PortError::of(Code::HostFailed, error))?;
        let said = self.ask(agent, scratch.path());
        scratch.remove();
        said
    }

    fn ask(&self, agent: &Adapted, scratch: &Path) -> Result<String, PortError> {
        let failed = |what: String| PortError::new(Code::AgentFailed, what);
        let mut profile = Profile::minimal();
        user_toolchain().add_to(&mut profile);
        self.add_to(&mut profile, agent, Answer::Free);
        profile.limits.wall_seconds = SECONDS;
        let command = Command {
            argv: vec![self.program.display().to_string(), "--version".to_owned()],
            stdin: Stdin::Null,
            stdout: scratch.join("stdout"),
            stderr: scratch.join("stderr"),
        };
        let running = LauncherProgram::own().start(&profile, &command, |_| Ok(()))?;
        let ended = running.wait(&mut |_| Control::Continue)?;
        if ended.how != How::Exited(0) {
            return Err(failed(format!(
                "it does not start in the sandbox: {:?}",
                ended.how
            )));
        }
        let text = fs::read_to_string(&command.stdout).unwrap_or_default();
        match text.lines().next() {
            Some(line) if !line.trim().is_empty() => Ok(line.trim().to_owned()),
            _ => Err(failed("it says no version".to_owned())),
        }
    }
}
