//! Opens the sandbox that the acceptance commands of a run had, for `provost shell`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use provost_core::run::effect::Accept;
use provost_engine::ports::{PortError, Watch};

use super::workspaces::Wanted;
use super::{Machine, host, profile, write_birth};
use crate::sandbox::{ProcessIdentity, Profile};
use crate::workspace::Dates;

/// The directory of the shell's workspace.
const VISIT: &str = "visit";

/// How long a shell may last, in seconds.
const SECONDS: u64 = 7 * 24 * 60 * 60;

/// A sandbox that is ready to be entered.
#[derive(Debug)]
#[non_exhaustive]
pub struct SandboxShell {
    pub profile: Profile,
    directory: PathBuf,
}

impl SandboxShell {
    /// Records the init of the sandbox, so that a later command can reap it.
    pub fn born(&self, birth: &ProcessIdentity) -> io::Result<()> {
        write_birth(&self.directory, birth)
    }
}

impl Machine {
    /// Makes a fresh workspace as for the round `order`, calls `enter` with its sandbox, and
    /// removes the workspace.
    pub fn visit<T>(
        &self,
        order: &Accept,
        watch: &mut dyn Watch,
        enter: impl FnOnce(&SandboxShell) -> T,
    ) -> Result<T, PortError> {
        let ready = self.ready(&order.prepare, watch)?;
        let directory = self.places.run.join(VISIT);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.run).map_err(host("make the cache directory"))?;
        let fresh = self.fresh(&Wanted::of_round(order, Dates::default()), &directory)?;
        ready.make_places(&fresh.workspace.tree, None)?;
        let mount = fresh.workspace.mount(Path::new(profile::TREE));
        let mut profile = self.test_profile(order, mount, &ready)?;
        profile.limits.wall_seconds = SECONDS;
        // The user may type nothing for any time.
        profile.limits.no_progress_seconds = None;
        let visit = SandboxShell { profile, directory };
        let answer = enter(&visit);
        self.remove(&visit.directory)?;
        // If other files were kept for the user in there, the directory stays.
        let _ = fs::remove_dir(&self.places.run);
        Ok(answer)
    }
}
