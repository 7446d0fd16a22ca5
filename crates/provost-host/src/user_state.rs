//! Keeps the state of this user: a secret, and what the user agreed to.
//!
//! The directory is `provost` in `$XDG_STATE_HOME` or `~/.local/state`. It holds `secret`, one
//! empty file for each digest that the user agreed to, and notes that save repeated work.
//!
//! # Invariants
//!
//! - It lies in no repository, and nothing in it is reached through a link.
//! - Only its owner can read or write it, or nothing in it is used. The secret is never replaced.

use std::io;
use std::path::{Path, PathBuf};

use provost_core::object::sha256;
use provost_core::user_secret::Secret;

use crate::keys::{Keys, KeysError};

const SECRET: &str = "secret";

/// Why the user's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserStateError {
    /// No variable names a directory.
    #[error("neither XDG_STATE_HOME nor HOME names an absolute directory for the state of Provost")]
    NoPlace,
    /// An agent could reach the state.
    #[error("the state directory `{}` lies in the repository", directory.display())]
    InsideRepository { directory: PathBuf },
    /// The file holds no secret.
    #[error("`{}` holds no secret of Provost", path.display())]
    Secret { path: PathBuf },
    /// The directory or a file in it cannot be used.
    #[error(transparent)]
    Files(#[from] KeysError),
}

/// The directory of this user's state.
#[derive(Debug, Clone)]
pub struct UserState {
    directory: PathBuf,
    files: Keys,
}

impl UserState {
    /// The directory the environment names, which must not lie in `repository`; it need not exist.
    pub fn find(repository: &Path) -> Result<Self, UserStateError> {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let home = || Some(absolute("HOME")?.join(".local/state"));
        let state = absolute("XDG_STATE_HOME").or_else(home);
        let directory = state.ok_or(UserStateError::NoPlace)?.join("provost");
        Self::at(directory, repository)
    }

    /// The state in `directory`.
    fn at(directory: PathBuf, repository: &Path) -> Result<Self, UserStateError> {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        if is_link(&directory) {
            return Err(UserStateError::Files(KeysError::NotRegular {
                path: directory,
                wanted: "directory",
            }));
        }
        match Keys::at(directory.clone()).outside(repository) {
            Ok(files) => Ok(Self { directory, files }),
            Err(_) => Err(UserStateError::InsideRepository { directory }),
        }
    }

    /// Where the secret is, or would be.
    pub fn secret_path(&self) -> PathBuf {
        self.directory.join(SECRET)
    }

    /// Refuses a directory that does not exist and cannot be made; makes nothing.
    pub fn can_be_made(&self) -> Result<(), UserStateError> {
        let mut parts = self.directory.ancestors();
        let Some(there) = parts.find(|part| part.symlink_metadata().is_ok()) else {
            return Ok(());
        };
        let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::access(there, wanted).map_err(|error| {
            UserStateError::Files(KeysError::Io {
                path: self.directory.clone(),
                source: error.into(),
            })
        })
    }

    /// The secret, if there is one yet.
    pub fn load(&self) -> Result<Option<Secret>, UserStateError> {
        let Some(text) = self.files.read(SECRET, 0o600)? else {
            return Ok(None);
        };
        let secret = Secret::parse(text.trim_end());
        let path = self.directory.join(SECRET);
        secret.map(Some).ok_or(UserStateError::Secret { path })
    }

    /// The secret, made if there is none.
    pub fn load_or_create(&self) -> Result<Secret, UserStateError> {
        if let Some(secret) = self.load()? {
            return Ok(secret);
        }
        self.files.make()?;
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(KeysError::Random)?;
        let secret = Secret::of(bytes);
        match self.files.place(SECRET, &(secret.line() + "\n"), 0o600) {
            Ok(()) => Ok(secret),
            // Another process was faster; its secret is used.
            Err(error) if already(&error) => {
                let path = self.directory.join(SECRET);
                self.load()?.ok_or(UserStateError::Secret { path })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The directory, made if it is missing.
    pub fn made(&self) -> Result<&Path, UserStateError> {
        self.files.make()?;
        Ok(&self.directory)
    }

    /// Where it is, or would be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the user agreed to what has this `digest`.
    pub fn has_agreed(&self, digest: &str) -> Result<bool, UserStateError> {
        Ok(self.files.read(&agreed(digest), 0o600)?.is_some())
    }

    /// Records that the user agrees to what has this `digest`.
    pub fn agree(&self, digest: &str) -> Result<(), UserStateError> {
        self.files.make()?;
        match self.files.place(&agreed(digest), "", 0o600) {
            Err(error) if !already(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The note under `name`, which saves repeated work.
    pub fn noted(&self, name: &str) -> Option<String> {
        self.files.read(&note(name), 0o600).ok().flatten()
    }

    /// Stores `text` under `name`; errors are ignored, because the work can be repeated.
    pub fn note_down(&self, name: &str, text: &str) {
        let known = self.files.read(SECRET, 0o600);
        if known.is_ok_and(|secret| secret.is_some()) {
            // A failure only costs time.
            let _ = self.files.replace(&note(name), text);
        }
    }
}

fn agreed(digest: &str) -> String {
    format!("agreed-{}", sha256(digest.as_bytes()))
}

fn note(name: &str) -> String {
    format!("seen-{}", &sha256(name.as_bytes())[..32])
}

fn already(error: &KeysError) -> bool {
    matches!(error, KeysError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn own(directory: &Path) -> Result<UserState, UserStateError> {
        UserState::at(directory.join("provost"), Path::new("/nowhere"))
    }

    #[test]
    fn a_secret_is_made_once_and_for_its_owner_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let own = own(scratch.path()).unwrap();
        assert_eq!(own.load().unwrap(), None);
        let secret = own.load_or_create().unwrap();
        assert_eq!(own.load_or_create().unwrap(), secret);
        let mode = |name: &str| {
            let path = scratch.path().join(name);
            path.metadata().unwrap().permissions().mode() & 0o777
        };
        assert_eq!(mode("provost"), 0o700);
        assert_eq!(mode("provost/secret"), 0o600);
        let loose = fs::Permissions::from_mode(0o644);
        fs::set_permissions(scratch.path().join("provost/secret"), loose).unwrap();
        assert!(own.load().is_err());
    }

    #[test]
    fn nothing_is_reached_through_a_link_or_kept_in_a_repository() {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("elsewhere")).unwrap();
        symlink("elsewhere", scratch.path().join("provost")).unwrap();
        assert!(own(scratch.path()).is_err());
        let inside = UserState::at(scratch.path().join("state/provost"), scratch.path());
        assert!(matches!(
            inside,
            Err(UserStateError::InsideRepository { .. })
        ));
        let other = tempfile::tempdir().unwrap();
        let good = own(other.path()).unwrap();
        good.load_or_create().unwrap();
        let secret = other.path().join("provost/secret");
        fs::rename(&secret, other.path().join("moved")).unwrap();
        symlink("../moved", &secret).unwrap();
        assert!(good.load().is_err());
    }

    #[test]
    fn what_was_agreed_to_is_known_by_its_digest() {
        let scratch = tempfile::tempdir().unwrap();
        let own = own(scratch.path()).unwrap();
        assert!(!own.has_agreed("one").unwrap());
        own.agree("one").unwrap();
        own.agree("one").unwrap();
        assert!(own.has_agreed("one").unwrap());
        assert!(!own.has_agreed("two").unwrap());
    }
}
