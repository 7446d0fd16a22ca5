//! Finds the programs of adapters on this machine, and adds one to a sandbox.
//!
//! # Invariants
//!
//! - A program is looked up in the user's PATH, by its one name: no file of a repository chooses
//!   it.
//! - Only its own package is mounted, read-only; never a home, a setting or a login.

mod parser;
mod reader;
mod settings;
mod stream;
mod version;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use provost_core::agent::Adapted;
use provost_core::agent::adapter::Start;
use provost_core::agent::launch::{self, Answer};
use provost_core::code::Code;
use provost_engine::ports::PortError;

use crate::sandbox::{Mount, Profile};
pub(crate) use settings::put_aside;
pub(crate) use stream::{AgentControl, AgentStream};

/// Path of the server certificates in a sandbox, if the user named some.
const CERTIFICATES: &str = "/run/provost/certificates.pem";

/// The installed program of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The program itself; links are followed.
    pub program: PathBuf,
    /// The directory that it needs, mounted at the same path.
    pub package: PathBuf,
}

/// The program of `agent`; `None` for a command of the policy, which is looked up in the sandbox.
pub fn find(agent: &Adapted) -> Result<Option<Installed>, PortError> {
    let Start::Program { name, package } = agent.adapter.start() else {
        return Ok(None);
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = find_along(name, &path).ok_or_else(|| {
        let adapter = agent.adapter;
        let reason = format!("the agent `{adapter}` needs the program `{name}` along your PATH");
        PortError::new(Code::NotFound, reason).hint(format!("npm install --global {package}"))
    });
    found.map(Some)
}

/// The command line of `agent`: `words`, with the path of the program instead of its name.
pub(crate) fn argv(agent: &Adapted, words: &[String]) -> Result<Vec<String>, PortError> {
    let installed = find(agent)?;
    Ok(installed.map_or_else(|| words.to_vec(), |installed| installed.argv(words)))
}

/// Adds to `profile` what `agent` needs to give such an `answer`.
pub(crate) fn furnish(
    profile: &mut Profile,
    agent: &Adapted,
    answer: Answer,
) -> Result<(), PortError> {
    match find(agent)? {
        Some(installed) => installed.add_to(profile, agent, answer),
        None => furnish_words(profile, agent, answer),
    }
    if agent.converses() {
        // No message may be lost: the protocol waits for each answer.
        profile.limits.output_bytes = profile.limits.output_bytes.max(stream::LONGEST_TALK);
    }
    Ok(())
}

fn find_along(name: &str, path: &OsStr) -> Option<Installed> {
    let is_program = |path: &PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let program = std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(is_program)?;
    let program = program.canonicalize().ok()?;
    let package = package(&program).unwrap_or_else(|| program.clone());
    Some(Installed { program, package })
}

/// The npm package that a program belongs to. Parts for one platform are packages beside it, of the
/// same scope.
fn package(program: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = program.components().collect();
    let modules = |part: &Component<'_>| part.as_os_str() == "node_modules";
    let at = parts.iter().position(modules)?;
    let whole = parts.get(at + 1)?;
    // A file directly in there is no package.
    (parts.len() > at + 2).then(|| parts[..at].iter().chain([&parts[at], whole]).collect())
}

/// Adds the variables and files that configure the program for its task.
fn furnish_words(profile: &mut Profile, agent: &Adapted, answer: Answer) {
    profile.env.extend(launch::environment(agent));
    for (target, content) in launch::files(agent, answer) {
        let target = target.into();
        profile.add(Mount::File { target, content });
    }
}

impl Installed {
    /// Adds to `profile` the program and what `agent` needs to give such an `answer`.
    pub fn add_to(&self, profile: &mut Profile, agent: &Adapted, answer: Answer) {
        let is_host = |mount: &Mount| matches!(mount, Mount::ReadOnly { .. });
        let covers = |mount: &Mount| is_host(mount) && self.package.starts_with(mount.target());
        if !profile.mounts.iter().any(covers) {
            // An outer tree includes the inner ones.
            profile
                .mounts
                .retain(|mount| !is_host(mount) || !mount.target().starts_with(&self.package));
            profile.add(Mount::ReadOnly {
                source: self.package.clone(),
                target: self.package.clone(),
            });
        }
        furnish_words(profile, agent, answer);
        let trusted = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        if let Some(source) = trusted.filter(|file| file.is_absolute() && file.is_file()) {
            profile.add(Mount::ReadOnly {
                source,
                target: CERTIFICATES.into(),
            });
            for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
                profile.env.insert(name.to_owned(), CERTIFICATES.to_owned());
            }
        }
    }

    /// The command line: `words`, with the path of the program instead of its name.
    pub fn argv(&self, words: &[String]) -> Vec<String> {
        let program = self.program.display().to_string();
        std::iter::once(program)
            .chain(words.iter().skip(1).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use provost_core::agent::Adapter;

    use super::*;

    fn program(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_brings_its_package_and_nothing_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let modules = home.join("lib/node_modules");
        program(&modules.join("@openai/codex/bin/codex.js"), 0o755);
        program(&home.join("share/versions/2.1"), 0o755);
        for (name, to) in [
            ("codex", "../lib/node_modules/@openai/codex/bin/codex.js"),
            ("claude", "../share/versions/2.1"),
        ] {
            fs::create_dir_all(home.join("bin")).unwrap();
            symlink(to, home.join("bin").join(name)).unwrap();
        }
        // Neither a relative directory nor a file that cannot be executed counts.
        program(&home.join("first/codex"), 0o644);
        let path = format!("bin:{0}/first:{0}/bin", home.display());
        let find = |name| find_along(name, OsStr::new(&path)).unwrap();
        assert_eq!(find("codex").package, modules.join("@openai"));
        let claude = find("claude");
        assert_eq!(claude.package, home.join("share/versions/2.1"));
        assert_eq!(claude.program, claude.package);
        assert_eq!(find_along("gemini", OsStr::new(&path)), None);
        assert_eq!(find_along("codex", OsStr::new("")), None);
    }

    #[test]
    fn one_tree_of_the_host_holds_the_program() {
        let installed = Installed {
            program: "/srv/node_modules/tool/bin/tool.js".into(),
            package: "/srv/node_modules/tool".into(),
        };
        let agent = Adapter::named("codex").and_then(Adapter::plain).unwrap();
        let mut profile = Profile::minimal();
        let single = Mount::ReadOnly {
            source: installed.program.clone(),
            target: installed.program.clone(),
        };
        profile.add(single);
        installed.add_to(&mut profile, &agent, Answer::Free);
        let below = |mount: &&Mount| mount.target().starts_with("/srv");
        let there: Vec<_> = profile.mounts.iter().filter(below).collect();
        assert!(matches!(there[..], [mount] if mount.target() == installed.package));
        let words = ["codex".to_owned(), "exec".to_owned()];
        let want = ["/srv/node_modules/tool/bin/tool.js", "exec"];
        assert_eq!(installed.argv(&words), want);
    }
}
