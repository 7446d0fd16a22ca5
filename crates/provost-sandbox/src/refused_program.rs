//! Programs that may not run in a sandbox: a stub is mounted in place of each of them.
//!
//! # Invariants
//!
//! - A program is found by its name in every directory of programs that the sandbox has, by the
//!   file that a link of that name leads to, and by further links to that file.
//! - The stub reports its call through a pipe that the sandbox can write and not read, so that no
//!   program takes a report back.
//! - A file that is many programs in one (busybox) stays; only the links with refused names are
//!   replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::profile::{Mount, Profile};

/// The first argument of a stub, by the first line of [`CONTENT`].
pub(crate) const REFUSED: &str = "__refused";
/// Where the stub is in a sandbox.
pub(crate) const STUB: &str = "/run/provost/refused";
/// The stub: a script whose interpreter is this program.
pub(crate) const CONTENT: &str = "#!/run/provost/self __refused\n";
/// Where a stub reports its call.
const REPORTS: &str = "/run/provost/reports";
/// The exit status of a stub: the program was found and may not be executed.
const STATUS: i32 = 126;

/// Directories with programs, whatever PATH says.
const DIRECTORIES: [&str; 8] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/usr/libexec",
    "/sbin",
    "/bin",
    "/opt/bin",
];

/// Names of files that are many programs in one, or the shell itself.
const MANY_IN_ONE: [&str; 5] = ["busybox", "toybox", "coreutils", "sh", "bash"];

/// The longest report that is kept until its line ends, in bytes.
const LONGEST: usize = 4096;

/// The main function of a stub at the path `program`.
pub(crate) fn run(program: &OsStr) -> i32 {
    // A link of another name leads to the place of the stub.
    let path = fs::canonicalize(program).unwrap_or_else(|_| program.into());
    let name = path.file_name().unwrap_or(program).to_string_lossy();
    let pipe = fs::OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(REPORTS);
    if let Ok(mut pipe) = pipe {
        // A full pipe has reports enough.
        let _ = pipe.write_all(format!("{name}\n").as_bytes());
    }
    let code = Code::ForbiddenAction.name();
    let words = format!(
        "{code}: `{name}` may not run in the sandbox of an agent\nhint: do the work without it; \
         `provost explain {code}` says who may permit it\n"
    );
    // Without a stream for it, the status says enough.
    let _ = std::io::stderr().write_all(words.as_bytes());
    STATUS
}

impl Profile {
    /// Puts stubs in place of the programs `names`; those mounted later are not covered.
    pub fn refuse(&mut self, names: &BTreeSet<String>) {
        for target in self.refusable(names) {
            self.add(Mount::Refused { target });
        }
    }

    /// Lets stubs report their calls through the pipe `source`.
    pub fn report_to(&mut self, source: PathBuf) {
        self.add(Mount::Reports {
            source,
            target: REPORTS.into(),
        });
    }

    /// The paths inside that lead to the programs `names`.
    fn refusable(&self, names: &BTreeSet<String>) -> BTreeSet<PathBuf> {
        let directories = self.directories();
        let mut found = BTreeSet::new();
        for (inside, host) in &directories {
            for name in names {
                let Ok(entry) = fs::symlink_metadata(host.join(name)) else {
                    continue;
                };
                found.insert(inside.join(name));
                if entry.is_symlink() || entry.nlink() > 1 {
                    found.extend(self.aliases(&host.join(name), &directories));
                }
            }
        }
        found
    }

