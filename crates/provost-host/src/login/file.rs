//! Opens login files, and refuses one that another user could have written or read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use provost_core::net::credential::LoginFile;
use provost_fs::beneath::Beneath;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::report;
use super::shape::{self, LoginContent};

/// The largest login file, in bytes.
const LARGEST: u64 = 256 << 10;

/// Why a login file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("neither HOME nor a variable of the program names the directory of its login")]
    NoPlace,
    #[error("there is no login file `{}`", path.display())]
    Missing { path: PathBuf, file: LoginFile },
    /// A link, a directory, a fifo or the like.
    #[error("`{}` is not a regular file, or a link leads to it", path.display())]
    NotRegular { path: PathBuf },
    #[error("`{}` belongs to the user {owner}, not to you", path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("`{}` has the mode {mode:04o}, so that other users may read it", path.display())]
    Loose { path: PathBuf, mode: u32 },
    #[error("`{}` is larger than any login, {LARGEST} bytes", path.display())]
    TooLarge { path: PathBuf },
    /// It is cut off, or has another form than its program writes.
    #[error("`{}` is not a login that {} wrote", path.display(), report::program(*file))]
    Torn { path: PathBuf, file: LoginFile },
    #[error("`{}` holds no login that can be used", path.display())]
    NoLogin { path: PathBuf, file: LoginFile },
    /// It changed from a subscription to a key, or back, while the agent worked.
    #[error("`{}` holds another kind of login by now", path.display())]
    OtherKind { path: PathBuf, file: LoginFile },
    #[error("the login of {} in `{}` {when}", report::program(*file), path.display())]
    Expired {
        path: PathBuf,
        file: LoginFile,
        /// When it expired, in words.
        when: String,
    },
    #[error("`{}` cannot be read: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl LoginError {
    /// What helps.
    pub fn hint(&self) -> String {
        match self {
            Self::NoPlace => "set HOME to your home directory".to_owned(),
            Self::Missing { file, .. }
            | Self::Torn { file, .. }
            | Self::NoLogin { file, .. }
            | Self::OtherKind { file, .. } => format!("log in with `{}`", report::command(*file)),
            Self::Expired { file, .. } => report::renewal(*file),
            Self::NotRegular { path } => {
                format!("put the file itself at `{}`, and no link", path.display())
            }
            Self::Foreign { path, .. } => format!("sudo chown \"$USER\" '{}'", path.display()),
            Self::Loose { path, .. } => format!("chmod 600 '{}'", path.display()),
            Self::TooLarge { path } | Self::Io { path, .. } => {
                format!("see what is at `{}`", path.display())
            }
        }
    }
}

/// The directory of the login in a home, and the name of the file.
pub(super) fn inside(file: LoginFile) -> (&'static str, &'static str) {
    match file {
        LoginFile::Claude => (".claude", ".credentials.json"),
        LoginFile::Codex => (".codex", "auth.json"),
    }
}

/// The path of the login file: in the directory that the program's own variable names, else in the
/// home of the user.
pub(super) fn place(file: LoginFile) -> Result<PathBuf, LoginError> {
    place_by(file, |name| std::env::var_os(name).map(PathBuf::from))
}

fn place_by(
    file: LoginFile,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Result<PathBuf, LoginError> {
    let (directory, name) = inside(file);
    let own = match file {
        LoginFile::Claude => "CLAUDE_CONFIG_DIR",
        LoginFile::Codex => "CODEX_HOME",
    };
    let absolute = |path: &PathBuf| path.is_absolute();
    let named = variable(own).filter(absolute);
    let home = || {
        variable("HOME")
            .filter(absolute)
            .map(|home| home.join(directory))
    };
    let directory = named.or_else(home).ok_or(LoginError::NoPlace)?;
    Ok(directory.join(name))
}

/// The login in `file`, as it is now.
pub(super) fn read(file: LoginFile) -> Result<LoginContent, LoginError> {
    let path = place(file)?;
    let bytes = bytes(&path, file)?;
    shape::parse(file, &bytes, &path)
}

/// The bytes of the login file at `path`, which no other user could have written or read.
fn bytes(path: &Path, file: LoginFile) -> Result<Vec<u8>, LoginError> {
    let failed = |source: io::Error| LoginError::Io {
        path: path.to_owned(),
        source,
    };
    let opened = open(path).map_err(|error| match error {
        Errno::NOENT => LoginError::Missing {
            path: path.to_owned(),
            file,
        },
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::NXIO => LoginError::NotRegular {
            path: path.to_owned(),
        },
        other => failed(other.into()),
    })?;
    let found = opened.metadata().map_err(failed)?;
    let path = path.to_owned();
    if !found.is_file() {
        return Err(LoginError::NotRegular { path });
    }
    let owner = found.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(LoginError::Foreign { path, owner });
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(LoginError::Loose { path, mode });
    }
    if found.len() > LARGEST {
        return Err(LoginError::TooLarge { path });
    }
    let mut bytes = Vec::new();
    opened
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(LoginError::TooLarge { path });
    }
    Ok(bytes)
}

/// Opens the file for reading; neither it nor its directory may be a link.
fn open(path: &Path) -> Result<File, Errno> {
    let (directory, name) = (path.parent(), path.file_name());
    let (Some(directory), Some(name)) = (directory, name) else {
        return Err(Errno::NOENT);
    };
    let directory = Beneath::new(directory)?;
    let name = name.as_encoded_bytes();
    directory
        .open(name, OFlags::RDONLY, Mode::empty())
        .map(File::from)
}

#[cfg(test)]
mod tests;
