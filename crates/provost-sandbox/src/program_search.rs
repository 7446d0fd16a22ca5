//! Finds out from inside a sandbox whether programs could be started there.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use provost_core::json;
use provost_core::run::judge::Lack;
use rustix::fs::Access;

use super::error::SandboxError;
use super::launcher::PROBE;
use super::launcher_program::{Command, LauncherProgram, Stdin};
use super::probe::FIND;
use super::profile::Profile;
use super::root::OWN_PROGRAM;
use super::running::{Control, How};
use super::scratch::Scratch;

/// Time limit of the search, in seconds.
const SECONDS: u64 = 20;
/// How many bytes of a script are read for its first line.
const FIRST_LINE: u64 = 256;

impl LauncherProgram {
    /// What keeps each of `programs` from being started in a sandbox of `profile`.
    pub fn search(
        &self,
        profile: &Profile,
        programs: &[&str],
    ) -> Result<Vec<Option<Lack>>, SandboxError> {
        let scratch = Scratch::make(&std::env::temp_dir()).map_err(machine)?;
        let found = self.search_with(profile, programs, scratch.path());
        scratch.remove();
        found
    }

    fn search_with(
        &self,
        profile: &Profile,
        programs: &[&str],
        scratch: &Path,
    ) -> Result<Vec<Option<Lack>>, SandboxError> {
        let mut profile = profile.clone();
        profile.limits.wall_seconds = SECONDS;
        let words = [OWN_PROGRAM, PROBE, FIND].into_iter();
        let command = Command {
            argv: words
                .chain(programs.iter().copied())
                .map(str::to_owned)
                .collect(),
            stdin: Stdin::Null,
            stdout: scratch.join("found"),
            stderr: scratch.join("complaints"),
        };
        let running = self.start(&profile, &command, |_| Ok(()))?;
        let ended = running.wait(&mut |_| Control::Continue)?;
        let text = fs::read(&command.stdout).map_err(machine)?;
        let found: Vec<Option<Lack>> =
            json::parse_as(&text).map_err(|error| machine(io::Error::other(error)))?;
        if ended.how != How::Exited(0) || found.len() != programs.len() {
            return Err(machine(io::Error::other("the search was cut short")));
        }
        Ok(found)
    }
}

fn machine(source: io::Error) -> SandboxError {
    SandboxError::Machine {
        what: "a search for programs",
        source,
    }
}

/// Looks up `programs` in the PATH of this process, and prints what they lack.
pub(super) fn look(programs: impl Iterator<Item = String>) -> i32 {
    let path = std::env::var("PATH").unwrap_or_default();
    let lacks: Vec<Option<Lack>> = programs.map(|program| lack(&program, &path)).collect();
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer(&mut out, &lacks).map_err(io::Error::from);
    i32::from(written.and_then(|()| out.flush()).is_err())
}

/// What keeps `program` from being started; the lookup is that of a payload.
fn lack(program: &str, path: &str) -> Option<Lack> {
    let places: Vec<PathBuf> = if program.contains('/') {
        vec![program.into()]
    } else {
        let directories = path.split(':').filter(|directory| !directory.is_empty());
        directories.map(|it| Path::new(it).join(program)).collect()
    };
    let mut lack = Lack::Missing;
    for place in places {
        let Ok(found) = place.metadata() else {
            continue;
        };
        if found.is_file() && rustix::fs::access(&place, Access::EXEC_OK).is_ok() {
            let interpreter = interpreter(&place).filter(|it| !Path::new(it).exists());
            return interpreter.map(Lack::NoInterpreter);
        }
        lack = Lack::NotExecutable;
    }
    Some(lack)
}

/// The program that a script names in its first line.
fn interpreter(script: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(script).ok()?;
    file.take(FIRST_LINE).read_to_end(&mut bytes).ok()?;
    let line = bytes
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8(line.to_vec()).ok()?;
    line.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_looked_for_as_a_sandbox_starts_it() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        file("one/tool", "", 0o644);
        file("two/tool", "#!/bin/sh\n", 0o755);
        file("two/plain", "", 0o644);
        file("two/binary", "\u{7f}ELF", 0o755);
        file("two/lost", "#! /no/such -x\n", 0o755);
        fs::create_dir(place.path().join("two/directory")).unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        let path = format!("{}::{}", at("one"), at("two"));
        let cases = [
            ("tool".to_owned(), None),
            ("binary".to_owned(), None),
            (at("two/tool"), None),
            ("plain".to_owned(), Some(Lack::NotExecutable)),
            ("directory".to_owned(), Some(Lack::NotExecutable)),
            (at("one/tool"), Some(Lack::NotExecutable)),
            ("missing".to_owned(), Some(Lack::Missing)),
            (
                "lost".to_owned(),
                Some(Lack::NoInterpreter("/no/such".to_owned())),
            ),
        ];
        for (program, want) in cases {
            assert_eq!(lack(&program, &path), want, "{program}");
        }
    }
}
