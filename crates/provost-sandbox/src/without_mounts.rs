//! Rewrites a profile into one that needs no mounts: every path inside is a path of the host.
//!
//! Without a mount namespace a sandbox sees the host's paths. What a profile mounts elsewhere stays
//! at its path on the host; working directory, environment and arguments are rewritten to it.
//!
//! # Invariants
//!
//! - Only what the profile names is in the result; what needs a mount is refused, except
//!   [`Mount::Protect`], which this tier declares as a hole.

use std::fs;
use std::path::{Path, PathBuf};

use provost_core::tier::Tier;
use rustix::io::Errno;

use super::error::Failure;
use super::messages::Spec;
use super::profile::{Mount, Network};
use super::root::OWN_PROGRAM;
use super::scratch::Scratch;

/// Rewrites working directory, environment and arguments to the paths of the host.
pub(crate) fn rewrite(mut spec: Spec, scratch: &Scratch) -> Result<Spec, Failure> {
    if spec.profile.network != Network::Deny {
        return Err(Failure::at("network in tier landlock")(Errno::OPNOTSUPP));
    }
    let mut settled = Settled {
        scratch,
        mounts: Vec::new(),
        moved: Vec::new(),
    };
    let own = fs::read_link("/proc/self/exe").map_err(Failure::io("program"))?;
    settled.at(&own, Path::new(OWN_PROGRAM), Access::Read);
    for mount in &spec.profile.mounts {
        let stage = format!("place {}", mount.target().display());
        settled.add(mount).map_err(Failure::at(stage))?;
    }
    let profile = &mut spec.profile;
    profile.workdir = settled.place(&profile.workdir);
    for value in profile.env.values_mut() {
        *value = settled.list(value);
    }
    for word in &mut spec.argv {
        *word = settled.text(word);
    }
    profile.mounts = settled.mounts;
    debug_assert_eq!(profile.tier, Tier::Landlock, "others have mounts");
    Ok(spec)
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

struct Settled<'a> {
    scratch: &'a Scratch,
    mounts: Vec<Mount>,
    /// Each target with its path on the host.
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Settled<'_> {
    fn add(&mut self, mount: &Mount) -> Result<(), Errno> {
        let target = mount.target();
        match mount {
            // It would have to be mounted inside a directory of the host.
            Mount::ReadOnly { source, .. } | Mount::Writable { source, .. }
                if source != target && self.place(target) != *target =>
            {
                return Err(Errno::OPNOTSUPP);
            }
            Mount::ReadOnly { source, .. } => self.at(source, target, Access::Read),
            Mount::Writable { source, .. } => self.at(source, target, Access::Write),
            Mount::Scratch { .. } => {
                let made = self.scratch.directory(&self.moved.len().to_string());
                self.at(&made.map_err(errno)?, target, Access::Write);
            }
            // The host has its own, and programs look for it only there.
            Mount::File { .. } if target.starts_with("/etc") => {
                if target.exists() {
                    self.at(target, target, Access::Read);
                }
            }
            Mount::File { content, .. } => {
                let made = self.scratch.directory(&self.moved.len().to_string());
                let file = made
                    .map_err(errno)?
                    .join(target.file_name().ok_or(Errno::INVAL)?);
                fs::write(&file, content).map_err(errno)?;
                self.at(&file, target, Access::Read);
            }
            Mount::Overlay { .. }
            | Mount::Refused { .. }
            | Mount::Reports { .. }
            | Mount::UserFiles { .. }
            | Mount::Masked { .. } => {
                return Err(Errno::OPNOTSUPP);
            }
            // A hole of this tier; the host's own links stay.
            Mount::Protect { .. } | Mount::Symlink { .. } => {}
        }
        Ok(())
    }

    fn at(&mut self, source: &Path, target: &Path, access: Access) {
        let (source, here) = (source.to_owned(), source.to_owned());
        self.moved.push((target.to_owned(), here.clone()));
        self.mounts.push(match access {
            Access::Read => Mount::ReadOnly {
                source,
                target: here,
            },
            Access::Write => Mount::Writable {
                source,
                target: here,
            },
        });
    }

    /// The path on the host of the path `path` inside.
    fn place(&self, path: &Path) -> PathBuf {
        let inside = |(target, _): &&(PathBuf, PathBuf)| path.starts_with(target);
        let depth = |(target, _): &&(PathBuf, PathBuf)| target.components().count();
        match self.moved.iter().filter(inside).max_by_key(depth) {
            Some((target, source)) => match path.strip_prefix(target) {
                Ok(rest) if rest.as_os_str().is_empty() => source.clone(),
                Ok(rest) => source.join(rest),
                Err(_) => path.to_owned(),
            },
            None => path.to_owned(),
        }
    }

    fn text(&self, text: &str) -> String {
        if !text.starts_with('/') {
            return text.to_owned();
        }
        let place = self.place(Path::new(text));
        place
            .to_str()
            .map_or_else(|| text.to_owned(), str::to_owned)
    }

    /// A list of paths, such as the one of PATH.
    fn list(&self, text: &str) -> String {
        let parts: Vec<String> = text.split(':').map(|part| self.text(part)).collect();
        parts.join(":")
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it by value")]
fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
