//! Keeps the key that seals runs, and the list of keys that are trusted.
//!
//! The directory is `$PROVOST_KEYS`, else `provost/keys` in `$XDG_CONFIG_HOME` or `~/.config`. It
//! holds `signing.key` (the secret), `signing.pub` (its public line) and `trusted` (one public key
//! a line; `#` begins a comment). A run that finds no key makes one. [`person`] says what it holds for
//! persons.
//!
//! # Invariants
//!
//! - The secret is readable by its owner alone, from the moment it exists, and is never replaced.
//! - Only the owner can write in the directory, or the keys in it are not used.
//! - The directory does not lie in the repository an agent works on.

pub mod person;
mod place;
mod ssh_agent;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use provost_core::bundle::key::{self, NamedKey, SigningKey};
use provost_fs::atomic::{self, Durability};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// The most bytes that are read of a file of keys.
const LARGEST: u64 = 1024 * 1024;

const SECRET: &str = "signing.key";
const PUBLIC: &str = "signing.pub";
const TRUSTED: &str = "trusted";

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// No variable names a directory for keys.
    #[error("neither PROVOST_KEYS, XDG_CONFIG_HOME nor HOME names an absolute directory for keys")]
    NoPlace,
    /// An agent could reach the keys.
    #[error(
        "the key directory `{}` lies in the repository `{}`",
        directory.display(),
        repository.display()
    )]
    InsideRepository {
        directory: PathBuf,
        repository: PathBuf,
    },
    /// Other users could read the secret, or change the list of trusted keys.
    #[error(
        "`{}` has the mode {mode:03o}; others may get at it (chmod {wanted:03o} it)",
        path.display()
    )]
    Loose {
        path: PathBuf,
        mode: u32,
        wanted: u32,
    },
    /// Another user owns the file, and could read the secret or change the list of trusted keys.
    #[error("`{}` belongs to the user {owner}, not to you", path.display())]
    Foreign { path: PathBuf, owner: u32 },
    /// A link, fifo or directory in place of a file, or a file in place of the directory.
    #[error("`{}` is not a regular {wanted}", path.display())]
    NotRegular { path: PathBuf, wanted: &'static str },
    /// A line that is no key.
    #[error("line {line} of `{}` is no key", path.display())]
    Line {
        path: PathBuf,
        /// From 1.
        line: usize,
        source: key::KeyError,
    },
    /// There is a key already, and keys are never replaced.
    #[error("there is a signing key already: `{}`", path.display())]
    Exists { path: PathBuf },
    /// The name cannot be that of a key.
    #[error("the key cannot be made")]
    Name(#[source] key::KeyError),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// A file cannot be read or written.
    #[error("`{}` cannot be read or written", path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> KeysError + use<> {
    let path = path.to_owned();
    move |source| KeysError::Io {
        path: path.clone(),
        source,
    }
}

/// Whether a key had to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Found,
    Made,
}

/// The directory of keys.
#[derive(Debug, Clone)]
pub struct Keys {
    directory: PathBuf,
}

/// The signing key of this user, made if there is none.
pub fn load_or_create() -> Result<(SigningKey, Origin), KeysError> {
    Keys::find()?.load_or_create()
}

impl Keys {
    /// The directory the environment names; it need not exist.
    pub fn find() -> Result<Self, KeysError> {
        place::directory(|name| std::env::var_os(name)).map(Self::at)
    }

    /// The keys in `directory`.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory if it does not exist, with access for its owner only.
    pub(crate) fn make(&self) -> Result<(), KeysError> {
        place::make(&self.directory)
    }

    /// Refuses keys that lie in `repository`, where an agent's sandbox could contain them.
    pub fn outside(self, repository: &Path) -> Result<Self, KeysError> {
        let inside = place::resolved(&self.directory).starts_with(place::resolved(repository));
        if inside {
            return Err(KeysError::InsideRepository {
                directory: self.directory,
                repository: repository.to_owned(),
            });
        }
        Ok(self)
    }

    /// Refuses keys that lie in the repository around `start`, if there is one.
    pub fn outside_repository_around(self, start: &Path) -> Result<Self, KeysError> {
        match place::repository_around(start) {
            Some(repository) => self.outside(repository),
            None => Ok(self),
        }
    }

    pub fn load(&self) -> Result<Option<SigningKey>, KeysError> {
        let path = self.directory.join(SECRET);
        let Some(text) = self.read(SECRET, 0o600)? else {
            return Ok(None);
        };
        let line = text.lines().next().unwrap_or_default();
        let wrong = |source| KeysError::Line {
            path,
            line: 1,
            source,
        };
        SigningKey::parse(line).map(Some).map_err(wrong)
    }

