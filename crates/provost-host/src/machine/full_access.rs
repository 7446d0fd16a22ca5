//! Gives the sandbox of an agent the files of the user, and masks what no agent may see.
//!
//! # Invariants
//!
//! - Masked are Provost's keys, settings, state, caches and runs, the git directories of the
//!   repository, and every login file that is known, wherever a link leads to it.
//! - Programs along PATH, the settings of git and Provost itself are read-only: acceptance commands
//!   and the driver use them.
//! - No directory above any of these can be renamed, so nothing can be put in its place.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::run::effect::AgentEffect;
use provost_engine::ports::PortError;

use super::Machine;
use crate::keys::Keys;
use crate::login;
use crate::sandbox::{HOME, Mount, Profile};
use crate::user_file;
use crate::user_state::UserState;

/// Places in a home that hold logins or secrets.
const LOGINS: [&str; 40] = [
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/Bitwarden",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/containers",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/pip",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/containers/auth.json",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".m2/settings.xml",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".vault-token",
    ".yarnrc.yml",
];

/// Places in a home that programs outside of the sandbox read as their settings.
const SETTINGS: [&str; 3] = [".config/git", ".gitconfig", ".pam_environment"];

impl Machine {
    /// Adds the home of the user to `profile`, and any place of the network, if the contract of the
    /// agent says so; the policy gate has seen the grant.
    pub(super) fn add_full_access(
        &self,
        agent: &AgentEffect,
        profile: &mut Profile,
    ) -> Result<(), PortError> {
        if !agent.contract.has_full_access() {
            return Ok(());
        }
        let home = home()?;
        let inside = |path: PathBuf| {
            let real = path.canonicalize().ok()?;
            (real.starts_with(&home) && real != home).then_some(real)
        };
        let masked: BTreeSet<PathBuf> =
            self.secrets(&home).into_iter().filter_map(inside).collect();
        let settings = SETTINGS.iter().map(|name| home.join(name));
        let program = env::current_exe().ok();
        let fixed: BTreeSet<PathBuf> = settings.chain(program).filter_map(inside).collect();
        give(profile, &home, &masked, &fixed);
        profile.grant_any();
        Ok(())
    }

    /// What the agent may not see.
    fn secrets(&self, home: &Path) -> Vec<PathBuf> {
        let top = self.repo.top();
        let mut secrets: Vec<PathBuf> = LOGINS.iter().map(|name| home.join(name)).collect();
        secrets.extend(login::places());
        secrets.extend(Keys::find().ok().map(|keys| keys.directory().to_owned()));
        let settings = user_file::place();
        secrets.extend(settings.and_then(|file| Some(file.parent()?.to_owned())));
        let state = UserState::find(top.unwrap_or_else(|| self.repo.common_dir()));
        secrets.extend(state.ok().map(|state| state.directory().to_owned()));
        // The directory of one repository, and that of all of them.
        secrets.extend(
            [self.places.cache.parent(), Some(&self.places.cache)]
                .into_iter()
                .flatten()
                .map(Path::to_owned),
        );
        // The bundle lies in the runtime root, below the directory of all runs.
        let root = self.bundle.parent().and_then(Path::parent);
        secrets.extend(root.map(Path::to_owned));
        secrets.push(self.repo.common_dir().to_owned());
        secrets.push(self.repo.git_dir().to_owned());
        let checkouts = [top, self.repo.checkout()].into_iter().flatten();
        secrets.extend(checkouts.flat_map(|it| [it.join(".git"), it.join(".provost")]));
        let agent = env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
        secrets.extend(agent);
        secrets
    }
}

/// The home of the user, without symbolic links.
fn home() -> Result<PathBuf, PortError> {
    let unusable = |reason: &str| {
        let hint = "run without full access, or set HOME to your own directory";
        Err(PortError::new(Code::SandboxUnavailable, reason).hint(hint))
    };
    let home = env::var_os("HOME").map(PathBuf::from);
    let Some(home) = home.and_then(|home| home.canonicalize().ok()) else {
        return unusable("HOME is no directory");
    };
    let own = Path::new(HOME);
    if home.components().count() < 2 || home.starts_with(own) || own.starts_with(&home) {
        return unusable("HOME is a directory of the system or of the sandbox itself");
    }
    Ok(home)
}

