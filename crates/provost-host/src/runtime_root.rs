//! Checks whether a runtime root may be used: one that came with a checkout is refused.
//!
//! # Invariants
//!
//! - A root, or a part of it, that git tracks, that is a link or that is another user's is refused.
//! - A root that is in use carries a mark made with this user's secret; without that mark it is
//!   foreign, and is only read.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use provost_core::code::Code;
use provost_core::foreign_text::one_line;
use provost_core::gate::command::quote;
use provost_core::user_secret::{Purpose, Secret};
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};
use rustix::fs::OFlags;

use crate::git::Repository;
use crate::ids;
use crate::user_state::UserState;

/// The file that marks a root as this user's own.
const MARK: &str = "own";

/// The names that Provost uses in a root.
const PARTS: [&str; 20] = [
    "runs",
    "refused",
    "changes",
    "boards",
    "plans",
    "chains",
    "denied-writes.jsonl",
    "denied-writes.lock",
    "detached",
    "cancel",
    "releases.jsonl",
    "releases.lock",
    "hooks.json",
    "hook-claude.json",
    "hook-codex.json",
    "registry.db",
    "registry.lock",
    "registry.db-wal",
    "registry.db-shm",
    "registry.db-journal",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is empty of everything that Provost writes.
    New,
    /// This user's own.
    Own,
    /// Another user made it, or it cannot be determined.
    Foreign,
}

/// Who made `root`; an error if it must not even be read.
pub fn standing(root: &Path, own: Option<&UserState>) -> Result<Standing, PortError> {
    let mut holds = false;
    match root.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::New),
        Err(error) => return Err(unusable(root, &error)),
        Ok(found) => sound(root, &found)?,
    }
    let entries = fs::read_dir(root).map_err(|error| unusable(root, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| unusable(root, &error))?.path();
        match path.symlink_metadata() {
            Ok(found) => {
                sound(&path, &found)?;
                let name = path.file_name().and_then(|name| name.to_str());
                let is_ours = name.is_some_and(|name| PARTS.contains(&name));
                holds |= is_ours && (!found.is_dir() || !is_empty(&path));
            }
            // Another process has just replaced or removed the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&path, &error)),
        }
    }
    if !holds {
        return Ok(Standing::New);
    }
    // A secret that cannot be used vouches for nothing.
    let secret = own.and_then(|own| own.load().ok().flatten());
    let mark = secret.map(|secret| is_marked(root, &secret));
    Ok(match mark {
        Some(true) => Standing::Own,
        Some(false) | None => Standing::Foreign,
    })
}

