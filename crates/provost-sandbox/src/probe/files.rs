//! Attempts on files: the host's, and those of the sandbox that may only be read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::super::attempts;
use super::super::wall::Wall;
use super::{Hidden, Outcome, Task, Trial};

pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "secret_read",
        walls: &[Wall::Root],
        tried: "read a file of the host",
        attempt: |task| Outcome::denied(fs::read(&task.secret)),
    },
    Trial {
        name: "secret_write",
        walls: &[Wall::Root, Wall::Landlock],
        tried: "open a file of the host for writing",
        attempt: |task| Outcome::denied(append(&task.secret)),
    },
    Trial {
        name: "secret_chmod",
        walls: &[Wall::Root],
        tried: "change the mode of a file of the host",
        attempt: |task| Outcome::denied(set_mode(&task.secret, 0o666)),
    },
    Trial {
        name: "secret_truncate",
        walls: &[Wall::Root, Wall::Landlock],
        tried: "cut a file of the host short",
        attempt: |task| Outcome::denied(truncate(&task.secret)),
    },
    Trial {
        name: "secret_handle",
        walls: &[Wall::Seccomp, Wall::Capabilities],
        tried: "open a file by its handle, without a path",
        attempt: |_| Outcome::refused(attempts::open_by_handle()),
    },
    Trial {
        name: "host_hidden",
        walls: &[Wall::Root],
        tried: "find the home and the git directories of the host",
        attempt: host_hidden,
    },
    Trial {
        name: "git_write",
        walls: &[Wall::Root, Wall::Landlock],
        tried: "write into the git directories of the host",
        attempt: git_write,
    },
    Trial {
        name: "device_nodes",
        walls: &[Wall::Seccomp, Wall::Landlock],
        tried: "make a device node",
        attempt: device_nodes,
    },
    Trial {
        name: "device_chmod",
        walls: &[Wall::ReadOnly],
        tried: "change the mode of /dev/null",
        attempt: |_| Outcome::denied(set_mode(Path::new("/dev/null"), 0o666)),
    },
    Trial {
        name: "sysctl",
        walls: &[Wall::Proc, Wall::Landlock],
        tried: "open a setting of the kernel for writing",
        attempt: |_| {
            let place = "/proc/sys/kernel/core_pattern";
            Outcome::denied(OpenOptions::new().write(true).open(place))
        },
    },
    Trial {
        name: "read_only",
        walls: &[Wall::ReadOnly, Wall::Landlock],
        tried: "write where the profile lets only read",
        attempt: read_only,
    },
    Trial {
        name: "read_only_truncate",
        walls: &[Wall::ReadOnly, Wall::Landlock],
        tried: "cut a file short where the profile lets only read",
        attempt: read_only_truncate,
    },
    Trial {
        name: "read_only_mode",
        walls: &[Wall::ReadOnly],
        tried: "change mode, owner and times where the profile lets only read",
        attempt: read_only_mode,
    },
    Trial {
        name: "mount_flags",
        walls: &[Wall::MountFlags],
        tried: "find a mount that honours set-user-id bits or devices",
        attempt: mount_flags,
    },
    Trial {
        name: "writable",
        walls: &[],
        tried: "write where the profile says",
        attempt: writable,
    },
];

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Whether a directory of the sandbox is at the path of a hidden directory.
fn is_another(hidden: &Hidden) -> bool {
    fs::metadata(&hidden.path)
        .is_ok_and(|found| (found.dev(), found.ino()) != (hidden.device, hidden.inode))
}

/// A directory may be at that path, but not the host's.
fn host_hidden(task: &Task) -> Outcome {
    let one = |hidden: &Hidden| match fs::metadata(&hidden.path) {
        Ok(_) if is_another(hidden) => Outcome::seen(true, "another directory is there"),
        Ok(_) => Outcome::seen(false, format!("{} is there", hidden.path.display())),
        error => Outcome::denied(error),
    };
    Outcome::all(task.hidden.iter().map(one))
}