    /// Further paths inside of the file that `program` leads to.
    fn aliases(&self, program: &Path, directories: &BTreeMap<PathBuf, PathBuf>) -> Vec<PathBuf> {
        let Ok((file, entry)) = fs::canonicalize(program)
            .and_then(|file| fs::metadata(&file).map(|entry| (file, entry)))
        else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = self.inside(&file).into_iter().collect();
        for (inside, host) in directories {
            let entries = fs::read_dir(host).into_iter().flatten().flatten();
            for other in entries {
                let same = fs::metadata(other.path())
                    .is_ok_and(|it| (it.dev(), it.ino()) == (entry.dev(), entry.ino()));
                if same {
                    paths.push(inside.join(other.file_name()));
                }
            }
        }
        let is_many = |path: &PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| MANY_IN_ONE.contains(&name))
        };
        if paths.iter().any(is_many) {
            return Vec::new();
        }
        paths
    }

    /// The directories with programs by their paths inside, each with its path on the host.
    fn directories(&self) -> BTreeMap<PathBuf, PathBuf> {
        let path = self.env.get("PATH").map_or("", String::as_str);
        let all = path.split(':').chain(DIRECTORIES).map(Path::new);
        let real = |inside: &Path| {
            let host = fs::canonicalize(self.host(inside)?).ok()?;
            Some((self.inside(&host)?, host))
        };
        all.filter_map(real).collect()
    }

    /// Where a path inside is on the host; nowhere below a link or a scratch directory.
    fn host(&self, inside: &Path) -> Option<PathBuf> {
        let around = |mount: &&Mount| inside.starts_with(mount.target());
        let (source, target) = bound(self.mounts.iter().rev().find(around)?)?;
        Some(source.join(inside.strip_prefix(target).ok()?))
    }

    /// Where a path of the host, without links, is inside.
    fn inside(&self, host: &Path) -> Option<PathBuf> {
        self.mounts.iter().rev().find_map(|mount| {
            let (source, target) = bound(mount)?;
            let source = fs::canonicalize(source).ok()?;
            let rest = host.strip_prefix(&source).ok()?;
            Some(if rest.as_os_str().is_empty() {
                target.to_owned()
            } else {
                target.join(rest)
            })
        })
    }
}

/// Source and target of a mount that shows a path of the host.
fn bound(mount: &Mount) -> Option<(&Path, &Path)> {
    match mount {
        Mount::ReadOnly { source, target } | Mount::Writable { source, target } => {
            Some((source, target))
        }
        Mount::UserFiles { path } => Some((path, path)),
        Mount::Overlay { .. }
        | Mount::Masked { .. }
        | Mount::Protect { .. }
        | Mount::Scratch { .. }
        | Mount::File { .. }
        | Mount::Symlink { .. }
        | Mount::Refused { .. }
        | Mount::Reports { .. } => None,
    }
}

/// The driver's end of the pipe that stubs report to.
#[derive(Debug)]
pub struct StubReports {
    pipe: fs::File,
    names: BTreeSet<String>,
    rest: Vec<u8>,
    counts: BTreeMap<String, u64>,
}

impl StubReports {
    /// Makes a new pipe at `path`.
    pub fn make(path: &Path) -> std::io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0)?;
        Ok(())
    }

    /// Opens the pipe of `profile`, if it has one; from now on it can only be written.
    pub fn open(profile: &Profile) -> std::io::Result<Option<Self>> {
        let source = profile.mounts.iter().find_map(|mount| match mount {
            Mount::Reports { source, .. } => Some(source),
            _ => None,
        });
        let Some(source) = source else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(source, flags, Mode::empty())?;
        rustix::fs::fchmod(&pipe, Mode::from_raw_mode(0o200))?;
        let refused = profile.mounts.iter().filter_map(|mount| match mount {
            Mount::Refused { target } => target.file_name(),
            _ => None,
        });
        let names = refused.map(|name| name.to_string_lossy().into_owned());
        Ok(Some(Self {
            pipe: pipe.into(),
            names: names.collect(),
            rest: Vec::new(),
            counts: BTreeMap::new(),
        }))
    }

    /// Reads what was reported since the last call. Only names of stubs count.
    pub fn read(&mut self) {
        let mut bytes = [0; 4096];
        // Without a writer, and without anything to read, the pipe is at its end.
        while let Ok(count @ 1..) = rustix::io::read(&self.pipe, &mut bytes) {
            self.rest.extend_from_slice(&bytes[..count]);
            while let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                let name = String::from_utf8_lossy(&line[..at]).into_owned();
                if self.names.contains(&name) {
                    let count = self.counts.entry(name).or_default();
                    *count = count.saturating_add(1);
                }
            }
            if self.rest.len() > LONGEST {
                self.rest.clear();
            }
        }
    }

    /// How often each stub was called.
    pub fn into_counts(self) -> BTreeMap<String, u64> {
        self.counts
    }
}