    /// The signing key, made if there is none.
    pub fn load_or_create(&self) -> Result<(SigningKey, Origin), KeysError> {
        if let Some(key) = self.load()? {
            self.publish(&key)?;
            return Ok((key, Origin::Found));
        }
        match self.create("") {
            Ok(key) => Ok((key, Origin::Made)),
            // Another process was faster; its key is used.
            Err(KeysError::Exists { path }) => match self.load()? {
                Some(key) => Ok((key, Origin::Found)),
                None => Err(KeysError::Exists { path }),
            },
            Err(error) => Err(error),
        }
    }

    /// Makes a signing key called `name`. An existing key is never replaced.
    pub fn create(&self, name: &str) -> Result<SigningKey, KeysError> {
        place::make(&self.directory)?;
        let path = self.directory.join(SECRET);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(KeysError::Random)?;
        let key = SigningKey::from_seed(&seed, name).map_err(KeysError::Name)?;
        match self.place(SECRET, &(key.secret_line() + "\n"), 0o600) {
            Err(KeysError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                return Err(KeysError::Exists { path });
            }
            placed => placed?,
        }
        self.publish(&key)?;
        Ok(key)
    }

    /// Writes the public line of `key` beside it, so that verifying does not need the secret.
    fn publish(&self, key: &SigningKey) -> Result<(), KeysError> {
        if self.own()?.is_some_and(|own| own.key == key.public()) {
            return Ok(());
        }
        self.replace(PUBLIC, &format!("{}\n", key.named()))
    }

    /// The public key of the user's own signing key, if there is one.
    pub fn own(&self) -> Result<Option<NamedKey>, KeysError> {
        Ok(self.list(PUBLIC)?.into_iter().next())
    }

    /// Every key that is trusted: our own, and those on the list.
    pub fn trusted(&self) -> Result<Vec<NamedKey>, KeysError> {
        let mut keys = self.list(PUBLIC)?;
        for key in self.list(TRUSTED)? {
            if !keys.iter().any(|known| known.key == key.key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Adds `key` to the list of trusted keys; returns whether it was new.
    pub fn trust(&self, key: &NamedKey) -> Result<bool, KeysError> {
        place::make(&self.directory)?;
        if self.trusted()?.iter().any(|known| known.key == key.key) {
            return Ok(false);
        }
        self.append(TRUSTED, key)?;
        Ok(true)
    }

    /// Adds `key` to the list `name`.
    fn append(&self, name: &str, key: &NamedKey) -> Result<(), KeysError> {
        place::make(&self.directory)?;
        let mut text = self.read(name, 0o644)?.unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{key}\n");
        self.replace(name, &text)
    }

    fn list(&self, name: &str) -> Result<Vec<NamedKey>, KeysError> {
        let Some(text) = self.read(name, 0o644)? else {
            return Ok(Vec::new());
        };
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |source| KeysError::Line {
                path: self.directory.join(name),
                line: index + 1,
                source,
            };
            keys.push(NamedKey::parse(line).map_err(wrong)?);
        }
        Ok(keys)
    }

    /// The text of the file `name`, if it exists and no other user can write it; with the mode 600,
    /// nor read it.
    pub(crate) fn read(&self, name: &str, wanted: u32) -> Result<Option<String>, KeysError> {
        if !place::check(&self.directory)? {
            return Ok(None);
        }
        let path = self.directory.join(name);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&path);
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(KeysError::NotRegular {
                    path,
                    wanted: "file",
                });
            }
            Err(error) => return Err(io_error(&path)(error)),
        };
        let wrong = io_error(&path);
        place::judge(&path, &file.metadata().map_err(&wrong)?, wanted)?;
        let mut text = String::new();
        file.take(LARGEST)
            .read_to_string(&mut text)
            .map_err(&wrong)?;
        Ok(Some(text))
    }

    /// Writes a new file; fails if it exists.
    pub(crate) fn place(&self, name: &str, text: &str, mode: u32) -> Result<(), KeysError> {
        let path = self.directory.join(name);
        atomic::create(&path, text.as_bytes(), mode).map_err(io_error(&path))
    }

    /// Replaces a file of public keys.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<(), KeysError> {
        let path = self.directory.join(name);
        let replaced = atomic::replace(&path, text.as_bytes(), 0o644, Durability::Synced);
        replaced.map_err(io_error(&path))
    }
}

#[cfg(test)]
mod tests;
