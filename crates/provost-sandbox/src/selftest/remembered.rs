//! Remembers self-tests that held, so that a sandbox is attacked once per boot of the machine.
//!
//! # Invariants
//!
//! - A report counts only for exactly the [`Ground`] of its test, if it is complete and held.
//! - A file counts only if no other user could have written it.
//! - On any doubt the sandbox is attacked again; it never passes without a test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use provost_core::object::sha256;

use super::{Ground, Outside, Report, private_file};
use crate::{LauncherProgram, Mount, Profile, SandboxError};

/// The largest report that is read.
const LARGEST: u64 = 256 << 10;
/// Replaces every path of one run in a [`shape`].
const ANY: &str = "/any";

/// A report, and whether it was remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    pub report: Report,
    /// Whether it is from an earlier test.
    pub cached: bool,
}

/// The report about `profile`: an earlier one from `directory`, or a new one, whose targets
/// `outside` sets up.
///
/// The ground is the [`shape`] of the profile: paths of one run below `private` do not change its
/// restrictions.
pub fn test(
    launcher: &LauncherProgram,
    profile: &Profile,
    (directory, private): (&Path, &[&Path]),
    outside: impl FnOnce() -> Result<Outside, SandboxError>,
) -> Result<Recalled, SandboxError> {
    let ground = Ground::of(launcher, &shape(profile, private))?;
    let place = place(directory, &ground)?;
    if let Ok(report) = read(&place, &ground) {
        return Ok(Recalled {
            report,
            cached: true,
        });
    }
    let found = super::run(launcher, profile, &outside()?)?;
    let report = Report { ground, ..found };
    if report.held() {
        // It only saves time: a report that cannot be stored is no error.
        let _ = write(&place, &report);
    }
    Ok(Recalled {
        report,
        cached: false,
    })
}

/// The profile without what differs from run to run and does not change its restrictions: where
/// below `private` a tree of the host lies, the content of generated files, and the values of
/// variables.
pub fn shape(profile: &Profile, private: &[&Path]) -> Profile {
    let mut shape = profile.clone();
    let forget = |path: &mut PathBuf| {
        if private.iter().any(|private| path.starts_with(private)) {
            *path = ANY.into();
        }
    };
    for mount in &mut shape.mounts {
        match mount {
            Mount::ReadOnly { source, .. }
            | Mount::Writable { source, .. }
            | Mount::Reports { source, .. } => forget(source),
            Mount::Overlay {
                lowers,
                upper,
                work,
                ..
            } => {
                lowers.iter_mut().for_each(forget);
                forget(upper);
                forget(work);
            }
            Mount::File { content, .. } => content.clear(),
            Mount::UserFiles { .. }
            | Mount::Masked { .. }
            | Mount::Protect { .. }
            | Mount::Scratch { .. }
            | Mount::Symlink { .. }
            | Mount::Refused { .. } => {}
        }
    }
    shape.env.values_mut().for_each(String::clear);
    shape
}

fn place(directory: &Path, ground: &Ground) -> Result<PathBuf, SandboxError> {
    let key = serde_json::to_value(ground).map_err(SandboxError::Profile)?;
    let name = sha256(key.to_string().as_bytes());
    let sandboxes = directory.join(crate::REMEMBERED).join(&ground.boot);
    Ok(sandboxes.join(format!("{name}.json")))
}

/// Reads a report about `ground`; fails unless it is valid.
fn read(place: &Path, ground: &Ground) -> io::Result<Report> {
    let bytes = private_file::read(place, LARGEST)?;
    let report: Report = provost_core::json::parse_as(&bytes).map_err(io::Error::other)?;
    if report.ground != *ground || !report.held() {
        return Err(io::Error::other("the report is about something else"));
    }
    Ok(report)
}

/// Stores `report`, completely or not at all.
fn write(place: &Path, report: &Report) -> io::Result<()> {
    let bytes = serde_json::to_vec(report).map_err(io::Error::other)?;
    private_file::write(place, &bytes)?;
    forget_others(place.parent().unwrap_or(Path::new("/")));
    Ok(())
}