/// Refuses a link, and a file of another user.
fn sound(path: &Path, found: &fs::Metadata) -> Result<(), PortError> {
    let shown = one_line(&path.display().to_string());
    let (wrong, first) = if found.is_symlink() {
        ("is a symbolic link", "")
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        ("belongs to another user", "run Provost as that user; or ")
    } else {
        return Ok(());
    };
    let reason = format!("`{shown}` {wrong}, and is neither read nor written");
    Err(PortError::new(Code::RootUnsafe, reason).hint(format!(
        "{first}check it with `ls -l {shown}`, and move it away; the next command creates a new one"
    )))
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Refuses a `root` in which git tracks anything.
pub fn untracked(repo: &Repository, root: &Path, own: Option<&UserState>) -> Result<(), PortError> {
    if repo.top().is_some_and(|top| root.starts_with(top)) {
        return untracked_by(repo, root, own);
    }
    let around = |place: &Path| place.join(".git").symlink_metadata().is_ok();
    if !root.ancestors().skip(1).any(around) {
        return Ok(());
    }
    let real = root.parent().and_then(|parent| parent.canonicalize().ok());
    let (Some(parent), Some(name)) = (real, root.file_name()) else {
        return Ok(());
    };
    match Repository::discover(&parent) {
        Ok(other) => untracked_by(&other, &parent.join(name), own),
        Err(_) => Ok(()),
    }
}

fn untracked_by(repo: &Repository, root: &Path, own: Option<&UserState>) -> Result<(), PortError> {
    let name = format!("{} {}", repo.common_dir().display(), root.display());
    let stamp = repo.tracking_stamp();
    if let (Some(own), Some(stamp)) = (own, &stamp)
        && own.noted(&name).as_ref() == Some(stamp)
    {
        return Ok(());
    }
    let found = repo.tracked_at(root);
    let Some(found) = found.map_err(|error| PortError::of(Code::GitFailed, error))? else {
        if let (Some(own), Some(stamp)) = (own, &stamp) {
            own.note_down(&name, stamp);
        }
        return Ok(());
    };
    let found = one_line(&found.to_string());
    let reason = format!(
        "git tracks `{found}`, so the runtime root came with the repository; it is not used"
    );
    let top = repo.top().unwrap_or_else(|| repo.common_dir());
    Err(PortError::new(Code::RootUnsafe, reason).hint(away(top, root, &found)))
}

/// The command that removes the runtime root of a checkout, in which git tracks `found`, from git
/// and moves it away.
///
/// It works from every directory, and even if the root exists only in the last commit.
fn away(top: &Path, root: &Path, found: &str) -> String {
    let depth = root
        .strip_prefix(top)
        .map_or(1, |it| it.components().count());
    let parts: Vec<&str> = found.split('/').take(depth.max(1)).collect();
    let tracked = quote(&parts.join("/"));
    let place = top.join(parts.join("/")).display().to_string();
    let git = format!("git -C {}", quote(&one_line(&top.display().to_string())));
    let (from, to) = (one_line(&place), one_line(&format!("{place}.foreign")));
    format!(
        "{git} rm -r -q --cached --ignore-unmatch {tracked} && mv {} {} && \
         {git} commit -m 'Remove the runtime root' -- {tracked}",
        quote(&from),
        quote(&to)
    )
}

/// The failure for using a root of another user; `whose` is the reason.
pub fn foreign(root: &Path, whose: &str) -> PortError {
    let shown = one_line(&root.display().to_string());
    let reason =
        format!("`{shown}` was not made by you on this machine, so nothing in it is used: {whose}");
    PortError::new(Code::RootUnsafe, reason).hint(format!(
        "check that HOME and XDG_STATE_HOME are those it was made with; \
         `provost runs` and `provost verify` read it; \
         if it is not yours, `mv {} {}` starts a new one",
        quote(&shown),
        quote(&format!("{shown}.foreign"))
    ))
}

/// Which secret was tried, and that it did not make the mark.
pub fn whose(own: &UserState) -> String {
    let path = one_line(&own.secret_path().display().to_string());
    match own.load() {
        Ok(Some(_)) => format!("the secret in `{path}` did not make it"),
        Ok(None) => format!("there is no secret in `{path}` that could have made it"),
        Err(error) => format!("the secret in `{path}` cannot be used: {error}"),
    }
}

fn is_marked(root: &Path, secret: &Secret) -> bool {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(root.join(MARK));
    let mut text = String::new();
    let read = file.and_then(|file| file.take(256).read_to_string(&mut text));
    let parts = text.trim_end().split_once(' ');
    read.is_ok() && parts.is_some_and(|(id, mac)| secret.made(mac, Purpose::Root, id.as_bytes()))
}

/// Marks `root`, which exists, as made by the holder of `secret`.
pub fn mark(root: &Path, secret: &Secret) -> Result<(), PortError> {
    if is_marked(root, secret) {
        return Ok(());
    }
    let id = ids::trace_id().map_err(|error| PortError::of(Code::HostFailed, error))?;
    let text = format!("{id} {}\n", secret.mac(Purpose::Root, id.as_bytes()));
    let path = root.join(MARK);
    if atomic::create(&path, text.as_bytes(), 0o600).is_ok() || is_marked(root, secret) {
        return Ok(());
    }
    let marked = atomic::replace(&path, text.as_bytes(), 0o600, Durability::Synced);
    marked.map_err(|error| unusable(&path, &error))
}

fn unusable(path: &Path, error: &io::Error) -> PortError {
    PortError::new(Code::HostFailed, format!("`{}`: {error}", path.display()))
}
