//! Puts aside what an earlier attempt left in the home of a program and weakens its rules.

use std::io;
use std::path::Path;

use provost_core::agent::Adapted;
use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_fs::beneath::Beneath;
use rustix::io::Errno;

/// Renames in `home` the settings of the program of `agent`, before its attempt number `attempt`.
/// The agent wrote that home, so no link in it is followed.
pub(crate) fn put_aside(agent: &Adapted, home: &Path, attempt: u32) -> Result<(), PortError> {
    for (directory, name) in agent.adapter.settings_in_home() {
        let moved = move_aside(home, directory, name, attempt);
        moved.map_err(|error| {
            let reason = format!(
                "`{directory}/{name}`, which an earlier attempt may have left in its home, cannot \
                 be put aside: {error}"
            );
            PortError::new(Code::HostFailed, reason)
        })?;
    }
    Ok(())
}

fn move_aside(home: &Path, directory: &str, name: &str, attempt: u32) -> io::Result<()> {
    let missing = |error: Errno| error == Errno::NOENT;
    let home = match Beneath::new(home) {
        Err(error) if missing(error) => return Ok(()),
        found => found?,
    };
    let place = match home.directory(directory.as_bytes()) {
        Err(error) if missing(error) => return Ok(()),
        found => found?,
    };
    let aside = format!("{name}.before-attempt-{attempt}");
    match rustix::fs::renameat(&place, name, &place, &aside) {
        Err(error) if missing(error) => Ok(()),
        moved => Ok(moved?),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use provost_core::agent::Adapter;

    use super::*;

    #[test]
    fn rules_that_an_attempt_left_are_put_aside_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (home, other) = (place.path().join("home"), place.path().join("other"));
        let agent = Adapter::named("codex").and_then(Adapter::plain).unwrap();
        put_aside(&agent, &home, 1).unwrap();
        fs::create_dir_all(home.join(".codex/rules")).unwrap();
        fs::write(home.join(".codex/rules/default.rules"), "allow").unwrap();
        fs::write(home.join(".codex/config.toml"), "a").unwrap();
        fs::write(home.join(".codex/state"), "s").unwrap();
        put_aside(&agent, &home, 2).unwrap();
        for (name, there) in [
            ("rules", false),
            ("config.toml", false),
            ("state", true),
            ("rules.before-attempt-2/default.rules", true),
        ] {
            assert_eq!(home.join(".codex").join(name).exists(), there, "{name}");
        }
        fs::create_dir_all(other.join("rules")).unwrap();
        fs::remove_dir_all(home.join(".codex")).unwrap();
        symlink(&other, home.join(".codex")).unwrap();
        let refused = put_aside(&agent, &home, 3).unwrap_err();
        assert_eq!(refused.code, Code::HostFailed);
        assert!(other.join("rules").exists());
    }
}