/// Removes the reports from before this boot. Nothing depends on it, so errors are ignored.
fn forget_others(directory: &Path) {
    let above = directory.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        if entry.path() != directory {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::tests::whole;
    use super::*;

    struct Kept {
        directory: tempfile::TempDir,
        place: PathBuf,
        report: Report,
    }

    fn kept() -> Kept {
        let directory = tempfile::tempdir().unwrap();
        let report = whole();
        let place = place(directory.path(), &report.ground).unwrap();
        write(&place, &report).unwrap();
        Kept {
            directory,
            place,
            report,
        }
    }

    #[test]
    fn a_report_counts_on_its_own_ground_only() {
        let kept = kept();
        let ground = &kept.report.ground;
        assert_eq!(read(&kept.place, ground).unwrap(), kept.report);
        let others: [fn(&mut Ground); 5] = [
            |ground| ground.kernel.push('x'),
            |ground| ground.boot.push('x'),
            |ground| ground.launcher.push('x'),
            |ground| ground.profile.push('x'),
            |ground| ground.user += 1,
        ];
        for change in others {
            let mut other = ground.clone();
            change(&mut other);
            let elsewhere = place(kept.directory.path(), &other).unwrap();
            assert_ne!(elsewhere, kept.place);
            assert!(read(&kept.place, &other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn reports_from_before_this_boot_are_forgotten() {
        let kept = kept();
        let mut later = kept.report.clone();
        later.ground.boot.push('x');
        write(
            &place(kept.directory.path(), &later.ground).unwrap(),
            &later,
        )
        .unwrap();
        assert!(!kept.place.exists());
    }

    #[test]
    fn a_report_that_does_not_hold_does_not_count() {
        let kept = kept();
        let changes: [fn(&mut Report); 3] = [
            |report| report.probes[3].held = false,
            |report| drop(report.probes.remove(3)),
            |report| report.probes.clear(),
        ];
        for change in changes {
            let mut report = kept.report.clone();
            change(&mut report);
            write(&kept.place, &report).unwrap();
            assert!(read(&kept.place, &report.ground).is_err());
        }
        fs::write(&kept.place, "{").unwrap();
        assert!(read(&kept.place, &kept.report.ground).is_err());
    }

    #[test]
    fn a_file_that_others_could_have_written_does_not_count() {
        let spoils: [fn(&Path); 5] = [
            |place| fs::set_permissions(place, fs::Permissions::from_mode(0o620)).unwrap(),
            |place| {
                let above = place.parent().unwrap();
                fs::set_permissions(above, fs::Permissions::from_mode(0o770)).unwrap();
            },
            |place| {
                fs::rename(place, place.with_extension("real")).unwrap();
                symlink(place.with_extension("real"), place).unwrap();
            },
            |place| fs::hard_link(place, place.with_extension("twin")).unwrap(),
            |place| {
                fs::remove_file(place).unwrap();
                fs::create_dir(place).unwrap();
            },
        ];
        for (at, spoil) in spoils.into_iter().enumerate() {
            let kept = kept();
            read(&kept.place, &kept.report.ground).unwrap();
            spoil(&kept.place);
            assert!(read(&kept.place, &kept.report.ground).is_err(), "{at}");
        }
    }

    #[test]
    fn a_shape_forgets_the_run_and_nothing_else() {
        let private = Path::new("/cache");
        let of = |source: &str, content: &str| {
            let mut profile = Profile::minimal();
            profile.add(Mount::Writable {
                source: source.into(),
                target: "/workspace".into(),
            });
            profile.add(Mount::File {
                target: "/contract".into(),
                content: content.to_owned(),
            });
            profile.env.insert("RUN".to_owned(), content.to_owned());
            shape(&profile, &[private])
        };
        assert_eq!(of("/cache/1/tree", "1"), of("/cache/2/tree", "2"));
        assert_ne!(of("/cache/1/tree", "1"), of("/home/tree", "1"));
        assert_ne!(of("/cache/1/tree", "1"), of("/cachet/tree", "1"));
    }
}