/// Opens the files by which a git directory can be taken over; writes nothing to them.
fn git_write(task: &Task) -> Outcome {
    let of_host = task.hidden.iter().filter(|hidden| !is_another(hidden));
    Outcome::all(of_host.flat_map(|hidden| {
        let files = ["config", "HEAD"].map(|name| append(&hidden.path.join(name)));
        files.map(Outcome::denied)
    }))
}

fn device_nodes(task: &Task) -> Outcome {
    let Some(directory) = task.writable.iter().find(|path| path.is_dir()) else {
        return Outcome::seen(true, "no place to make one");
    };
    let path = scratch(directory);
    let outcome = Outcome::refused(attempts::whiteout(&path.to_string_lossy()));
    let _ = fs::remove_file(path);
    outcome
}

/// A free path: removes what a killed probe left there.
fn scratch(directory: &Path) -> PathBuf {
    let path = directory.join(".provost-probe");
    let _ = fs::remove_file(&path);
    path
}

/// Opens a file for writing, or makes one in a directory and removes it again.
fn touch(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return append(path).map(drop);
    }
    let file = scratch(path);
    File::create_new(&file)?;
    fs::remove_file(file)
}

/// Paths where nothing may be changed.
fn unwritable(task: &Task) -> impl Iterator<Item = &Path> {
    task.read_only
        .iter()
        .map(PathBuf::as_path)
        .chain([Path::new("/")])
}

/// Holds if `change` is refused everywhere.
fn nowhere(task: &Task, change: impl Fn(&Path) -> io::Result<()>) -> Outcome {
    Outcome::all(unwritable(task).map(|path| {
        let mut outcome = Outcome::denied(change(path));
        if !outcome.held {
            outcome.note = path.display().to_string();
        }
        outcome
    }))
}

fn read_only(task: &Task) -> Outcome {
    nowhere(task, touch)
}

/// Cuts a file where it ends already, so that nothing changes where it works. A file that is open
/// for nothing but reading can be cut by its path.
fn truncate(path: &Path) -> io::Result<()> {
    let length = fs::metadata(path).map_or(0, |found| found.len());
    if length == 0 && path.exists() {
        return Err(Errno::NODATA.into());
    }
    attempts::truncate(path, length).map_err(io::Error::from)
}

fn read_only_truncate(task: &Task) -> Outcome {
    nowhere(task, |path| {
        if path.is_dir() {
            Err(Errno::ISDIR.into())
        } else {
            truncate(path)
        }
    })
}

/// Sets the values that are there already, so that nothing changes where it works.
fn read_only_mode(task: &Task) -> Outcome {
    nowhere(task, |path| {
        let found = fs::metadata(path)?;
        let mode = set_mode(path, found.mode() & 0o7777);
        let owner = chown(path, Some(found.uid()), Some(found.gid()));
        let time = File::open(path).and_then(|file| file.set_modified(found.modified()?));
        mode.or(owner).or(time)
    })
}

/// Only the five devices may be mounts that permit devices.
fn mount_flags(_: &Task) -> Outcome {
    let text = match fs::read_to_string("/proc/self/mountinfo") {
        Ok(text) => text,
        Err(error) => return Outcome::seen(false, error.to_string()),
    };
    let wanting = |line: &&str| {
        let mut words = line.split(' ').skip(4);
        let (place, options) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let has = |flag: &str| options.split(',').any(|option| option == flag);
        let device = place.starts_with("/dev/") && has("noexec");
        !has("nosuid") || !(has("nodev") || device)
    };
    match text.lines().find(wanting) {
        Some(line) => Outcome::seen(false, line),
        None => Outcome::seen(true, format!("{} mounts", text.lines().count())),
    }
}

fn writable(task: &Task) -> Outcome {
    let failed: Vec<String> = task
        .writable
        .iter()
        .filter_map(|path| {
            let error = touch(path).err()?;
            Some(format!("{}: {error}", path.display()))
        })
        .collect();
    Outcome::seen(failed.is_empty(), failed.join(" "))
}
