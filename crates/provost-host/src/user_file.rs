//! The file in which a user says something for all repositories: `provost/config.toml` in
//! `$XDG_CONFIG_HOME` or `~/.config`.

use std::path::PathBuf;
use std::{fs, io};

use provost_core::code::Code;
use provost_core::policy::{self, UserFile};
use provost_engine::ports::PortError;

/// The file; `None` if no absolute directory is known for it.
pub fn place() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let home = || Some(absolute("HOME")?.join(".config"));
    let directory = absolute("XDG_CONFIG_HOME").or_else(home)?;
    Some(directory.join("provost/config.toml"))
}

/// What the user says there; nothing if there is no file.
pub fn read() -> Result<UserFile, PortError> {
    let Some(path) = place() else {
        return Ok(UserFile::default());
    };
    let unusable = |error: &dyn std::error::Error| {
        let reason = format!("`{}`, your own settings: {error}", path.display());
        PortError::new(Code::InputInvalid, reason)
    };
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(UserFile::default()),
        read => read.map_err(|error| unusable(&error))?,
    };
    policy::parse_user_file(&bytes).map_err(|error| unusable(&error))
}