/// Puts `home` below what `profile` has, with `masked` invisible and `fixed` read-only.
fn give(profile: &mut Profile, home: &Path, masked: &BTreeSet<PathBuf>, fixed: &BTreeSet<PathBuf>) {
    let mounts = std::mem::take(&mut profile.mounts);
    let below = |mount: &Mount| mount.target().starts_with(home);
    let (kept, mut mounts): (Vec<Mount>, Vec<Mount>) =
        mounts.into_iter().partition(|mount| below(mount));
    // What lies below something masked needs no place of its own.
    let outermost = |path: &&PathBuf| !masked.iter().any(|it| it != *path && path.starts_with(it));
    let masked: Vec<&PathBuf> = masked.iter().filter(outermost).collect();
    let is_masked = |path: &Path| masked.iter().any(|it| path.starts_with(it));
    let kept: Vec<Mount> = kept
        .into_iter()
        .filter(|it| !is_masked(it.target()))
        .collect();
    let fixed = fixed
        .iter()
        .filter(|it| !is_masked(it) && !is_kept(&kept, it));
    let fixed: Vec<&PathBuf> = fixed.collect();
    let targets = kept.iter().map(Mount::target);
    let targets = targets.chain(masked.iter().chain(&fixed).map(|it| it.as_path()));
    let mut above: BTreeSet<&Path> = BTreeSet::new();
    for target in targets {
        let between = target.ancestors().skip(1).take_while(|it| *it != home);
        above.extend(between.filter(|it| !is_kept(&kept, it)));
    }
    // A mount point cannot be renamed. In their order a directory comes before what it holds.
    let places = std::iter::once(home).chain(above);
    mounts.extend(places.map(|path| Mount::UserFiles {
        path: path.to_owned(),
    }));
    let masks = masked.iter().map(|it| (*it).clone());
    let masks: Vec<Mount> = masks.map(|target| Mount::Masked { target }).collect();
    mounts.extend(kept);
    mounts.extend(masks);
    mounts.extend(
        fixed
            .into_iter()
            .map(|it| Mount::Protect { target: it.clone() }),
    );
    profile.mounts = mounts;
}

/// Whether `path` is in a mount that stays as it is.
fn is_kept(kept: &[Mount], path: &Path) -> bool {
    kept.iter().any(|mount| path.starts_with(mount.target()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(profile: &Profile) -> Vec<String> {
        let line = |mount: &Mount| {
            let kind = match mount {
                Mount::UserFiles { .. } => "user",
                Mount::Masked { .. } => "masked",
                Mount::Protect { .. } => "fixed",
                Mount::ReadOnly { .. } => "read",
                _ => "other",
            };
            format!("{kind} {}", mount.target().display())
        };
        profile.mounts.iter().map(line).collect()
    }

    #[test]
    fn what_is_masked_or_fixed_lies_below_mount_points() {
        let mut profile = Profile::minimal();
        profile.mounts.clear();
        for target in ["/usr", "/home/ann/.local/bin", "/workspace"] {
            profile.mounts.push(Mount::ReadOnly {
                source: target.into(),
                target: target.into(),
            });
        }
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let masked = paths(&[
            "/home/ann/.config/provost",
            "/home/ann/.config/provost/keys",
            "/home/ann/.ssh",
            "/home/ann/code/app/.git",
        ]);
        let fixed = paths(&["/home/ann/.gitconfig", "/home/ann/.local/bin/provost"]);
        give(&mut profile, Path::new("/home/ann"), &masked, &fixed);
        let want = [
            "read /usr",
            "read /workspace",
            "user /home/ann",
            "user /home/ann/.config",
            "user /home/ann/.local",
            "user /home/ann/code",
            "user /home/ann/code/app",
            "read /home/ann/.local/bin",
            "masked /home/ann/.config/provost",
            "masked /home/ann/.ssh",
            "masked /home/ann/code/app/.git",
            "fixed /home/ann/.gitconfig",
        ];
        assert_eq!(lines(&profile), want);
    }
}
